//===- Encode.cpp: added tokens, steps, model -----------------------------===//
// Takes:    see Encode.h and text.h.
// Gives:    astra_text_encode.
// Keeps:    added tokens are found from the left, the longest first.
// Does not: render conversations.
#include "Encode.h"
#include "Model.h"
#include "Pieces.h"

using namespace astra::text;

namespace {

class Encoder {
public:
  Encoder(const astra_text &t, Buffer<int32_t> &out, astra_diag *diag) : t(t), out(out), diag(diag), model(t) {}

  Status run(Bytes text, View<Part> parts) {
    size_t part = 0;
    return cut(
        text, 0,
        [&](size_t at, size_t end) {
          while (parts[part].end <= at) part++;
          return parts[part].special && end <= parts[part].end;
        },
        [&](Bytes plain, bool first) { return normalize(plain, first, parts); });
  }

private:
  /// Cuts `text` at added tokens whose kNormalized is `normalized`; special ones where `special(begin, end)`.
  template <typename Special, typename Plain>
  Status cut(Bytes text, uint32_t normalized, Special special, Plain plain) {
    size_t done = 0;
    bool first = true;
    auto give = [&](size_t end) {
      Status status = done < end ? plain(text.part(done, end), first && !done) : ASTRA_OK;
      return status;
    };
    for (size_t at = 0; t.added.size && at < text.size;) {
      const Added *a = addedAt(text, at, normalized, special);
      if (!a) {
        at += lengthAt(text.data + at);
        continue;
      }
      size_t begin = at, end = at + t.strings[a->string].size;
      while (a->flags & kLeft && begin > done) {
        size_t before = begin - 1;
        while ((text.data[before] & 0xc0) == 0x80) before--;
        if (!isSpace(characterAt(text.data + before).value)) break;
        begin = before;
      }
      while (a->flags & kRight && end < text.size && isSpace(characterAt(text.data + end).value))
        end += lengthAt(text.data + end);
      if (Status status = give(begin)) return status;
      out.push(int32_t(a->token));
      at = done = end;
    }
    return give(text.size);
  }

  template <typename Special> const Added *addedAt(Bytes text, size_t at, uint32_t normalized, Special special) const {
    uint8_t b = text[at];
    for (uint32_t k = t.addedFirst[b]; k < t.addedFirst[b + 1]; k++) {
      const Added &a = t.added[t.addedOrder[k]];
      Bytes s = t.strings[a.string];
      if ((a.flags & kNormalized) != normalized || s.size > text.size - at || memcmp(s.data, text.data + at, s.size))
        continue;
      if (a.flags & kSpecial && !special(at, at + s.size)) continue;
      if (a.flags & kSingleWord && touchesWord(text, at, at + s.size)) continue;
      return &a;
    }
    return nullptr;
  }

  bool isSpace(uint32_t c) const { return t.info.spaceSet != kNone && t.in(t.info.spaceSet, c); }
  bool touchesWord(Bytes text, size_t begin, size_t end) const {
    if (t.info.wordSet == kNone) return false;
    if (end < text.size && t.in(t.info.wordSet, characterAt(text.data + end).value)) return true;
    if (!begin) return false;
    size_t before = begin - 1;
    while ((text.data[before] & 0xc0) == 0x80) before--;
    return t.in(t.info.wordSet, characterAt(text.data + before).value);
  }

  Status normalize(Bytes plain, bool first, View<Part> parts) {
    normalized.begin(plain);
    if (Status status = runSteps(t, 0, t.info.normalizers, first, normalized, diag)) return status;
    if (!normalized.pieces.size()) return ASTRA_OK;
    bool all = true; // behind the steps nobody knows which part text came from
    for (const Part &p : parts) all = all && p.special;
    return cut(
        normalized[0], kNormalized, [&](size_t, size_t) { return all; },
        [&](Bytes text, bool firstHere) { return finish(text, first && firstHere); });
  }

  Status finish(Bytes text, bool first) {
    pieces.begin(text);
    if (Status status = runSteps(t, t.info.normalizers, uint32_t(t.steps.size), first, pieces, diag)) return status;
    for (size_t i = 0; i < pieces.pieces.size(); i++) model.encode(pieces[i], out);
    return model.failed() ? fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the tokens of a text") : ASTRA_OK;
  }

  const astra_text &t;
  Buffer<int32_t> &out;
  astra_diag *diag;
  Model model;
  Pieces normalized, pieces;
};

} // namespace

Status astra::text::encode(const astra_text &t, Bytes text, View<Part> parts, Buffer<int32_t> &out, astra_diag *diag) {
  if (!text.size) return ASTRA_OK;
  return Encoder(t, out, diag).run(text, parts);
}

Status astra::text::requireUtf8(Bytes text, const char *what, astra_diag *diag) {
  bool cut;
  size_t good = validUtf8(text, cut);
  if (good == text.size) return ASTRA_OK;
  return fail(diag, ASTRA_INVALID_ARGUMENT, "%s is no UTF-8: byte %zu (0x%02x) %s", what, good, text[good],
              cut ? "begins a character that the end cuts off" : "is part of no character");
}

astra_status astra_text_encode(const astra_text *text, const char *utf8, size_t bytes, uint32_t flags, int32_t *tokens,
                               size_t capacity, size_t *count, astra_diag *diag) {
  if (!text || (!utf8 && bytes) || !count)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the tokenizer, the text or the count is NULL; give all of them");
  if (flags & ~uint32_t(ASTRA_TEXT_AROUND | ASTRA_TEXT_SPECIAL))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the flags are %u, which has unknown bits", flags);
  if (bytes > 0x7fffffff)
    return fail(diag, ASTRA_OVERFLOW, "the text has %zu bytes; encode it in parts below 2^31", bytes);
  Bytes all = {reinterpret_cast<const uint8_t *>(utf8), bytes};
  if (Status status = requireUtf8(all, "the text", diag)) return status;
  Buffer<int32_t> out;
  if (flags & ASTRA_TEXT_AROUND)
    for (uint32_t token : text->before) out.push(int32_t(token));
  Part part = {bytes, bool(flags & ASTRA_TEXT_SPECIAL)};
  if (Status status = encode(*text, all, {&part, 1}, out, diag)) return status;
  if (flags & ASTRA_TEXT_AROUND)
    for (uint32_t token : text->after) out.push(int32_t(token));
  return give(out, tokens, capacity, count, "tokens", diag);
}

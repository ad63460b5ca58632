//===- Decode.cpp: tokens become text -------------------------------------===//
// Takes:    tokens from anywhere.
// Gives:    astra_text_decode, the stream, and what is known about single tokens.
// Keeps:    what a stream gives, joined, is what decode gives.
// Does not: hold back more than the begin of one character.
#include "Encode.h"

using namespace astra::text;

namespace {

Status requireToken(const astra_text *text, int32_t token, astra_diag *diag) {
  if (!text) return fail(diag, ASTRA_INVALID_ARGUMENT, "the tokenizer is NULL; give one");
  if (token >= 0 && uint32_t(token) < text->info.tokens) return ASTRA_OK;
  return fail(diag, ASTRA_OUT_OF_BOUNDS, "token %d is none of the tokenizer's %u tokens", token, text->info.tokens);
}

/// The bytes that a token adds, behind `begun` text or not.
Bytes added(const astra_text &t, uint32_t token, bool begun) {
  Bytes bytes = !begun && t.info.flags & kFirstVerbatim ? t.tokens[token] : t.outputOf(token);
  if (!begun && t.info.flags & kDropSpace && bytes.size && bytes[0] == ' ') return bytes.part(1, bytes.size);
  return bytes;
}

} // namespace

int32_t astra_text_tokens(const astra_text *text) { return text ? int32_t(text->info.tokens) : 0; }

astra_status astra_text_token(const astra_text *text, int32_t token, const char **bytes, size_t *size,
                              astra_diag *diag) {
  if (Status status = requireToken(text, token, diag)) return status;
  if (!bytes || !size) return fail(diag, ASTRA_INVALID_ARGUMENT, "a place for the result is NULL; give both");
  Bytes b = text->tokens[uint32_t(token)];
  *bytes = reinterpret_cast<const char *>(b.data), *size = b.size;
  return ASTRA_OK;
}

int32_t astra_text_find(const astra_text *text, const char *bytes, size_t size) {
  if (!text || !bytes || !size) return -1;
  Bytes wanted = {reinterpret_cast<const uint8_t *>(bytes), size};
  for (uint32_t k = text->addedFirst[wanted[0]]; k < text->addedFirst[wanted[0] + 1]; k++)
    if (const Added &a = text->added[text->addedOrder[k]]; equal(text->strings[a.string], wanted))
      return int32_t(a.token);
  uint32_t token = text->find(wanted);
  return token == kNone ? -1 : int32_t(token);
}

int astra_text_is_special(const astra_text *text, int32_t token) {
  return text && token >= 0 && uint32_t(token) < text->info.tokens && text->isSpecial(uint32_t(token));
}

int32_t astra_text_role_token(const astra_text *text, int32_t role) {
  if (!text || role < 0 || role > ASTRA_TEXT_PAD) return -1;
  const Info &i = text->info;
  uint32_t token[] = {i.begin, i.end, i.turn, i.unknown, i.pad};
  return token[role] == kNone ? -1 : int32_t(token[role]);
}

astra_status astra_text_decode(const astra_text *text, const int32_t *tokens, size_t count, uint32_t flags, char *utf8,
                               size_t capacity, size_t *bytes, astra_diag *diag) {
  if (!text || (!tokens && count) || !bytes)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the tokenizer, the tokens or the size is NULL; give all of them");
  if (flags & ~uint32_t(ASTRA_TEXT_PLAIN))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the flags are %u, which has unknown bits", flags);
  Buffer<uint8_t> raw, out;
  bool begun = false;
  for (size_t i = 0; i < count; i++) {
    if (Status status = requireToken(text, tokens[i], diag)) return status;
    uint32_t token = uint32_t(tokens[i]);
    if (flags & ASTRA_TEXT_PLAIN && text->isSpecial(token)) continue;
    raw.append(added(*text, token, begun));
    begun = true;
  }
  appendLossy(out, raw.view());
  out.failed |= raw.failed;
  return give(out, utf8, capacity, bytes, "bytes of text", diag);
}

astra_status astra_text_stream_next(const astra_text *text, astra_text_stream *stream, int32_t token, uint32_t flags,
                                    char *utf8, size_t capacity, size_t *bytes, astra_diag *diag) {
  if (Status status = requireToken(text, token, diag)) return status;
  if (!stream || !bytes || stream->held > sizeof(stream->bytes))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the stream or the size is NULL, or the stream was not set to zero");
  if (flags & ~uint32_t(ASTRA_TEXT_PLAIN))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the flags are %u, which has unknown bits", flags);
  Buffer<uint8_t> raw, out;
  bool plain = flags & ASTRA_TEXT_PLAIN && text->isSpecial(uint32_t(token));
  raw.append({stream->bytes, stream->held});
  if (!plain) raw.append(added(*text, uint32_t(token), stream->begun));
  // What the end cuts off may become a character; what stands before it is final.
  size_t end = raw.size();
  for (size_t back = 1; back <= 3 && back <= raw.size(); back++) {
    size_t at = raw.size() - back;
    if ((raw[at] & 0xc0) == 0x80) continue;
    bool cut;
    validUtf8(raw.view().part(at, raw.size()), cut);
    if (cut) end = at;
    break;
  }
  appendLossy(out, raw.view().part(0, end));
  out.failed |= raw.failed;
  if (Status status = give(out, utf8, capacity, bytes, "bytes of text", diag)) return status;
  stream->held = uint32_t(raw.size() - end);
  if (stream->held) memcpy(stream->bytes, raw.view().data + end, stream->held);
  stream->begun |= !plain;
  return ASTRA_OK;
}

astra_status astra_text_stream_end(astra_text_stream *stream, char *utf8, size_t capacity, size_t *bytes,
                                   astra_diag *diag) {
  if (!stream || !bytes || stream->held > sizeof(stream->bytes))
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the stream or the size is NULL, or the stream was not set to zero");
  Buffer<uint8_t> out;
  appendLossy(out, {stream->bytes, stream->held});
  if (Status status = give(out, utf8, capacity, bytes, "bytes of text", diag)) return status;
  memset(stream, 0, sizeof(*stream));
  return ASTRA_OK;
}

//===- Pieces.cpp: one function a step ------------------------------------===//
// Takes:    see Pieces.h.
// Gives:    the meaning of StepKind (format/Blob.h).
// Keeps:    chapter 3.11 of Unicode: canonical order, canonical composition, Hangul by rule.
// Does not: have tables of its own.
#include "Pieces.h"
#include "Clusters.h"
#include "Pattern.h"

using namespace astra::text;

namespace {

// Unicode 3.12: Hangul syllables.
constexpr uint32_t kS = 0xac00, kL = 0x1100, kV = 0x1161, kT = 0x11a7, kLs = 19, kVs = 21, kTs = 28,
                   kSs = kLs * kVs * kTs;

/// One step: what it takes and what it adds to.
struct OneStep {
  const astra_text &t;
  Step step;
  bool first;
  Buffer<uint8_t> &out;
  Buffer<Piece> &pieces;
  bool exhausted = false;

  Bytes string(uint32_t i) const { return t.strings[i]; }

  void map(Bytes text) {
    for (size_t at = 0; at < text.size;) {
      Character c = characterAt(text.data + at);
      uint32_t to = t.mapped(step.a, c.value);
      out.append(to == kNone ? text.part(at, at + c.bytes) : string(to));
      at += c.bytes;
    }
  }

  /// The combining characters from `from` on in the order of their classes; equal ones keep theirs.
  void order(size_t from) {
    Buffer<uint8_t> sorted;
    bool ascending = true;
    uint32_t most = 0;
    for (size_t at = from; at < out.size(); at += lengthAt(out.data() + at)) {
      uint32_t value = t.classOf(characterAt(out.data() + at).value);
      ascending = ascending && value >= most, most = value;
    }
    if (ascending) return;
    for (uint32_t last = 0, value; last < 256; last = value) { // one traversal for each class that occurs
      value = 256;
      for (size_t at = from; at < out.size(); at += lengthAt(out.data() + at)) {
        uint32_t own = t.classOf(characterAt(out.data() + at).value);
        if (own > last && own < value) value = own;
      }
      for (size_t at = from; value < 256 && at < out.size(); at += lengthAt(out.data() + at))
        if (Character c = characterAt(out.data() + at); t.classOf(c.value) == value)
          sorted.append(out.view().part(at, at + c.bytes));
    }
    out.failed |= sorted.failed;
    if (sorted.size() == out.size() - from) memcpy(out.data() + from, sorted.data(), sorted.size());
  }

  void decompose(Bytes text) {
    size_t marks = out.size(); // where the combining characters behind the last starter begin
    bool unordered = false;
    auto add = [&](uint32_t c) {
      bool starter = !t.classOf(c);
      if (starter && unordered) order(marks);
      appendCharacter(out, c);
      if (starter) marks = out.size();
      unordered = !starter;
    };
    for (size_t at = 0; at < text.size;) {
      Character c = characterAt(text.data + at);
      at += c.bytes;
      uint32_t to = c.value < 0x80 ? kNone : t.mapped(step.a, c.value), syllable = c.value - kS;
      if (syllable < kSs) {
        add(kL + syllable / (kVs * kTs));
        add(kV + syllable / kTs % kVs);
        if (syllable % kTs) add(kT + syllable % kTs);
      } else if (to == kNone) {
        add(c.value);
      } else {
        Bytes s = string(to);
        for (size_t k = 0; k < s.size; k += lengthAt(s.data + k)) add(characterAt(s.data + k).value);
      }
    }
    if (unordered) order(marks);
  }

  /// The character that two compose into, or 0.
  uint32_t composed(uint32_t a, uint32_t b) const {
    if (a - kL < kLs && b - kV < kVs) return kS + ((a - kL) * kVs + (b - kV)) * kTs;
    if (a - kS < kSs && (a - kS) % kTs == 0 && b - kT - 1 < kTs - 1) return a + (b - kT);
    size_t low = 0, high = t.compositions.size;
    uint64_t key = uint64_t(a) << 32 | b;
    while (low < high) {
      size_t middle = (low + high) / 2;
      const Composition &c = t.compositions[middle];
      if ((uint64_t(c.first) << 32 | c.second) < key)
        low = middle + 1;
      else
        high = middle;
    }
    if (low == t.compositions.size) return 0;
    const Composition &c = t.compositions[low];
    return c.first == a && c.second == b ? c.result : 0;
  }

  void compose(Bytes text) {
    Buffer<uint32_t> kept; // the last starter and what follows it
    auto flush = [&] {
      for (uint32_t c : kept.view()) appendCharacter(out, c);
      out.failed |= kept.failed;
      kept.clear();
    };
    bool starter = false;
    uint32_t last = 0; // the class of the last kept character, if it is not the starter
    for (size_t at = 0; at < text.size;) {
      Character c = characterAt(text.data + at);
      at += c.bytes;
      uint32_t value = c.value < 0x80 ? 0 : t.classOf(c.value);
      if (starter && kept.size()) {
        bool blocked = kept.size() > 1 && last >= value;
        uint32_t whole = blocked || c.value < 0x80 ? 0 : composed(kept[0], c.value);
        if (whole) {
          kept[0] = whole;
          continue;
        }
      }
      if (!value) flush(), starter = true;
      kept.push(c.value);
      last = value;
    }
    flush();
  }

  void replace(Bytes text) {
    Bytes from = string(step.a), to = string(step.b);
    size_t done = 0;
    while (done + from.size <= text.size) {
      const void *found = memmem(text.data + done, text.size - done, from.data, from.size);
      if (!found) break;
      size_t at = size_t(static_cast<const uint8_t *>(found) - text.data);
      out.append(text.part(done, at));
      out.append(to);
      done = at + from.size;
    }
    out.append(text.part(done, text.size));
  }

  void rewrite(Bytes text) {
    bool clusters = RewriteHow(step.b) == RewriteHow::Clusters;
    for (size_t at = 0, end; at < text.size; at = end) {
      const Rule *rule = nullptr;
      if (clusters) {
        end = clusterEnd(t, step.c, text, at);
        if (end - at < kClusterBytes) rule = t.ruleAt(step.a, text.part(at, end), false);
      } else {
        rule = t.ruleAt(step.a, text.part(at, text.size), true);
        end = at + (rule ? string(rule->from).size : lengthAt(text.data + at));
      }
      if (rule) {
        out.append(string(rule->to));
        continue;
      }
      for (size_t k = at; k < end; k += lengthAt(text.data + k)) {
        Bytes one = text.part(k, k + lengthAt(text.data + k));
        rule = clusters ? t.ruleAt(step.a, one, false) : nullptr;
        out.append(rule ? string(rule->to) : one);
      }
    }
  }

  void replacePattern(Bytes text) {
    Pattern pattern(t, step.a, text);
    size_t done = 0, begin, end;
    while (pattern.find(done, begin, end)) {
      out.append(text.part(done, begin));
      out.append(string(step.b));
      done = end;
    }
    exhausted |= pattern.exhausted();
    out.append(text.part(done, text.size));
  }

  void prepend(Bytes text) {
    Bytes s = string(step.a);
    auto where = PrependWhere(step.b);
    bool there = text.size >= s.size && equal(text.part(0, s.size), s);
    bool wanted = where == PrependWhere::Always || (!there && (where == PrependWhere::UnlessThere || first));
    if (wanted && text.size) out.append(s);
    out.append(text);
  }

  void strip(Bytes text) {
    size_t begin = 0, end = text.size;
    while (step.b & 1 && begin < end && t.in(step.a, characterAt(text.data + begin).value))
      begin += lengthAt(text.data + begin);
    while (step.b & 2 && end > begin) {
      size_t at = end - 1;
      while ((text.data[at] & 0xc0) == 0x80) at--;
      if (!t.in(step.a, characterAt(text.data + at).value)) break;
      end = at;
    }
    out.append(text.part(begin, end));
  }

  void surround(Bytes text) {
    for (size_t at = 0; at < text.size;) {
      Character c = characterAt(text.data + at);
      bool inside = t.in(step.a, c.value);
      if (inside) out.append(string(step.b));
      out.append(text.part(at, at + c.bytes));
      if (inside) out.append(string(step.b));
      at += c.bytes;
    }
  }

  /// Cuts a piece at matches. What is kept has its text already: only the pieces change.
  void split(Bytes text, uint32_t base) {
    Pattern pattern(t, step.a, text);
    auto how = SplitHow(step.b);
    bool previousMatched = false, any = false;
    size_t pending = ~size_t(0); // begin of a match that waits for what follows (WithNext)
    auto push = [&](size_t begin, size_t end) {
      if (begin < end) pieces.push({uint32_t(base + begin), uint32_t(base + end)}), any = true;
    };
    auto add = [&](size_t begin, size_t end, bool matched) {
      if (begin == end) return;
      matched ^= bool(step.c);
      switch (how) {
      case SplitHow::Removed:
        if (!matched) push(begin, end);
        break;
      case SplitHow::Isolated: push(begin, end); break;
      case SplitHow::WithPrevious:
        if (matched && !previousMatched && any)
          pieces[pieces.size() - 1].end = uint32_t(base + end);
        else
          push(begin, end);
        break;
      case SplitHow::WithNext:
        if (matched) {
          if (pending != ~size_t(0)) push(pending, begin);
          pending = begin;
        } else {
          push(pending != ~size_t(0) ? pending : begin, end);
          pending = ~size_t(0);
        }
        break;
      case SplitHow::Contiguous:
        if (any && matched == previousMatched)
          pieces[pieces.size() - 1].end = uint32_t(base + end);
        else
          push(begin, end);
        break;
      }
      previousMatched = matched;
    };
    size_t done = 0, begin, end;
    while (pattern.find(done, begin, end)) {
      add(done, begin, false);
      add(begin, end, true);
      done = end;
    }
    exhausted |= pattern.exhausted();
    add(done, text.size, false);
    if (pending != ~size_t(0)) push(pending, text.size);
  }

  void one(Bytes text) {
    size_t begin = out.size();
    switch (StepKind(step.kind)) {
    case StepKind::Map: map(text); break;
    case StepKind::Decompose: decompose(text); break;
    case StepKind::Compose: compose(text); break;
    case StepKind::Replace: replace(text); break;
    case StepKind::ReplacePattern: replacePattern(text); break;
    case StepKind::Prepend: prepend(text); break;
    case StepKind::Strip: strip(text); break;
    case StepKind::Surround: surround(text); break;
    case StepKind::Rewrite: rewrite(text); break;
    case StepKind::Split: return; // runSteps
    }
    if (out.size() > begin) pieces.push({uint32_t(begin), uint32_t(out.size())});
  }
};

} // namespace

Status astra::text::runSteps(const astra_text &t, uint32_t from, uint32_t to, bool first, Pieces &p, astra_diag *diag) {
  for (uint32_t k = from; k < to; k++) {
    p.nextText.clear(), p.nextPieces.clear();
    bool cuts = StepKind(t.steps[k].kind) == StepKind::Split;
    OneStep step{t, t.steps[k], first, p.nextText, p.nextPieces};
    for (size_t i = 0; i < p.pieces.size(); i++) {
      step.first = first && !i;
      if (cuts)
        step.split(p[i], p.pieces[i].begin);
      else
        step.one(p[i]);
      if (p.nextText.size() > 0x7fffffff)
        return fail(diag, ASTRA_OVERFLOW, "a text of more than 2^31 bytes arises; encode it in parts");
    }
    if (step.exhausted)
      return fail(diag, ASTRA_UNSUPPORTED, "a pattern of the tokenizer takes too many steps on this text");
    if (!cuts) p.text.swap(p.nextText);
    p.pieces.swap(p.nextPieces);
    if (p.failed()) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for the pieces of a text");
  }
  return ASTRA_OK;
}

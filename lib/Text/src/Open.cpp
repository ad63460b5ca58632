//===- Open.cpp: the check of a tokenizer's bytes --------------------------===//
// Takes:    bytes from anywhere.
// Gives:    a Tokenizer whose tables agree with one another, or one sentence.
// Keeps:    every offset, count, index and order is checked here, so that nothing else needs to.
// Does not: copy sections; tables that make finding fast are built beside them.
#include "Tokenizer.h"

#include <initializer_list>
#include <new>

using namespace astra::text;

namespace {

constexpr uint32_t kCharacters = 0x110000;

/// Where the sections lie, by kind.
struct Sections {
  Bytes of[32];
};

Status readSections(Bytes file, Sections &out, astra_diag *diag) {
  Header header;
  if (file.size < sizeof(header))
    return fail(diag, ASTRA_TRUNCATED, "the tokenizer has %zu bytes, fewer than a header", file.size);
  memcpy(&header, file.data, sizeof(header));
  if (memcmp(header.magic, kMagic, sizeof(kMagic)))
    return fail(diag, ASTRA_NOT_A_BUNDLE, "the bytes are not a tokenizer made by astra-compile");
  if (header.major != kMajor || header.minor > kMinor)
    return fail(diag, ASTRA_NEWER_FORMAT,
                "the tokenizer has the format %u.%u, this library reads %u.0 to %u.%u; use a newer library",
                header.major, header.minor, kMajor, kMajor, kMinor);
  if (header.bytes != file.size)
    return fail(diag, ASTRA_TRUNCATED, "the tokenizer has %zu bytes, its header says %llu", file.size,
                (unsigned long long)header.bytes);
  if (header.sections > 31 || sizeof(header) + header.sections * sizeof(Section) > file.size)
    return malformed(diag, "the tokenizer says that it has %u sections", header.sections);
  uint32_t before = 0;
  for (uint32_t i = 0; i < header.sections; i++) {
    Section s;
    memcpy(&s, file.data + sizeof(header) + i * sizeof(s), sizeof(s));
    if (s.kind <= before || s.kind > uint32_t(SectionKind::Rules) || s.reserved)
      return malformed(diag, "section %u of the tokenizer is of the kind %u, which is unknown or out of order", i,
                       s.kind);
    if (s.offset % 8 || s.offset > file.size || s.bytes > file.size - s.offset)
      return malformed(diag, "section %u of the tokenizer leaves the file", i);
    out.of[before = s.kind] = file.part(s.offset, s.offset + s.bytes);
  }
  return ASTRA_OK;
}

template <typename T> Status view(const Sections &from, SectionKind kind, View<T> &out, astra_diag *diag) {
  Bytes bytes = from.of[uint32_t(kind)];
  if (bytes.size % sizeof(T))
    return malformed(diag, "section %u of the tokenizer has %zu bytes, no multiple of %zu", uint32_t(kind), bytes.size,
                     sizeof(T));
  out = {reinterpret_cast<const T *>(bytes.data), bytes.size / sizeof(T)};
  return ASTRA_OK;
}

template <typename T>
Status rows(const Sections &from, SectionKind ends, SectionKind all, Rows<T> &out, astra_diag *diag) {
  if (Status s = view(from, ends, out.ends, diag)) return s;
  if (Status s = view(from, all, out.all, diag)) return s;
  uint32_t before = 0;
  for (uint32_t end : out.ends) {
    if (end < before || end > out.all.size)
      return malformed(diag, "section %u of the tokenizer has rows that overlap or leave their bytes", uint32_t(ends));
    before = end;
  }
  if (before != out.all.size)
    return malformed(diag, "section %u of the tokenizer has bytes that belong to no row", uint32_t(all));
  return ASTRA_OK;
}

Status readViews(const Sections &s, astra_text &t, astra_diag *diag) {
  View<Info> info;
  Status status = ASTRA_OK;
  auto all = [&](Status next) {
    if (!status) status = next;
  };
  all(view(s, SectionKind::Info, info, diag));
  if (!status && info.size != 1)
    return malformed(diag, "the tokenizer has %zu records of its model, expected 1", info.size);
  if (status) return status;
  t.info = info[0];
  all(rows(s, SectionKind::TokenEnds, SectionKind::Tokens, t.tokens, diag));
  all(view(s, SectionKind::TokenKinds, t.kinds, diag));
  if (!status) all(view(s, SectionKind::Sorted, t.sorted, diag));
  if (!status) all(view(s, SectionKind::Scores, t.scores, diag));
  if (!status) all(view(s, SectionKind::Merges, t.merges, diag));
  if (!status) all(view(s, SectionKind::Bytes, t.bytes, diag));
  if (!status) all(rows(s, SectionKind::OutputEnds, SectionKind::Output, t.output, diag));
  if (!status) all(view(s, SectionKind::Added, t.added, diag));
  if (!status) all(rows(s, SectionKind::StringEnds, SectionKind::Strings, t.strings, diag));
  if (!status) all(view(s, SectionKind::Steps, t.steps, diag));
  if (!status) all(view(s, SectionKind::Code, t.code, diag));
  if (!status) all(rows(s, SectionKind::SetEnds, SectionKind::Ranges, t.sets, diag));
  if (!status) all(rows(s, SectionKind::MapEnds, SectionKind::MapEntries, t.maps, diag));
  if (!status) all(view(s, SectionKind::Classes, t.classes, diag));
  if (!status) all(view(s, SectionKind::Compositions, t.compositions, diag));
  if (!status) all(view(s, SectionKind::Before, t.before, diag));
  if (!status) all(view(s, SectionKind::After, t.after, diag));
  if (!status) all(view(s, SectionKind::Chat, t.chat, diag));
  if (!status) all(rows(s, SectionKind::RuleEnds, SectionKind::Rules, t.rules, diag));
  return status;
}

/// An index of one of `count` things, or kNone where that is allowed.
bool isIndex(uint32_t index, size_t count, bool none = true) { return index < count || (none && index == kNone); }

/// The order of bytes, shorter ones first.
bool isBefore(Bytes a, Bytes b) {
  size_t both = a.size < b.size ? a.size : b.size;
  int order = both ? memcmp(a.data, b.data, both) : 0;
  return order < 0 || (!order && a.size < b.size);
}

Status checkVocabulary(const astra_text &t, astra_diag *diag) {
  const Info &i = t.info;
  if (i.kind < 1 || i.kind > 3 || i.flags & ~kModelFlags)
    return malformed(diag, "the tokenizer's model is of the kind %u with flags %u, which this library does not know",
                     i.kind, i.flags);
  if (!i.tokens || i.tokens > kMaxTokens)
    return malformed(diag, "the tokenizer has %u tokens, expected 1 to %u", i.tokens, kMaxTokens);
  if (t.tokens.size() != i.tokens || t.kinds.size != i.tokens || (t.output.size() && t.output.size() != i.tokens) ||
      (t.scores.size && t.scores.size != i.tokens))
    return malformed(diag, "the tokenizer's tables have different numbers of tokens");
  for (uint32_t token : {i.unknown, i.begin, i.end, i.turn, i.pad})
    if (!isIndex(token, i.tokens))
      return malformed(diag, "token %u has a role, the tokenizer has %u tokens", token, i.tokens);
  for (uint8_t kind : t.kinds)
    if (kind > uint8_t(TokenKind::Unused)) return malformed(diag, "a token of the tokenizer is of the kind %u", kind);
  for (View<uint32_t> list : {t.before, t.after})
    for (uint32_t token : list)
      if (token >= i.tokens)
        return malformed(diag, "token %u stands around texts, the tokenizer has %u tokens", token, i.tokens);
  if (t.bytes.size && t.bytes.size != 256)
    return malformed(diag, "the tokenizer has tokens for %zu bytes, expected 256", t.bytes.size);
  for (uint32_t token : t.bytes)
    if (!isIndex(token, i.tokens))
      return malformed(diag, "a byte is token %u, the tokenizer has %u tokens", token, i.tokens);
  if ((i.flags & (kByteLevel | kByteFallback)) && !t.bytes.size)
    return malformed(diag, "the tokenizer's model begins with bytes and has no tokens for them");
  if (i.kind == uint32_t(ModelKind::Unigram) && !t.scores.size)
    return malformed(diag, "the tokenizer's model needs scores and has none");
  for (double score : t.scores)
    if (!(score >= -1e30 && score <= 1e30))
      return malformed(diag, "a token of the tokenizer has a score that is no number");
  if (t.sorted.size > i.tokens)
    return malformed(diag, "the tokenizer sorts %zu tokens and has %u", t.sorted.size, i.tokens);
  for (size_t k = 0; k < t.sorted.size; k++) {
    if (t.sorted[k] >= i.tokens)
      return malformed(diag, "the tokenizer sorts token %u and has %u", t.sorted[k], i.tokens);
    Bytes b = t.tokens[t.sorted[k]];
    if (!b.size) return malformed(diag, "token %u of the tokenizer has no bytes", t.sorted[k]);
    if (!k) continue;
    if (!isBefore(t.tokens[t.sorted[k - 1]], b))
      return malformed(diag, "the tokenizer's tokens are not in the order of their bytes");
  }
  if (t.merges.size > kMaxMerges)
    return malformed(diag, "the tokenizer has %zu merges, at most %u are allowed", t.merges.size, kMaxMerges);
  for (const Merge &m : t.merges)
    if (m.left >= i.tokens || m.right >= i.tokens || m.result >= i.tokens)
      return malformed(diag, "a merge of the tokenizer names a token that it does not have");
  return ASTRA_OK;
}

Status checkTexts(const astra_text &t, astra_diag *diag) {
  for (size_t k = 0; k < t.strings.size(); k++) {
    bool cut;
    if (validUtf8(t.strings[k], cut) != t.strings[k].size)
      return malformed(diag, "string %zu of the tokenizer is no UTF-8", k);
  }
  if (t.added.size > kMaxAdded)
    return malformed(diag, "the tokenizer has %zu added tokens, at most %u are allowed", t.added.size, kMaxAdded);
  for (const Added &a : t.added)
    if (a.token >= t.info.tokens || !isIndex(a.string, t.strings.size(), false) || !t.strings[a.string].size ||
        a.flags > 31)
      return malformed(diag, "an added token of the tokenizer has no text, or is none of its tokens");
  if (t.chat.size > 1) return malformed(diag, "the tokenizer has %zu forms of conversations, expected 1", t.chat.size);
  for (const Chat &c : t.chat)
    for (uint32_t s : {c.name, c.begin, c.systemPrefix, c.systemSuffix, c.userPrefix, c.userSuffix, c.assistantPrefix,
                       c.assistantSuffix, c.answer, c.system})
      if (!isIndex(s, t.strings.size()) || c.flags > 7)
        return malformed(diag, "the tokenizer's form of conversations names a string that is not there");
  if (!isIndex(t.info.continuing, t.strings.size()))
    return malformed(diag, "the tokenizer's model names a string that is not there");
  return ASTRA_OK;
}

Status checkCharacters(const astra_text &t, astra_diag *diag) {
  if (t.sets.size() > kMaxSets)
    return malformed(diag, "the tokenizer has %zu sets of characters, at most %u are allowed", t.sets.size(), kMaxSets);
  for (uint32_t set : {t.info.wordSet, t.info.spaceSet})
    if (!isIndex(set, t.sets.size()))
      return malformed(diag, "the tokenizer names a set of characters that is not there");
  for (size_t k = 0; k < t.sets.size(); k++) {
    uint32_t next = 0;
    for (const Range &r : t.sets[k]) {
      if (r.first < next || r.last < r.first || r.last >= kCharacters)
        return malformed(diag, "set %zu of the tokenizer has ranges out of order", k);
      next = r.last + 1;
    }
  }
  for (size_t k = 0; k < t.maps.size(); k++) {
    uint32_t next = 0;
    for (const MapEntry &e : t.maps[k]) {
      if (e.character < next || e.character >= kCharacters || e.string >= t.strings.size())
        return malformed(diag, "map %zu of the tokenizer has entries out of order", k);
      next = e.character + 1;
    }
  }
  for (size_t k = 0; k < t.rules.size(); k++) {
    Bytes before;
    for (const Rule &r : t.rules[k]) {
      if (r.from >= t.strings.size() || r.to >= t.strings.size() || !isBefore(before, t.strings[r.from]))
        return malformed(diag, "list %zu of the tokenizer's rules is out of order, or names a string that is not there",
                         k);
      before = t.strings[r.from];
    }
  }
  uint32_t next = 0;
  for (const Class &c : t.classes) {
    if (c.character < next || c.character >= kCharacters || !c.value || c.value > 255)
      return malformed(diag, "the tokenizer's combining classes are out of order");
    next = c.character + 1;
  }
  uint64_t before = 0;
  for (const Composition &c : t.compositions) {
    uint64_t key = uint64_t(c.first) << 32 | c.second;
    if (key <= before || c.first >= kCharacters || c.second >= kCharacters || c.result >= kCharacters ||
        (c.result >= 0xd800 && c.result < 0xe000))
      return malformed(diag, "the tokenizer's compositions are out of order");
    before = key;
  }
  return ASTRA_OK;
}

/// Programs run forward only, and every path of each ends with Match.
Status checkCode(const astra_text &t, astra_diag *diag) {
  if (t.code.size > kMaxCode)
    return malformed(diag, "the tokenizer's patterns have %zu words, at most %u are allowed", t.code.size, kMaxCode);
  if (t.code.size && t.code[t.code.size - 1] != uint32_t(Code::Match))
    return malformed(diag, "the tokenizer's patterns have no end");
  Buffer<uint8_t> begins;
  begins.resize(t.code.size);
  if (begins.failed) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to open a tokenizer");
  auto words = [&](uint32_t word) {
    return (word & 255) == uint32_t(Code::Run) || (word & 255) == uint32_t(Code::Hold) ? 3u : 1u;
  };
  for (size_t pc = 0; pc < t.code.size; pc += words(t.code[pc])) begins[pc] = 1;
  for (size_t pc = 0; pc < t.code.size; pc += words(t.code[pc])) {
    uint32_t op = t.code[pc] & 255, argument = t.code[pc] >> 8;
    if (op > uint32_t(Code::AtEnd))
      return malformed(diag, "the tokenizer's patterns have an operation %u, which is unknown", op);
    if (op == uint32_t(Code::Set) || words(op) == 3) {
      if (argument >= t.sets.size())
        return malformed(diag, "the tokenizer's patterns name a set of characters that is not there");
      if (words(op) == 3 && (pc + 3 > t.code.size - 1 || t.code[pc + 1] > t.code[pc + 2]))
        return malformed(diag, "the tokenizer's patterns have a run without an end");
    }
    if (op >= uint32_t(Code::Either) && op <= uint32_t(Code::NotAhead) &&
        (!argument || pc + argument >= t.code.size || !begins[pc + argument]))
      return malformed(diag, "the tokenizer's patterns jump to where no instruction begins");
  }
  for (const Step &s : t.steps)
    if ((StepKind(s.kind) == StepKind::ReplacePattern || StepKind(s.kind) == StepKind::Split) &&
        (s.a >= t.code.size || !begins[s.a]))
      return malformed(diag, "a step of the tokenizer names no instruction of its patterns");
  return ASTRA_OK;
}

Status checkSteps(const astra_text &t, astra_diag *diag) {
  if (t.steps.size > kMaxSteps || t.info.normalizers > t.steps.size)
    return malformed(diag, "the tokenizer has %zu steps, %u of them before added tokens; at most %u are allowed",
                     t.steps.size, t.info.normalizers, kMaxSteps);
  for (size_t k = 0; k < t.steps.size; k++) {
    const Step &s = t.steps[k];
    auto string = [&](uint32_t i) { return i < t.strings.size(); };
    bool good = false;
    switch (StepKind(s.kind)) {
    case StepKind::Map:
    case StepKind::Decompose: good = s.a < t.maps.size(); break;
    case StepKind::Compose: good = true; break;
    case StepKind::Replace: good = string(s.a) && string(s.b) && t.strings[s.a].size; break;
    case StepKind::ReplacePattern: good = s.a < t.code.size && string(s.b); break;
    case StepKind::Prepend: good = string(s.a) && s.b <= 2; break;
    case StepKind::Strip: good = s.a < t.sets.size() && s.b >= 1 && s.b <= 3; break;
    case StepKind::Surround: good = s.a < t.sets.size() && string(s.b); break;
    case StepKind::Split: good = s.a < t.code.size && s.b <= 4 && s.c <= 1 && k >= t.info.normalizers; break;
    case StepKind::Rewrite:
      good = s.a < t.rules.size() && s.b <= 1 && (!s.b || (s.c < t.sets.size() && t.sets.size() - s.c >= kClusterSets));
      break;
    }
    if (!good) return malformed(diag, "step %zu of the tokenizer is unknown, or names what is not there", k);
  }
  return ASTRA_OK;
}

uint32_t slotOf(uint32_t left, uint32_t right, uint32_t mask) {
  uint64_t key = (uint64_t(left) << 32 | right) * 0x9e3779b97f4a7c15u;
  return uint32_t(key >> 32) & mask;
}

/// The tables that make finding fast.
bool build(astra_text &t) {
  t.firstByte.resize(257);
  for (size_t k = 0; !t.firstByte.failed && k < t.sorted.size; k++) t.firstByte[t.tokens[t.sorted[k]][0] + 1]++;
  for (size_t b = 0; !t.firstByte.failed && b < 256; b++) t.firstByte[b + 1] += t.firstByte[b];

  t.low.resize(t.sets.size() * 1024);
  for (size_t set = 0; !t.low.failed && set < t.sets.size(); set++)
    for (const Range &r : t.sets[set])
      for (uint32_t c = r.first, last = r.last < 0xffff ? r.last : 0xffff, next; c <= last; c = next) {
        next = (c | 63) + 1; // what one word has of the range
        uint64_t bits = ~uint64_t(0) << c % 64;
        if (next > last) bits &= ~uint64_t(0) >> (63 - last % 64);
        t.low[set * 1024 + c / 64] |= bits;
      }

  t.ruleFirst.resize(257 * t.rules.size());
  for (size_t list = 0; !t.ruleFirst.failed && list < t.rules.size(); list++) {
    uint32_t *first = &t.ruleFirst[257 * list];
    for (const Rule &r : t.rules[list]) first[t.strings[r.from][0] + 1]++;
    for (size_t b = 0; b < 256; b++) first[b + 1] += first[b];
  }

  uint32_t slots = 16;
  while (slots < 2 * t.merges.size) slots *= 2;
  t.mergeSlots.resize(slots, 0xff);
  for (uint32_t k = 0; !t.mergeSlots.failed && k < t.merges.size; k++) {
    uint32_t at = slotOf(t.merges[k].left, t.merges[k].right, slots - 1);
    bool known = false;
    for (; t.mergeSlots[at] != kNone && !known; at = (at + 1) & (slots - 1)) {
      const Merge &m = t.merges[t.mergeSlots[at]];
      known = m.left == t.merges[k].left && m.right == t.merges[k].right; // the first of equal ones is done
    }
    if (!known) t.mergeSlots[at] = k;
  }

  t.addedFirst.resize(257);
  t.addedOrder.resize(t.added.size);
  if (t.addedFirst.failed || t.addedOrder.failed) return false;
  for (const Added &a : t.added) t.addedFirst[t.strings[a.string][0] + 1]++;
  for (size_t b = 0; b < 256; b++) t.addedFirst[b + 1] += t.addedFirst[b];
  uint32_t filled[256] = {};
  for (uint32_t k = 0; k < t.added.size; k++) {
    uint8_t b = t.strings[t.added[k].string][0];
    uint32_t begin = t.addedFirst[b], at = begin + filled[b]++;
    size_t length = t.strings[t.added[k].string].size;
    for (; at > begin && t.strings[t.added[t.addedOrder[at - 1]].string].size < length; at--)
      t.addedOrder[at] = t.addedOrder[at - 1];
    t.addedOrder[at] = k;
  }
  for (const Chat &c : t.chat) {
    if (c.name != kNone)
      t.formName.append({reinterpret_cast<const char *>(t.strings[c.name].data), t.strings[c.name].size});
    t.formName.push(0);
  }
  double least = 0;
  for (uint32_t token : t.sorted)
    if (t.scores.size && t.scores[token] < least) least = t.scores[token];
  t.unknownScore = least - 10;
  return !t.firstByte.failed && !t.low.failed && !t.ruleFirst.failed && !t.mergeSlots.failed && !t.formName.failed;
}

} // namespace

astra_status astra_text_init(astra_text **text, const void *bytes, size_t size, astra_diag *diag) {
  if (!text || !bytes) return fail(diag, ASTRA_INVALID_ARGUMENT, "the handle or the bytes are NULL; give both");
  if (reinterpret_cast<uintptr_t>(bytes) % 8)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the tokenizer's bytes do not begin at a multiple of 8");
  auto *t = static_cast<astra_text *>(calloc(1, sizeof(astra_text)));
  if (!t) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to open a tokenizer");
  new (t) astra_text();
  Sections sections;
  Status status = readSections({static_cast<const uint8_t *>(bytes), size}, sections, diag);
  if (!status) status = readViews(sections, *t, diag);
  for (auto *check : {checkVocabulary, checkTexts, checkCharacters, checkCode, checkSteps})
    if (!status) status = check(*t, diag);
  if (!status && !build(*t)) status = fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to open a tokenizer");
  if (status)
    astra_text_free(&t);
  else
    *text = t;
  return status;
}

void astra_text_free(astra_text **text) {
  if (!text || !*text) return;
  (*text)->~astra_text();
  free(*text);
  *text = nullptr;
}

bool astra_text::in(uint32_t set, uint32_t character) const {
  if (character < 0x10000) return low[set * 1024 + character / 64] >> character % 64 & 1;
  View<Range> ranges = sets[set];
  size_t first = 0, last = ranges.size;
  while (first < last) {
    size_t middle = (first + last) / 2;
    if (ranges[middle].last < character)
      first = middle + 1;
    else
      last = middle;
  }
  return first < ranges.size && ranges[first].first <= character;
}

/// The record of a character in records in its order, or null.
template <typename T> static const T *recordOf(View<T> records, uint32_t character) {
  size_t first = 0, last = records.size;
  while (first < last) {
    size_t middle = (first + last) / 2;
    if (records[middle].character < character)
      first = middle + 1;
    else
      last = middle;
  }
  return first < records.size && records[first].character == character ? &records[first] : nullptr;
}

uint32_t astra_text::mapped(uint32_t map, uint32_t character) const {
  const MapEntry *entry = recordOf(maps[map], character);
  return entry ? entry->string : kNone;
}

uint32_t astra_text::classOf(uint32_t character) const {
  if (character < 0x300) return 0; // Unicode: no combining character lies below
  const Class *found = recordOf(classes, character);
  return found ? found->value : 0;
}

uint32_t astra_text::mergeOf(uint32_t left, uint32_t right) const {
  uint32_t mask = uint32_t(mergeSlots.size()) - 1;
  for (uint32_t at = slotOf(left, right, mask); mergeSlots[at] != kNone; at = (at + 1) & mask) {
    const Merge &m = merges[mergeSlots[at]];
    if (m.left == left && m.right == right) return mergeSlots[at];
  }
  return kNone;
}

bool astra_text::narrow(Prefix &p, uint8_t byte) const {
  if (!p.read) {
    p = {firstByte[byte], firstByte[byte + 1], 1};
    return p.first < p.last;
  }
  return narrowRows(p, byte, [&](uint32_t i) { return tokens[sorted[i]]; });
}

const Rule *astra_text::ruleAt(uint32_t list, Bytes text, bool longest) const {
  View<Rule> all = rules[list];
  const Rule *found = nullptr;
  Prefix p = {ruleFirst[257 * list + text[0]], ruleFirst[257 * list + text[0] + 1], 1};
  for (bool any = p.first < p.last; any;) {
    if (strings[all[p.first].from].size == p.read) {
      found = &all[p.first];
      if (!longest) return found;
    }
    any = p.read < text.size && narrowRows(p, text[p.read], [&](uint32_t i) { return strings[all[i].from]; });
  }
  return found;
}

uint32_t astra_text::tokenOf(const Prefix &p) const {
  return p.read && p.first < p.last && tokens[sorted[p.first]].size == p.read ? sorted[p.first] : kNone;
}

uint32_t astra_text::find(Bytes text) const {
  Prefix p = anyToken();
  for (uint8_t byte : text)
    if (!narrow(p, byte)) return kNone;
  return tokenOf(p);
}

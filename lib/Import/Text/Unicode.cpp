//===- Unicode.cpp: properties of characters, by utf8proc -----------------===//
// Takes:    see Unicode.h.
// Gives:    what the Unicode Character Database says, in the version that utf8proc has.
// Keeps:    what utf8proc does not have is listed here with its source.
//           Tables of all characters are made once for a process: a tokenizer asks for parts of them many times.
// Does not: normalize text: the library that reads a tokenizer does.
#include "Unicode.h"

#include "llvm/Support/ConvertUTF.h"
#include <utf8proc.h>

namespace astra::import::text {

using astra::text::Range;

static constexpr uint32_t kSurrogate = 0xd800, kBehindSurrogates = 0xe000;

CharSet &CharSet::add(uint32_t first, uint32_t last) {
  if (first < kSurrogate && last >= kSurrogate) return add(first, kSurrogate - 1).add(kSurrogate, last);
  if (first >= kSurrogate && first < kBehindSurrogates) first = kBehindSurrogates;
  if (first > last) return *this;
  // Those that touch the new range become one with it.
  auto begin = std::partition_point(all.begin(), all.end(), [&](Range r) { return r.last + 1 < first; });
  auto end = std::partition_point(begin, all.end(), [&](Range r) { return r.first <= last + 1; });
  if (begin == end) {
    all.insert(begin, {first, last});
    return *this;
  }
  *begin = {std::min(begin->first, first), std::max((end - 1)->last, last)};
  all.erase(begin + 1, end);
  return *this;
}

CharSet &CharSet::operator|=(const CharSet &other) {
  std::vector<Range> both(all.size() + other.all.size());
  std::merge(all.begin(), all.end(), other.all.begin(), other.all.end(), both.begin(),
             [](Range a, Range b) { return a.first < b.first; });
  all.clear();
  for (Range r : both)
    if (!all.empty() && r.first <= all.back().last + 1)
      all.back().last = std::max(all.back().last, r.last);
    else
      all.push_back(r);
  return *this;
}

CharSet CharSet::complement() const {
  CharSet out;
  uint32_t next = 0;
  for (Range r : all) {
    if (r.first > next) out.add(next, r.first - 1);
    next = r.last + 1;
  }
  return next < kCharacters ? out.add(next, kCharacters - 1) : out;
}

std::optional<CharSet> category(llvm::StringRef name) {
  static const std::map<llvm::StringRef, CharSet> sets = [] {
    std::map<llvm::StringRef, CharSet> out;
    for (uint32_t c = 0; c < kCharacters; ++c) {
      llvm::StringRef own = utf8proc_category_string(int(c));
      out[own].add(c);
      out[own.take_front(1)].add(c);
    }
    out.erase("Cs");
    return out;
  }();
  auto it = sets.find(name);
  return it == sets.end() ? std::nullopt : std::optional(it->second);
}

// PropList.txt: White_Space.
CharSet whiteSpace() {
  CharSet set;
  set.add('\t', '\r').add(' ').add(0x85).add(0xa0).add(0x1680).add(0x2000, 0x200a).add(0x2028, 0x2029);
  return set.add(0x202f).add(0x205f).add(0x3000);
}

// UTS 18, annex C: Alphabetic, M, Nd, Pc. Alphabetic is L, Nl, some of M, and the letters in circles and squares.
CharSet wordCharacters() {
  CharSet set;
  for (const char *name : {"L", "M", "Nd", "Nl", "Pc"}) set |= *category(name);
  return set.add(0x24b6, 0x24e9).add(0x1f130, 0x1f149).add(0x1f150, 0x1f169).add(0x1f170, 0x1f189);
}

CharSet punctuation() {
  CharSet set = *category("P");
  return set.add('!', '/').add(':', '@').add('[', '`').add('{', '~');
}

std::vector<CharSet> clusterSets() {
  static const std::vector<CharSet> sets = [] {
    static constexpr int classes[] = {UTF8PROC_BOUNDCLASS_CONTROL, UTF8PROC_BOUNDCLASS_EXTEND,
                                      UTF8PROC_BOUNDCLASS_PREPEND, UTF8PROC_BOUNDCLASS_SPACINGMARK,
                                      UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC};
    std::vector<CharSet> out(std::size(classes));
    for (uint32_t c = 0; c < kCharacters; ++c)
      for (size_t k = 0; k < out.size(); ++k)
        if (utf8proc_get_property(int(c))->boundclass == classes[k]) out[k].add(c);
    return out;
  }();
  static_assert(astra::text::kClusterSets == 5);
  return sets;
}

std::string utf8(uint32_t character) {
  utf8proc_uint8_t bytes[4];
  utf8proc_ssize_t count = utf8proc_encode_char(int(character), bytes);
  return std::string(reinterpret_cast<char *>(bytes), size_t(count));
}

std::optional<std::u32string> characters(llvm::StringRef text) {
  std::u32string out;
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t c;
    utf8proc_ssize_t bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(text.data() + at),
                                              utf8proc_ssize_t(text.size() - at), &c);
    if (bytes <= 0) return std::nullopt;
    out.push_back(char32_t(c));
    at += size_t(bytes);
  }
  return out;
}

static bool isHangulSyllable(uint32_t c) { return c >= 0xac00 && c < 0xac00 + 11172; }

static std::u32string decomposition(uint32_t character, bool compatibility) {
  if (isHangulSyllable(character)) return {};
  int boundary = 0;
  utf8proc_int32_t out[64];
  auto options = utf8proc_option_t(UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
  utf8proc_ssize_t count = utf8proc_decompose_char(int(character), out, 64, options, &boundary);
  if (count <= 0 || count > 64 || (count == 1 && uint32_t(out[0]) == character)) return {};
  return std::u32string(out, out + count);
}

/// What characters become, without those that become themselves: an empty text.
static CharMap mapOf(llvm::function_ref<std::u32string(uint32_t)> to) {
  CharMap map;
  for (uint32_t c = 0; c < kCharacters; ++c)
    if (std::u32string all = to(c); !all.empty()) {
      std::string &text = map[c];
      for (char32_t each : all) text += utf8(each);
    }
  return map;
}

const CharMap &decompositions(bool compatibility) {
  static const CharMap maps[] = {mapOf([](uint32_t c) { return decomposition(c, false); }),
                                 mapOf([](uint32_t c) { return decomposition(c, true); })};
  return maps[compatibility];
}

llvm::ArrayRef<astra::text::Class> combiningClasses() {
  static const std::vector<astra::text::Class> all = [] {
    std::vector<astra::text::Class> out;
    for (uint32_t c = 0; c < kCharacters; ++c)
      if (uint32_t value = utf8proc_get_property(int(c))->combining_class) out.push_back({c, value});
    return out;
  }();
  return all;
}

/// `text` in the normal form C, for short texts.
static std::u32string composed(const std::u32string &text) {
  std::vector<utf8proc_int32_t> buffer(text.begin(), text.end());
  buffer.push_back(0);
  auto options = utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  utf8proc_ssize_t count = utf8proc_normalize_utf32(buffer.data(), utf8proc_ssize_t(text.size()), options);
  return std::u32string(buffer.begin(), buffer.begin() + std::max<utf8proc_ssize_t>(count, 0));
}

llvm::ArrayRef<astra::text::Composition> compositions() {
  using astra::text::Composition;
  static const std::vector<Composition> all = [] {
    std::vector<Composition> rows;
    for (uint32_t c = 0x80; c < kCharacters; ++c) {
      std::u32string parts = decomposition(c, false);
      if (parts.size() < 2 || composed(parts) != std::u32string(1, char32_t(c))) continue;
      // The first of the pair is what all parts but the last compose into.
      std::u32string first = composed(parts.substr(0, parts.size() - 1));
      if (first.size() == 1) rows.push_back({first[0], parts.back(), c});
    }
    llvm::sort(rows, [](const Composition &a, const Composition &b) {
      return std::tie(a.first, a.second) < std::tie(b.first, b.second);
    });
    return rows;
  }();
  return all;
}

// SpecialCasing.txt has one lower-case mapping without a condition that is longer than a character.
const CharMap &lowerCases() {
  static const CharMap map = mapOf([](uint32_t c) {
    if (c == 0x130) return std::u32string(U"i\u0307");
    uint32_t lower = uint32_t(utf8proc_tolower(int(c)));
    return lower == c ? std::u32string() : std::u32string(1, char32_t(lower));
  });
  return map;
}

CharSet sameLetter(uint32_t character) {
  static const std::map<uint32_t, uint32_t> folds = [] {
    std::map<uint32_t, uint32_t> out;
    for (uint32_t c = 0; c < kCharacters; ++c) {
      utf8proc_int32_t to[8];
      int boundary = 0;
      utf8proc_ssize_t count = utf8proc_decompose_char(int(c), to, 8, UTF8PROC_CASEFOLD, &boundary);
      if (count == 1 && uint32_t(to[0]) != c) out[c] = uint32_t(to[0]);
    }
    return out;
  }();
  auto it = folds.find(character);
  uint32_t wanted = it == folds.end() ? character : it->second;
  CharSet set;
  if (!folds.contains(wanted)) set.add(wanted);
  for (auto [c, to] : folds)
    if (to == wanted) set.add(c);
  return set;
}

} // namespace astra::import::text

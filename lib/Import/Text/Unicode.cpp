//===- Unicode.cpp: properties of characters, by utf8proc -----------------===//
// Takes:    see Unicode.h.
// Gives:    what the Unicode Character Database says, in the version that utf8proc has.
// Keeps:    what utf8proc does not have is listed here with its source.
// Does not: normalize text: the library that reads a tokenizer does.
#include "Unicode.h"

#include "llvm/Support/ConvertUTF.h"
#include <utf8proc.h>

namespace astra::import::text {

CharSet CharSet::of(llvm::function_ref<bool(uint32_t)> predicate) {
  CharSet set;
  for (uint32_t c = 0; c < kCharacters; ++c)
    if ((c < 0xd800 || c > 0xdfff) && predicate(c)) set.bits.set(c);
  return set;
}

CharSet &CharSet::add(uint32_t first, uint32_t last) {
  bits.set(first, last + 1);
  bits.reset(0xd800, 0xe000);
  return *this;
}

CharSet CharSet::complement() const {
  CharSet set = *this;
  set.bits.flip();
  set.bits.reset(0xd800, 0xe000);
  return set;
}

void CharSet::ranges(llvm::function_ref<void(uint32_t, uint32_t)> give) const {
  for (int first = bits.find_first(); first >= 0;) {
    int next = bits.find_next_unset(first);
    int last = next < 0 ? int(kCharacters) : next;
    give(first, last - 1);
    first = next < 0 ? -1 : bits.find_next(last);
  }
}

std::optional<CharSet> category(llvm::StringRef name) {
  bool known = false;
  CharSet set =
      CharSet::of([&](uint32_t c) { return llvm::StringRef(utf8proc_category_string(int(c))).starts_with(name); });
  set.ranges([&](uint32_t, uint32_t) { known = true; });
  if (name.empty() || name.size() > 2 || !known) return std::nullopt;
  return set;
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

std::u32string decomposition(uint32_t character, bool compatibility) {
  if (isHangulSyllable(character)) return {};
  int boundary = 0;
  utf8proc_int32_t out[64];
  auto options = utf8proc_option_t(UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
  utf8proc_ssize_t count = utf8proc_decompose_char(int(character), out, 64, options, &boundary);
  if (count <= 0 || count > 64 || (count == 1 && uint32_t(out[0]) == character)) return {};
  return std::u32string(out, out + count);
}

uint32_t combiningClass(uint32_t character) { return uint32_t(utf8proc_get_property(int(character))->combining_class); }

/// `text` in the normal form C, for short texts.
static std::u32string composed(const std::u32string &text) {
  std::vector<utf8proc_int32_t> buffer(text.begin(), text.end());
  buffer.push_back(0);
  auto options = utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  utf8proc_ssize_t count = utf8proc_normalize_utf32(buffer.data(), utf8proc_ssize_t(text.size()), options);
  return std::u32string(buffer.begin(), buffer.begin() + std::max<utf8proc_ssize_t>(count, 0));
}

void compositions(llvm::function_ref<void(uint32_t, uint32_t, uint32_t)> give) {
  struct Row {
    uint32_t first, second, result;
  };
  std::vector<Row> rows;
  for (uint32_t c = 0x80; c < kCharacters; ++c) {
    std::u32string parts = decomposition(c, false);
    if (parts.size() < 2 || composed(parts) != std::u32string(1, char32_t(c))) continue;
    // The first of the pair is what all parts but the last compose into.
    std::u32string first = composed(parts.substr(0, parts.size() - 1));
    if (first.size() == 1) rows.push_back({first[0], parts.back(), c});
  }
  llvm::sort(rows,
             [](const Row &a, const Row &b) { return std::tie(a.first, a.second) < std::tie(b.first, b.second); });
  for (const Row &r : rows) give(r.first, r.second, r.result);
}

// SpecialCasing.txt has one lower-case mapping without a condition that is longer than a character.
std::u32string lowerCase(uint32_t character) {
  if (character == 0x130) return U"i\u0307";
  uint32_t lower = uint32_t(utf8proc_tolower(int(character)));
  return lower == character ? std::u32string() : std::u32string(1, char32_t(lower));
}

CharSet sameLetter(uint32_t character) {
  auto fold = [](uint32_t c) {
    utf8proc_int32_t out[8];
    int boundary = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char(int(c), out, 8, UTF8PROC_CASEFOLD, &boundary);
    return count == 1 ? uint32_t(out[0]) : c;
  };
  uint32_t wanted = fold(character);
  return CharSet::of([&](uint32_t c) { return fold(c) == wanted; });
}

} // namespace astra::import::text

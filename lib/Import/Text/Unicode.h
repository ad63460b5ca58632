//===- Unicode.h: sets and maps of characters -----------------------------===//
// Takes:    names of Unicode's properties.
// Gives:    sets of characters, and what a tokenizer's steps map characters to.
// Keeps:    the version of Unicode is utf8proc's; what a tokenizer needs of it is copied into its bytes.
// Does not: know tokenizers.
#pragma once

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace astra::import::text {

inline constexpr unsigned kCharacters = 0x110000;

/// A set of characters; surrogates belong to none.
class CharSet {
public:
  CharSet() : bits(kCharacters) {}
  static CharSet of(llvm::function_ref<bool(uint32_t)> predicate);
  static CharSet all() { return CharSet().complement(); }
  CharSet &add(uint32_t first, uint32_t last);
  CharSet &add(uint32_t character) { return add(character, character); }
  CharSet &operator|=(const CharSet &other) { return bits |= other.bits, *this; }
  CharSet &remove(const CharSet &other) { return bits.reset(other.bits), *this; }
  CharSet complement() const;
  bool has(uint32_t character) const { return bits.test(character); }
  bool operator==(const CharSet &other) const { return bits == other.bits; }
  /// Ascending, apart.
  void ranges(llvm::function_ref<void(uint32_t first, uint32_t last)> give) const;

private:
  llvm::BitVector bits;
};

/// A general category ("L", "Lu", "P" ...); none: there is no such one.
std::optional<CharSet> category(llvm::StringRef name);
/// Unicode's White_Space.
CharSet whiteSpace();
/// What \w means in patterns (UTS 18, annex C, without Join_Control), as far as general categories say it.
CharSet wordCharacters();
/// Unicode's P*, and ASCII's punctuation, which has symbols too.
CharSet punctuation();

std::string utf8(uint32_t character);
/// Characters of UTF-8 text; none: it is no UTF-8.
std::optional<std::u32string> characters(llvm::StringRef utf8);

/// The full decomposition, canonical or with compatibility mappings, canonical order apart; Hangul syllables are not
/// decomposed. Empty: the character decomposes into itself.
std::u32string decomposition(uint32_t character, bool compatibility);
uint32_t combiningClass(uint32_t character);
/// Canonical composites, without those that are excluded and without Hangul.
void compositions(llvm::function_ref<void(uint32_t first, uint32_t second, uint32_t result)> give);
/// The full lower-case mapping, without context. Empty: the character itself.
std::u32string lowerCase(uint32_t character);
/// Characters whose simple case folding is that of `character`.
CharSet sameLetter(uint32_t character);

} // namespace astra::import::text

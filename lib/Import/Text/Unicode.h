//===- Unicode.h: sets and maps of characters -----------------------------===//
// Takes:    names of Unicode's properties.
// Gives:    sets of characters, and what a tokenizer's steps map characters to.
// Keeps:    the version of Unicode is utf8proc's; what a tokenizer needs of it is copied into its bytes.
// Does not: know tokenizers.
#pragma once

#include "../../Text/format/Blob.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace astra::import::text {

inline constexpr unsigned kCharacters = 0x110000;

/// A set of characters; surrogates belong to none.
class CharSet {
public:
  CharSet &add(uint32_t first, uint32_t last);
  CharSet &add(uint32_t character) { return add(character, character); }
  CharSet &operator|=(const CharSet &other);
  CharSet &remove(const CharSet &other) { return *this = (complement() |= other).complement(); }
  CharSet complement() const;
  /// Ascending, apart, no two touch.
  llvm::ArrayRef<astra::text::Range> ranges() const { return all; }

private:
  std::vector<astra::text::Range> all;
};

/// A general category ("L", "Lu", "P" ...); none: there is no such one.
std::optional<CharSet> category(llvm::StringRef name);
/// Unicode's White_Space.
CharSet whiteSpace();
/// What \w means in patterns (UTS 18, annex C, without Join_Control), as far as general categories say it.
CharSet wordCharacters();
/// Unicode's P*, and ASCII's punctuation, which has symbols too.
CharSet punctuation();

/// What clusters of characters are found by, in the order of Blob.h's kClusterSets.
std::vector<CharSet> clusterSets();

std::string utf8(uint32_t character);
/// Characters of UTF-8 text; none: it is no UTF-8.
std::optional<std::u32string> characters(llvm::StringRef utf8);

/// What characters become; a character that is not there becomes itself.
using CharMap = std::map<uint32_t, std::string>;

/// Full decompositions, canonical or with compatibility mappings, canonical order apart. Hangul syllables are not
/// there.
const CharMap &decompositions(bool compatibility);
/// Canonical combining classes that are not 0, by character.
llvm::ArrayRef<astra::text::Class> combiningClasses();
/// Canonical composites by their parts, without those that are excluded and without Hangul.
llvm::ArrayRef<astra::text::Composition> compositions();
/// Full lower-case mappings, without context.
const CharMap &lowerCases();
/// Characters whose simple case folding is that of `character`.
CharSet sameLetter(uint32_t character);

} // namespace astra::import::text

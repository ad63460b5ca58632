//===- Draft.h: a tokenizer while it is read ------------------------------===//
// Takes:    tokens, steps, sets and maps, one after the other.
// Gives:    the bytes that libastra_text reads (lib/Text/format/Blob.h).
// Keeps:    equal strings, sets and maps are kept once; the same calls give the same bytes.
// Does not: check that tables agree: the library does, on opening.
#pragma once

#include "../../Text/format/Blob.h"
#include "Unicode.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <vector>

namespace astra::import::text {

struct DraftToken {
  std::string bytes;  ///< as the vocabulary has them
  std::string output; ///< what the token stands for
  astra::text::TokenKind kind = astra::text::TokenKind::Normal;
  bool inModel = false; ///< the model may give it for a piece that is its bytes
  double score = 0;
};

struct Draft {
  astra::text::Info info;
  std::vector<DraftToken> tokens;
  std::vector<astra::text::Merge> merges;
  std::vector<uint32_t> bytes;
  std::vector<astra::text::Added> added;
  std::vector<astra::text::Step> normalizers, splitters;
  std::vector<uint32_t> code, before, after;
  std::optional<astra::text::Chat> chat;

  Draft();
  uint32_t string(llvm::StringRef text);
  uint32_t set(const CharSet &set);
  /// `entries` by character.
  uint32_t map(const CharMap &entries);
  /// The first word of a pattern's program; an error quotes what is not supported.
  llvm::Expected<uint32_t> pattern(llvm::StringRef regex);
  /// A pattern that is this text.
  uint32_t literal(llvm::StringRef text);
  /// Canonical order and composition need their tables.
  void needClasses();
  void needCompositions();
  /// The first of the sets that clusters of characters need.
  uint32_t needClusters();
  /// The number of a list of rules.
  uint32_t addRules(std::vector<astra::text::Rule> rules);

  /// The bytes, or what the form has no room for.
  llvm::Expected<std::string> write() const;

private:
  std::vector<std::string> strings;
  llvm::StringMap<uint32_t> stringNumbers;
  std::vector<std::vector<astra::text::Range>> sets;
  std::vector<std::vector<astra::text::MapEntry>> maps;
  std::vector<std::vector<astra::text::Rule>> rules;
  std::vector<astra::text::Class> classes;
  std::vector<astra::text::Composition> composites;
};

} // namespace astra::import::text

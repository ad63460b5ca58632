//===- Charsmap.h: SentencePiece's table of normalizations -----------------===//
// Takes:    a precompiled_charsmap: a trie of what is looked for, and the texts that take its place.
// Gives:    the rules that it stands for, as a step of a draft.
// Keeps:    bytes from anywhere: every index is checked, and a table that unfolds into too much is refused.
// Does not: know how rules are applied (RewriteHow).
#pragma once

#include "Draft.h"

namespace astra::import::text {

/// Adds the step. An empty table has no rules, and gives no step.
llvm::Error addCharsmap(Draft &draft, llvm::StringRef bytes, astra::text::RewriteHow how);

} // namespace astra::import::text

//===- Clusters.h: what a reader takes for one character --------------------===//
// Takes:    valid UTF-8, the sets of characters that a tokenizer has for this.
// Gives:    where the cluster that begins at a place ends: extended grapheme clusters of Unicode's annex 29.
// Keeps:    rules GB3 to GB13 but GB9c, which joins consonants of Indic scripts.
// Does not: have tables of its own, but Hangul and flags, which are rules.
#pragma once

#include "Tokenizer.h"

namespace astra::text {

/// `sets` is the first of kClusterSets sets.
size_t clusterEnd(const astra_text &t, uint32_t sets, Bytes text, size_t at);

} // namespace astra::text

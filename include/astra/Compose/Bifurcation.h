//===- Bifurcation.h: what a guess of tokens and a source share -------------===//
// Takes:    tokens, i64: a source that is guessed to go on, those so far, those that were predicted.
// Gives:    the tokens so far with the predicted ones, up to the first that is not the source's; where their last
//           n-gram stands in the source.
// Source:   the step of aggressive decoding (Sun et al., arXiv 2106.04970) as ONNX Runtime has it.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct Bifurcation {
  UOpRef tokens = nullptr; // [a number that data decide]
  UOpRef suffix = nullptr; // [1]: the place behind the n-gram in the source; -1: none, or several
};

/// source [S], current [C], previous [1] (a place in the source), predicted [S + 1 - previous], or null: none. n-grams
/// of `least` to `most` tokens are looked for, longer ones only where shorter ones are found.
Bifurcation bifurcation(Composer &b, UOpRef source, UOpRef current, UOpRef previous, UOpRef predicted, int64_t least,
                        int64_t most);

} // namespace astra::compose

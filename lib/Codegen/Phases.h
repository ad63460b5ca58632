//===- Phases.h: a contraction with holes as several without ---------------===//
// Takes:    a contraction whose operands are indexed by quotients, (h + 1 - k)/2: a transposed convolution, the
// gradient
//           of a strided one. Of the points of such an index most are holes.
// Gives:    per remainder of the kept labels (h = 2*h' + 1) the labels that are summed over and can be exact there
//           (k = 2*k'): no hole is left, or nothing is.
// Keeps:    the order of the sum: what is left out takes no part (N4).
#pragma once
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"

namespace astra {

/// first + step * i.
struct Stepped {
  int64_t first = 0, step = 1;
};

struct Phase {
  llvm::SmallVector<Stepped, 6> labels; // kept ones, then reduced ones
  bool isEmpty = false;                 // nothing is summed
};

/// All phases of a contraction, one without steps where there is nothing to gain; `lanes` is a kept label that cannot
/// be stepped.
llvm::SmallVector<Phase, 4> phasesOf(UOpRef contract, int64_t lanes);

} // namespace astra

//===- Phases.h: a contraction with holes as several without ---------------===//
// Takes:    a contraction whose operands are indexed by quotients, (h + 1 - k)/2: a transposed convolution, the
//           gradient of a strided one. Of the points of such an index most are holes.
// Gives:    per remainder of the kept labels (h = 2*h' + 1) the labels that are summed over and can be exact there
//           (k = 2*k'): no hole is left, or nothing is. Of a contraction with windows that reach beyond their operand
//           (astra/Schedule/Outside.h) per part of the kept labels the taps that are inside.
// Keeps:    the order of the sum: what is left out takes no part (N4), or a third operand stands for it.
#pragma once
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"

namespace astra {

/// first + step * i.
struct Stepped {
  int64_t first = 0, step = 1;
};

struct Phase {
  llvm::SmallVector<Stepped, 6> labels;        // kept ones, then reduced ones
  bool isEmpty = false;                        // nothing is summed
  llvm::SmallVector<UOpRef, 6> begins, counts; // of kept labels: a part; null: all
  // Of summed labels but the last: the taps from which on, and how many, are inside. Empty: those that a label has,
  // inside or not.
  llvm::SmallVector<std::pair<int64_t, int64_t>, 3> taps;
  llvm::SmallVector<std::pair<unsigned, unsigned>, 2> inside; // axes of operands whose indices are inside then
};

/// All phases of a contraction, one without steps where there is nothing to gain; `lanes` is a kept label that cannot
/// be stepped.
llvm::SmallVector<Phase, 4> phasesOf(Context &c, UOpRef contract, int64_t lanes);

} // namespace astra

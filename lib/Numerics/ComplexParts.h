//===- ComplexParts.h: complex arithmetic on pairs of real values ----------===//
// Takes:    the parts of complex values, real tensors of one shape.
// Gives:    the parts of the result, as Ops.def defines it.
// Does not: know where complex values come from (Complex.cpp).
#pragma once
#include "astra/IR/Builder.h"

namespace astra::numerics {

struct Parts {
  UOpRef re = nullptr, im = nullptr; // im is null: a value that is not complex
};

Parts multiply(Builder &b, Parts x, Parts y);
Parts divide(Builder &b, Parts x, Parts y);
UOpRef magnitude(Builder &b, Parts x);
/// The contract of x and y with this attribute and these index sources: four real ones.
Parts contraction(Builder &b, llvm::ArrayRef<int64_t> spec, llvm::ArrayRef<UOpRef> indices, Parts x, Parts y);
/// Along one axis, which goes away, in the order `pairs`.
Parts product(Builder &b, Parts x, int64_t axis);
Parts runningProduct(Builder &b, Parts x, int64_t axis);

} // namespace astra::numerics

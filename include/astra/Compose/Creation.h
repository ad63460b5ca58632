//===- Creation.h: tensors that extents and few numbers make ---------------===//
// Takes:    symbolic integers, scalars.
// Gives:    ranges, diagonals, vectors of symbolic integers.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// How many elements first, first + step ... has below `last`, or above it where the step, which is not 0, is negative.
UOpRef rangeLength(Composer &b, UOpRef first, UOpRef last, int64_t step);
/// The same of numbers, computed in f64: ceil((last - first) / step), 0 at least. Nothing where that is no number below
/// 10^9.
std::optional<int64_t> rangeLength(double first, double last, double step);
/// start + i * step for each i below `length`, of an arithmetic type; scalars of that type. No start is 0, no step 1.
UOpRef range(Composer &b, DType type, UOpRef length, UOpRef start, UOpRef step);

/// A matrix of these two extents with ones at column = row + k, else zeros.
UOpRef eye(Composer &b, llvm::ArrayRef<UOpRef> dims, int64_t k, DType type);

/// i64 [n]: symbolic integers as elements.
UOpRef indexVector(Composer &b, llvm::ArrayRef<UOpRef> values);

} // namespace astra::compose

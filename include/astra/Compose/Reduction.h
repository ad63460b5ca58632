//===- Reduction.h: folds of axes, and softmax -----------------------------===//
// Takes:    x and axes, ascending and in range (Composer::axes); no axes: x itself, or f of each element.
// Gives:    the axes folded in the order lane64 (N4); they stay, with extent 1.
// Keeps:    types: what is said to be of a float type is f32 or f64, as Composer::widen gives; `reduction` and the
//           functions of whole ops take f16 and bf16 too, compute in f32 and round once.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// What folds axes, which stay with extent 1.
using Folding = UOpRef (*)(Composer &, UOpRef x, llvm::ArrayRef<int64_t> axes);

template <ReduceKind kind> UOpRef plainFold(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  return b.reduce(kind, x, axes);
}
/// sum / N; of integers it truncates.
UOpRef mean(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);
UOpRef sumOfMagnitudes(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);
UOpRef sumOfSquares(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);
/// The root of the sum of squares; the gradient of zeros is 0. Of integers this and the next two compute in f64.
UOpRef euclideanNorm(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);
UOpRef logOfSum(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);
/// log(sum(exp(x))) without overflow: -inf of nothing but -inf, +inf where there is one.
UOpRef logOfSumOfExp(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);

/// The mean of |x - mean|^2 over the axes, of a float or complex type, two passes; N - correction in place of N.
UOpRef variance(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, double correction, bool keep);

/// A whole reduction: x of any type that the fold takes; the axes stay with extent 1, or go.
UOpRef reduction(Composer &b, Folding fold, UOpRef x, llvm::ArrayRef<int64_t> axes, bool keep);

/// The number, i64, of the greatest or least element along an axis, which stays with extent 1: the first of several, or
/// the last. A NaN is greater than all numbers and less than all (N9).
UOpRef argReduce(Composer &b, UOpRef x, int64_t axis, bool greatest, bool last = false);

// ---- softmax, of float types

/// exp(x - max) over its sum along the axes, which are neighbours.
UOpRef softmax(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);
UOpRef logSoftmax(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);
/// The same as softmax, but zeros for a row of nothing but -inf.
UOpRef safeSoftmax(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);
/// What the gradient g of p = softmax(x) is by x, (g - sum(g p)) p; and that of logs = logSoftmax(x), g - e^logs
/// sum(g): for who has kept the result alone. Of f32 or f64.
UOpRef softmaxGradient(Composer &b, UOpRef g, UOpRef p, llvm::ArrayRef<int64_t> axes);
UOpRef logSoftmaxGradient(Composer &b, UOpRef g, UOpRef logs, llvm::ArrayRef<int64_t> axes);
/// 1 at the first maximum of each row, else 0. A row is what lies along the axes, which are neighbours.
UOpRef hardmax(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);

// ---- parts of these, for composites that say it otherwise

/// What exponents are shifted by, the greatest of them: a softmax is the same for any shift, so no gradient goes
/// through it.
UOpRef shiftBy(Composer &b, UOpRef most);
/// A softmax along what `reduce` folds, of which a row of nothing but -inf is zeros; null, or one score more in each
/// row, whose probability is dropped.
UOpRef safeSoftmaxBy(Composer &b, UOpRef x, llvm::function_ref<UOpRef(ReduceKind, UOpRef)> reduce, UOpRef sink);
/// p, which is a softmax of x whose rows `sum` adds up, with the gradient (g - sum(g p)) p where derivatives are
/// wanted: nothing but p is kept for it (decision 0079).
UOpRef withSoftmaxGradient(Composer &b, UOpRef p, UOpRef x, llvm::function_ref<UOpRef(UOpRef)> sum);
/// The root of a sum of squares; where derivatives are wanted its gradient is 0 where the sum is 0, and not a NaN.
UOpRef rootOfSquares(Composer &b, UOpRef sum);

} // namespace astra::compose

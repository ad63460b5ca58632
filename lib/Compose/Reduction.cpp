//===- Reduction.cpp: folds of axes, and softmax ---------------------------===//
// Takes:    operands that may be wrong, axes that are right.
// Gives:    reduce UOps in lane64 order (N4) and what is composed of them.
#include "astra/Compose/Reduction.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace astra::compose {

static constexpr double infinity = std::numeric_limits<double>::infinity();

UOpRef mean(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  if (!x || b.failed()) return nullptr;
  UOpRef count = b.idx(1);
  for (int64_t axis : axes) count = idxMul(b.c, count, x->shape[axis]);
  UOpRef sum = b.reduce(ReduceKind::Sum, x, axes);
  DType t = isComplex(x->dtype) ? partOf(x->dtype) : x->dtype;
  UOpRef divisor = b.cast(b.fromIndex(count, t), x->dtype);
  return axes.empty() ? x : b.bin(isInt(x->dtype) ? Op::TruncDiv : Op::Div, sum, divisor);
}

UOpRef variance(Composer &b, UOpRef given, llvm::ArrayRef<int64_t> axes, double correction, bool keep) {
  UOpRef x = b.widen(given);
  if (!x || (!isComplex(x->dtype) && !b.requireFloat(x))) return nullptr;
  DType t = isComplex(x->dtype) ? partOf(x->dtype) : x->dtype;
  UOpRef apart = b.bin(Op::Sub, x, mean(b, x, axes));
  auto square = [&](UOpRef v) { return b.bin(Op::Mul, v, v); };
  UOpRef squares = isComplex(x->dtype) ? b.bin(Op::Add, square(b.un(Op::Real, apart)), square(b.un(Op::Imag, apart)))
                                       : square(apart);
  UOpRef out = nullptr;
  if (correction == 0) {
    out = mean(b, squares, axes);
  } else {
    UOpRef count = b.idx(1);
    for (int64_t axis : axes) count = idxMul(b.c, count, x->shape[axis]);
    UOpRef divisor = b.bin(Op::Sub, b.fromIndex(count, t), correction);
    divisor = b.bin(Op::Max, divisor, b.literal(divisor, 0));
    out = b.bin(Op::Div, b.reduce(ReduceKind::Sum, squares, axes), divisor);
  }
  out = b.cast(out, isComplex(given->dtype) ? t : given->dtype);
  return keep ? out : b.squeeze(out, axes);
}

/// The root, which is taken of 1 where x is 0, so that no gradient is infinite.
static UOpRef flatRoot(Composer &b, UOpRef x) {
  UOpRef none = b.bin(Op::Eq, x, 0.0);
  return b.select(none, b.literal(x, 0), b.un(Op::Sqrt, b.select(none, b.literal(x, 1), x)));
}

UOpRef rootOfSquares(Composer &b, UOpRef sum) { return b.wantsGradients() ? flatRoot(b, sum) : b.un(Op::Sqrt, sum); }

UOpRef sumOfMagnitudes(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  return b.reduce(ReduceKind::Sum, b.un(Op::Abs, x), axes);
}
UOpRef sumOfSquares(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  return b.reduce(ReduceKind::Sum, b.bin(Op::Mul, x, x), axes);
}

/// Functions of integers are computed in f64; the way back truncates.
static UOpRef real(Composer &b, UOpRef x) { return x && isInt(x->dtype) ? b.cast(x, DType::F64) : x; }

UOpRef euclideanNorm(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  UOpRef sum = real(b, sumOfSquares(b, x, axes));
  return sum && isFloat(sum->dtype) ? flatRoot(b, sum) : b.un(Op::Sqrt, sum);
}
UOpRef logOfSum(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  return b.un(Op::Log, real(b, b.reduce(ReduceKind::Sum, x, axes)));
}
UOpRef logOfSumOfExp(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  x = real(b, x);
  UOpRef most = shiftBy(b, b.reduce(ReduceKind::Max, x, axes));
  // An infinite maximum is no shift: a row of -inf gives -inf, one with +inf gives +inf.
  UOpRef finite = b.bin(Op::Eq, b.bin(Op::Sub, most, most), b.literal(most, 0));
  UOpRef shift = b.select(finite, most, b.literal(most, 0));
  return b.bin(Op::Add, shift, logOfSum(b, b.un(Op::Exp, b.bin(Op::Sub, x, shift)), axes));
}

UOpRef reduction(Composer &b, Folding fold, UOpRef given, llvm::ArrayRef<int64_t> axes, bool keep) {
  UOpRef x = b.widen(given);
  if (!x) return nullptr;
  UOpRef folded = b.cast(fold(b, x, axes), given->dtype);
  return keep ? folded : b.squeeze(folded, axes);
}

UOpRef argReduce(Composer &b, UOpRef x, int64_t axis, bool greatest, bool last) {
  if (!x || b.failed()) return nullptr;
  UOpRef extent = x->shape[axis];
  if (last) x = b.flip(x, axis); // the first one from the back
  UOpRef index = b.make(Op::ArgReduce, {x}, {greatest ? 0 : 1, axis});
  if (last) index = b.bin(Op::Sub, b.fromIndex(idxSub(b.c, extent, b.idx(1)), DType::I64), index);
  return b.unsqueeze(index, {axis});
}

// ---- softmax

UOpRef shiftBy(Composer &b, UOpRef most) { return b.un(Op::Detach, most); }

/// (g - sum(g p)) p.
static UOpRef softmaxGradientBy(Composer &b, UOpRef g, UOpRef p, llvm::function_ref<UOpRef(UOpRef)> sum) {
  return b.bin(Op::Mul, b.bin(Op::Sub, g, sum(b.bin(Op::Mul, g, p))), p);
}

UOpRef withSoftmaxGradient(Composer &b, UOpRef p, UOpRef x, llvm::function_ref<UOpRef(UOpRef)> sum) {
  if (!p || !b.wantsGradients() || llvm::any_of(p->shape, isDataDim)) return p;
  UOpRef result = b.b.arg(0, p->dtype, p->shape), g = b.b.arg(2, p->dtype, p->shape);
  UOpRef gradient = softmaxGradientBy(b, g, result, sum);
  if (!gradient) return nullptr;
  return b.c.make(Op::WithGradient, {p, x}, {}, {}, DType::Void, {b.c.make(Op::Func, {gradient}, {3})});
}

UOpRef softmax(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  auto sum = [&](UOpRef v) { return b.reduce(ReduceKind::Sum, v, axes); };
  UOpRef e = b.un(Op::Exp, b.bin(Op::Sub, x, shiftBy(b, b.reduce(ReduceKind::Max, x, axes))));
  return withSoftmaxGradient(b, b.bin(Op::Div, e, sum(e)), x, sum);
}

UOpRef logSoftmax(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  UOpRef shifted = b.bin(Op::Sub, x, shiftBy(b, b.reduce(ReduceKind::Max, x, axes)));
  return b.bin(Op::Sub, shifted, b.un(Op::Log, b.reduce(ReduceKind::Sum, b.un(Op::Exp, shifted), axes)));
}

UOpRef safeSoftmaxBy(Composer &b, UOpRef x, llvm::function_ref<UOpRef(ReduceKind, UOpRef)> reduce, UOpRef sink) {
  UOpRef most = reduce(ReduceKind::Max, x);
  if (sink) most = b.bin(Op::Max, most, sink);
  most = shiftBy(b, most);
  UOpRef shift = b.select(b.bin(Op::Eq, most, -infinity), b.literal(x, 0), most);
  UOpRef e = b.un(Op::Exp, b.bin(Op::Sub, x, shift));
  UOpRef sum = reduce(ReduceKind::Sum, e);
  if (sink) sum = b.bin(Op::Add, sum, b.un(Op::Exp, b.bin(Op::Sub, sink, shift)));
  UOpRef p = b.bin(Op::Div, e, b.select(b.bin(Op::Eq, sum, 0.0), b.literal(x, 1), sum));
  if (sink) return p; // its gradient goes through the sum
  return withSoftmaxGradient(b, p, x, [&](UOpRef v) { return reduce(ReduceKind::Sum, v); });
}

UOpRef safeSoftmax(Composer &b, UOpRef given, llvm::ArrayRef<int64_t> axes) {
  UOpRef x = b.widen(given);
  if (!b.requireFloat(x)) return nullptr;
  auto reduce = [&](ReduceKind kind, UOpRef v) { return b.reduce(kind, v, axes); };
  return b.cast(safeSoftmaxBy(b, x, reduce, nullptr), given->dtype);
}

UOpRef softmaxGradient(Composer &b, UOpRef g, UOpRef p, llvm::ArrayRef<int64_t> axes) {
  return softmaxGradientBy(b, g, p, [&](UOpRef v) { return b.reduce(ReduceKind::Sum, v, axes); });
}

UOpRef logSoftmaxGradient(Composer &b, UOpRef g, UOpRef logs, llvm::ArrayRef<int64_t> axes) {
  return b.bin(Op::Sub, g, b.bin(Op::Mul, b.un(Op::Exp, logs), b.reduce(ReduceKind::Sum, g, axes)));
}

UOpRef hardmax(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  if (!b.requireFloat(x) || axes.empty()) return nullptr;
  int64_t axis = axes.front();
  Dims dims(x->shape.begin(), x->shape.begin() + axis);
  dims.push_back(idxProduct(b.c, x->shape.slice(axis, axes.size())));
  dims.append(x->shape.begin() + axis + axes.size(), x->shape.end());
  UOpRef flat = b.reshape(x, dims);
  if (!flat) return nullptr;
  UOpRef first = b.make(Op::ArgReduce, {flat}, {0, axis});
  UOpRef hit = b.bin(Op::Eq, b.unsqueeze(first, {axis}), b.iota(DType::I64, flat->shape, axis));
  return b.cast(b.reshape(hit, x->shape), x->dtype);
}

} // namespace astra::compose

//===- ComplexParts.cpp: complex arithmetic on pairs of real values --------===//
#include "ComplexParts.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace astra;
using namespace astra::numerics;
using llvm::ArrayRef;
using llvm::SmallVector;

Parts numerics::multiply(Builder &b, Parts x, Parts y) {
  return {b.fma(x.re, y.re, b.un(Op::Neg, b.mul(x.im, y.im))), b.fma(x.re, y.im, b.mul(x.im, y.re))};
}

Parts numerics::divide(Builder &b, Parts x, Parts y) {
  UOpRef zero = b.lit(y.re->dtype, 0), minus = b.un(Op::Neg, x.re);
  UOpRef turned = b.lt(b.un(Op::Abs, y.re), b.un(Op::Abs, y.im)); // the greater part of the divisor is imaginary
  UOpRef great = b.select(turned, y.im, y.re), small = b.select(turned, y.re, y.im);
  UOpRef none = b.bin(Op::And, b.eq(y.re, zero), b.eq(y.im, zero));
  UOpRef t = b.select(none, zero, b.div(small, great)), d = b.fma(small, t, great);
  UOpRef re = b.fma(b.select(turned, x.re, x.im), t, b.select(turned, x.im, x.re));
  UOpRef im = b.fma(b.select(turned, x.im, minus), t, b.select(turned, minus, x.im));
  return {b.div(re, d), b.div(im, d)};
}

UOpRef numerics::magnitude(Builder &b, Parts x) {
  DType type = x.re->dtype;
  UOpRef zero = b.lit(type, 0), infinity = b.lit(type, std::numeric_limits<double>::infinity());
  UOpRef re = b.un(Op::Abs, x.re), im = b.un(Op::Abs, x.im), m = b.max(re, im), t = b.div(b.min(re, im), m);
  UOpRef length = b.mul(m, b.un(Op::Sqrt, b.fma(t, t, b.lit(type, 1))));
  UOpRef finite = b.select(b.eq(m, zero), zero, length);
  return b.select(b.bin(Op::Or, b.eq(re, infinity), b.eq(im, infinity)), infinity, finite);
}

Parts numerics::contraction(Builder &b, ArrayRef<int64_t> spec, ArrayRef<UOpRef> indices, Parts x, Parts y) {
  auto sum = [&](UOpRef l, UOpRef r) {
    SmallVector<UOpRef, 8> src{l, r};
    src.append(indices.begin(), indices.end());
    return b.c.make(Op::Contract, src, spec);
  };
  return {b.sub(sum(x.re, y.re), sum(x.im, y.im)), b.add(sum(x.re, y.im), sum(x.im, y.re))};
}

static Parts each(Parts x, llvm::function_ref<UOpRef(UOpRef)> f) { return {f(x.re), f(x.im)}; }
static Parts select(Builder &b, UOpRef condition, Parts x, Parts y) {
  return {b.select(condition, x.re, y.re), b.select(condition, x.im, y.im)};
}

/// One more element at the end of an axis; nobody reads it.
static Parts longer(Builder &b, Parts x, int64_t axis) {
  SmallVector<UOpRef, 6> lo(x.re->rank(), b.idx(0)), hi = lo;
  hi[axis] = b.idx(1);
  return each(x, [&](UOpRef v) { return b.pad(v, lo, hi); });
}

/// Element `at` of an axis, which goes away.
static Parts slice(Builder &b, Parts x, int64_t axis, int64_t at) {
  SmallVector<UOpRef, 6> begin(x.re->rank(), b.idx(0)), size(x.re->shape), kept = size;
  begin[axis] = b.idx(at);
  size[axis] = b.idx(1);
  kept.erase(kept.begin() + axis);
  return each(x, [&](UOpRef v) { return b.reshape(b.shrink(v, begin, size), kept); });
}

Parts numerics::product(Builder &b, Parts x, int64_t axis) {
  UOpRef count = x.re->shape[axis], left = count; // of the elements that are still to be multiplied
  if (count->lo < 1) x = longer(b, x, axis);      // an extent of 1 at least, so that a pair fits
  while (x.re->shape[axis]->hi > 1) {
    auto even = [](UOpRef n) { return n->constIndex() && *n->constIndex() % 2 == 0; };
    if (!even(x.re->shape[axis])) x = longer(b, x, axis);
    int64_t within = x.re->rank(); // the axis of the window: an element of the pair
    Parts pairs = each(x, [&](UOpRef v) { return b.window(v, axis, 2, 2, 1); });
    Parts first = slice(b, pairs, within, 0), both = multiply(b, first, slice(b, pairs, within, 1));
    UOpRef second =
        b.add(b.mul(b.iota(DType::I64, first.re->shape, axis), b.litInt(DType::I64, 2)), b.litInt(DType::I64, 1));
    x = even(left) ? both : select(b, b.lt(second, b.fromIndex(left, DType::I64)), both, first);
    left = idxDiv(b.c, idxAdd(b.c, left, b.idx(1)), b.idx(2));
  }
  x = slice(b, x, axis, 0);
  if (count->lo > 0) return x;
  UOpRef any = b.splat(b.lt(b.litInt(DType::I64, 0), b.fromIndex(count, DType::I64)), x.re->shape);
  return {b.select(any, x.re, b.lit(x.re->dtype, 1)), b.select(any, x.im, b.lit(x.im->dtype, 0))};
}

Parts numerics::runningProduct(Builder &b, Parts x, int64_t axis) {
  Shape shape = x.re->shape;
  UOpRef at = b.iota(DType::I64, shape, axis);
  for (int64_t s = 1; s < shape[axis]->hi; s *= 2) {
    SmallVector<UOpRef, 6> zero(shape.size(), b.idx(0)), by = zero;
    by[axis] = b.idx(s);
    Parts before = each(x, [&](UOpRef v) { return b.shrink(b.pad(v, by, zero), zero, shape); });
    x = select(b, b.lt(at, b.litInt(DType::I64, s)), x, multiply(b, before, x));
  }
  return x;
}

//===- Matrix.cpp: determinants ------------------------------------------===//
// Takes:    matrices that may not be square.
// Gives:    what Matrix.h says.
#include "astra/Compose/Matrix.h"
#include "astra/Compose/Linalg.h"
#include "astra/IR/Index.h"

namespace astra::compose {

/// The product of the diagonal of U, negative after an odd number of exchanges.
static UOpRef byFactors(Composer &b, UOpRef x) {
  LU f = luFactor(b, x);
  UOpRef pivots = diagonal(b, f.packed);
  if (!pivots || !f.pivots || b.failed()) return nullptr;
  int64_t axis = int64_t(pivots->rank()) - 1;
  UOpRef exchanged = b.bin(Op::Ne, f.pivots, b.iota(DType::I64, {pivots->shape[axis]}, 0));
  UOpRef factors = b.select(exchanged, b.un(Op::Neg, pivots), pivots);
  return b.squeeze(b.reduce(ReduceKind::Prod, factors, {axis}), {axis});
}

UOpRef determinant(Composer &b, UOpRef given) {
  UOpRef x = b.widen(given);
  if (!x || (!isComplex(x->dtype) && !b.requireFloat(x)) || !b.requireRank(x, 2)) return nullptr;
  auto number = [&](double value) { return b.b.lit(x->dtype, value); };
  int64_t lead = x->rank() - 2, size = b.constExtent(x, lead, "the extent of the matrices");
  if (x->shape[lead] != x->shape[lead + 1]) b.fail("the matrices " + dimsText(x->shape) + " are not square");
  if (b.failed()) return nullptr;
  constexpr int64_t most = 64;
  if (size > most) return b.cast(byFactors(b, x), given->dtype);
  Dims batch(x->shape.begin(), x->shape.end() - 2);
  UOpRef count = idxProduct(b.c, batch), one = b.idx(1), zero = b.idx(0);
  x = b.reshape(x, {count, b.idx(size), b.idx(size)});
  UOpRef result = b.broadcastTo(number(1), {count});
  for (int64_t left = size; left > 0 && !b.failed(); --left) {
    UOpRef extent = b.idx(left), rest = b.idx(left - 1);
    UOpRef column = b.squeeze(b.shrink(x, {zero, zero, zero}, {count, extent, one}), {2});
    UOpRef row = b.make(Op::ArgReduce, {b.un(Op::Abs, column)}, {0, 1}); // [count]
    if (!row) return nullptr;
    // the pivot's row, and in its place the first one
    UOpRef chosen = b.broadcastTo(b.unsqueeze(row, {1, 2}), {count, one, extent});
    UOpRef top = b.make(Op::Pick, {x, chosen}, {1});
    UOpRef pivot = b.reshape(b.shrink(top, {zero, zero, zero}, {count, one, one}), {count});
    UOpRef swapped = b.bin(Op::Ne, row, 0.0);
    result = b.bin(Op::Mul, result, b.select(swapped, b.un(Op::Neg, pivot), pivot));
    if (left == 1) break;
    UOpRef first = b.shrink(x, {zero, zero, zero}, {count, one, extent});
    UOpRef lower = b.shrink(x, {zero, one, zero}, {count, rest, extent});
    UOpRef isChosen = b.bin(Op::Eq, b.bin(Op::Add, b.iota(DType::I64, {rest}, 0), 1), b.unsqueeze(row, {1}));
    lower = b.select(b.unsqueeze(isChosen, {2}), first, lower);
    UOpRef divisor = b.unsqueeze(pivot, {1, 2});
    UOpRef singular = b.unsqueeze(b.bin(Op::Eq, pivot, number(0)), {1, 2});   // the product is 0 already
    if (b.wantsGradients()) divisor = b.select(singular, number(1), divisor); // no NaN in a gradient
    UOpRef factor = b.bin(Op::Div, b.shrink(lower, {zero, zero, zero}, {count, rest, one}), divisor);
    factor = b.select(singular, number(0), factor);
    x = b.bin(Op::Sub, b.shrink(lower, {zero, zero, one}, {count, rest, rest}),
              b.bin(Op::Mul, factor, b.shrink(top, {zero, zero, one}, {count, one, rest})));
  }
  return b.cast(b.reshape(result, batch), given->dtype);
}

} // namespace astra::compose

//===- OpsDeterminant.cpp: Det ---------------------------------------------===//
// Takes:    square matrices [..., M, M] of a constant extent.
// Gives:    Gaussian elimination with partial pivoting, a column a step, on what is left of the matrices: the product
// of
//           the pivots, in order, with the sign of the exchanges.
// Keeps:    the row of the greatest magnitude, the first of several, as pivot; a column of zeros gives 0.
#include "OpTable.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

void determinant(Node &n) {
  UOpRef x = n.widen(n.in(0));
  if (!n.requireFloat(x) || !n.requireRank(x, 2)) return;
  int64_t lead = x->rank() - 2, size = n.constExtent(x, lead, "the extent of the matrices");
  if (x->shape[lead] != x->shape[lead + 1]) n.fail("the matrices " + dimsText(x->shape) + " are not square");
  constexpr int64_t most = 64;
  if (size > most)
    n.unsupported("matrices of extent " + llvm::Twine(size) + " are not supported, only up to " + llvm::Twine(most));
  if (n.failed()) return;
  Dims batch(x->shape.begin(), x->shape.end() - 2);
  UOpRef count = idxProduct(n.c, batch), one = n.c.index(1), zero = n.c.index(0);
  x = n.reshape(x, {count, n.c.index(size), n.c.index(size)});
  UOpRef result = n.broadcastTo(n.b.lit(x->dtype, 1), {count});
  for (int64_t left = size; left > 0 && !n.failed(); --left) {
    UOpRef extent = n.c.index(left), rest = n.c.index(left - 1);
    UOpRef column = n.squeeze(n.shrink(x, {zero, zero, zero}, {count, extent, one}), {2});
    UOpRef row = n.make(Op::ArgReduce, {n.un(Op::Abs, column)}, {0, 1}); // [count]
    if (!row) return;
    // the pivot's row, and in its place the first one
    UOpRef chosen = n.broadcastTo(n.unsqueeze(row, {1, 2}), {count, one, extent});
    UOpRef top = n.make(Op::Pick, {x, chosen}, {1});
    UOpRef pivot = n.reshape(n.shrink(top, {zero, zero, zero}, {count, one, one}), {count});
    UOpRef swapped = n.bin(Op::Ne, row, 0.0);
    result = n.bin(Op::Mul, result, n.select(swapped, n.un(Op::Neg, pivot), pivot));
    if (left == 1) break;
    UOpRef first = n.shrink(x, {zero, zero, zero}, {count, one, extent});
    UOpRef lower = n.shrink(x, {zero, one, zero}, {count, rest, extent});
    UOpRef isChosen = n.bin(Op::Eq, n.bin(Op::Add, n.iota(DType::I64, {rest}, 0), 1), n.unsqueeze(row, {1}));
    lower = n.select(n.unsqueeze(isChosen, {2}), first, lower);
    UOpRef divisor = n.unsqueeze(pivot, {1, 2});
    UOpRef singular = n.unsqueeze(n.bin(Op::Eq, pivot, 0.0), {1, 2});               // the product is 0 already
    if (n.training()) divisor = n.select(singular, n.literal(divisor, 1), divisor); // no NaN in a gradient
    UOpRef factor = n.bin(Op::Div, n.shrink(lower, {zero, zero, zero}, {count, rest, one}), divisor);
    factor = n.select(singular, n.literal(factor, 0), factor);
    x = n.bin(Op::Sub, n.shrink(lower, {zero, zero, one}, {count, rest, rest}),
              n.bin(Op::Mul, factor, n.shrink(top, {zero, zero, one}, {count, one, rest})));
  }
  n.give(n.cast(n.reshape(result, batch), n.in(0)->dtype));
}

constexpr Row rows[] = {{"Det", 11, latest, 1, 1, determinant, floatTypes, "matrices up to 64 x 64"}};

} // namespace

llvm::ArrayRef<Row> determinantRows() { return rows; }

} // namespace astra::onnx

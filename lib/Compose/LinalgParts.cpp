//===- LinalgParts.cpp: what the files of linear algebra share -----------===//
// Takes:    a user's matrices, which may be wrong; then matrices that were checked.
// Gives:    what LinalgParts.h says.
#include "LinalgParts.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace astra::compose::linalg {

Matrices matricesOf(Composer &b, UOpRef given, bool square, int64_t most) {
  Matrices m;
  UOpRef x = b.widen(given);
  if (!b.requireFloat(x) || !b.requireRank(x, 2)) return m;
  m.type = given->dtype;
  int64_t lead = x->rank() - 2;
  if (square && x->shape[lead] != x->shape[lead + 1]) b.fail("the matrices " + dimsText(x->shape) + " are not square");
  m.rows = b.constExtent(x, lead, "the number of rows");
  m.columns = b.constExtent(x, lead + 1, "the number of columns");
  for (int64_t extent : {m.rows, m.columns}) {
    if (extent < 1) b.fail("the matrices " + dimsText(x->shape) + " have no elements");
    if (extent > most)
      b.unsupported("matrices of extent " + llvm::Twine(extent) + " are not supported, only up to " +
                    llvm::Twine(most));
  }
  if (b.failed()) return m;
  m.batch.assign(x->shape.begin(), x->shape.end() - 2);
  m.count = idxProduct(b.c, m.batch);
  m.x = b.reshape(x, {m.count, b.idx(m.rows), b.idx(m.columns)});
  return m;
}

UOpRef Matrices::back(Composer &b, UOpRef y) const {
  if (!y) return nullptr;
  Dims dims = batch;
  dims.append(y->shape.begin() + 1, y->shape.end());
  UOpRef shaped = b.reshape(y, dims);
  return isFloat(y->dtype) ? b.cast(shaped, type) : shaped;
}

UOpRef transposed(Composer &b, UOpRef x) { return b.permute(x, {0, 2, 1}); }

UOpRef block(Composer &b, UOpRef x, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  if (!x) return nullptr;
  return b.shrink(x, {b.idx(0), b.idx(row), b.idx(column)}, {x->shape[0], b.idx(rows), b.idx(columns)});
}

UOpRef times(Composer &b, UOpRef x, UOpRef y, bool turnX, bool turnY) {
  if (!x || !y) return nullptr;
  ContractSpec spec;
  spec.kept = 3;
  spec.reduced = 1;
  spec.a = {label(0), label(turnX ? 3 : 1), label(turnX ? 1 : 3)};
  spec.b = {label(0), label(turnY ? 2 : 3), label(turnY ? 3 : 2)};
  return b.contract(spec, x, y, {x->shape[0], x->shape[1 + turnX], y->shape[2 - turnY], x->shape[2 - turnX]});
}

UOpRef rowNumbers(Composer &b, int64_t n) { return b.iota(DType::I64, {b.idx(n), b.idx(1)}, 0); }
UOpRef columnNumbers(Composer &b, int64_t n) { return b.iota(DType::I64, {b.idx(n)}, 0); }

UOpRef identity(Composer &b, UOpRef count, int64_t n, DType t) {
  UOpRef one = b.select(b.bin(Op::Eq, rowNumbers(b, n), columnNumbers(b, n)), b.b.lit(t, 1), b.b.lit(t, 0));
  return b.broadcastTo(one, {count, b.idx(n), b.idx(n)});
}

static UOpRef part(Composer &b, UOpRef x, int64_t offset, bool upper) {
  if (!x) return nullptr;
  UOpRef row = b.bin(Op::Add, rowNumbers(b, *x->shape[1]->constIndex()), double(offset)),
         column = columnNumbers(b, *x->shape[2]->constIndex());
  return b.select(upper ? b.bin(Op::Le, row, column) : b.bin(Op::Le, column, row), x, b.literal(x, 0));
}
UOpRef upperPart(Composer &b, UOpRef x, int64_t offset) { return part(b, x, offset, true); }
UOpRef lowerPart(Composer &b, UOpRef x, int64_t offset) { return part(b, x, offset, false); }

UOpRef diagonalOf(Composer &b, UOpRef x) {
  if (!x) return nullptr;
  int64_t n = std::min(*x->shape[1]->constIndex(), *x->shape[2]->constIndex());
  x = block(b, x, 0, n, 0, n);
  if (!x) return nullptr;
  UOpRef at = b.broadcastTo(rowNumbers(b, n), {x->shape[0], b.idx(n), b.idx(1)});
  return b.squeeze(b.make(Op::Pick, {x, at}, {2}), {2});
}

UOpRef rowsInOrder(Composer &b, UOpRef x, UOpRef order) {
  if (!x || !order) return nullptr;
  return b.make(Op::Pick, {x, b.broadcastTo(b.unsqueeze(order, {2}), {x->shape[0], order->shape[1], x->shape[2]})},
                {1});
}
UOpRef columnsInOrder(Composer &b, UOpRef x, UOpRef order) {
  if (!x || !order) return nullptr;
  return b.make(Op::Pick, {x, b.broadcastTo(b.unsqueeze(order, {1}), {x->shape[0], x->shape[1], order->shape[1]})},
                {2});
}

/// From the bits: no function is asked. What is below the least normal number counts as it.
UOpRef exponentOf(Composer &b, UOpRef magnitude) {
  if (!magnitude) return nullptr;
  bool wide = magnitude->dtype == DType::F64;
  UOpRef bits = b.make(Op::Bitcast, {b.un(Op::Abs, magnitude)}, {}, wide ? DType::I64 : DType::I32);
  UOpRef field = b.cast(b.bin(Op::Shr, bits, wide ? 52.0 : 23.0), DType::I32);
  field = b.bin(Op::Sub, field, wide ? 1023.0 : 127.0);
  return b.select(b.bin(Op::Eq, magnitude, 0.0), b.literal(field, 0), field);
}
UOpRef scaled(Composer &b, UOpRef x, UOpRef exponent, bool up) {
  if (!x || !exponent) return nullptr;
  UOpRef e = up ? exponent : b.un(Op::Neg, exponent);
  Ints behind = axesBetween(e ? e->rank() : 0, x->rank());
  return b.make(Op::Scale2, {x, b.broadcastTo(b.unsqueeze(e, behind), x->shape)});
}

UOpRef quietNaN(Composer &b, DType t) { return b.b.bits(t, t == DType::F64 ? 0x7ff8000000000000 : 0x7fc00000); }
double epsilonOf(DType t) { return t == DType::F64 ? 0x1p-52 : 0x1p-23; }

UOpRef withRule(Composer &b, UOpRef value, llvm::ArrayRef<UOpRef> sources, Rule rule) {
  if (!value || !b.wantsGradients() || llvm::any_of(value->shape, isDataDim)) return value;
  llvm::SmallVector<UOpRef, 4> inside;
  auto argument = [&](UOpRef like) {
    inside.push_back(b.b.arg(inside.size(), like->dtype, like->shape));
    return inside.back();
  };
  UOpRef result = argument(value);
  for (UOpRef s : sources) argument(s);
  llvm::SmallVector<UOpRef, 4> given(llvm::ArrayRef<UOpRef>(inside).drop_front());
  UOpRef cotangent = argument(value);
  llvm::SmallVector<UOpRef, 2> gives = rule(result, given, cotangent);
  if (b.failed() || llvm::is_contained(gives, nullptr)) return nullptr;
  UOpRef function = b.c.make(Op::Func, gives, {int64_t(inside.size())});
  for (int time = 0; time < 2; ++time) { // the second: the rule reads the value, which has the rule for that
    llvm::SmallVector<UOpRef, 4> src = {value};
    src.append(sources.begin(), sources.end());
    value = b.c.make(Op::WithGradient, src, {}, {}, DType::Void, {function});
  }
  return value;
}

} // namespace astra::compose::linalg

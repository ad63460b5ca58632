//===- LinalgParts.cpp: what the files of linear algebra share -----------===//
// Takes:    a user's matrices, which may be wrong; then matrices that were checked.
// Gives:    what LinalgParts.h says.
#include "LinalgParts.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace astra::compose::linalg {

Matrices matricesOf(Composer &b, UOpRef given, bool square, int64_t most) {
  Matrices m;
  UOpRef x = b.widen(given);
  if (!x || (!isComplex(x->dtype) && !b.requireFloat(x)) || !b.requireRank(x, 2)) return m;
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
  return isFloat(y->dtype) && isFloat(type) ? b.cast(shaped, type) : shaped;
}

UOpRef transposed(Composer &b, UOpRef x) { return b.permute(x, {0, 2, 1}); }
UOpRef adjoint(Composer &b, UOpRef x) { return transposed(b, conjugate(b, x)); }

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
  if (turnX) x = conjugate(b, x);
  if (turnY) y = conjugate(b, y);
  if (!x || !y) return nullptr;
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
  return b.select(upper ? b.bin(Op::Le, row, column) : b.bin(Op::Le, column, row), x, number(b, x, 0));
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

/// f of both parts of a complex number, of a real one itself.
static UOpRef partByPart(Composer &b, UOpRef x, llvm::function_ref<UOpRef(UOpRef)> f) {
  if (!x || !isComplex(x->dtype)) return f(x);
  return b.make(Op::Complex, {f(b.un(Op::Real, x)), f(b.un(Op::Imag, x))});
}

/// From the bits: no function is asked. What is below the least normal number counts as it.
UOpRef exponentOf(Composer &b, UOpRef magnitude) {
  if (!magnitude) return nullptr;
  bool wide = magnitude->dtype == DType::F64;
  UOpRef bits = b.make(Op::Bitcast, {b.un(Op::Abs, magnitude)}, {}, wide ? DType::I64 : DType::I32);
  UOpRef field = b.cast(b.bin(Op::Shr, bits, wide ? 52.0 : 23.0), DType::I32);
  field = b.bin(Op::Sub, field, wide ? 1023.0 : 127.0);
  return b.select(b.bin(Op::Eq, magnitude, 0.0), number(b, field, 0), field);
}
static UOpRef timesPower(Composer &b, UOpRef x, UOpRef exponent) {
  UOpRef all = x ? b.broadcastTo(exponent, x->shape) : nullptr;
  return partByPart(b, x, [&](UOpRef part) { return b.make(Op::Scale2, {part, all}); });
}
UOpRef scaledEach(Composer &b, UOpRef x, UOpRef exponent) { return timesPower(b, x, b.un(Op::Neg, exponent)); }
UOpRef scaled(Composer &b, UOpRef x, UOpRef exponent, bool up) {
  if (!x || !exponent) return nullptr;
  UOpRef e = up ? exponent : b.un(Op::Neg, exponent);
  return timesPower(b, x, b.unsqueeze(e, axesBetween(exponent->rank(), x->rank())));
}

UOpRef quietNaN(Composer &b, DType t) {
  UOpRef part = b.b.bits(partOf(t), partOf(t) == DType::F64 ? 0x7ff8000000000000 : 0x7fc00000);
  return isComplex(t) ? b.make(Op::Complex, {part, part}) : part;
}
double epsilonOf(DType t) { return partOf(t) == DType::F64 ? 0x1p-52 : 0x1p-23; }

UOpRef minusProduct(Composer &b, UOpRef z, UOpRef x, UOpRef y) {
  if (!z || !x || !y) return nullptr;
  if (isComplex(z->dtype)) return b.bin(Op::Sub, z, b.bin(Op::Mul, x, y));
  return b.make(Op::Fma, {b.broadcastTo(b.un(Op::Neg, x), z->shape), b.broadcastTo(y, z->shape), z});
}
UOpRef squared(Composer &b, UOpRef x) {
  if (!x || !isComplex(x->dtype)) return b.bin(Op::Mul, x, x);
  return b.bin(Op::Add, squared(b, b.un(Op::Real, x)), squared(b, b.un(Op::Imag, x)));
}
UOpRef greaterPart(Composer &b, UOpRef x) {
  if (!x || !isComplex(x->dtype)) return b.un(Op::Abs, x);
  return b.bin(Op::Max, b.un(Op::Abs, b.un(Op::Real, x)), b.un(Op::Abs, b.un(Op::Imag, x)));
}
UOpRef timesReal(Composer &b, UOpRef x, UOpRef real) {
  return partByPart(b, x, [&](UOpRef part) { return b.bin(Op::Mul, part, real); });
}
UOpRef overReal(Composer &b, UOpRef x, UOpRef real) {
  return partByPart(b, x, [&](UOpRef part) { return b.bin(Op::Div, part, real); });
}
UOpRef directionOf(Composer &b, UOpRef x) {
  if (!x) return nullptr;
  UOpRef one = number(b, x, 1);
  if (!isComplex(x->dtype)) return b.select(b.bin(Op::Lt, x, 0.0), number(b, x, -1), one);
  UOpRef size = b.un(Op::Abs, x), none = b.bin(Op::Eq, size, 0.0);
  return b.select(none, one, overReal(b, x, b.select(none, number(b, size, 1), size)));
}
UOpRef likewise(Composer &b, UOpRef real, UOpRef x) { return x ? b.cast(real, x->dtype) : nullptr; }

UOpRef beforeDirections(Composer &b, UOpRef vectors, UOpRef g, UOpRef along) {
  if (!vectors || !isComplex(vectors->dtype)) return g;
  UOpRef at = b.unsqueeze(b.make(Op::ArgReduce, {b.un(Op::Abs, vectors)}, {0, 1}), {1}); // [count, 1, k]
  UOpRef share = b.bin(Op::Div, along, realPart(b, b.make(Op::Pick, {vectors, at}, {1})));
  if (!share || b.failed()) return nullptr;
  UOpRef part = b.bin(Op::Complex, b.literal(share, 0), share);
  UOpRef isGreatest = b.bin(Op::Eq, rowNumbers(b, *vectors->shape[1]->constIndex()), at);
  return b.bin(Op::Sub, g, b.select(isGreatest, part, number(b, g, 0)));
}
UOpRef imaginaryProduct(Composer &b, UOpRef x, UOpRef y) {
  UOpRef products = x && isComplex(x->dtype) ? b.un(Op::Imag, b.bin(Op::Mul, x, conjugate(b, y))) : nullptr;
  return b.reduce(ReduceKind::Sum, products, {1});
}

Scale scaleOf(Composer &b, UOpRef x) {
  UOpRef most = b.squeeze(b.reduce(ReduceKind::Max, greaterPart(b, x), {1, 2}), {1, 2});
  UOpRef finite = b.bin(Op::Eq, b.bin(Op::Sub, most, most), 0.0);
  return {finite, exponentOf(b, b.select(finite, most, number(b, most, 1)))};
}
UOpRef orNaN(Composer &b, UOpRef finite, UOpRef x) {
  if (!x || !finite) return nullptr;
  return b.select(b.unsqueeze(finite, axesBetween(1, x->rank())), x, quietNaN(b, x->dtype));
}

std::vector<UOpRef> inParts(Composer &b, llvm::ArrayRef<UOpRef> batches,
                            llvm::function_ref<std::vector<UOpRef>(llvm::ArrayRef<UOpRef>)> f) {
  if (b.failed() || llvm::is_contained(batches, nullptr)) return f(batches);
  std::optional<int64_t> count = batches[0]->shape[0]->constIndex();
  int64_t bytes = 0; // of one matrix, and what stands beside it
  for (UOpRef x : batches) {
    int64_t size = int64_t(bitWidth(x->dtype)) / 8;
    for (UOpRef extent : x->shape.drop_front()) size *= extent->constIndex().value_or(1);
    bytes += size;
  }
  constexpr int64_t most = 256 << 10;
  int64_t fit = std::max<int64_t>(1, most / bytes);
  if (!count || *count < 2 * fit || fit < 8) return f(batches);
  int64_t parts = (*count + fit - 1) / fit, each = *count / parts, done = parts * each;
  ScanMaker scan(b, b.idx(parts));
  llvm::SmallVector<UOpRef, 4> inside;
  for (UOpRef x : batches) {
    Dims dims = {b.idx(parts), b.idx(each)};
    dims.append(x->shape.begin() + 1, x->shape.end());
    inside.push_back(scan.slice(b.reshape(b.part(x, 0, 0, done), dims)));
  }
  std::vector<UOpRef> all = scan.finish({}, f(inside)), rest;
  if (done < *count) {
    llvm::SmallVector<UOpRef, 4> last;
    for (UOpRef x : batches) last.push_back(b.part(x, 0, done, *count - done));
    rest = f(last);
  }
  for (auto [i, x] : llvm::enumerate(all)) {
    if (!x || b.failed()) return all;
    Dims dims = {b.idx(done)};
    dims.append(x->shape.begin() + 2, x->shape.end());
    x = b.reshape(x, dims);
    if (!rest.empty()) x = b.concat({x, rest[i]}, 0);
  }
  return all;
}

} // namespace astra::compose::linalg

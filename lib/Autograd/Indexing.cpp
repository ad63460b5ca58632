//===- Indexing.cpp: derivatives of gather, scatter and windows ------------===//
// Takes:    a node that reads or writes at indices that are data.
// Gives:    its tangent, the same op at the same indices, and its transpose: what was read is added where it was read
//           from, what was written is read from where it was written to.
// Keeps:    an index outside reads 0 and writes nothing, in the transposes too. Elements that share an extreme of a
//           scatter share its gradient in equal parts (PyTorch's scatter_reduce).
#include "Rows.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace astra;
using namespace astra::autograd;
using llvm::SmallVector;

UOpRef autograd::tangentGather(Builder &b, UOpRef n, Tangents d) { return b.gather(d[0], n->src[1], n->ints[0]); }
UOpRef autograd::transposeGather(Builder &b, UOpRef n, UOpRef g, unsigned) {
  UOpRef x = n->src[0], index = n->src[1];
  int64_t axis = n->ints[0];
  SmallVector<UOpRef, 6> rows(x->shape), ones(x->rank(), b.idx(1)); // the axes of the index as one
  rows[axis] = ones[axis] = idxProduct(b.c, index->shape);
  UOpRef at = b.expand(b.reshape(index, ones), rows);
  return b.scatter(ScatterKind::Add, zerosLike(b, x), at, b.reshape(g, rows), axis);
}

UOpRef autograd::tangentPick(Builder &b, UOpRef n, Tangents d) { return b.pick(d[0], n->src[1], n->ints[0]); }
UOpRef autograd::transposePick(Builder &b, UOpRef n, UOpRef g, unsigned) {
  return b.scatter(ScatterKind::Add, zerosLike(b, n->src[0]), n->src[1], g, n->ints[0]);
}

/// y = x * the product of the updates. A factor's partial is the product of all others: of those that are not 0, and of
/// the others' zeros by their sum, where there is one (0, but with a derivative, and so by no infinity or NaN); two of
/// them are 0 in two derivatives.
static UOpRef tangentScatterMul(Builder &b, UOpRef n, Tangents d) {
  UOpRef x = n->src[0], at = n->src[1], u = n->src[2], one = b.lit(n->dtype, 1), zero = b.lit(n->dtype, 0);
  int64_t axis = n->ints[0];
  auto isZero = [&](UOpRef v) { return b.eq(v, zero); };
  auto factor = [&](UOpRef v) { return b.select(isZero(v), one, v); };
  auto rest = [&](UOpRef v) { return b.select(isZero(v), v, zero); };
  auto mark = [&](UOpRef v) { return b.cast(isZero(v), DType::I64); };
  auto finite = [&](UOpRef v) { return b.select(b.lt(b.un(Op::Abs, v), b.lit(n->dtype, INFINITY)), v, zero); };
  UOpRef product = b.scatter(ScatterKind::Mul, factor(x), at, factor(u), axis);
  UOpRef zeros = b.scatter(ScatterKind::Add, rest(x), at, rest(u), axis);
  UOpRef count = b.scatter(ScatterKind::Add, mark(x), at, mark(u), axis);
  auto partial = [&](UOpRef v, UOpRef product, UOpRef zeros, UOpRef count) {
    UOpRef others = b.div(product, factor(v)), left = b.bin(Op::Sub, count, mark(v));
    auto are = [&](int64_t k) { return b.eq(left, b.litInt(DType::I64, k)); };
    return b.select(are(0), others, b.select(are(1), b.mul(finite(others), b.sub(zeros, rest(v))), zero));
  };
  UOpRef dx = d[0] ? b.mul(partial(x, product, zeros, count), d[0]) : zerosLike(b, x);
  if (!d[2]) return dx;
  auto ofUpdate = [&](UOpRef v) { return b.pick(v, at, axis); };
  UOpRef du = b.mul(partial(u, ofUpdate(product), ofUpdate(zeros), ofUpdate(count)), d[2]);
  return b.scatter(ScatterKind::Add, dx, at, du, axis);
}

static UOpRef tangentScatterExtreme(Builder &b, UOpRef n, Tangents d) {
  UOpRef x = n->src[0], at = n->src[1], u = n->src[2], zero = b.lit(n->dtype, 0);
  int64_t axis = n->ints[0];
  UOpRef isX = b.eq(x, n), isU = b.eq(u, b.pick(n, at, axis));
  UOpRef count = b.scatter(ScatterKind::Add, b.cast(isX, n->dtype), at, b.cast(isU, n->dtype), axis);
  UOpRef dx = d[0] ? b.select(isX, d[0], zero) : zerosLike(b, x);
  if (d[2]) dx = b.scatter(ScatterKind::Add, dx, at, b.select(isU, d[2], zero), axis);
  return b.div(dx, count);
}

UOpRef autograd::tangentScatter(Builder &b, UOpRef n, Tangents d) {
  auto kind = ScatterKind(n->ints[1]);
  if (kind == ScatterKind::Mul) return tangentScatterMul(b, n, d);
  if (kind == ScatterKind::Max || kind == ScatterKind::Min) return tangentScatterExtreme(b, n, d);
  return b.scatter(kind, orZeros(b, d[0], n->src[0]), n->src[1], orZeros(b, d[2], n->src[2]), n->ints[0]);
}
UOpRef autograd::transposeScatter(Builder &b, UOpRef n, UOpRef g, unsigned i) {
  bool sets = ScatterKind(n->ints[1]) == ScatterKind::Set;
  UOpRef at = n->src[1];
  int64_t axis = n->ints[0];
  if (i == 0) return sets ? b.scatter(ScatterKind::Set, g, at, zerosLike(b, n->src[2]), axis) : g;
  UOpRef read = b.pick(g, at, axis);
  if (!sets) return read;
  // Of several updates of one element the last one wrote it.
  UOpRef number = b.iota(DType::I64, at->shape, axis);
  UOpRef writer = b.scatter(ScatterKind::Set, zeros(b, DType::I64, n->shape), at, number, axis);
  return b.select(b.eq(b.pick(writer, at, axis), number), read, b.lit(g->dtype, 0));
}

UOpRef autograd::tangentSliceAt(Builder &b, UOpRef n, Tangents d) {
  return b.sliceAt(d[0], n->tensors().drop_front(), n->indices());
}
UOpRef autograd::transposeSliceAt(Builder &b, UOpRef n, UOpRef g, unsigned) {
  return b.updateAt(zerosLike(b, n->src[0]), g, n->tensors().drop_front());
}

UOpRef autograd::tangentUpdateAt(Builder &b, UOpRef n, Tangents d) {
  return b.updateAt(orZeros(b, d[0], n->src[0]), orZeros(b, d[1], n->src[1]), n->tensors().drop_front(2));
}
UOpRef autograd::transposeUpdateAt(Builder &b, UOpRef n, UOpRef g, unsigned i) {
  llvm::ArrayRef<UOpRef> start = n->tensors().drop_front(2);
  return i == 0 ? b.updateAt(g, zerosLike(b, n->src[1]), start) : b.sliceAt(g, start, n->src[1]->shape);
}

UOpRef autograd::tangentCompact(Builder &b, UOpRef n, Tangents d) {
  return b.c.withSources(n, {d[0], n->src[1], n->src[2]});
}
/// Row i of x is row (number of rows kept before i) of the result, if it is kept; -1 reads 0.
UOpRef autograd::transposeCompact(Builder &b, UOpRef n, UOpRef g, unsigned) {
  UOpRef mask = n->src[1], minusOne = b.litInt(DType::I64, -1);
  UOpRef kept = b.cumulate(CumulateKind::Sum, b.cast(mask, DType::I64), 0);
  return b.gather(g, b.select(mask, b.add(kept, minusOne), minusOne), 0);
}

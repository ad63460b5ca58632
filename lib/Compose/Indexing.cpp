//===- Indexing.cpp: gather, scatter, slices -----------------------------===//
// Takes:    operands that may be wrong in every way.
// Gives:    gather, pick, scatter, shrink and flip UOps.
#include "astra/Compose/Indexing.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

UOpRef fromFront(Composer &b, UOpRef index, UOpRef extent) {
  if (!index || !isInt(index->dtype)) return index; // the type rule of what uses it refuses
  if (index->dtype != DType::I64 && index->dtype != DType::I32) index = b.cast(index, DType::I64);
  if (!index) return nullptr;
  const std::vector<UOpRef> *known = b.elements(index);
  if (index->is(Op::Iota) || (known && llvm::all_of(*known, [](UOpRef v) { return v->lo >= 0; }))) return index;
  UOpRef wrapped = b.bin(Op::Add, index, b.fromIndex(extent, index->dtype));
  return b.select(b.bin(Op::Lt, index, 0.0), wrapped, index);
}

UOpRef gather(Composer &b, UOpRef x, UOpRef index, int64_t axis) {
  if (!b.requireRank(x, 1) || !index) return nullptr;
  axis = b.axis(axis, x->rank());
  if (b.failed()) return nullptr;
  const std::vector<UOpRef> *known = b.elements(index);
  UOpRef at = index->rank() == 0 && known ? known->front() : nullptr, extent = x->shape[axis];
  if (at && at->lo < 0) at = at->hi < 0 ? idxAdd(b.c, at, extent) : nullptr;
  if (at && at->lo >= 0 && idxSub(b.c, extent, at)->lo >= 1) { // one known element: a slice
    Dims begin(x->rank(), b.idx(0)), size(x->shape.begin(), x->shape.end());
    begin[axis] = at;
    size[axis] = b.idx(1);
    return b.squeeze(b.shrink(x, begin, size), {axis});
  }
  return b.make(Op::Gather, {x, fromFront(b, index, x->shape[axis])}, {axis});
}

/// x cut to the index's extents on the axes that are not indexed, which ONNX allows to be shorter.
static UOpRef cutLike(Composer &b, UOpRef x, UOpRef index, int64_t axis) {
  Dims size(index->shape.begin(), index->shape.end());
  size[axis] = x->shape[axis];
  return b.shrink(x, Dims(x->rank(), b.idx(0)), size);
}

UOpRef gatherElements(Composer &b, UOpRef x, UOpRef index, int64_t axis) {
  if (!b.requireRank(x, 1) || !b.requireRank(index, x->rank(), x->rank())) return nullptr;
  axis = b.axis(axis, x->rank());
  if (b.failed()) return nullptr;
  return b.make(Op::Pick, {cutLike(b, x, index, axis), fromFront(b, index, x->shape[axis])}, {axis});
}

UOpRef scatterElements(Composer &b, ScatterKind kind, UOpRef x, UOpRef index, UOpRef update, int64_t axis) {
  if (!b.requireRank(x, 1) || !b.requireRank(index, x->rank(), x->rank())) return nullptr;
  axis = b.axis(axis, x->rank());
  if (b.failed() || !update) return nullptr;
  UOpRef part = cutLike(b, x, index, axis);
  UOpRef done = b.make(Op::Scatter, {part, fromFront(b, index, x->shape[axis]), update}, {axis, int64_t(kind)});
  if (!done || part == x) return done;
  // what the index does not reach along the other axes stays
  Dims none(x->rank(), b.idx(0)), rest = none;
  UOpRef reached = nullptr;
  for (unsigned i = 0; i < x->rank(); ++i) {
    if (done->shape[i] == x->shape[i]) continue;
    rest[i] = idxSub(b.c, x->shape[i], done->shape[i]);
    UOpRef within = b.bin(Op::Lt, b.iota(DType::I64, x->shape, i), b.fromIndex(done->shape[i], DType::I64));
    reached = reached ? b.bin(Op::And, reached, within) : within;
  }
  return b.select(reached, b.pad(done, none, rest, 0), x);
}

// ---- indices of several axes: the axes that they name become one, and each tuple one number along it

namespace {

/// `index` [batch..., k] as row-major numbers [batch...] into the axes begin ... begin + k - 1 of x; null unless k is
/// constant and fits.
UOpRef flatIndex(Composer &b, UOpRef x, UOpRef index, int64_t begin, int64_t k) {
  UOpRef flat = nullptr;
  for (int64_t i = 0; i < k; ++i) {
    Dims first(index->rank(), b.idx(0)), size(index->shape.begin(), index->shape.end());
    first.back() = b.idx(i);
    size.back() = b.idx(1);
    Dims all = {index};
    all.append(first);
    all.append(size);
    UOpRef extent = x->shape[begin + i];
    UOpRef one = fromFront(b, b.squeeze(b.make(Op::Shrink, all), {int64_t(index->rank()) - 1}), extent);
    if (!one) return nullptr;
    flat = flat ? b.bin(Op::Add, b.bin(Op::Mul, flat, b.fromIndex(extent, one->dtype)), one) : one;
  }
  return flat;
}

/// The length of the tuples, which the last axis of the index holds; they index axes from `begin` on.
int64_t tupleLength(Composer &b, UOpRef x, UOpRef index, int64_t begin) {
  if (!b.requireRank(x, 1) || !b.requireRank(index, 1)) return 1;
  int64_t k = b.constExtent(index, index->rank() - 1, "the last extent of the indices");
  if (k < 1 || k > int64_t(x->rank()) - begin)
    b.fail("the last extent of the indices is " + llvm::Twine(k) + ", the data has rank " + llvm::Twine(x->rank()) +
           (begin ? " and " + std::to_string(begin) + " of its axes are batch_dims" : ""));
  return k;
}

/// x as [product of its first k extents, the rest...].
UOpRef joined(Composer &b, UOpRef x, int64_t k) {
  Dims dims = {idxProduct(b.c, x->shape.take_front(k))};
  dims.append(x->shape.begin() + k, x->shape.end());
  return b.reshape(x, dims);
}

} // namespace

/// The first axes of data and indices go together: their number is the high part of the flat index.
UOpRef gatherTuples(Composer &b, UOpRef x, UOpRef index, int64_t batch) {
  if (!x || !index || b.failed()) return nullptr;
  if (batch < 0 || batch >= int64_t(index->rank()) || batch >= int64_t(x->rank())) {
    b.fail(b.hints.option("batch_dims") + " is " + llvm::Twine(batch) + ", data and indices have rank " +
           llvm::Twine(x->rank()) + " and " + llvm::Twine(index->rank()));
    return nullptr;
  }
  if (x->shape.take_front(batch) != index->shape.take_front(batch)) {
    b.fail("the batch axes " + dimsText(x->shape.take_front(batch)) + " and " +
           dimsText(index->shape.take_front(batch)) + " of data and indices differ");
    return nullptr;
  }
  int64_t k = tupleLength(b, x, index, batch);
  if (b.failed()) return nullptr;
  UOpRef flat = flatIndex(b, x, index, batch, k);
  if (flat && batch) {
    Dims dims(flat->shape.begin(), flat->shape.begin() + batch), outer(flat->rank(), b.idx(1));
    std::copy(dims.begin(), dims.end(), outer.begin());
    UOpRef number = b.reshape(b.iota(flat->dtype, {idxProduct(b.c, dims)}, 0), outer);
    UOpRef extent = b.fromIndex(idxProduct(b.c, x->shape.slice(batch, k)), flat->dtype);
    flat = b.bin(Op::Add, b.bin(Op::Mul, number, extent), flat);
  }
  return b.make(Op::Gather, {joined(b, x, batch + k), flat}, {0});
}

UOpRef scatterTuples(Composer &b, ScatterKind kind, UOpRef x, UOpRef index, UOpRef update) {
  int64_t k = tupleLength(b, x, index, 0);
  if (b.failed() || !update) return nullptr;
  UOpRef count = idxProduct(b.c, index->shape.drop_back()), rest = idxProduct(b.c, x->shape.drop_front(k));
  UOpRef table = b.reshape(x, {idxProduct(b.c, x->shape.take_front(k)), rest});
  UOpRef rows = b.broadcastTo(b.reshape(flatIndex(b, x, index, 0, k), {count, b.idx(1)}), {count, rest});
  UOpRef done = b.make(Op::Scatter, {table, rows, b.reshape(update, {count, rest})}, {0, int64_t(kind)});
  return b.reshape(done, x->shape);
}

// ---- slices

namespace {

/// min and max of two extents, decided by the bounds of their difference where those of the two do not suffice.
UOpRef lesser(Context &c, UOpRef a, UOpRef b) {
  if (a->hi <= b->lo || idxSub(c, b, a)->lo >= 0) return a;
  return idxSub(c, a, b)->lo >= 0 ? b : idxMin(c, a, b);
}
UOpRef greater(Context &c, UOpRef a, UOpRef b) {
  return lesser(c, a, b) == a ? b : idxSub(c, a, b)->lo >= 0 ? a : idxMax(c, a, b);
}

/// A bound counted from the front and clamped to [least, extent + beyond].
UOpRef bound(Composer &b, UOpRef at, UOpRef extent, int64_t least, int64_t beyond) {
  if (at->lo < 0 && at->hi >= 0)
    return b.unsupported("the bound " + dimsText(at) + " of a slice may be negative or not, which is not supported" +
                         b.hints.sign(at));
  constexpr int64_t far = int64_t(1) << 60; // beyond every extent
  if (auto value = at->constIndex()) at = b.idx(std::clamp(*value, -far, far));
  if (at->hi < 0) at = idxAdd(b.c, at, extent);
  return lesser(b.c, greater(b.c, at, b.idx(least)), idxAdd(b.c, extent, b.idx(beyond)));
}

/// Every step-th element: windows of one element; where there may be no element, the first column of rows of `step`.
UOpRef everyStep(Composer &b, UOpRef x, int64_t axis, int64_t step) {
  if (!x || step == 1 || x->shape[axis]->constIndex() == 0) return x;
  if (UOpRef extent = x->shape[axis], each = b.idx(step); extent->lo < 1) {
    UOpRef count = idxCeilDiv(b.c, extent, each);
    UOpRef whole = idxMul(b.c, count, each);
    Dims none(x->rank(), b.idx(0)), rows(x->shape.begin(), x->shape.end()), size = rows;
    size[axis] = whole;
    rows[axis] = count;
    rows.insert(rows.begin() + axis + 1, each);
    x = b.reshape(b.shrink(b.withRoom(x, axis, whole), none, size), rows);
    none.push_back(b.idx(0));
    rows[axis + 1] = b.idx(1);
    x = b.shrink(x, none, rows);
    return x ? b.squeeze(x, {axis + 1}) : nullptr;
  }
  UOpRef picked = b.make(Op::Window, {x}, {axis, 1, step, 1});
  return picked ? b.squeeze(picked, {int64_t(x->rank())}) : nullptr;
}

} // namespace

UOpRef slice(Composer &b, UOpRef x, int64_t axis, UOpRef start, UOpRef end, int64_t step) {
  if (!b.requireRank(x, 1)) return nullptr;
  axis = b.axis(axis, x->rank());
  if (b.failed()) return nullptr;
  UOpRef extent = x->shape[axis], one = b.idx(1), zero = b.idx(0);
  if (step == 0) return b.fail("a slice with step 0");
  if (step < -(int64_t(1) << 24) || step > (int64_t(1) << 24))
    return b.unsupported("a slice with step " + llvm::Twine(step) + " is not supported");
  UOpRef first = bound(b, start, extent, 0, step > 0 ? 0 : -1),
         last = bound(b, end, extent, step > 0 ? 0 : -1, step > 0 ? 0 : -1);
  if (!first || !last) return nullptr;
  if (step < 0) { // elements last < i <= first, backwards: a slice of the axis reversed
    x = b.make(Op::Flip, {x}, {axis});
    UOpRef top = idxSub(b.c, extent, one);
    first = idxSub(b.c, top, first);
    last = idxSub(b.c, top, last);
  }
  if (!x) return nullptr;
  Dims begin(x->rank(), zero), size(x->shape.begin(), x->shape.end());
  begin[axis] = first;
  size[axis] = greater(b.c, zero, idxSub(b.c, last, first));
  if (size[axis]->constIndex() == 0) begin[axis] = zero;
  // Bounds alone may not show that the slice stays inside.
  x = b.withRoom(x, axis, idxAdd(b.c, begin[axis], size[axis]));
  return everyStep(b, b.shrink(x, begin, size), axis, std::abs(step));
}

UOpRef sliceByData(Composer &b, UOpRef x, int64_t axis, UOpRef start, UOpRef end, int64_t step) {
  if (step == 0) return b.fail("a slice with step 0");
  constexpr int64_t most = 1 << 24;
  if (step < -most || step > most) return b.unsupported("a slice with step " + llvm::Twine(step) + " is not supported");
  if (!x || b.failed()) return nullptr;
  UOpRef extent = x->shape[axis], length = b.fromIndex(extent, DType::I64), zero = b.b.litInt(DType::I64, 0);
  UOpRef last = b.bin(Op::Sub, length, 1);
  auto clamped = [&](UOpRef v, UOpRef least, UOpRef greatest) { // counted from the front
    v = b.select(b.bin(Op::Lt, v, zero), b.bin(Op::Add, v, length), v);
    return b.bin(Op::Max, b.bin(Op::Min, v, greatest), least);
  };
  UOpRef first = step > 0 ? clamped(start, zero, length) : clamped(start, zero, last);
  UOpRef stop = step > 0 ? clamped(end, zero, length) : clamped(end, b.b.litInt(DType::I64, -1), last);
  UOpRef distance = step > 0 ? b.bin(Op::Sub, stop, first) : b.bin(Op::Sub, first, stop);
  int64_t each = std::abs(step);
  UOpRef count = b.bin(Op::FloorDiv, b.bin(Op::Add, distance, double(each - 1)), double(each));
  count = b.bin(Op::Min, b.bin(Op::Max, count, zero), length); // an empty axis has a distance of 1 backwards
  UOpRef size = b.make(Op::Extent, {count}, {0, (extent->hi + each - 1) / each});
  if (!size) return nullptr;
  UOpRef at = b.bin(Op::Add, b.bin(Op::Mul, b.iota(DType::I64, {size}, 0), double(step)), first);
  return b.make(Op::Gather, {x, at}, {axis});
}

UOpRef oneHot(Composer &b, UOpRef index, UOpRef depth, UOpRef off, UOpRef on, int64_t axis) {
  if (!index || !depth || b.failed()) return nullptr;
  axis = b.axis(axis, index->rank() + 1);
  if (b.failed()) return nullptr;
  bool negative = !isInt(index->dtype) || isSigned(index->dtype);
  index = b.cast(index, DType::I64);
  if (negative) index = fromFront(b, index, depth);
  UOpRef spread = b.unsqueeze(index, {axis});
  if (!spread) return nullptr;
  Dims dims(spread->shape.begin(), spread->shape.end());
  dims[axis] = depth;
  return b.select(b.bin(Op::Eq, spread, b.iota(DType::I64, dims, axis)), on, off);
}

} // namespace astra::compose

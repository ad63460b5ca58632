//===- OpsIndexing.cpp: ops that choose elements by index ------------------===//
// Takes:    nodes with indices that are data; slices whose axes and steps are known while importing.
// Gives:    gather, pick, scatter, shrink, flip, sort and cumulate UOps. Negative indices count from the back, as ONNX
//           says; an index outside the extent, which ONNX leaves undefined, reads 0 or is dropped.
#include "Lowering.h"
#include "OpTable.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

namespace {

/// The indices with `extent` added to negative ones.
UOpRef fromFront(Node &n, UOpRef index, UOpRef extent) {
  if (!index || !isInt(index->dtype)) return index; // the type rule of what uses it refuses
  if (index->dtype != DType::I64 && index->dtype != DType::I32) index = n.cast(index, DType::I64);
  if (!index) return nullptr;
  const std::vector<UOpRef> *known = n.elements(index);
  if (index->is(Op::Iota) || (known && llvm::all_of(*known, [](UOpRef v) { return v->lo >= 0; }))) return index;
  UOpRef wrapped = n.bin(Op::Add, index, n.fromIndex(extent, index->dtype));
  return n.select(n.bin(Op::Lt, index, 0.0), wrapped, index);
}

void gather(Node &n) {
  UOpRef x = n.in(0), index = n.in(1);
  if (!n.requireRank(x, 1) || !index) return;
  int64_t axis = n.axis(n.intAttr("axis", 0), x->rank());
  if (n.failed()) return;
  const std::vector<UOpRef> *known = n.elements(index);
  UOpRef at = index->rank() == 0 && known ? known->front() : nullptr, extent = x->shape[axis];
  if (at && at->lo < 0) at = at->hi < 0 ? idxAdd(n.c, at, extent) : nullptr;
  if (at && at->lo >= 0 && idxSub(n.c, extent, at)->lo >= 1) { // one known element: a slice
    Dims begin(x->rank(), n.c.index(0)), size(x->shape.begin(), x->shape.end());
    begin[axis] = at;
    size[axis] = n.c.index(1);
    n.give(n.squeeze(n.shrink(x, begin, size), {axis}));
    return;
  }
  n.give(n.make(Op::Gather, {x, fromFront(n, index, x->shape[axis])}, {axis}));
}

/// x cut to the index's extents on the axes that are not indexed, which ONNX allows to be shorter.
UOpRef cutLike(Node &n, UOpRef x, UOpRef index, int64_t axis) {
  Dims size(index->shape.begin(), index->shape.end());
  size[axis] = x->shape[axis];
  return n.shrink(x, Dims(x->rank(), n.c.index(0)), size);
}

void gatherElements(Node &n) {
  UOpRef x = n.in(0), index = n.in(1);
  if (!n.requireRank(x, 1) || !n.requireRank(index, x->rank(), x->rank())) return;
  int64_t axis = n.axis(n.intAttr("axis", 0), x->rank());
  if (!n.failed()) n.give(n.make(Op::Pick, {cutLike(n, x, index, axis), fromFront(n, index, x->shape[axis])}, {axis}));
}

/// The attribute `reduction`; nothing after a failure.
std::optional<ScatterKind> scatterKind(Node &n) {
  std::string how = n.stringAttr("reduction", "none");
  const std::pair<const char *, ScatterKind> kinds[] = {{"none", ScatterKind::Set},
                                                        {"add", ScatterKind::Add},
                                                        {"mul", ScatterKind::Mul},
                                                        {"max", ScatterKind::Max},
                                                        {"min", ScatterKind::Min}};
  for (auto [name, kind] : kinds)
    if (how == name) return kind;
  n.fail("attribute 'reduction' is '" + how + "', expected none, add, mul, max or min");
  return std::nullopt;
}

void scatterElements(Node &n) {
  UOpRef x = n.in(0), index = n.in(1), update = n.in(2);
  std::optional<ScatterKind> kind = scatterKind(n);
  if (!n.requireRank(x, 1) || !n.requireRank(index, x->rank(), x->rank())) return;
  int64_t axis = n.axis(n.intAttr("axis", 0), x->rank());
  if (n.failed() || !kind || !update) return;
  UOpRef part = cutLike(n, x, index, axis);
  UOpRef done = n.make(Op::Scatter, {part, fromFront(n, index, x->shape[axis]), update}, {axis, int64_t(*kind)});
  if (!done || part == x) return n.give(done);
  // what the index does not reach along the other axes stays
  Dims none(x->rank(), n.c.index(0)), rest = none;
  UOpRef reached = nullptr;
  for (unsigned i = 0; i < x->rank(); ++i) {
    if (done->shape[i] == x->shape[i]) continue;
    rest[i] = idxSub(n.c, x->shape[i], done->shape[i]);
    UOpRef within = n.bin(Op::Lt, n.iota(DType::I64, x->shape, i), n.fromIndex(done->shape[i], DType::I64));
    reached = reached ? n.bin(Op::And, reached, within) : within;
  }
  n.give(n.select(reached, n.pad(done, none, rest, 0), x));
}

// ---- indices of several axes: the axes that they name become one, and each tuple one number along it

/// `index` [batch..., k] as row-major numbers [batch...] into the axes begin ... begin + k - 1 of x; null unless k is
/// constant and fits.
UOpRef flatIndex(Node &n, UOpRef x, UOpRef index, int64_t begin, int64_t k) {
  UOpRef flat = nullptr;
  for (int64_t i = 0; i < k; ++i) {
    Dims first(index->rank(), n.c.index(0)), size(index->shape.begin(), index->shape.end());
    first.back() = n.c.index(i);
    size.back() = n.c.index(1);
    Dims all = {index};
    all.append(first);
    all.append(size);
    UOpRef extent = x->shape[begin + i];
    UOpRef one = fromFront(n, n.squeeze(n.make(Op::Shrink, all), {int64_t(index->rank()) - 1}), extent);
    if (!one) return nullptr;
    flat = flat ? n.bin(Op::Add, n.bin(Op::Mul, flat, n.fromIndex(extent, one->dtype)), one) : one;
  }
  return flat;
}

/// The length of the tuples, which the last axis of the index holds; they index axes from `begin` on.
int64_t tupleLength(Node &n, UOpRef x, UOpRef index, int64_t begin) {
  if (!n.requireRank(x, 1) || !n.requireRank(index, 1)) return 1;
  int64_t k = n.constExtent(index, index->rank() - 1, "the last extent of the indices");
  if (k < 1 || k > int64_t(x->rank()) - begin)
    n.fail("the last extent of the indices is " + llvm::Twine(k) + ", the data has rank " + llvm::Twine(x->rank()) +
           (begin ? " and " + std::to_string(begin) + " of its axes are batch_dims" : ""));
  return k;
}

/// x as [product of its first k extents, the rest...].
UOpRef joined(Node &n, UOpRef x, int64_t k) {
  Dims dims = {idxProduct(n.c, x->shape.take_front(k))};
  dims.append(x->shape.begin() + k, x->shape.end());
  return n.reshape(x, dims);
}

/// The first batch_dims axes of data and indices go together: their number is the high part of the flat index.
void gatherND(Node &n) {
  UOpRef x = n.in(0), index = n.in(1);
  int64_t batch = n.intAttr("batch_dims", 0);
  if (n.failed()) return;
  if (batch < 0 || batch >= int64_t(index->rank()) || batch >= int64_t(x->rank())) {
    n.fail("attribute 'batch_dims' is " + llvm::Twine(batch) + ", data and indices have rank " +
           llvm::Twine(x->rank()) + " and " + llvm::Twine(index->rank()));
    return;
  }
  if (x->shape.take_front(batch) != index->shape.take_front(batch)) {
    n.fail("the batch axes " + dimsText(x->shape.take_front(batch)) + " and " +
           dimsText(index->shape.take_front(batch)) + " of data and indices differ");
    return;
  }
  int64_t k = tupleLength(n, x, index, batch);
  if (n.failed()) return;
  UOpRef flat = flatIndex(n, x, index, batch, k);
  if (flat && batch) {
    Dims dims(flat->shape.begin(), flat->shape.begin() + batch), outer(flat->rank(), n.c.index(1));
    std::copy(dims.begin(), dims.end(), outer.begin());
    UOpRef number = n.reshape(n.iota(flat->dtype, {idxProduct(n.c, dims)}, 0), outer);
    UOpRef extent = n.fromIndex(idxProduct(n.c, x->shape.slice(batch, k)), flat->dtype);
    flat = n.bin(Op::Add, n.bin(Op::Mul, number, extent), flat);
  }
  n.give(n.make(Op::Gather, {joined(n, x, batch + k), flat}, {0}));
}

void scatterND(Node &n) {
  UOpRef x = n.in(0), index = n.in(1), update = n.in(2);
  std::optional<ScatterKind> kind = scatterKind(n);
  int64_t k = tupleLength(n, x, index, 0);
  if (n.failed() || !update) return;
  UOpRef count = idxProduct(n.c, index->shape.drop_back()), rest = idxProduct(n.c, x->shape.drop_front(k));
  UOpRef table = n.reshape(x, {idxProduct(n.c, x->shape.take_front(k)), rest});
  UOpRef rows = n.broadcastTo(n.reshape(flatIndex(n, x, index, 0, k), {count, n.c.index(1)}), {count, rest});
  UOpRef done = n.make(Op::Scatter, {table, rows, n.reshape(update, {count, rest})}, {0, int64_t(*kind)});
  n.give(n.reshape(done, x->shape));
}

// ---- slices

/// min and max of two extents, decided by the bounds of their difference where those of the two do not suffice.
UOpRef lesser(Context &c, UOpRef a, UOpRef b) {
  if (a->hi <= b->lo || idxSub(c, b, a)->lo >= 0) return a;
  return idxSub(c, a, b)->lo >= 0 ? b : idxMin(c, a, b);
}
UOpRef greater(Context &c, UOpRef a, UOpRef b) {
  return lesser(c, a, b) == a ? b : idxSub(c, a, b)->lo >= 0 ? a : idxMax(c, a, b);
}

/// A bound counted from the front and clamped to [least, extent + beyond].
UOpRef bound(Node &n, UOpRef at, UOpRef extent, int64_t least, int64_t beyond) {
  if (at->lo < 0 && at->hi >= 0)
    return n.unsupported("the bound " + dimsText(at) + " of a slice may be negative or not, which is not supported" +
                         signHint(at));
  constexpr int64_t far = int64_t(1) << 60; // beyond every extent
  if (auto value = at->constIndex()) at = n.c.index(std::clamp(*value, -far, far));
  if (at->hi < 0) at = idxAdd(n.c, at, extent);
  return lesser(n.c, greater(n.c, at, n.c.index(least)), idxAdd(n.c, extent, n.c.index(beyond)));
}

/// Every step-th element: windows of one element; where there may be no element, the first column of rows of `step`.
UOpRef everyStep(Node &n, UOpRef x, int64_t axis, int64_t step) {
  if (!x || step == 1 || x->shape[axis]->constIndex() == 0) return x;
  if (UOpRef extent = x->shape[axis], each = n.c.index(step); extent->lo < 1) {
    UOpRef count = idxCeilDiv(n.c, extent, each);
    UOpRef whole = idxMul(n.c, count, each);
    Dims none(x->rank(), n.c.index(0)), rows(x->shape.begin(), x->shape.end()), size = rows;
    size[axis] = whole;
    rows[axis] = count;
    rows.insert(rows.begin() + axis + 1, each);
    x = n.reshape(n.shrink(n.withRoom(x, axis, whole), none, size), rows);
    none.push_back(n.c.index(0));
    rows[axis + 1] = n.c.index(1);
    x = n.shrink(x, none, rows);
    return x ? n.squeeze(x, {axis + 1}) : nullptr;
  }
  UOpRef picked = n.make(Op::Window, {x}, {axis, 1, step, 1});
  return picked ? n.squeeze(picked, {int64_t(x->rank())}) : nullptr;
}

UOpRef sliceAxis(Node &n, UOpRef x, int64_t axis, UOpRef start, UOpRef end, int64_t step) {
  UOpRef extent = x->shape[axis], one = n.c.index(1), zero = n.c.index(0);
  if (step == 0) return n.fail("a slice with step 0");
  if (step < -(int64_t(1) << 24) || step > (int64_t(1) << 24))
    return n.unsupported("a slice with step " + llvm::Twine(step) + " is not supported");
  UOpRef first = bound(n, start, extent, 0, step > 0 ? 0 : -1),
         last = bound(n, end, extent, step > 0 ? 0 : -1, step > 0 ? 0 : -1);
  if (!first || !last) return nullptr;
  if (step < 0) { // elements last < i <= first, backwards: a slice of the axis reversed
    x = n.make(Op::Flip, {x}, {axis});
    UOpRef top = idxSub(n.c, extent, one);
    first = idxSub(n.c, top, first);
    last = idxSub(n.c, top, last);
  }
  if (!x) return nullptr;
  Dims begin(x->rank(), zero), size(x->shape.begin(), x->shape.end());
  begin[axis] = first;
  size[axis] = greater(n.c, zero, idxSub(n.c, last, first));
  if (size[axis]->constIndex() == 0) begin[axis] = zero;
  // Bounds alone may not show that the slice stays inside.
  x = n.withRoom(x, axis, idxAdd(n.c, begin[axis], size[axis]));
  return everyStep(n, n.shrink(x, begin, size), axis, std::abs(step));
}

void sliceBy(Node &n, llvm::ArrayRef<UOpRef> starts, llvm::ArrayRef<UOpRef> ends, llvm::ArrayRef<int64_t> axes,
             llvm::ArrayRef<int64_t> steps) {
  UOpRef x = n.in(0);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size())
    n.fail("starts, ends, axes and steps differ in length");
  for (size_t i = 0; x && i < axes.size() && !n.failed(); ++i) {
    int64_t axis = n.axis(axes[i], x->rank());
    if (!n.failed()) x = sliceAxis(n, x, axis, starts[i], ends[i], steps[i]);
  }
  n.give(x);
}

Ints firstAxes(size_t count) {
  Ints axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(i);
  return axes;
}

/// Element i of a list of numbers, as an i64 scalar.
UOpRef numberAt(Node &n, UOpRef list, int64_t i) {
  return n.reshape(n.cast(n.make(Op::Shrink, {list, n.c.index(i), n.c.index(1)}), DType::I64), {});
}

/// Bounds that are data: elements at start + i * step, whose number is a data dim, at most what the axis has.
UOpRef sliceByData(Node &n, UOpRef x, int64_t axis, UOpRef start, UOpRef end, int64_t step) {
  if (step == 0) return n.fail("a slice with step 0");
  constexpr int64_t most = 1 << 24;
  if (step < -most || step > most) return n.unsupported("a slice with step " + llvm::Twine(step) + " is not supported");
  if (!x || n.failed()) return nullptr;
  UOpRef extent = x->shape[axis], length = n.fromIndex(extent, DType::I64), zero = n.b.litInt(DType::I64, 0);
  UOpRef last = n.bin(Op::Sub, length, 1);
  auto clamped = [&](UOpRef v, UOpRef least, UOpRef greatest) { // counted from the front
    v = n.select(n.bin(Op::Lt, v, zero), n.bin(Op::Add, v, length), v);
    return n.bin(Op::Max, n.bin(Op::Min, v, greatest), least);
  };
  UOpRef first = step > 0 ? clamped(start, zero, length) : clamped(start, zero, last);
  UOpRef stop = step > 0 ? clamped(end, zero, length) : clamped(end, n.b.litInt(DType::I64, -1), last);
  UOpRef distance = step > 0 ? n.bin(Op::Sub, stop, first) : n.bin(Op::Sub, first, stop);
  int64_t each = std::abs(step);
  UOpRef count = n.bin(Op::FloorDiv, n.bin(Op::Add, distance, double(each - 1)), double(each));
  count = n.bin(Op::Min, n.bin(Op::Max, count, zero), length); // an empty axis has a distance of 1 backwards
  UOpRef size = n.make(Op::Extent, {count}, {0, (extent->hi + each - 1) / each});
  if (!size) return nullptr;
  UOpRef at = n.bin(Op::Add, n.bin(Op::Mul, n.iota(DType::I64, {size}, 0), double(step)), first);
  return n.make(Op::Gather, {x, at}, {axis});
}

/// Whether an operand must be read when the model runs, and can be: one number for each of a known number of axes. In
/// the body of a loop it is refused, as the loop then takes another form.
bool isReadInTheRun(Node &n, UOpRef numbers) {
  return numbers && numbers->rank() == 1 && numbers->shape[0]->constIndex() && isInt(numbers->dtype) &&
         !n.isRequiredKnown(numbers) && !n.lowering.isOfBody(numbers);
}

void slice(Node &n) {
  UOpRef x = n.in(0), starts = n.in(1), ends = n.in(2);
  if (n.failed()) return;
  bool startsInRun = isReadInTheRun(n, starts), endsInRun = isReadInTheRun(n, ends);
  auto count = [](UOpRef numbers) { return numbers->rank() == 1 ? numbers->shape[0]->constIndex().value_or(0) : 0; };
  constexpr int64_t mostAxes = 1 << 10; // an axis may be named again
  if (count(starts) > mostAxes)
    return (void)n.fail("the starts (input 1) are " + llvm::Twine(count(starts)) + " numbers; at most " +
                        llvm::Twine(mostAxes) + " are expected");
  Ints axes = n.has(3) ? n.knownInts(3, "the axes") : firstAxes(count(starts));
  Ints steps = n.has(4) ? n.knownInts(4, "the steps") : Ints(count(starts), 1);
  if (n.failed()) return;
  if (!startsInRun && !endsInRun) {
    Dims first = n.knownDims(1, "the starts"), last = n.knownDims(2, "the ends");
    if (!n.failed()) sliceBy(n, first, last, axes, steps);
    return;
  }
  if (!startsInRun) n.knownDims(1, "the starts"); // each is known, or read in the run
  if (!endsInRun) n.knownDims(2, "the ends");
  int64_t number = count(starts);
  if (!n.failed() && (count(ends) != number || int64_t(axes.size()) != number || int64_t(steps.size()) != number))
    n.fail("starts, ends, axes and steps differ in length");
  for (int64_t i = 0; x && i < number && !n.failed(); ++i) {
    int64_t axis = n.axis(axes[i], x->rank());
    if (n.failed()) return;
    UOpRef start = numberAt(n, starts, i), end = numberAt(n, ends, i);
    UOpRef first = n.knownInteger(start), last = n.knownInteger(end);
    x = first && last ? sliceAxis(n, x, axis, first, last, steps[i]) : sliceByData(n, x, axis, start, end, steps[i]);
  }
  n.give(x);
}

void sliceAttr(Node &n) {
  Dims starts, ends;
  constexpr int64_t far = int64_t(1) << 60;
  for (int64_t v : n.intsAttr("starts")) starts.push_back(n.c.index(std::clamp(v, -far, far)));
  for (int64_t v : n.intsAttr("ends")) ends.push_back(n.c.index(std::clamp(v, -far, far)));
  sliceBy(n, starts, ends, n.intsAttr("axes", firstAxes(starts.size())), Ints(starts.size(), 1));
}

void oneHot(Node &n) {
  UOpRef index = n.in(0), values = n.in(2);
  Dims depth;
  if (n.in(1) && isFloat(n.in(1)->dtype)) {
    double number = n.literalNumber(1, "the depth");
    if (!(number >= 0 && number <= 0x1p40)) n.fail("the depth (input 1) is " + std::to_string(number));
    if (!n.failed()) depth = {n.c.index(int64_t(number))};
  } else {
    depth = n.knownDims(1, "the depth");
  }
  if (n.failed() || depth.size() != 1 || !n.requireRank(values, 1, 1)) return;
  int64_t axis = n.axis(n.intAttr("axis", -1), index->rank() + 1);
  if (n.failed()) return;
  bool negative = !isInt(index->dtype) || isSigned(index->dtype);
  index = n.cast(index, DType::I64);
  if (negative) index = fromFront(n, index, depth[0]);
  UOpRef spread = n.unsqueeze(index, {axis});
  if (!spread) return;
  Dims dims(spread->shape.begin(), spread->shape.end());
  dims[axis] = depth[0];
  UOpRef hit = n.bin(Op::Eq, spread, n.iota(DType::I64, dims, axis));
  auto value = [&](int64_t i) {
    UOpRef one = n.make(Op::Shrink, {values, n.c.index(i), n.c.index(1)});
    return n.reshape(one, {});
  };
  n.give(n.select(hit, value(1), value(0)));
}

constexpr Row rows[] = {
    {"Gather", 1, latest, 2, 2, gather},
    {"GatherElements", 11, latest, 2, 2, gatherElements},
    {"Scatter", 9, 10, 3, 3, scatterElements},
    {"ScatterElements", 11, latest, 3, 3, scatterElements},
    {"GatherND", 11, latest, 2, 2, gatherND},
    {"ScatterND", 11, latest, 3, 3, scatterND},
    {"Slice", 1, 9, 1, 1, sliceAttr},
    {"Slice", 10, latest, 3, 5, slice, anyType,
     "starts and ends may be data, the result's extent is then; known in the body of a Loop"},
    {"OneHot", 9, latest, 3, 3, oneHot, realTypes, "the depth must follow from constants and shapes"},
};

} // namespace

llvm::ArrayRef<Row> indexingRows() { return rows; }

} // namespace astra::onnx

//===- Slices.cpp: many slices of a tensor, at places that are data ---------===//
// Takes:    operands and axes that may be wrong in every way.
// Gives:    what Slices.h says: the axes that are not read as a whole become one table, and each element of a slice
//           along them a row number.
#include "astra/Compose/Slices.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

namespace {

bool inRange(llvm::ArrayRef<int64_t> values, int64_t rank) {
  Ints sorted(values.begin(), values.end());
  llvm::sort(sorted);
  return llvm::all_of(sorted, [&](int64_t v) { return v >= 0 && v < rank; }) &&
         std::unique(sorted.begin(), sorted.end()) == sorted.end();
}

/// What both directions need: a slice's extents along each axis of the operand, and where each element of it stands.
struct Layout {
  UOpRef starts = nullptr; // [batch..., vector], i64
  Dims batch;              // extents of the batch
  Dims sizes;              // of a slice, one an axis of the operand
  Ints special, whole;     // axes of the operand: those of the table's rows, and those that rows have
  Ints windowed;           // of the special ones, those along which a slice has other than one element
  UOpRef rows = nullptr;   // [batch..., windowed...]: the number of a row
  UOpRef inside = nullptr; // [batch...]: whether the slice stays inside; null where nobody asks
};

bool check(Composer &b, UOpRef x, UOpRef starts, const SliceAxes &axes) {
  if (!x || !starts) return false;
  if (!isInt(starts->dtype))
    b.fail(llvm::Twine("starts are of type ") + info(starts->dtype).text + ", expected integers");
  if (axes.vector < 0 || axes.vector > int64_t(starts->rank()))
    b.fail("the axis of index vectors is " + llvm::Twine(axes.vector) + ", starts have rank " +
           llvm::Twine(starts->rank()));
  Ints named(axes.dropped);
  named.append(axes.operandBatch);
  Ints moved(axes.indexed);
  moved.append(axes.operandBatch);
  if (!inRange(named, x->rank()) || !inRange(moved, x->rank()))
    b.fail("axes of an operand of rank " + llvm::Twine(x->rank()) + " are outside of it or named twice");
  if (axes.operandBatch.size() != axes.startsBatch.size() || !inRange(axes.startsBatch, starts->rank()) ||
      llvm::is_contained(axes.startsBatch, axes.vector))
    b.fail("the batch axes of operand and starts do not fit");
  if (b.failed()) return false;
  bool scalar = axes.vector == int64_t(starts->rank());
  int64_t length = scalar ? 1 : b.constExtent(starts, axes.vector, "the length of index vectors");
  if (!b.failed() && length != int64_t(axes.indexed.size()))
    b.fail("index vectors have " + llvm::Twine(length) + " numbers, expected " + llvm::Twine(axes.indexed.size()));
  return !b.failed();
}

/// Row numbers of every element of every slice.
void findRows(Composer &b, UOpRef x, const SliceAxes &axes, Layout &l, bool clamps) {
  unsigned batch = l.batch.size();
  for (unsigned axis = 0; axis < x->rank(); ++axis) {
    bool moves =
        llvm::is_contained(axes.indexed, int64_t(axis)) || llvm::is_contained(axes.operandBatch, int64_t(axis));
    bool all = l.sizes[axis] == x->shape[axis];
    (moves || !all ? l.special : l.whole).push_back(axis);
  }
  for (int64_t axis : l.special)
    if (l.sizes[axis]->constIndex() != 1) l.windowed.push_back(axis);
  Dims shape = l.batch;
  for (int64_t axis : l.windowed) shape.push_back(l.sizes[axis]);
  auto along = [&](UOpRef values, unsigned axis) { // values of rank 1, or of the batch, as they lie in `shape`
    Dims dims(shape.size(), b.idx(1));
    dims[axis] = values->shape[0];
    return b.reshape(values, dims);
  };
  UOpRef rows = b.b.litInt(DType::I64, 0);
  for (int64_t axis : l.special) {
    UOpRef extent = x->shape[axis], at = b.b.litInt(DType::I64, 0);
    if (auto k = llvm::find(axes.indexed, axis); k != axes.indexed.end()) {
      at = b.element(l.starts, batch, k - axes.indexed.begin());
      if (!at) return;
      UOpRef last = idxSub(b.c, extent, l.sizes[axis]);
      b.requireLeast(last, 0, "an extent minus that of a slice", "negative");
      if (b.failed()) return;
      UOpRef most = b.scalar(last, DType::I64);
      const std::vector<UOpRef> *known = b.elements(at);
      bool fits = known && llvm::all_of(*known, [&](UOpRef v) { return v->lo >= 0 && idxSub(b.c, last, v)->lo >= 0; });
      if (!fits && clamps) at = b.bin(Op::Max, b.bin(Op::Min, at, most), 0.0);
      if (!fits && !clamps) {
        UOpRef ok = b.bin(Op::And, b.bin(Op::Le, b.literal(at, 0), at), b.bin(Op::Le, at, most));
        l.inside = l.inside ? b.bin(Op::And, l.inside, ok) : ok;
      }
      Dims dims(shape.size(), b.idx(1));
      std::copy(l.batch.begin(), l.batch.end(), dims.begin());
      at = b.reshape(at, dims);
    } else if (auto k = llvm::find(axes.operandBatch, axis); k != axes.operandBatch.end()) {
      int64_t place = axes.startsBatch[k - axes.operandBatch.begin()];
      place -= place > axes.vector; // without the axis of vectors
      b.requireEqual(l.batch[place], extent, "the batch axes of operand and starts");
      at = along(b.iota(DType::I64, {extent}, 0), place);
    }
    if (auto w = llvm::find(l.windowed, axis); w != l.windowed.end())
      at = b.bin(Op::Add, at, along(b.iota(DType::I64, {l.sizes[axis]}, 0), batch + (w - l.windowed.begin())));
    rows = b.bin(Op::Add, b.bin(Op::Mul, rows, b.scalar(extent, DType::I64)), at);
    if (b.failed()) return;
  }
  l.rows = b.broadcastTo(rows, shape);
}

std::optional<Layout> layoutOf(Composer &b, UOpRef x, UOpRef starts, const SliceAxes &axes,
                               llvm::ArrayRef<UOpRef> sizes, bool clamps) {
  if (!check(b, x, starts, axes)) return std::nullopt;
  if (sizes.size() != x->rank()) {
    b.fail("slices have " + llvm::Twine(sizes.size()) + " extents, the operand rank " + llvm::Twine(x->rank()));
    return std::nullopt;
  }
  Layout l;
  l.sizes.assign(sizes.begin(), sizes.end());
  l.starts = b.cast(starts, DType::I64);
  if (axes.vector == int64_t(starts->rank())) {
    l.starts = b.unsqueeze(l.starts, {axes.vector});
  } else {
    Ints perm;
    for (int64_t i = 0; i < int64_t(starts->rank()); ++i)
      if (i != axes.vector) perm.push_back(i);
    perm.push_back(axes.vector);
    l.starts = b.permute(l.starts, perm);
  }
  if (!l.starts) return std::nullopt;
  l.batch.assign(l.starts->shape.begin(), l.starts->shape.end() - 1);
  for (unsigned axis = 0; axis < x->rank() && !b.failed(); ++axis) {
    bool one = llvm::is_contained(axes.dropped, int64_t(axis)) || llvm::is_contained(axes.operandBatch, int64_t(axis));
    if (one && sizes[axis]->constIndex() != 1) b.fail("a slice is not of extent 1 along axis " + llvm::Twine(axis));
    b.requireLeast(idxSub(b.c, x->shape[axis], sizes[axis]), 0, "an extent minus that of a slice", "negative");
  }
  if (b.failed()) return std::nullopt;
  findRows(b, x, axes, l, clamps);
  if (b.failed() || !l.rows) return std::nullopt;
  return l;
}

/// The operand as [rows, whole...].
UOpRef table(Composer &b, UOpRef x, const Layout &l) {
  Ints perm(l.special);
  perm.append(l.whole);
  Dims dims, rows;
  for (int64_t axis : l.special) rows.push_back(x->shape[axis]);
  dims.push_back(idxProduct(b.c, rows));
  for (int64_t axis : l.whole) dims.push_back(x->shape[axis]);
  return b.reshape(b.permute(x, perm), dims);
}

/// Of each axis of the result (or the updates) its place in [batch..., windowed..., whole...]; -1: of extent 1, and not
/// there. Fails where the axes do not fit `rank`.
std::optional<Ints> placesOf(Composer &b, UOpRef x, const SliceAxes &axes, const Layout &l, unsigned rank) {
  Ints kept;
  for (int64_t axis = 0; axis < int64_t(x->rank()); ++axis)
    if (!llvm::is_contained(axes.dropped, axis) && !llvm::is_contained(axes.operandBatch, axis)) kept.push_back(axis);
  if (kept.size() != axes.slice.size() || !inRange(axes.slice, rank) || rank != l.batch.size() + kept.size() ||
      !llvm::is_sorted(axes.slice)) {
    b.fail("the axes of slices do not fit a result of rank " + llvm::Twine(rank));
    return std::nullopt;
  }
  Ints places;
  int64_t batch = 0, slice = 0;
  for (unsigned axis = 0; axis < rank; ++axis) {
    if (!llvm::is_contained(axes.slice, int64_t(axis))) {
      places.push_back(batch++);
      continue;
    }
    int64_t of = kept[slice++];
    auto w = llvm::find(l.windowed, of), h = llvm::find(l.whole, of);
    places.push_back(w != l.windowed.end() ? int64_t(l.batch.size()) + (w - l.windowed.begin())
                     : h != l.whole.end()  ? int64_t(l.batch.size() + l.windowed.size()) + (h - l.whole.begin())
                                           : -1);
  }
  return places;
}

} // namespace

UOpRef gatherSlices(Composer &b, UOpRef x, UOpRef starts, const SliceAxes &axes, llvm::ArrayRef<UOpRef> sizes) {
  std::optional<Layout> l = layoutOf(b, x, starts, axes, sizes, /*clamps=*/true);
  if (!l) return nullptr;
  unsigned rank = l->batch.size() + axes.slice.size();
  std::optional<Ints> places = placesOf(b, x, axes, *l, rank);
  if (!places) return nullptr;
  UOpRef read = b.make(Op::Gather, {table(b, x, *l), l->rows}, {0}); // [batch..., windowed..., whole...]
  if (!read) return nullptr;
  Ints perm;
  Dims dims;
  for (int64_t place : *places) {
    if (place >= 0) perm.push_back(place);
    dims.push_back(place >= 0 ? read->shape[place] : b.idx(1));
  }
  // What a slice has, and the result has not, is of extent 1 and a whole axis.
  Dims present;
  Ints gone;
  for (int64_t i = 0; i < int64_t(read->rank()); ++i)
    if (!llvm::is_contained(perm, i)) gone.push_back(i);
  if (!gone.empty()) {
    read = b.squeeze(read, gone);
    for (int64_t &p : perm) p -= llvm::count_if(gone, [&](int64_t g) { return g < p; });
  }
  return b.reshape(b.permute(read, perm), dims);
}

UOpRef selectSlices(Composer &b, UOpRef x, UOpRef index, int64_t axis, int64_t batch) {
  if (!x || !index) return nullptr;
  if (batch < 0 || batch > axis || axis >= int64_t(x->rank()) || batch > int64_t(index->rank()))
    return b.fail("axis " + llvm::Twine(axis) + " and " + llvm::Twine(batch) + " batch axes do not fit the operands");
  SliceAxes axes;
  Dims sizes(x->shape.begin(), x->shape.end());
  for (int64_t i = 0; i < batch; ++i) {
    axes.operandBatch.push_back(i);
    axes.startsBatch.push_back(i);
    sizes[i] = b.idx(1);
  }
  axes.indexed = axes.dropped = {axis};
  sizes[axis] = b.idx(1);
  axes.vector = index->rank();
  for (int64_t i = batch; i < axis; ++i) axes.slice.push_back(i);
  for (int64_t i = axis + 1; i < int64_t(x->rank()); ++i) axes.slice.push_back(i - 1 + index->rank() - batch);
  return gatherSlices(b, x, index, axes, sizes);
}

UOpRef scatterSlices(Composer &b, ScatterKind kind, UOpRef x, UOpRef starts, UOpRef updates, const SliceAxes &axes) {
  if (!x || !starts || !updates || !check(b, x, starts, axes)) return nullptr;
  if (x->dtype != updates->dtype) return b.fail("operand and updates are of different types");
  if (x->dtype == DType::Bool) // put as bytes
    return b.cast(scatterSlices(b, kind, b.cast(x, DType::U8), starts, b.cast(updates, DType::U8), axes), DType::Bool);
  // The extents of a slice are those of the updates.
  Dims sizes;
  size_t next = 0;
  for (int64_t axis = 0; axis < int64_t(x->rank()); ++axis) {
    bool one = llvm::is_contained(axes.dropped, axis) || llvm::is_contained(axes.operandBatch, axis);
    if (!one && (next >= axes.slice.size() || axes.slice[next] < 0 || axes.slice[next] >= int64_t(updates->rank())))
      return b.fail("the axes of slices do not fit updates of rank " + llvm::Twine(updates->rank()));
    sizes.push_back(one ? b.idx(1) : updates->shape[axes.slice[next++]]);
  }
  std::optional<Layout> l = layoutOf(b, x, starts, axes, sizes, /*clamps=*/false);
  if (!l) return nullptr;
  std::optional<Ints> places = placesOf(b, x, axes, *l, updates->rank());
  if (!places) return nullptr;
  // [batch..., windowed..., whole...], what is of extent 1 last.
  Ints perm(l->batch.size() + l->windowed.size() + l->whole.size(), -1);
  Ints ones;
  for (auto [axis, place] : llvm::enumerate(*places))
    if (place >= 0)
      perm[place] = axis;
    else
      ones.push_back(axis);
  Dims dims = l->batch;
  for (int64_t axis : l->windowed) dims.push_back(sizes[axis]);
  size_t rowAxes = dims.size();
  for (int64_t axis : l->whole) dims.push_back(sizes[axis]);
  // A dropped axis that is read as a whole has extent 1, and the updates lack it.
  Ints order;
  for (int64_t p : perm)
    if (p >= 0) order.push_back(p);
  order.append(ones);
  for (unsigned i = 0; i < l->batch.size(); ++i)
    if (perm[i] >= 0) b.requireEqual(updates->shape[perm[i]], l->batch[i], "the batch axes of updates and starts");
  if (b.failed()) return nullptr;
  UOpRef count = idxProduct(b.c, llvm::ArrayRef(dims).take_front(rowAxes)),
         rest = idxProduct(b.c, llvm::ArrayRef(dims).drop_front(rowAxes));
  UOpRef values = b.reshape(b.reshape(b.permute(updates, order), dims), {count, rest});
  UOpRef rows = l->rows;
  if (l->inside) {
    Dims spread(l->batch);
    spread.resize(rowAxes, b.idx(1));
    rows = b.select(b.reshape(b.broadcastTo(l->inside, l->batch), spread), rows, b.b.litInt(DType::I64, -1));
  }
  UOpRef all = table(b, x, *l);
  if (!all) return nullptr;
  UOpRef flat = b.reshape(all, {all->shape[0], rest});
  rows = b.broadcastTo(b.reshape(rows, {count, b.idx(1)}), {count, rest});
  UOpRef done = b.make(Op::Scatter, {flat, rows, values}, {0, int64_t(kind)});
  // Back to the operand's axes.
  Dims open;
  Ints back(x->rank()), forth(l->special);
  forth.append(l->whole);
  for (auto [place, axis] : llvm::enumerate(forth)) {
    open.push_back(x->shape[axis]);
    back[axis] = place;
  }
  return b.permute(b.reshape(done, open), back);
}

UOpRef readAt(Composer &b, UOpRef x, llvm::ArrayRef<UOpRef> starts, llvm::ArrayRef<UOpRef> sizes) {
  if (!x) return nullptr;
  Dims src = {x};
  for (UOpRef s : starts) src.push_back(b.cast(s, DType::I64));
  src.append(sizes.begin(), sizes.end());
  return b.make(Op::SliceAt, src);
}

UOpRef writeAt(Composer &b, UOpRef x, UOpRef part, llvm::ArrayRef<UOpRef> starts) {
  if (!x) return nullptr;
  Dims src = {x, part};
  for (UOpRef s : starts) src.push_back(b.cast(s, DType::I64));
  return b.make(Op::UpdateAt, src);
}

} // namespace astra::compose

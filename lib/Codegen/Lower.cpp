//===- Lower.cpp: the regions of a kernel ----------------------------------===//
// Takes:    a kernel's graph and its plan.
// Gives:    one store per region: full tiles first, then what is left of each tiled axis, each with a parallel range of
//           its own.
// Keeps:    no two items store one element; an item stores one again, the same, where the last vector of its line
//           begins earlier.
#include "Lowering.h"
#include "Planner/Choosing.h"
#include "Rows.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

Kernel Lowering::run() {
  values.cutsSums = !plan.threads;
  if (plan.kind == PlanKind::Programs) return programs(), kernel();
  if (rowTile) values.columnsOfRows = rowTile->columns;
  if (plan.kind == PlanKind::Rows) {
    values.reduceLanes = values.rowLanes = plan.lanes;
    if (plan.warp) values.laneKind = RangeKind::Thread;
    if (plan.split) {
      values.rowLanes = plan.threads;
      values.cooperation = {0, plan.split, 1, plan.warp, nullptr};
    }
    if (plan.width)
      values.width = plan.width, values.cached = keptInRow(spec, plan.split != 0).all();
    else if (!plan.warp || keepsRows())
      values.cached = cachedInRow(spec);
  }
  if (plan.kind == PlanKind::Columns && plan.unrollK && spec.rootOp->op == Op::Reduce)
    values.lanesSpill = true;
  else if (plan.kind == PlanKind::Columns && plan.unrollK) {
    values.stepsTogether = plan.unrollK;
    if (plan.chainBlocks) values.blocksTogether = plan.chainBlocks;
  }
  if (plan.kind == PlanKind::Contract)
    contract();
  else if (plan.kind == PlanKind::Rows && writesRows(spec))
    rows();
  else
    map();
  return kernel();
}

Kernel Lowering::kernel() {
  Kernel k;
  k.name = spec.name;
  k.sink = c.make(Op::Sink, stores);
  k.buffers = std::move(values.buffers);
  k.plan = plan;
  k.prefetch = plan.prefetch;
  k.nonTemporal = plan.nonTemporal;
  k.prefetchByItems = plan.kind == PlanKind::Rows;
  k.hints = std::move(values.hints);
  k.warpGroups = std::move(warpGroups);
  return k;
}

/// Whether what several passes over a row need has room: of a warp each thread keeps its own elements in registers, a
/// block has memory that its threads share. What has none is computed again in each pass.
bool Lowering::keepsRows() const {
  Shape row = rowsOf(spec);
  if (row.empty()) return false;
  if (!plan.split) return row.back()->hi <= mostCachedOwn * plan.warp;
  return cachedBytes(spec, plan.threads) <= mostCachedShared;
}

/// Items for so many rows. The lanes of a warp fold together whether each of their rows exists or not, so the last warp
/// has whole items: what has no row does the last one's work and does not store it.
UOpRef Lowering::rowItems(UOpRef rows) {
  int64_t together = plan.warp ? plan.warp / plan.lanes : 1;
  return together == 1 ? rows : simplifyIndex(c, mul(idxCeilDiv(c, rows, num(together)), num(together)));
}
UOpRef Lowering::rowNumber(UOpRef p, UOpRef rows, UOpRef &inside) {
  if (rowItems(rows) == rows) return p;
  inside = values.both(inside, values.lt(p, rows));
  return simplifyIndex(c, idxMin(c, p, sub(rows, num(1))));
}

/// The logical index at a point of the memory dims, and whether it is inside the shape (null: certainly).
static std::pair<SmallVector<UOpRef, 4>, UOpRef> logicalIndex(Context &c, ValueAt &values, const Layout &l, Shape shape,
                                                              ArrayRef<UOpRef> at) {
  SmallVector<UOpRef, 4> index(shape.size(), c.index(0));
  for (size_t i = 0; i < at.size(); ++i)
    index[l.dims[i].axis] = idxAdd(c, index[l.dims[i].axis], idxMul(c, at[i], c.index(l.dims[i].div)));
  UOpRef valid = nullptr;
  if (!l.isPermuted())
    for (size_t a = 0; a < shape.size(); ++a) valid = values.both(valid, values.lt(index[a], shape[a]));
  return {index, valid};
}

/// Stores the output's element at a point of its memory dims if it is inside (null: certainly); 0 where the layout
/// pads.
void Lowering::storeAt(ArrayRef<UOpRef> at, UOpRef inside) {
  const Placed &out = spec.outputs[0];
  auto [index, valid] = logicalIndex(c, values, out.layout, out.value->shape, at);
  UOpRef v = values.at(out.value, index, values.both(inside, valid));
  if (valid) v = valid->isConst() ? c.literal(v->dtype, 0) : c.make(Op::Select, {valid, v, c.literal(v->dtype, 0)});
  stores.push_back(values.store(index, v, inside));
}

/// Of a GPU: an item is a tile of which each thread of a block has an element: `transpose` of them along the memory
/// dims behind number `across`, as one, and others across, along that dim. There some operand's elements are
/// neighbours: it is read along them, into memory that the threads share.
void Lowering::transposed() {
  const Placed &out = spec.outputs[0];
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  size_t y = plan.across;
  int64_t wide = plan.transpose, high = plan.threads / plan.transpose;
  ArrayRef<UOpRef> behind = ArrayRef<UOpRef>(extents).drop_front(y + 1);
  UOpRef n = idxProduct(c, behind);
  SmallVector<UOpRef, 6> tiles(extents.begin(), extents.begin() + y + 1);
  tiles[y] = simplifyIndex(c, idxCeilDiv(c, extents[y], num(high)));
  tiles.push_back(simplifyIndex(c, idxCeilDiv(c, n, num(wide))));
  SmallVector<UOpRef, 6> at = unflatten(c, values.range(idxProduct(c, tiles), RangeKind::Parallel), tiles);
  values.transpose = {values.digit(wide, 1), values.digit(high, wide), wide, high};
  UOpRef e = simplifyIndex(c, add(mul(at.pop_back_val(), num(wide)), values.transpose.along));
  at[y] = simplifyIndex(c, add(mul(at[y], num(high)), values.transpose.across));
  UOpRef inside = values.both(values.lt(e, n), values.lt(at[y], extents[y]));
  at.append(unflatten(c, e, behind));
  storeAt(at, inside);
}

/// Of a GPU: an item is some neighbouring elements of a reduction along an outer axis, a thread of a block one, and
/// `split` threads have the same one and share its reduction.
void Lowering::cooperative() {
  const Placed &out = spec.outputs[0];
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  size_t merge = std::min<size_t>(plan.merge, extents.size());
  ArrayRef<UOpRef> outerDims = ArrayRef<UOpRef>(extents).drop_back(merge),
                   innerDims = ArrayRef<UOpRef>(extents).take_back(merge);
  int64_t columns = plan.threads / plan.split, parts = std::min(plan.split, 64u);
  UOpRef inner = idxProduct(c, innerDims), tiles = simplifyIndex(c, idxCeilDiv(c, inner, num(columns)));
  UOpRef p = values.range(mul(idxProduct(c, outerDims), tiles), RangeKind::Parallel), column = values.digit(columns, 1);
  values.cooperation = {parts, plan.split / parts, columns, columns * parts, column};
  UOpRef e = simplifyIndex(c, add(mul(mod(p, tiles), num(columns)), column)), inside = values.lt(e, inner);
  SmallVector<UOpRef, 6> at = unflatten(c, div(p, tiles), outerDims);
  at.append(unflatten(c, e, innerDims));
  storeAt(at, inside);
}

/// The vectors of a line: whole ones, and what is left by halves and quarters where its extent is known.
static SmallVector<unsigned, 4> widths(unsigned lanes, UOpRef extent) {
  SmallVector<unsigned, 4> all;
  if (lanes > 1) all.push_back(lanes);
  for (unsigned part : {2u, 4u})
    if (extent->isConst() && lanes / part >= 4) all.push_back(lanes / part);
  all.push_back(1);
  return all;
}

/// An item is a vector of the innermost `merge` memory dims at `mapTile` points of the others, `unroll` of them at
/// once: strided access becomes in-register transposes (Expand.cpp). The plan may put some dims behind the other outer
/// ones.
void Lowering::blocks() {
  const Placed &out = spec.outputs[0];
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  ArrayRef<UOpRef> innerDims = ArrayRef<UOpRef>(extents).take_back(plan.merge);
  SmallVector<size_t, 6> order; // of the outer dims
  for (size_t d = 0; d + plan.merge < extents.size(); ++d)
    if (!llvm::is_contained(plan.points, int64_t(d))) order.push_back(d);
  order.append(plan.points.begin(), plan.points.end());
  SmallVector<UOpRef, 6> outerDims;
  for (size_t d : order) outerDims.push_back(extents[d]);
  UOpRef points = idxProduct(c, outerDims), n = idxProduct(c, innerDims), first = num(0);
  for (unsigned together : {plan.unroll, 1u}) { // then the points that are left, one by one
    UOpRef steps = div(sub(points, first), num(together)), deep = num(llvm::divideCeil(plan.mapTile, together)),
           blocks = simplifyIndex(c, idxCeilDiv(c, steps, deep)), begin = num(0);
    if (steps->hi <= 0) continue;
    for (unsigned w : widths(plan.lanes, n)) {
      UOpRef count = div(sub(n, begin), num(w));
      if (count->hi <= 0) continue;
      UOpRef p = values.range(mul(blocks, count), RangeKind::Parallel);
      bool flat = blocks->constIndex() == 1;
      UOpRef start = flat ? num(0) : mul(div(p, count), deep), column = flat ? p : mod(p, count);
      UOpRef step = add(start, values.range(simplifyIndex(c, idxMin(c, deep, sub(steps, start))), RangeKind::Loop));
      UOpRef point = add(first, mul(step, num(together))), e = add(begin, mul(column, num(w)));
      if (together > 1) point = add(point, values.range(num(together), RangeKind::Unroll));
      if (w > 1) e = add(e, values.range(num(w), RangeKind::Vector));
      SmallVector<UOpRef, 6> at(order.size());
      for (auto [d, i] : llvm::zip_equal(order, unflatten(c, simplifyIndex(c, point), outerDims))) at[d] = i;
      at.append(unflatten(c, simplifyIndex(c, e), innerDims));
      storeAt(at, nullptr);
      begin = add(begin, mul(count, num(w)));
    }
    first = simplifyIndex(c, mul(steps, num(together)));
  }
}

Kernel Lowering::byDims(llvm::SmallVectorImpl<UOpRef> &loops) {
  const Placed &out = spec.outputs[0];
  for (UOpRef e : memoryExtents(c, out.layout, out.value->shape)) loops.push_back(values.range(e, RangeKind::Loop));
  storeAt(loops, nullptr);
  return kernel();
}

void Lowering::map() {
  if (plan.kind == PlanKind::Columns && plan.split) return cooperative();
  if (plan.transpose) return transposed();
  if (plan.mapTile && plan.kind == PlanKind::Map) return blocks();
  if (plan.tail) return lines();
  const Placed &out = spec.outputs[0];
  UOpRef v = out.value, domain = storedPoints(spec);
  unsigned lanes = plan.kind == PlanKind::Rows ? 1 : plan.lanes, unroll = plan.kind == PlanKind::Rows ? 1 : plan.unroll;
  auto extents = memoryExtents(c, out.layout, domain->shape);
  bool reduces = plan.kind == PlanKind::Columns && spec.rootOp && spec.rootOp->op == Op::Reduce;
  int64_t serial = serialAxis(spec);
  size_t serialDim =
      llvm::find_if(out.layout.dims, [&](const MemoryDim &d) { return d.axis == serial; }) - out.layout.dims.begin();
  if (serial >= 0) extents.erase(extents.begin() + serialDim); // a loop around each store
  size_t merge = std::min<size_t>(plan.merge, extents.size());
  ArrayRef<UOpRef> outerDims = ArrayRef<UOpRef>(extents).drop_back(merge),
                   innerDims = ArrayRef<UOpRef>(extents).take_back(merge);
  UOpRef outer = idxProduct(c, outerDims), inner = idxProduct(c, innerDims), start = num(0);
  SmallVector<std::pair<unsigned, unsigned>, 5> steps; // of several vectors, vectors, what is left
  if (unroll > 1) steps.push_back({lanes, unroll});
  for (unsigned w : widths(lanes, inner)) steps.push_back({w, 1});
  for (auto [w, u] : steps) {
    UOpRef each = num(w * u), count = div(sub(inner, start), each);
    if (count->hi <= 0) continue;
    // Of a reduction by columns an item may be several steps, in a loop of their own.
    bool several = reduces && plan.columnSteps;
    UOpRef wide = num(several ? plan.columnSteps : 1),
           items = several ? simplifyIndex(c, idxCeilDiv(c, count, wide)) : count;
    UOpRef all = mul(outer, items), inside = nullptr,
           p = rowNumber(values.range(rowItems(all), RangeKind::Parallel), all, inside);
    bool flat = outer->constIndex() == 1;
    UOpRef step = mul(flat ? p : mod(p, items), wide);
    if (several) {
      UOpRef own = values.range(simplifyIndex(c, idxMin(c, wide, sub(count, step))), RangeKind::Loop);
      if (values.lanesSpill) values.spill.tile = own;
      step = add(step, own);
    }
    UOpRef e = add(start, mul(step, each));
    if (u > 1) e = add(e, mul(values.range(num(u), RangeKind::Unroll), num(w)));
    if (w > 1) e = add(e, values.range(num(w), RangeKind::Vector));
    SmallVector<UOpRef, 6> at = unflatten(c, flat ? num(0) : div(p, items), outerDims);
    at.append(unflatten(c, simplifyIndex(c, e), innerDims));
    if (serial >= 0) at.insert(at.begin() + serialDim, values.range(domain->shape[serial], RangeKind::Loop));
    auto [index, valid] = logicalIndex(c, values, out.layout, domain->shape, at);
    if (domain != v)
      stores.push_back(v->op == Op::Scatter ? values.storeScatter(v, index) : values.storeUpdate(v, index));
    else {
      UOpRef x = values.at(v, index, valid);
      if (valid) x = valid->isConst() ? c.literal(v->dtype, 0) : c.make(Op::Select, {valid, x, c.literal(v->dtype, 0)});
      stores.push_back(values.store(index, x, inside));
    }
    start = add(start, mul(count, each));
  }
  values.spill.tile = nullptr;
}

void Lowering::lines() {
  const Placed &out = spec.outputs[0];
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  alongLine(ArrayRef<UOpRef>(extents).drop_back(plan.merge), ArrayRef<UOpRef>(extents).take_back(plan.merge),
            plan.lanes, plan.unroll, plan.tail == tailOverlapped, [&](ArrayRef<UOpRef> at) { storeAt(at, nullptr); });
}

/// An item is all of the inner memory dims at a point of the outer ones: what depends on the point alone is computed
/// once. What is left of a step is one too, whose last vector is masked, or `overlaps` the one before and ends with the
/// line: some elements are computed twice, to the same bits. `store` stores at a point of all dims.
void Lowering::alongLine(ArrayRef<UOpRef> outerDims, ArrayRef<UOpRef> innerDims, unsigned width, unsigned unroll,
                         bool overlaps, llvm::function_ref<void(ArrayRef<UOpRef>)> store) {
  UOpRef n = idxProduct(c, innerDims), lanes = num(width), each = num(int64_t(width) * unroll);
  auto point = unflatten(c, values.range(idxProduct(c, outerDims), RangeKind::Parallel), outerDims);
  auto put = [&](UOpRef begin, unsigned vectors, bool partial) {
    UOpRef lane = width > 1 ? values.range(lanes, RangeKind::Vector) : num(0), e = begin;
    if (vectors > 1) e = add(e, mul(values.range(num(vectors), RangeKind::Unroll), lanes));
    if (partial && overlaps && n->lo >= width) e = idxMin(c, e, sub(n, lanes)), partial = false;
    e = simplifyIndex(c, add(e, lane));
    if (partial) values.masked = lane, values.mask = values.lt(e, n);
    SmallVector<UOpRef, 6> at(point.begin(), point.end());
    at.append(unflatten(c, e, innerDims));
    store(at);
    values.masked = values.mask = nullptr;
    values.around.truncate(1); // the loop
  };
  auto loop = [&](UOpRef count) { return count->constIndex() == 1 ? num(0) : values.range(count, RangeKind::Loop); };
  UOpRef count = div(n, each), start = mul(count, each), rest = simplifyIndex(c, sub(n, start));
  if (count->hi > 0) put(mul(loop(count), each), unroll, false);
  if (auto r = rest->constIndex()) {
    if (*r) put(start, unsigned(llvm::divideCeil(*r, width)), *r % width != 0);
  } else {
    UOpRef vectors = simplifyIndex(c, idxCeilDiv(c, rest, lanes));
    put(add(start, mul(loop(vectors), lanes)), 1, true);
  }
}

/// An item is a row, and stores follow each other along it: steps of several vectors, vectors, and what is left.
void Lowering::rows() {
  const Placed &out = spec.outputs[0];
  Shape shape = out.value->shape;
  UOpRef n = rowTile ? rowTile->columns : shape.back(),
         all = rowTile ? rowTile->rows : idxProduct(c, shape.drop_back()), start = num(0), inside = nullptr;
  UOpRef p = rowNumber(values.range(rowItems(all), RangeKind::Parallel), all, inside);
  SmallVector<UOpRef, 6> row;
  if (rowTile) {
    row.assign(rowTile->at.begin(), rowTile->at.end());
    row.back() = add(row.back(), p);
  } else
    row = unflatten(c, p, shape.drop_back());
  auto loop = [&](UOpRef count) { return count->constIndex() == 1 ? num(0) : values.range(count, RangeKind::Loop); };
  auto put = [&](UOpRef e) {
    SmallVector<UOpRef, 6> index(row);
    index.push_back(simplifyIndex(c, e));
    stores.push_back(values.store(index, values.at(out.value, index), inside));
    values.around.truncate(1); // the loop
  };
  for (unsigned u : {plan.unroll, 1u}) {
    if (u == 1 && !stores.empty() && plan.unroll == 1) break;
    UOpRef each = num(values.rowStepLength() * u), count = div(sub(n, start), each);
    if (count->hi <= 0) continue;
    UOpRef e = add(start, mul(loop(count), each));
    if (u > 1) e = add(e, mul(values.range(num(u), RangeKind::Unroll), num(values.rowStepLength())));
    if (values.rowLanes > 1) e = add(e, values.rowStep().at);
    put(e);
    start = simplifyIndex(c, add(start, mul(count, each)));
  }
  UOpRef each = num(values.rowStepLength()), rest = simplifyIndex(c, idxCeilDiv(c, sub(n, start), each));
  if (rest->hi <= 0) return;
  ValueAt::RowStep step = values.rowStep();
  UOpRef e = simplifyIndex(c, add(start, add(mul(loop(rest), each), step.at)));
  values.masked = step.ranges.back();
  values.mask = values.lt(e, n);
  put(e);
  values.masked = values.mask = nullptr;
}

UOpRef astra::storedPoints(const KernelSpec &spec) {
  UOpRef v = spec.outputs[0].value;
  if (!spec.inPlace) return v;
  return v->op == Op::UpdateAt ? v->src[1] : v->op == Op::Scatter ? v->src[2] : v;
}

int64_t astra::serialAxis(const KernelSpec &spec) {
  UOpRef v = spec.outputs[0].value;
  return v->op == Op::Scatter ? v->ints[0] : spec.rootOp && spec.rootOp->op == Op::Cumulate ? spec.rootOp->ints[1] : -1;
}

Kernel astra::lowerByDims(Context &c, const KernelSpec &spec, llvm::SmallVectorImpl<UOpRef> &loops) {
  return Lowering(c, spec, Plan(), nullptr).byDims(loops);
}

Kernel astra::lowerKernel(Context &c, const KernelSpec &spec, const Plan &plan, const RowTile *tile) {
  return Lowering(c, spec, plan, tile).run();
}

//===- LowerPrograms.cpp: kernels that users wrote --------------------------===//
// Takes:    a place over the dims of a grid, what one program stores.
// Gives:    an item for each program, which computes its tile by rows, and stores it.
// Keeps:    a reduction along the last axis of what it reduces is taken by lanes where nothing else has them; tiles
//           that are read at several points are computed once (KeptTiles.h), where there is room for them.
#include "Lowering.h"
#include "Rows.h"
#include "astra/Schedule/View.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

static constexpr uint64_t mostKeptBytes = 4 << 20; // by an item of a CPU

void Lowering::programs() {
  SmallVector<UOpRef, 4> dims, extents;
  for (auto [dim, extent] : spec.grid) dims.push_back(dim), extents.push_back(extent);
  UOpRef p = values.range(idxProduct(c, extents), RangeKind::Parallel);
  SmallVector<UOpRef, 4> at = unflatten(c, p, extents);
  for (size_t i = 0; i < at.size(); ++i) // bounds that a product of symbolic extents does not show
    if (at[i]->lo < 0 || at[i]->hi > dims[i]->hi) at[i] = idxMax(c, num(0), idxMin(c, at[i], num(dims[i]->hi)));
  program(withIndices(c, spec.outputs[0].value, dims, at));
}

/// Where blocks that a tile joins along an axis of known extent begin, and its end.
static SmallVector<int64_t, 8> blocksAlong(UOpRef tile, unsigned axis) {
  constexpr unsigned most = 64; // each is code of its own
  auto n = tile->shape[axis]->constIndex();
  if (!n) return {};
  SmallVector<int64_t, 8> at{0, *n};
  SmallVector<UOpRef, 16> open{tile};
  llvm::DenseSet<UOpRef> seen;
  while (!open.empty()) {
    UOpRef x = open.pop_back_val();
    if (!seen.insert(x).second || x->shape != tile->shape) continue;
    if (x->op == Op::Select) open.push_back(x->src[1]), open.push_back(x->src[2]);
    if (x->op != Op::Pad) continue;
    auto begin = x->indices()[axis]->constIndex(), size = x->src[0]->shape[axis]->constIndex();
    if (!begin || !size || *begin < 0) continue;
    for (int64_t b : {*begin, *begin + *size})
      if (b > 0 && b < *n) at.push_back(b);
  }
  llvm::sort(at);
  at.erase(llvm::unique(at), at.end());
  return at.size() > most ? SmallVector<int64_t, 8>{0, *n} : at;
}

/// The place with each data dim as what a kernel reads for it.
UOpRef Lowering::withDataDims(UOpRef place) {
  for (;;) {
    std::vector<UOpRef> order = topoSort(place);
    auto isOfGraph = [&](UOpRef n) { return n->op == Op::Extent && !known.contains(n); };
    auto it = llvm::find_if(order, isOfGraph); // the first: what it is computed from has none
    if (it == order.end()) return place;
    UOpRef n = *it, scalar = values.at(n->src[0], {});
    UOpRef now = scalar->op == Op::FromIndex ? scalar->src[0] : c.make(Op::Extent, {scalar}, n->ints);
    known.insert(now);
    place = withIndices(c, place, {n}, {now});
  }
}

void Lowering::program(UOpRef place) {
  place = withDataDims(place);
  UOpRef tile = place->src[0];
  ArrayRef<UOpRef> begin = place->indices().take_front(place->rank());
  if (plan.warp) values.laneKind = RangeKind::Thread;
  values.tileBytes = plan.warp ? mostCachedShared / (plan.threads / plan.warp) : mostKeptBytes;
  // Of products that are kept the same rows and vectors are computed together; of one vector of columns more rows, so
  // many that no sum waits for itself.
  constexpr unsigned enough = 8;
  unsigned alone = plan.mr > 1 ? std::max(plan.mr, std::min(plan.mr * plan.unroll, enough)) : 1;
  TileSizes sizes{plan.lanes, plan.warp != 0, plan.mr, plan.mr > 1 && !plan.warp ? plan.unroll : 1, alone};
  values.tiles = keptTiles(c, spec, tile, sizes);
  TileLanes how = lanesOfTile(tile, values.tiles, sizes);
  values.reduceLanes = how.reduceLanes;
  if (tile->op != Op::Cumulate) values.tiles.erase(tile); // stored, and not made of what is there already
  values.together.insert(values.around.begin(), values.around.end());
  auto store = [&](ArrayRef<UOpRef> index) {
    SmallVector<UOpRef, 6> to;
    for (auto [b, i] : llvm::zip_equal(begin, index)) to.push_back(simplifyIndex(c, add(b, i)));
    stores.push_back(values.store(to, values.at(tile, index)));
  };
  if (!tile->rank()) return store({});
  size_t outer = values.around.size();
  auto loop = [&](UOpRef count) { return count->constIndex() == 1 ? num(0) : values.range(count, RangeKind::Loop); };
  auto together = [&](UOpRef index) {
    if (!index->isConst() && plan.mr == 1) values.together.insert(index); // else rows are computed together
    return index;
  };
  UOpRef n = tile->shape.back(), lanes = num(how.lanes);
  auto columns = blocksAlong(tile, tile->rank() - 1);
  auto line = [&](UOpRef rows, unsigned copies, UOpRef first) { // rows `first` ... of the last axis but one
    SmallVector<UOpRef, 6> row;
    for (UOpRef d : tile->shape.drop_back(std::min<size_t>(2, tile->rank()))) row.push_back(together(loop(d)));
    if (tile->rank() > 1) {
      UOpRef r = add(first, mul(together(loop(rows)), num(copies)));
      if (copies > 1) r = add(r, together(values.range(num(copies), RangeKind::Unroll)));
      row.push_back(simplifyIndex(c, r));
    }
    size_t inner = values.around.size();
    auto put = [&](UOpRef count, unsigned vectors, UOpRef start, UOpRef end, bool partial) {
      if (count->hi <= 0) return;
      UOpRef e = add(start, mul(loop(count), num(int64_t(how.lanes) * vectors)));
      if (vectors > 1) e = add(e, mul(values.range(num(vectors), RangeKind::Unroll), lanes));
      UOpRef lane = how.lanes > 1 ? values.range(lanes, values.laneKind) : num(0);
      e = simplifyIndex(c, add(e, lane));
      if (partial) values.masked = lane, values.mask = values.lt(e, end);
      row.push_back(e);
      store(row);
      row.pop_back();
      values.masked = values.mask = nullptr;
      values.around.truncate(inner);
    };
    auto block = [&](UOpRef start, UOpRef end) {
      for (unsigned vectors : {plan.unroll, 1u}) {
        UOpRef each = num(int64_t(how.lanes) * vectors), count = div(sub(end, start), each);
        put(count, vectors, start, end, false);
        start = simplifyIndex(c, add(start, mul(count, each)));
        if (plan.unroll == 1) break;
      }
      put(simplifyIndex(c, idxCeilDiv(c, sub(end, start), lanes)), 1, start, end, true);
    };
    if (columns.empty()) block(num(0), n);
    for (size_t i = 0; i + 1 < columns.size(); ++i) block(num(columns[i]), num(columns[i + 1]));
    values.around.truncate(outer);
  };
  auto lines = [&](UOpRef first, UOpRef rows) {
    UOpRef whole = div(rows, num(plan.mr)), rest = simplifyIndex(c, sub(rows, mul(whole, num(plan.mr))));
    if (plan.mr == 1) return line(rows, 1, first);
    if (whole->hi > 0) line(whole, plan.mr, first);
    if (rest->hi > 0) line(rest, 1, simplifyIndex(c, add(first, mul(whole, num(plan.mr)))));
  };
  if (tile->rank() == 1) return line(num(1), 1, num(0));
  auto down = blocksAlong(tile, tile->rank() - 2);
  if (down.empty()) lines(num(0), tile->shape[tile->rank() - 2]);
  for (size_t i = 0; i + 1 < down.size(); ++i) lines(num(down[i]), num(down[i + 1] - down[i]));
}

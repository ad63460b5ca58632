//===- LowerPrograms.cpp: kernels that users wrote --------------------------===//
// Takes:    a place over the dims of a grid, what one program stores.
// Gives:    an item for each program, which computes its tile by rows, and stores it.
// Keeps:    a reduction along the last axis of what it reduces is taken by lanes where nothing else has them; what
//           several passes over a row read is computed once (Rows.h).
#include "Lowering.h"
#include "Rows.h"
#include "astra/Schedule/View.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

/// Whether lanes may run along every reduction of a graph whose elements are taken by lanes along the root's last axis:
/// each is along the last axis of its source and gives a value that all of these lanes share.
static bool reducesByLanes(UOpRef root) {
  SmallVector<std::pair<UOpRef, bool>, 16> open{{root, true}}; // whether the lanes are along its last axis
  llvm::DenseSet<std::pair<UOpRef, int>> seen;
  while (!open.empty()) {
    auto [n, lanes] = open.pop_back_val();
    if (n->isIndex() || !seen.insert({n, lanes}).second) continue;
    bool below = lanes;
    if (n->op == Op::Reduce) {
      ReduceSpec s = llvm::cantFail(decodeReduce(n->ints));
      bool last = s.axes.size() == 1 && s.axes[0] + 1 == int64_t(n->src[0]->rank()) && s.order != ReduceOrder::Chain;
      if (lanes || !last) return false;
      below = true;
    } else if (n->op == Op::Expand)
      below &= n->src[0]->shape.back()->constIndex() != 1;
    else if (n->op == Op::Reshape) {
      Shape to = n->shape, from = n->src[0]->shape;
      if (to.size() == from.size() + 1 && to.back()->constIndex() == 1 && to.drop_back() == from) below = false;
      if (from.empty()) below = false;
    }
    for (UOpRef s : n->tensors()) open.push_back({s, below && s->rank() > 0});
  }
  return true;
}

void Lowering::programs() {
  SmallVector<UOpRef, 4> dims, extents;
  for (auto [dim, extent] : spec.grid) dims.push_back(dim), extents.push_back(extent);
  UOpRef p = values.range(idxProduct(c, extents), RangeKind::Parallel);
  SmallVector<UOpRef, 4> at = unflatten(c, p, extents);
  for (size_t i = 0; i < at.size(); ++i) // bounds that a product of symbolic extents does not show
    if (at[i]->lo < 0 || at[i]->hi > dims[i]->hi) at[i] = idxMax(c, num(0), idxMin(c, at[i], num(dims[i]->hi)));
  program(withIndices(c, spec.outputs[0].value, dims, at));
}

void Lowering::program(UOpRef place) {
  UOpRef tile = place->src[0];
  ArrayRef<UOpRef> begin = place->indices().take_front(place->rank());
  if (plan.warp) values.laneKind = RangeKind::Thread;
  values.rowLanes = plan.lanes;
  if (reducesByLanes(tile)) {
    values.reduceLanes = plan.lanes;
    KernelSpec rows; // whose row the tile's is
    rows.outputs.push_back({tile, {}, {}});
    for (UOpRef n : topoSort(tile))
      if (n->op == Op::Reduce && n->src[0]->shape == tile->shape) rows.rootOp = n;
    bool room = !plan.warp || (tile->rank() && tile->shape.back()->hi <= mostCachedOwn * plan.warp);
    if (rows.rootOp && room) values.cached = cachedInRow(rows);
    for (UOpRef n : topoSort(tile)) // each pass would go through its loop again
      if (rows.rootOp && room && (n->op == Op::Fold || n->op == Op::Contract) && n->shape == tile->shape)
        values.cached.insert(n);
  }
  auto store = [&](ArrayRef<UOpRef> index) {
    SmallVector<UOpRef, 6> to;
    for (auto [b, i] : llvm::zip_equal(begin, index)) to.push_back(simplifyIndex(c, add(b, i)));
    stores.push_back(values.store(to, values.at(tile, index)));
  };
  if (!tile->rank()) return store({});
  size_t outer = values.around.size();
  auto loop = [&](UOpRef count) { return count->constIndex() == 1 ? num(0) : values.range(count, RangeKind::Loop); };
  UOpRef n = tile->shape.back(), lanes = num(plan.lanes);
  auto line = [&](UOpRef rows, unsigned together, UOpRef first) { // rows `first` ... of the last axis but one
    auto put = [&](UOpRef count, unsigned vectors, UOpRef start, bool partial) {
      if (count->hi <= 0) return;
      SmallVector<UOpRef, 6> index;
      for (UOpRef d : tile->shape.drop_back(std::min<size_t>(2, tile->rank()))) index.push_back(loop(d));
      if (tile->rank() > 1) {
        UOpRef r = add(first, mul(loop(rows), num(together)));
        if (together > 1) r = add(r, values.range(num(together), RangeKind::Unroll));
        index.push_back(simplifyIndex(c, r));
      }
      UOpRef e = add(start, mul(loop(count), num(int64_t(plan.lanes) * vectors)));
      if (vectors > 1) e = add(e, mul(values.range(num(vectors), RangeKind::Unroll), lanes));
      UOpRef lane = plan.lanes > 1 ? values.range(lanes, values.laneKind) : num(0);
      e = simplifyIndex(c, add(e, lane));
      if (partial) values.masked = lane, values.mask = values.lt(e, n);
      index.push_back(e);
      store(index);
      values.masked = values.mask = nullptr;
      values.around.truncate(outer);
    };
    UOpRef start = num(0);
    for (unsigned vectors : {plan.unroll, 1u}) {
      UOpRef each = num(int64_t(plan.lanes) * vectors), count = div(sub(n, start), each);
      put(count, vectors, start, false);
      start = simplifyIndex(c, add(start, mul(count, each)));
      if (plan.unroll == 1) break;
    }
    put(simplifyIndex(c, idxCeilDiv(c, sub(n, start), lanes)), 1, start, true);
  };
  UOpRef rows = tile->rank() > 1 ? tile->shape[tile->rank() - 2] : num(1), whole = div(rows, num(plan.mr));
  if (plan.mr > 1 && tile->rank() > 1) {
    if (whole->hi > 0) line(whole, plan.mr, num(0));
    UOpRef rest = simplifyIndex(c, sub(rows, mul(whole, num(plan.mr))));
    if (rest->hi > 0) line(rest, 1, mul(whole, num(plan.mr)));
  } else
    line(rows, 1, num(0));
}

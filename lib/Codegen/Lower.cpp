//===- Lower.cpp: the regions of a kernel ----------------------------------===//
// Takes:    a kernel's graph and its plan.
// Gives:    one store per region: full tiles first, then what is left of each tiled axis, each with a parallel range of
// its own. Keeps:    every element of the output is stored exactly once.
#include "astra/Codegen/Lower.h"
#include "Rows.h"
#include "Value.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {
class Lowering {
public:
  Lowering(Context &c, const KernelSpec &spec, const Plan &plan, const RowTile *tileOfRows)
      : c(c), spec(spec), plan(plan), rowTile(tileOfRows), values(c, spec, tileOfRows) {}

  Kernel run() {
    values.cutsSums = !plan.threads;
    if (rowTile) values.columnsOfRows = rowTile->columns;
    if (plan.kind == PlanKind::Rows) {
      values.reduceLanes = values.rowLanes = plan.lanes;
      if (plan.warp) values.laneKind = RangeKind::Thread;
      if (plan.spread) {
        values.rowLanes = plan.threads;
        values.team = {0, plan.spread, 1, plan.warp, nullptr};
      }
      if (!plan.warp || keepsRows()) values.kept = keptInRow(spec);
    }
    if (plan.kind == PlanKind::Contract)
      contract();
    else if (plan.kind == PlanKind::Rows && writesRows(spec))
      rows();
    else
      map();
    Kernel k;
    k.name = spec.name;
    k.sink = c.make(Op::Sink, stores);
    k.buffers = std::move(values.buffers);
    k.plan = text(plan);
    k.ahead = plan.ahead;
    k.aheadByItems = plan.kind == PlanKind::Rows;
    k.hints = std::move(values.hints);
    return k;
  }

private:
  UOpRef div(UOpRef a, UOpRef b) { return simplifyIndex(c, idxDiv(c, a, b)); }
  UOpRef mod(UOpRef a, UOpRef b) { return simplifyIndex(c, idxMod(c, a, b)); }
  UOpRef mul(UOpRef a, UOpRef b) { return idxMul(c, a, b); }
  UOpRef add(UOpRef a, UOpRef b) { return idxAdd(c, a, b); }
  UOpRef sub(UOpRef a, UOpRef b) { return idxSub(c, a, b); }
  UOpRef num(int64_t v) { return c.index(v); }

  bool keepsRows() const;
  UOpRef rowNumber(UOpRef p, UOpRef rows, UOpRef &inside);
  UOpRef rowItems(UOpRef rows);
  void storeAt(ArrayRef<UOpRef> at, UOpRef inside);
  void storeSum(SmallVector<UOpRef, 6> index, UOpRef inside, UOpRef own = nullptr);
  void frame();
  void map();
  void blocks();
  void lines();
  void alongLine(ArrayRef<UOpRef> outerDims, ArrayRef<UOpRef> innerDims, unsigned width, unsigned unroll,
                 llvm::function_ref<void(ArrayRef<UOpRef>)> store);
  void turned();
  void spread();
  void rows();
  void contract();
  void contract(const Phase &phase);
  void block(const Phase &phase);
  struct Span { // of a label of a tile: `count` times `size` from `begin` on
    UOpRef begin, count;
    unsigned size;
    bool partial = false; // the last of its lanes are not there
    UOpRef end = nullptr; // of the label: the last one begins earlier, to end there; null: none goes over it
  };
  bool movesRows(UOpRef m) const;
  void tile(const Phase &phase, ArrayRef<UOpRef> kept, const Span &columns, const Span &down);

  Context &c;
  const KernelSpec &spec;
  const Plan &plan;
  const RowTile *rowTile; // null: all rows
  ValueAt values;
  std::vector<UOpRef> stores;
};

/// Whether what several passes over a row need has room: of a warp each thread keeps its own elements in registers, a
/// block has memory that its threads share. What has none is computed again in each pass.
bool Lowering::keepsRows() const {
  Shape row = rowsOf(spec);
  if (row.empty()) return false;
  if (!plan.spread) return row.back()->hi <= mostKeptOwn * plan.warp;
  return keptBytes(spec, plan.threads) <= mostKeptShared;
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
std::pair<SmallVector<UOpRef, 4>, UOpRef> logicalIndex(Context &c, ValueAt &values, const Layout &l, Shape shape,
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

/// Of a GPU: an item is a tile of which each thread of a block has an element: `turn` of them along the memory dims
/// behind number `merge`, as one, and others across, along that dim. There some operand's elements are neighbours: it
/// is read along them, into memory that the threads share.
void Lowering::turned() {
  const Placed &out = spec.outputs[0];
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  size_t y = plan.merge;
  int64_t wide = plan.turn, high = plan.threads / plan.turn;
  ArrayRef<UOpRef> behind = ArrayRef<UOpRef>(extents).drop_front(y + 1);
  UOpRef n = idxProduct(c, behind);
  SmallVector<UOpRef, 6> tiles(extents.begin(), extents.begin() + y + 1);
  tiles[y] = simplifyIndex(c, idxCeilDiv(c, extents[y], num(high)));
  tiles.push_back(simplifyIndex(c, idxCeilDiv(c, n, num(wide))));
  SmallVector<UOpRef, 6> at = unflatten(c, values.range(idxProduct(c, tiles), RangeKind::Parallel), tiles);
  values.turn = {values.digit(wide, 1), values.digit(high, wide), wide, high};
  UOpRef e = simplifyIndex(c, add(mul(at.pop_back_val(), num(wide)), values.turn.along));
  at[y] = simplifyIndex(c, add(mul(at[y], num(high)), values.turn.across));
  UOpRef inside = values.both(values.lt(e, n), values.lt(at[y], extents[y]));
  at.append(unflatten(c, e, behind));
  storeAt(at, inside);
}

/// Of a GPU: an item is some neighbouring elements of a reduction along an outer axis, a thread of a block one, and
/// `spread` threads have the same one and share its reduction.
void Lowering::spread() {
  const Placed &out = spec.outputs[0];
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  size_t merge = std::min<size_t>(plan.merge, extents.size());
  ArrayRef<UOpRef> outerDims = ArrayRef<UOpRef>(extents).drop_back(merge),
                   innerDims = ArrayRef<UOpRef>(extents).take_back(merge);
  int64_t columns = plan.threads / plan.spread, parts = std::min(plan.spread, 64u);
  UOpRef inner = idxProduct(c, innerDims), tiles = simplifyIndex(c, idxCeilDiv(c, inner, num(columns)));
  UOpRef p = values.range(mul(idxProduct(c, outerDims), tiles), RangeKind::Parallel), column = values.digit(columns, 1);
  values.team = {parts, plan.spread / parts, columns, columns * parts, column};
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

/// An item is a vector of the innermost `merge` memory dims at `block` points of the others, `unroll` of them at once:
/// what is read across becomes squares in registers (Expand.cpp).
void Lowering::blocks() {
  const Placed &out = spec.outputs[0];
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  ArrayRef<UOpRef> outerDims = ArrayRef<UOpRef>(extents).drop_back(plan.merge),
                   innerDims = ArrayRef<UOpRef>(extents).take_back(plan.merge);
  UOpRef points = idxProduct(c, outerDims), n = idxProduct(c, innerDims), first = num(0);
  for (unsigned together : {plan.unroll, 1u}) { // then the points that are left, one by one
    UOpRef steps = div(sub(points, first), num(together)), deep = num(llvm::divideCeil(plan.block, together)),
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
      SmallVector<UOpRef, 6> at = unflatten(c, simplifyIndex(c, point), outerDims);
      at.append(unflatten(c, simplifyIndex(c, e), innerDims));
      storeAt(at, nullptr);
      begin = add(begin, mul(count, num(w)));
    }
    first = simplifyIndex(c, mul(steps, num(together)));
  }
}

void Lowering::map() {
  if (plan.kind == PlanKind::Columns && plan.spread) return spread();
  if (plan.turn) return turned();
  if (plan.block) return blocks();
  if (plan.line) return lines();
  const Placed &out = spec.outputs[0];
  UOpRef v = out.value, domain = storedPoints(spec);
  unsigned lanes = plan.kind == PlanKind::Rows ? 1 : plan.lanes, unroll = plan.kind == PlanKind::Rows ? 1 : plan.unroll;
  auto extents = memoryExtents(c, out.layout, domain->shape);
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
    UOpRef all = mul(outer, count), inside = nullptr,
           p = rowNumber(values.range(rowItems(all), RangeKind::Parallel), all, inside);
    bool flat = outer->constIndex() == 1;
    UOpRef e = add(start, mul(flat ? p : mod(p, count), each));
    if (u > 1) e = add(e, mul(values.range(num(u), RangeKind::Unroll), num(w)));
    if (w > 1) e = add(e, values.range(num(w), RangeKind::Vector));
    SmallVector<UOpRef, 6> at = unflatten(c, flat ? num(0) : div(p, count), outerDims);
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
}

void Lowering::lines() {
  const Placed &out = spec.outputs[0];
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  alongLine(ArrayRef<UOpRef>(extents).drop_back(plan.merge), ArrayRef<UOpRef>(extents).take_back(plan.merge),
            plan.lanes, plan.unroll, [&](ArrayRef<UOpRef> at) { storeAt(at, nullptr); });
}

/// An item is all of the inner memory dims at a point of the outer ones: what depends on the point alone is computed
/// once. What is left of a step is one too, whose last vector is masked. `store` stores at a point of all dims.
void Lowering::alongLine(ArrayRef<UOpRef> outerDims, ArrayRef<UOpRef> innerDims, unsigned width, unsigned unroll,
                         llvm::function_ref<void(ArrayRef<UOpRef>)> store) {
  UOpRef n = idxProduct(c, innerDims), lanes = num(width), each = num(int64_t(width) * unroll);
  auto point = unflatten(c, values.range(idxProduct(c, outerDims), RangeKind::Parallel), outerDims);
  auto put = [&](UOpRef begin, unsigned vectors, bool partial) {
    UOpRef lane = width > 1 ? values.range(lanes, RangeKind::Vector) : num(0), e = add(begin, lane);
    if (vectors > 1) e = add(e, mul(values.range(num(vectors), RangeKind::Unroll), lanes));
    e = simplifyIndex(c, e);
    if (partial) values.masked = lane, values.mask = values.lt(e, n);
    SmallVector<UOpRef, 6> at(point.begin(), point.end());
    at.append(unflatten(c, e, innerDims));
    store(at);
    values.masked = values.mask = nullptr;
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
  };
  for (unsigned u : {plan.unroll, 1u}) {
    if (u == 1 && !stores.empty() && plan.unroll == 1) break;
    UOpRef each = num(int64_t(values.rowLanes) * u), count = div(sub(n, start), each);
    if (count->hi <= 0) continue;
    UOpRef e = add(start, mul(loop(count), each));
    if (u > 1) e = add(e, mul(values.range(num(u), RangeKind::Unroll), num(values.rowLanes)));
    if (values.rowLanes > 1) e = add(e, values.range(num(values.rowLanes), values.laneKind));
    put(e);
    start = simplifyIndex(c, add(start, mul(count, each)));
  }
  UOpRef rest = simplifyIndex(c, idxCeilDiv(c, sub(n, start), num(values.rowLanes)));
  if (rest->hi <= 0) return;
  UOpRef lane = values.range(num(values.rowLanes), values.laneKind),
         e = simplifyIndex(c, add(start, add(mul(loop(rest), num(values.rowLanes)), lane)));
  values.masked = lane;
  values.mask = values.lt(e, n);
  put(e);
  values.masked = values.mask = nullptr;
}

/// Stores what is made of the sum at `index`, behind what is padded before it: where there is such a point (`inside`)
/// and no other item stores it (`own`). null: certainly.
void Lowering::storeSum(SmallVector<UOpRef, 6> index, UOpRef inside, UOpRef own) {
  UOpRef v = spec.outputs[0].value, inner = v->op == Op::Pad ? v->src[0] : v, x = values.at(inner, index, inside);
  if (inner != v)
    for (size_t axis = 0; axis < index.size(); ++axis) index[axis] = add(index[axis], v->indices()[axis]);
  stores.push_back(values.store(index, x, values.both(inside, own)));
}

void Lowering::contract() {
  for (const Phase &phase : phasesOf(spec.heavy, plan.nLabel))
    if (plan.tall && plan.threads)
      block(phase);
    else
      contract(phase);
  frame();
}

/// What is padded around a contract's results: for each memory dim what lies before and behind them along it, inside of
/// them along the dims outside of it, and all of the dims inside of it, a line. Of a CPU an item is such a line, of a
/// GPU an element, a thread's of a block where the sums are a block's.
void Lowering::frame() {
  const Placed &out = spec.outputs[0];
  UOpRef v = out.value;
  if (v->op != Op::Pad) return;
  UOpRef fill = c.literal(v->dtype, v->ints[0]);
  size_t dims = out.layout.dims.size();
  for (size_t d = 0; d < dims; ++d) {
    int64_t padded = out.layout.dims[d].axis;
    UOpRef before = v->indices()[padded], behind = v->indices()[v->rank() + padded];
    for (auto [begin, count] : {std::pair{num(0), before}, {add(before, v->src[0]->shape[padded]), behind}}) {
      if (count->hi <= 0) continue;
      SmallVector<UOpRef, 6> extents;
      for (auto [k, dim] : llvm::enumerate(out.layout.dims))
        extents.push_back(k < d ? v->src[0]->shape[dim.axis] : k > d ? v->shape[dim.axis] : count);
      auto put = [&](ArrayRef<UOpRef> point, UOpRef gate) {
        SmallVector<UOpRef, 6> index(dims);
        for (auto [k, dim] : llvm::enumerate(out.layout.dims))
          index[dim.axis] = k < d ? add(point[k], v->indices()[dim.axis]) : k > d ? point[k] : add(point[k], begin);
        stores.push_back(values.store(index, fill, gate));
      };
      if (plan.threads) {
        UOpRef all = idxProduct(c, extents);
        int64_t together = plan.tall ? plan.threads : 1;
        UOpRef p = values.range(simplifyIndex(c, idxCeilDiv(c, all, num(together))), RangeKind::Parallel),
               e = simplifyIndex(c, add(mul(p, num(together)), values.digit(together, 1)));
        put(unflatten(c, e, extents), values.lt(e, all));
      } else {
        constexpr unsigned unroll = 4;
        ArrayRef<UOpRef> line = ArrayRef<UOpRef>(extents).drop_front(d + 1);
        uint64_t length = std::max<int64_t>(idxProduct(c, line)->hi, 1);
        unsigned lanes = std::min<uint64_t>(plan.lanes, llvm::PowerOf2Ceil(length));
        alongLine(ArrayRef<UOpRef>(extents).take_front(d + 1), line, lanes, unroll,
                  [&](ArrayRef<UOpRef> point) { put(point, nullptr); });
      }
    }
  }
}

/// Of a GPU: an item is a tile that all threads of a block have part in, each with a tile of its registers: `tall`
/// threads one below another, the others side by side, or `spread` behind each other, which have another chain of the
/// same sums each. The operands' blocks lie in memory that they share. What reaches over the edge is gated.
void Lowering::block(const Phase &phase) {
  SmallVector<UOpRef, 6> kept;
  for (auto [extent, at] : llvm::zip(spec.heavy->shape, phase.labels)) {
    kept.push_back(simplifyIndex(c, idxCeilDiv(c, sub(extent, num(at.first)), num(at.step))));
    if (kept.back()->hi <= 0) return;
  }
  SmallVector<UOpRef, 4> batch, mExtents;
  for (int64_t l : plan.mLabels) mExtents.push_back(kept[l]);
  for (unsigned l = 0; l < kept.size(); ++l)
    if (int64_t(l) != plan.nLabel && !llvm::is_contained(plan.mLabels, int64_t(l))) batch.push_back(kept[l]);
  ContractSpec s = llvm::cantFail(decodeContract(spec.heavy->ints));
  bool laneInB = hasLabel(s.b, plan.nLabel), inBoth = laneInB && hasLabel(s.a, plan.nLabel);
  UOpRef n = plan.nLabel < 0 ? num(1) : kept[plan.nLabel], m = idxProduct(c, mExtents);
  const int64_t chains = std::max(plan.spread, 1u);
  int64_t wide = plan.threads / (plan.tall * chains), across = wide * plan.lanes * plan.unroll,
          down = int64_t(plan.tall) * plan.rows;
  UOpRef nTiles = simplifyIndex(c, idxCeilDiv(c, n, num(across))),
         mTiles = simplifyIndex(c, idxCeilDiv(c, m, num(down)));
  UOpRef p = values.range(mul(idxProduct(c, batch), mul(mTiles, nTiles)), RangeKind::Parallel), q = div(p, nTiles);
  UOpRef n0 = mul(mod(p, nTiles), num(across)), m0 = mul(mod(q, mTiles), num(down));
  auto outer = unflatten(c, div(q, mTiles), batch);
  auto unrolled = [&](unsigned count) { return count > 1 ? values.range(num(count), RangeKind::Unroll) : num(0); };
  UOpRef lane = plan.lanes > 1 ? values.range(num(plan.lanes), RangeKind::Vector) : num(0);
  UOpRef right = values.digit(wide, 1), below = values.digit(plan.tall, wide);
  UOpRef nVector = add(mul(unrolled(plan.unroll), num(wide * plan.lanes)), mul(right, num(plan.lanes)));
  UOpRef nOwn = add(nVector, lane), mOwn = add(mul(below, num(plan.rows)), unrolled(plan.rows));

  auto label = [&](int64_t l, UOpRef i) {
    return simplifyIndex(c, add(num(phase.labels[l].first), mul(i, num(phase.labels[l].step))));
  };
  auto insideN = [&, n0, n](UOpRef point) { return values.lt(add(n0, point), n); };
  auto insideM = [&, m0, m](UOpRef point) { return values.lt(add(m0, point), m); };
  auto placeN = [&](UOpRef point, llvm::MutableArrayRef<UOpRef> at) {
    if (plan.nLabel >= 0) at[plan.nLabel] = label(plan.nLabel, add(n0, point));
  };
  auto placeM = [&](UOpRef point, llvm::MutableArrayRef<UOpRef> at) {
    auto index = unflatten(c, simplifyIndex(c, add(m0, point)), mExtents);
    for (auto [l, i] : llvm::zip(plan.mLabels, index)) at[l] = label(l, i);
  };
  SmallVector<UOpRef, 6> index(kept.size());
  for (unsigned l = 0, b = 0; l < kept.size(); ++l)
    if (int64_t(l) != plan.nLabel && !llvm::is_contained(plan.mLabels, int64_t(l))) index[l] = label(l, outer[b++]);
  placeN(nOwn, index);
  placeM(mOwn, index);
  values.shared.side[laneInB] = {across, nOwn, placeN, insideN, n, wide * plan.lanes};
  values.shared.side[!laneInB] = {down, mOwn, placeM, insideM, m, down};
  if (inBoth) { // both operands have the tile's columns, the other one in each of its rows
    auto row = [&, across](UOpRef point) { return div(point, num(across)); };
    auto column = [&, across](UOpRef point) { return mod(point, num(across)); };
    values.shared.side[!laneInB] = {
        down * across,
        simplifyIndex(c, add(mul(mOwn, num(across)), nOwn)),
        [&, row, column](UOpRef point, llvm::MutableArrayRef<UOpRef> at) {
          placeM(row(point), at), placeN(column(point), at);
        },
        [&, row, column](UOpRef point) { return values.both(insideM(row(point)), insideN(column(point))); },
        n,
        wide * plan.lanes};
  }
  if (chains > 1) values.shared.chains = chains, values.shared.chain = values.digit(chains, wide * plan.tall);
  values.shared.place = {below, right};
  values.shared.threads = plan.threads;
  values.shared.deep = plan.deep;
  values.phase = {&phase, index};
  bool wholeVectors = n->isConst() && n->ints[0] % plan.lanes == 0;
  UOpRef edge = values.both(insideM(mOwn), insideN(wholeVectors ? nVector : nOwn));
  storeSum(index, edge);
  values.phase = {};
  values.shared = {};
}

void Lowering::contract(const Phase &phase) {
  SmallVector<UOpRef, 6> kept;
  for (auto [extent, at] : llvm::zip(spec.heavy->shape, phase.labels)) {
    kept.push_back(simplifyIndex(c, idxCeilDiv(c, sub(extent, num(at.first)), num(at.step))));
    if (kept.back()->hi <= 0) return;
  }
  if (rowTile) // one point of each label but the last
    for (int64_t l : rowTile->labels) kept[l] = l == rowTile->labels.back() ? rowTile->rows : num(1);
  if (rowTile && rowTile->writes) kept[plan.nLabel] = rowTile->columns;
  UOpRef n = kept[plan.nLabel], m = num(1);
  for (int64_t l : plan.mLabels) m = mul(m, kept[l]);

  SmallVector<Span, 3> columns, rows;
  UOpRef width = num(plan.lanes * plan.unroll), full = div(n, width), rest = simplifyIndex(c, sub(n, mul(full, width)));
  if (full->hi > 0) columns.push_back({num(0), full, plan.unroll, false});
  if (auto r = rest->constIndex()) {
    if (*r)
      columns.push_back({mul(full, width), num(1), unsigned((*r + plan.lanes - 1) / plan.lanes), *r % plan.lanes != 0});
  } else
    columns.push_back({mul(full, width), simplifyIndex(c, idxCeilDiv(c, rest, num(plan.lanes))), 1, true});
  UOpRef height = num(plan.rows), tall = div(m, height), left = simplifyIndex(c, sub(m, mul(tall, height)));
  if (movesRows(m)) { // as many tiles as begin inside, if one fits
    UOpRef all = simplifyIndex(c, idxMin(c, idxCeilDiv(c, m, height), mul(tall, num(2))));
    rows.push_back({num(0), all, plan.rows, false, m});
    left = simplifyIndex(c, sub(m, idxMin(c, m, mul(all, height))));
    if (left->hi > 0) rows.push_back({num(0), left, 1});
  } else {
    if (tall->hi > 0) rows.push_back({num(0), tall, plan.rows});
    if (auto r = left->constIndex()) {
      if (*r) rows.push_back({mul(tall, height), num(1), unsigned(*r)});
    } else
      rows.push_back({mul(tall, height), left, 1});
  }
  for (const Span &col : columns)
    for (const Span &row : rows) tile(phase, kept, col, row);
}

/// Whether the last tile of rows is as high as the others, and begins so much earlier, rather than a pass of its own
/// for what is left: that would read all of the lanes' operand once more, for a few rows (197 x 768 times 768 x 3072,
/// weights from memory: 5.9 and 5.5 ms). What two tiles have is stored by the first. Not of a GPU's threads, whose rows
/// are few.
bool Lowering::movesRows(UOpRef m) const {
  bool whole = m->isConst() && m->ints[0] % plan.rows == 0;
  if (plan.threads || plan.rows == 1 || whole || m->hi < int64_t(plan.rows)) return false;
  return movesLastTile(spec);
}

void Lowering::tile(const Phase &phase, ArrayRef<UOpRef> kept, const Span &columns, const Span &down) {
  UOpRef nCount = columns.count, mCount = down.count;
  unsigned vectors = columns.size, rows = down.size;
  bool staged = plan.stage && mCount->constIndex() != 1;
  // A few rows that are left of an extent known at run time alone go to the end of their sums.
  bool rests = plan.tall && !plan.threads && (mCount->isConst() || rows == plan.rows);
  UOpRef chunk = num(staged  ? plan.stage
                     : rests ? plan.tall
                             : 1),
         chunks = staged || rests ? simplifyIndex(c, idxCeilDiv(c, mCount, chunk)) : mCount;
  SmallVector<int64_t, 2> inside;
  SmallVector<UOpRef, 4> inner, batch;
  SmallVector<UOpRef, 6> within;
  if (rests) inside = innerLabels(llvm::cantFail(decodeContract(spec.heavy->ints)), plan.nLabel);
  for (unsigned l = 0; l < kept.size(); ++l)
    if (int64_t(l) != plan.nLabel && !llvm::is_contained(plan.mLabels, int64_t(l)))
      (llvm::is_contained(inside, int64_t(l)) ? inner : batch).push_back(kept[l]);
  UOpRef p = values.range(mul(idxProduct(c, batch), mul(nCount, chunks)), RangeKind::Parallel);
  UOpRef q = plan.threads ? div(p, nCount) : div(p, chunks); // the other is the innermost: neighbouring threads read it
  UOpRef mt = chunks->constIndex() == 1 ? num(0) : mod(plan.threads ? q : p, chunks);
  UOpRef turn = mt, turns = chunks; // of the tiles of a panel that come one after another
  UOpRef nt = nCount->constIndex() == 1 ? num(0) : mod(plan.threads ? p : q, nCount);
  auto outer = unflatten(c, div(q, plan.threads ? chunks : nCount), batch);
  if (plan.block && spec.followers.empty() && nCount->constIndex() != 1) { // bands of rows, all columns of each
    UOpRef high = num(plan.block), band = mul(nCount, high), at = mod(p, mul(nCount, chunks)),
           top = mul(div(at, band), high), inBand = mod(at, band);
    high = simplifyIndex(c, idxMin(c, high, sub(chunks, top))); // of the last one
    turn = mod(inBand, high), turns = num(plan.block);
    nt = div(inBand, high), mt = simplifyIndex(c, add(top, turn));
  }
  UOpRef begin = mul(mt, chunk), ofItem = idxMin(c, chunk, sub(mCount, begin)), count = simplifyIndex(c, ofItem);
  if (rests && count->hi > ofItem->hi) count = ofItem; // the array of the sums is as large as the bounds say
  if (staged) mt = add(begin, values.range(count, RangeKind::Loop));
  if (rests) { // through the inner labels, and the rows' tiles in each
    UOpRef tiles = mul(count, idxProduct(c, inner));
    if (tiles->constIndex() != 1) values.rest = {values.range(tiles, RangeKind::Loop), plan.deep};
    UOpRef tile = values.rest.tile ? values.rest.tile : num(0);
    mt = add(begin, count->constIndex() == 1 ? num(0) : mod(tile, count));
    within = unflatten(c, div(tile, count), inner);
  }
  UOpRef n = add(columns.begin, mul(nt, num(vectors * plan.lanes)));
  UOpRef first = n, vector = vectors > 1 ? values.range(num(vectors), RangeKind::Unroll) : num(0);
  n = add(n, mul(vector, num(plan.lanes)));
  UOpRef lane = plan.lanes > 1 ? values.range(num(plan.lanes), RangeKind::Vector) : num(0);
  n = simplifyIndex(c, add(n, lane));
  UOpRef m = add(down.begin, mul(mt, num(rows))), own = nullptr;
  if (down.end) { // not before 0, which no bound says
    UOpRef row = values.range(num(rows), RangeKind::Unroll), earlier = idxMin(c, m, sub(down.end, num(rows))),
           moved = add(idxMax(c, num(0), earlier), row);
    own = values.lt(sub(m, num(1)), moved);
    m = moved;
  } else if (rows > 1)
    m = add(m, values.range(num(rows), RangeKind::Unroll));
  SmallVector<UOpRef, 3> mExtents;
  for (int64_t l : plan.mLabels) mExtents.push_back(kept[l]);
  auto mIndex = unflatten(c, simplifyIndex(c, m), mExtents);
  SmallVector<UOpRef, 6> index;
  for (unsigned l = 0, b = 0, i = 0; l < kept.size(); ++l) {
    auto row = llvm::find(plan.mLabels, int64_t(l));
    index.push_back(int64_t(l) == plan.nLabel                ? n
                    : row != plan.mLabels.end()              ? mIndex[row - plan.mLabels.begin()]
                    : llvm::is_contained(inside, int64_t(l)) ? within[i++]
                                                             : outer[b++]);
    Stepped at = phase.labels[l];
    index.back() = add(num(at.first), mul(index.back(), num(at.step)));
  }
  if (rowTile)
    for (auto [l, first] : llvm::zip(rowTile->labels, rowTile->at)) index[l] = add(index[l], first);
  values.phase = {&phase, index};
  values.masked = columns.partial ? lane : nullptr;
  values.mask = columns.partial ? values.lt(n, kept[plan.nLabel]) : nullptr;
  values.column = columns.partial ? n : nullptr;
  ContractSpec s = llvm::cantFail(decodeContract(spec.heavy->ints));
  bool inB = llvm::any_of(s.b, [&](const AffineForm &f) { return f.isLabel() && f.terms[0].first == plan.nLabel; });
  if (staged) values.panel = {inB, plan.nLabel, first, vector, lane, vectors, plan.lanes};
  if (plan.next && !staged && nCount->lo > 1 && turns->constIndex())
    values.next = {inB, plan.nLabel, first, turn, int64_t(vectors) * plan.lanes, turns->ints[0]};
  storeSum(index, nullptr, own);
  values.masked = values.mask = values.column = nullptr;
  values.panel = {};
  values.next = {};
  values.rest = {};
  values.phase = {};
}
} // namespace

llvm::SmallVector<int64_t, 2> astra::innerLabels(const ContractSpec &s, int64_t nLabel) {
  bool laneInB = hasLabel(s.b, nLabel);
  SmallVector<int64_t, 2> labels;
  for (int64_t l = 0; l < s.kept; ++l)
    if (l != nLabel && hasLabel(laneInB ? s.b : s.a, l) && !hasLabel(laneInB ? s.a : s.b, l)) labels.push_back(l);
  return labels;
}

int64_t astra::leastSteps(const KernelSpec &spec) {
  constexpr int64_t many = 1 << 20;
  ContractSpec s = llvm::cantFail(decodeContract(spec.heavy->ints));
  int64_t steps = 1;
  for (UOpRef e : spec.heavy->indices().slice(s.kept, s.reduced))
    steps = std::min(many, steps * std::clamp<int64_t>(e->lo, 0, many));
  return steps;
}

bool astra::movesLastTile(const KernelSpec &spec) {
  constexpr int64_t least = 512; // of 128, the tests before stores cost more than they save (attention of 128: 5 %)
  return !spec.inPlace && leastSteps(spec) >= least;
}

UOpRef astra::storedPoints(const KernelSpec &spec) {
  UOpRef v = spec.outputs[0].value;
  if (!spec.inPlace) return v;
  return v->op == Op::UpdateAt ? v->src[1] : v->op == Op::Scatter ? v->src[2] : v;
}

int64_t astra::serialAxis(const KernelSpec &spec) {
  UOpRef v = spec.outputs[0].value;
  return v->op == Op::Cumulate ? v->ints[1] : v->op == Op::Scatter ? v->ints[0] : -1;
}

Kernel astra::lowerKernel(Context &c, const KernelSpec &spec, const Plan &plan, const RowTile *tile) {
  return Lowering(c, spec, plan, tile).run();
}

//===- LowerContract.cpp: the tiles of a contract ---------------------------===//
// Takes:    a kernel around a contract, its plan.
// Gives:    a store for each phase of its labels, whole tiles and what is left of rows and columns, and for what is
//           padded around the results.
#include "Lowering.h"
#include "astra/Schedule/View.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

/// Stores what is made of the sum at `index`, behind what is padded before it: where there is such a point (`inside`)
/// and no other item stores it (`own`). null: certainly.
void Lowering::storeSum(SmallVector<UOpRef, 6> index, UOpRef inside, UOpRef own) {
  UOpRef v = spec.outputs[0].value, inner = v->op == Op::Pad ? v->src[0] : v, x = values.at(inner, index, inside);
  if (inner != v)
    for (size_t axis = 0; axis < index.size(); ++axis) index[axis] = add(index[axis], v->indices()[axis]);
  stores.push_back(values.store(index, x, values.both(inside, own)));
}

void Lowering::contract() {
  for (const Phase &phase : phasesOf(c, spec.rootOp, plan.nLabel))
    if (plan.mc && plan.threads)
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
        int64_t together = plan.mc ? plan.threads : 1;
        UOpRef p = values.range(simplifyIndex(c, idxCeilDiv(c, all, num(together))), RangeKind::Parallel),
               e = simplifyIndex(c, add(mul(p, num(together)), values.digit(together, 1)));
        put(unflatten(c, e, extents), values.lt(e, all));
      } else {
        constexpr unsigned unroll = 4;
        ArrayRef<UOpRef> line = ArrayRef<UOpRef>(extents).drop_front(d + 1);
        uint64_t length = std::max<int64_t>(idxProduct(c, line)->hi, 1);
        unsigned lanes = std::min<uint64_t>(plan.lanes, llvm::PowerOf2Ceil(length));
        alongLine(ArrayRef<UOpRef>(extents).take_front(d + 1), line, lanes, unroll, false,
                  [&](ArrayRef<UOpRef> point) { put(point, nullptr); });
      }
    }
  }
}

/// Of an item the row and the column of its tile, and its number among those of its column in the band: bands of
/// `rowBlock` rows of tiles, of each all columns, of each all rows.
std::tuple<UOpRef, UOpRef, UOpRef> Lowering::banded(UOpRef item, UOpRef rows, UOpRef columns) {
  UOpRef high = num(plan.rowBlock), band = mul(columns, high), at = mod(item, mul(columns, rows)),
         top = mul(div(at, band), high), inBand = mod(at, band);
  high = simplifyIndex(c, idxMin(c, high, sub(rows, top))); // of the last one
  UOpRef turn = mod(inBand, high);
  return {add(top, turn), div(inBand, high), turn};
}

/// Of a GPU: an item is a tile that all threads of a block have part in, each with a tile of its registers: `mc`
/// threads one below another, the others side by side, or `split` behind each other, which have another chain of the
/// same sums each. The operands' blocks lie in memory that they share. What reaches over the edge is gated.
void Lowering::block(const Phase &phase) {
  SmallVector<UOpRef, 6> kept;
  for (auto [extent, at, count] : llvm::zip(spec.rootOp->shape, phase.labels, phase.counts)) {
    UOpRef all = simplifyIndex(c, idxCeilDiv(c, sub(extent, num(at.first)), num(at.step)));
    kept.push_back(count ? count : all);
    if (kept.back()->hi <= 0) return;
  }
  if (rowTile) // one point of each label but the last
    for (int64_t l : rowTile->labels) kept[l] = l == rowTile->labels.back() ? rowTile->rows : num(1);
  SmallVector<UOpRef, 4> batch, mExtents;
  for (int64_t l : plan.mLabels) mExtents.push_back(kept[l]);
  for (unsigned l = 0; l < kept.size(); ++l)
    if (int64_t(l) != plan.nLabel && !llvm::is_contained(plan.mLabels, int64_t(l))) batch.push_back(kept[l]);
  const ContractSpec &s = *spec.contract;
  bool laneInB = hasLabel(s.b, plan.nLabel), inBoth = laneInB && hasLabel(s.a, plan.nLabel);
  UOpRef n = plan.nLabel < 0 ? num(1) : kept[plan.nLabel], m = idxProduct(c, mExtents);
  const int64_t chains = std::max(plan.split, 1u);
  int64_t wide = plan.threads / (plan.mc * chains), across = wide * plan.lanes * plan.unroll,
          down = int64_t(plan.mc) * plan.mr;
  UOpRef nTiles = simplifyIndex(c, idxCeilDiv(c, n, num(across))),
         mTiles = simplifyIndex(c, idxCeilDiv(c, m, num(down)));
  UOpRef p = values.range(mul(idxProduct(c, batch), mul(mTiles, nTiles)), RangeKind::Parallel), q = div(p, nTiles);
  UOpRef nTile = mod(p, nTiles), mTile = mod(q, mTiles);
  if (plan.rowBlock && nTiles->constIndex() != 1) std::tie(mTile, nTile, std::ignore) = banded(p, mTiles, nTiles);
  UOpRef n0 = mul(nTile, num(across)), m0 = mul(mTile, num(down));
  auto outer = unflatten(c, div(q, mTiles), batch);
  auto unrolled = [&](unsigned count) { return count > 1 ? values.range(num(count), RangeKind::Unroll) : num(0); };
  UOpRef lane = plan.lanes > 1 ? values.range(num(plan.lanes), RangeKind::Vector) : num(0);
  UOpRef right = values.digit(wide, 1), below = values.digit(plan.mc, wide);
  UOpRef vector = unrolled(plan.unroll), row = unrolled(plan.mr);
  UOpRef nVector = add(mul(vector, num(wide * plan.lanes)), mul(right, num(plan.lanes)));
  UOpRef nOwn = add(nVector, lane), mOwn = add(mul(below, num(plan.mr)), row);
  // Of mma.sync, which gives a thread two columns side by side: rows that lanes read together are neighbours, each of a
  // thread's own is the next `mc` of the tile.
  const bool byLines = s.unit && plan.lanes == 2 && !plan.warpGroups;
  if (byLines) mOwn = add(mul(row, num(plan.mc)), below);
  if (plan.warpGroups) { // the instruction's rows: 16 of each warp, two of a thread, of each 64 of a group
    UOpRef group = div(below, num(32)), warp = mod(div(below, num(8)), num(4));
    mOwn = add(add(mul(group, num(32 * plan.mr)), mul(div(row, num(2)), num(64))),
               add(add(mul(warp, num(16)), mul(mod(row, num(2)), num(8))), mod(below, num(8))));
    mOwn = simplifyIndex(c, mOwn);
  }

  auto label = [&](int64_t l, UOpRef i) {
    UOpRef at = add(num(phase.labels[l].first), mul(i, num(phase.labels[l].step)));
    if (rowTile)
      for (auto [label, first] : llvm::zip(rowTile->labels, rowTile->at))
        if (label == l) at = add(at, first);
    return simplifyIndex(c, at);
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
  if (chains > 1) values.shared.chains = chains, values.shared.chain = values.digit(chains, wide * plan.mc);
  values.shared.place = {below, right};
  values.shared.threads = plan.warpGroups ? 0 : plan.threads;
  if (plan.warpGroups) {
    values.warpGroups = {row, vector, lane, plan.mr, plan.unroll, plan.lanes};
    // The number of a line: labels of the batch in the order of the operand's memory, then rows or columns.
    auto side = [&](bool inB, UOpRef first, int64_t most, UOpRef all) {
      const Placed &x = *spec.input(spec.rootOp->src[inB]);
      UOpRef line = num(0);
      for (const MemoryDim &d : x.layout.dims) {
        int64_t l = (inB ? s.b : s.a)[d.axis].terms[0].first;
        if (l >= s.kept || l == plan.nLabel || llvm::is_contained(plan.mLabels, l)) continue;
        line = add(mul(line, kept[l]), index[l]);
      }
      return WarpGroupTile::Side{unsigned(&x - spec.inputs.data()), simplifyIndex(c, add(mul(line, all), first)), most};
    };
    int64_t words = 1;
    for (UOpRef e : spec.rootOp->indices().slice(s.kept, s.reduced)) words *= *e->constIndex();
    warpGroups = {side(!laneInB, m0, down, m), side(laneInB, n0, across, n), words};
  }
  values.shared.kc = plan.kc;
  values.shared.copied = plan.stages > 0;
  values.shared.lines = byLines;
  values.phase = {&phase, index};
  bool wholeVectors = n->isConst() && n->ints[0] % plan.lanes == 0;
  UOpRef edge = values.both(insideM(mOwn), insideN(wholeVectors ? nVector : nOwn));
  storeSum(index, edge);
  values.phase = {};
  values.shared = {};
  values.warpGroups = {};
}

void Lowering::contract(const Phase &phase) {
  SmallVector<UOpRef, 6> kept;
  for (auto [extent, at, count] : llvm::zip(spec.rootOp->shape, phase.labels, phase.counts)) {
    UOpRef all = simplifyIndex(c, idxCeilDiv(c, sub(extent, num(at.first)), num(at.step)));
    kept.push_back(count ? count : all);
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
    if (plan.tail && full->hi == 0 && *r % plan.lanes && *r > plan.lanes)
      columns.push_back({num(0), num(1), llvm::divideCeil(unsigned(*r), plan.lanes), false, n});
    else if (*r)
      columns.push_back({mul(full, width), num(1), unsigned((*r + plan.lanes - 1) / plan.lanes), *r % plan.lanes != 0});
  } else
    columns.push_back({mul(full, width), simplifyIndex(c, idxCeilDiv(c, rest, num(plan.lanes))), 1, true});
  UOpRef height = num(plan.mr), tall = div(m, height), left = simplifyIndex(c, sub(m, mul(tall, height)));
  if (movesRows(m)) { // as many tiles as begin inside, if one fits
    UOpRef all = simplifyIndex(c, idxMin(c, idxCeilDiv(c, m, height), mul(tall, num(2))));
    rows.push_back({num(0), all, plan.mr, false, m});
    left = simplifyIndex(c, sub(m, idxMin(c, m, mul(all, height))));
    if (left->hi > 0) rows.push_back({num(0), left, 1});
  } else {
    if (tall->hi > 0) rows.push_back({num(0), tall, plan.mr});
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
  bool whole = m->isConst() && m->ints[0] % plan.mr == 0;
  if (plan.threads || plan.mr == 1 || whole || m->hi < int64_t(plan.mr)) return false;
  return movesLastTile(spec);
}

void Lowering::tile(const Phase &phase, ArrayRef<UOpRef> kept, const Span &columns, const Span &down) {
  UOpRef nCount = columns.count, mCount = down.count;
  unsigned vectors = columns.size, rows = down.size;
  bool staged = plan.packB && mCount->constIndex() != 1;
  // A few rows that are left of an extent known at run time alone go to the end of their sums.
  bool spills = plan.mc && !plan.threads && (mCount->isConst() || rows == plan.mr);
  UOpRef chunk = num(staged   ? plan.packB
                     : spills ? plan.mc
                              : 1),
         chunks = staged || spills ? simplifyIndex(c, idxCeilDiv(c, mCount, chunk)) : mCount;
  SmallVector<int64_t, 2> inside;
  SmallVector<UOpRef, 4> inner, batch;
  SmallVector<UOpRef, 6> within;
  if (spills) inside = innerLabels(*spec.contract, plan.nLabel);
  for (unsigned l = 0; l < kept.size(); ++l)
    if (int64_t(l) != plan.nLabel && !llvm::is_contained(plan.mLabels, int64_t(l)))
      (llvm::is_contained(inside, int64_t(l)) ? inner : batch).push_back(kept[l]);
  UOpRef p = values.range(mul(idxProduct(c, batch), mul(nCount, chunks)), RangeKind::Parallel);
  UOpRef q = plan.threads ? div(p, nCount) : div(p, chunks); // the other is the innermost: neighbouring threads read it
  UOpRef mt = chunks->constIndex() == 1 ? num(0) : mod(plan.threads ? q : p, chunks);
  UOpRef turn = mt, turns = chunks; // of the tiles of a panel that come one after another
  UOpRef nt = nCount->constIndex() == 1 ? num(0) : mod(plan.threads ? p : q, nCount);
  auto outer = unflatten(c, div(q, plan.threads ? chunks : nCount), batch);
  if (plan.rowBlock && spec.followers.empty() && nCount->constIndex() != 1) { // bands of rows, all columns of each
    std::tie(mt, nt, turn) = banded(p, chunks, nCount);
    mt = simplifyIndex(c, mt), turns = num(plan.rowBlock);
  }
  UOpRef begin = mul(mt, chunk), ofItem = idxMin(c, chunk, sub(mCount, begin)), count = simplifyIndex(c, ofItem);
  if (spills && count->hi > ofItem->hi) count = ofItem; // the array of the sums is as large as the bounds say
  if (staged) mt = add(begin, values.range(count, RangeKind::Loop));
  if (spills) { // through the inner labels, and the rows' tiles in each
    UOpRef tiles = mul(count, idxProduct(c, inner));
    if (tiles->constIndex() != 1) values.spill = {values.range(tiles, RangeKind::Loop), plan.kc};
    UOpRef tile = values.spill.tile ? values.spill.tile : num(0);
    mt = add(begin, count->constIndex() == 1 ? num(0) : mod(tile, count));
    within = unflatten(c, div(tile, count), inner);
  }
  UOpRef n = add(columns.begin, mul(nt, num(vectors * plan.lanes)));
  UOpRef first = n, vector = vectors > 1 ? values.range(num(vectors), RangeKind::Unroll) : num(0);
  n = add(n, mul(vector, num(plan.lanes)));
  if (columns.end) n = idxMin(c, n, sub(columns.end, num(plan.lanes)));
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
    if (UOpRef begin = phase.begins[l]) index.back() = simplifyIndex(c, add(begin, index.back()));
  }
  if (rowTile)
    for (auto [l, first] : llvm::zip(rowTile->labels, rowTile->at)) index[l] = add(index[l], first);
  values.phase = {&phase, index};
  values.masked = columns.partial ? lane : nullptr;
  values.mask = columns.partial ? values.lt(n, kept[plan.nLabel]) : nullptr;
  values.column = columns.partial ? n : nullptr;
  const ContractSpec &s = *spec.contract;
  bool inB = llvm::any_of(s.b, [&](const AffineForm &f) { return f.isLabel() && f.terms[0].first == plan.nLabel; });
  if (staged) values.panel = {inB, plan.nLabel, first, vector, lane, vectors, plan.lanes};
  int64_t width = int64_t(vectors) * plan.lanes;
  if (plan.prefetchPanel && !staged && nCount->lo > 1 && turns->constIndex()) {
    UOpRef last = mul(div(sub(kept[plan.nLabel], num(1)), num(width)), num(width));
    values.nextPanel = {inB, plan.nLabel, first, last, turn, width, turns->ints[0]};
  }
  storeSum(index, nullptr, own);
  values.masked = values.mask = values.column = nullptr;
  values.panel = {};
  values.nextPanel = {};
  values.spill = {};
  values.phase = {};
}

llvm::SmallVector<int64_t, 2> astra::innerLabels(const ContractSpec &s, int64_t nLabel) {
  bool laneInB = hasLabel(s.b, nLabel);
  SmallVector<int64_t, 2> labels;
  for (int64_t l = 0; l < s.kept; ++l)
    if (l != nLabel && hasLabel(laneInB ? s.b : s.a, l) && !hasLabel(laneInB ? s.a : s.b, l)) labels.push_back(l);
  return labels;
}

int64_t astra::leastSteps(const KernelSpec &spec) {
  constexpr int64_t many = 1 << 20;
  const ContractSpec &s = *spec.contract;
  int64_t steps = 1;
  for (UOpRef e : spec.rootOp->indices().slice(s.kept, s.reduced))
    steps = std::min(many, steps * std::clamp<int64_t>(e->lo, 0, many));
  return steps;
}

bool astra::movesLastVector(const KernelSpec &spec) {
  bool packed = llvm::any_of(spec.inputs, [](const Placed &x) { return !x.layout.isPermuted(); });
  return !packed && !spec.inPlace && !spec.follows && spec.followers.empty();
}

bool astra::movesLastTile(const KernelSpec &spec) {
  constexpr int64_t least = 512; // of 128, the tests before stores cost more than they save (attention of 128: 5 %)
  return !spec.inPlace && leastSteps(spec) >= least;
}

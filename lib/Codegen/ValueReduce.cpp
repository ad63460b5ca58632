//===- ValueReduce.cpp: reductions as folds --------------------------------===//
// Takes:    a reduce at an index of its result.
// Gives:    folds in exactly the order stamped on it (N4): lane64 as 64 lanes and a tree, chains as one fold.
// Keeps:    the order under every plan: a plan only says which lanes share a register.
#include "Value.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

UOpRef astra::zeroIfEmpty(Context &c, UOpRef r, ArrayRef<UOpRef> extents) {
  UOpRef zero = c.literal(r->dtype, 0);
  for (UOpRef e : extents) {
    if (e->lo > 0) continue;
    if (e->hi == 0) return zero;
    r = c.make(Op::Select, {c.make(Op::Lt, {c.index(0), e}), r, zero});
  }
  return r;
}

UOpRef ValueAt::laneFold(ReduceKind kind, UOpRef n, UOpRef chunk, UOpRef identity, UOpRef tile, MakeTerm element) {
  static const Combine combines[] = {Combine::Add, Combine::Mul, Combine::Max, Combine::Min, Combine::And, Combine::Or};
  static const Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or};
  int64_t combine = int64_t(combines[int(kind)]);
  auto own = [&] { return tile ? range(tile->src[0], RangeKind::Fold) : nullptr; };
  auto listed = [](std::initializer_list<UOpRef> all) { // of those that are there
    SmallVector<UOpRef, 4> list;
    llvm::copy_if(all, std::back_inserter(list), [](UOpRef x) { return x; });
    return list;
  };
  if (n->hi > *chunk->constIndex()) { // chunk results in fast memory, then the same rule over them
    UOpRef chunks = simplifyIndex(c, idxMax(c, c.index(1), idxCeilDiv(c, n, chunk))),
           q = range(chunks, RangeKind::Fold), begin = idxMul(c, q, chunk), of = own();
    UOpRef one = laneFold(kind, simplifyIndex(c, idxMin(c, chunk, idxSub(c, n, begin))), chunk, identity, of,
                          [&](UOpRef i, UOpRef bound, UOpRef t) { return element(idxAdd(c, begin, i), bound, t); });
    UOpRef all = c.make(Op::Stage, listed({one, q, of}));
    return laneFold(kind, chunks, chunk, identity, tile, [&](UOpRef i, UOpRef bound, UOpRef t) {
      UOpRef safe = bound ? simplifyIndex(c, idxMin(c, i, idxSub(c, chunks, c.index(1))))
                          : i; // beyond the end: any element, not taken
      return select(bound, c.make(Op::At, listed({all, safe, t}), {1}), identity);
    });
  }
  // Of a GPU that reads rows once each thread has neighbouring lanes; where a block shares the row, from memory, one.
  const int64_t wide = reduceLanes && width && rowLanes == reduceLanes ? width : 1,
                w = wide * std::max(reduceLanes, 1u);
  UOpRef c64 = c.index(64), full = simplifyIndex(c, idxDiv(c, n, c64)), rest = simplifyIndex(c, idxMod(c, n, c64));
  // Lanes of a vector along the reduced axis; or, where vectors run along another, lane after lane: eight at a time,
  // kept in fast memory, for 64 copies of what is summed are much code and more accumulators than there are registers.
  // The eight go to the end of the sum before the next ones; or all 64 take a step, and rest, before any goes on.
  constexpr int64_t together = 8;
  UOpRef eight = c.index(together), eights = c.index(64 / together);
  bool kept = !reduceLanes && full->hi > 0, spills = kept && lanesSpill;
  SmallVector<UOpRef, 2> laneRanges;
  UOpRef lane = c.index(0), group = nullptr;
  auto laneOf = [&](UOpRef group, UOpRef own) { return idxAdd(c, idxMul(c, group, eight), own); };
  if (kept) {
    laneRanges = {range(eights, RangeKind::Unroll), range(eight, RangeKind::Unroll)};
    group = spills && rest->hi <= 0 ? laneRanges[0] : range(eights, RangeKind::Fold);
    lane = laneOf(group, laneRanges[1]);
  } else {
    if (w < 64)
      laneRanges.push_back(range(c.index(64 / w), RangeKind::Unroll)), lane = idxMul(c, laneRanges.back(), c.index(w));
    if (w > 1) {
      laneRanges.push_back(range(c.index(w / wide), laneKind));
      lane = idxAdd(c, lane, idxMul(c, laneRanges.back(), c.index(wide)));
    }
    if (wide > 1)
      laneRanges.push_back(range(c.index(wide), RangeKind::Vector)), lane = idxAdd(c, lane, laneRanges.back());
  }
  UOpRef acc = identity;
  if (spills) { // loops: steps, eights, columns, lanes
    UOpRef i = range(full, RangeKind::Around), g = range(eights, RangeKind::Fold), of = own(),
           l = range(eight, RangeKind::Fold);
    UOpRef term = element(idxAdd(c, idxMul(c, i, c64), laneOf(g, l)), nullptr, of);
    acc = c.make(Op::Stage, listed({c.make(Op::Fold, {identity, term, i}, {combine, 1}), g, of, l}));
    acc = c.make(Op::At, listed({acc, group, tile, laneRanges[1]}), {1});
  } else if (full->hi > 0) {
    UOpRef i = range(full, RangeKind::Fold);
    acc = c.make(Op::Fold, {identity, element(idxAdd(c, idxMul(c, i, c64), lane), nullptr, tile), i}, {combine, 1});
  }
  if (rest->hi > 0) {
    UOpRef i = idxAdd(c, idxMul(c, full, c64), lane), tail = element(i, lt(i, n), tile);
    acc = acc == identity ? tail : c.make(ops[int(kind)], {acc, tail});
  }
  if (kept && group != laneRanges[0]) acc = c.make(Op::At, {c.make(Op::Stage, {acc, group}), laneRanges[0]}, {1});
  if (wide > 1 && *chunk->constIndex() > laneChunk) // in any order: a thread's own before it exchanges
    acc = c.make(Op::LaneFold, {acc, laneRanges.pop_back_val()}, {combine});
  SmallVector<UOpRef, 4> src{acc};
  src.append(laneRanges.begin(), laneRanges.end());
  return c.make(Op::LaneFold, src, {combine});
}

/// Of a row that the threads of a block share: in any order, each thread what it keeps, then the lanes of a warp, then
/// the warps.
UOpRef ValueAt::rowFold(ReduceKind kind, UOpRef n, UOpRef identity,
                        llvm::function_ref<UOpRef(UOpRef, UOpRef)> element) {
  static const Combine combines[] = {Combine::Add, Combine::Mul, Combine::Max, Combine::Min, Combine::And, Combine::Or};
  static const Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or};
  int64_t combine = int64_t(combines[int(kind)]);
  RowStep step = rowStep();
  UOpRef each = c.index(rowStepLength()), full = simplifyIndex(c, idxDiv(c, n, each)), acc = identity;
  if (full->hi > 0) {
    UOpRef q = range(full, RangeKind::Fold);
    acc = c.make(Op::Fold, {identity, element(simplifyIndex(c, idxAdd(c, idxMul(c, q, each), step.at)), nullptr), q},
                 {combine, 1});
  }
  if (simplifyIndex(c, idxMod(c, n, each))->hi > 0) {
    UOpRef i = simplifyIndex(c, idxAdd(c, idxMul(c, full, each), step.at)), tail = element(i, lt(i, n));
    acc = acc == identity ? tail : c.make(ops[int(kind)], {acc, tail});
  }
  if (width > 1) acc = c.make(Op::LaneFold, {acc, step.ranges.pop_back_val()}, {combine});
  acc = c.make(Op::LaneFold, {acc, step.ranges.pop_back_val()}, {combine});
  UOpRef warp = step.ranges.back(), other = range(warp->src[0], RangeKind::Unroll);
  UOpRef all = c.make(Op::Stage, {acc, warp});
  return c.make(Op::LaneFold, {c.make(Op::At, {all, other}, {1}), other}, {combine});
}

/// What of a gate is about an index: conditions on elements side by side (lanes, copies of unrolled code) that it does
/// not depend on are those of one that reads the value for each of its own elements.
UOpRef ValueAt::about(ArrayRef<UOpRef> index, UOpRef gate) {
  if (!gate) return nullptr;
  llvm::DenseSet<UOpRef> here;
  for (UOpRef n : topoSort(index))
    if (n->op == Op::Range) here.insert(n);
  SmallVector<UOpRef, 4> stack{gate};
  UOpRef out = nullptr;
  while (!stack.empty()) {
    UOpRef g = stack.pop_back_val();
    if (g->op == Op::And) {
      stack.push_back(g->src[1]), stack.push_back(g->src[0]);
      continue;
    }
    bool lanes = false;
    for (UOpRef n : topoSort(g)) {
      if (n->op != Op::Range || here.contains(n)) continue;
      RangeKind kind = RangeKind(n->ints[1]);
      lanes |= kind == laneKind || kind == RangeKind::Vector || kind == RangeKind::Unroll;
    }
    if (!lanes) out = both(out, g);
  }
  return out;
}

UOpRef astra::domainEnd(Context &c, ArrayRef<AffineForm> domain, ArrayRef<UOpRef> limits, int64_t label,
                        ArrayRef<UOpRef> at) {
  UOpRef end = nullptr;
  for (auto [f, limit] : llvm::zip(domain, limits)) { // limit + ... - label >= 0
    UOpRef e = idxAdd(c, limit, c.index(1));
    bool ends = false;
    for (auto [l, k] : f.terms) {
      if (l == label && k != -1) return nullptr;
      if (l != label) e = idxAdd(c, e, idxMul(c, at[l], c.index(k)));
      ends |= l == label;
    }
    if (!ends) return nullptr;
    end = end ? idxMin(c, end, e) : e;
  }
  return end;
}

/// Whether an index is the same for all elements that are computed side by side.
static bool isUniform(UOpRef x) {
  return llvm::all_of(topoSort(x), [](UOpRef n) {
    return n->op != Op::Range || RangeKind(n->ints[1]) == RangeKind::Parallel ||
           RangeKind(n->ints[1]) == RangeKind::Loop;
  });
}

UOpRef ValueAt::inDomain(ArrayRef<AffineForm> domain, ArrayRef<UOpRef> limits, ArrayRef<UOpRef> point) {
  UOpRef valid = nullptr;
  for (auto [f, limit] : llvm::zip(domain, limits)) {
    UOpRef e = limit;
    for (auto [label, k] : f.terms) e = idxAdd(c, e, idxMul(c, point[label], c.index(k)));
    valid = both(valid, lt(c.index(-1), e));
  }
  return valid;
}

UOpRef ValueAt::reduce(UOpRef r, ArrayRef<UOpRef> index, UOpRef gate) {
  ReduceSpec s = llvm::cantFail(decodeReduce(r->ints));
  UOpRef x = r->src[0], identity = c.literal(r->dtype, reduceIdentity(s.kind, r->dtype));
  static const Combine combines[] = {Combine::Add, Combine::Mul, Combine::Max, Combine::Min, Combine::And, Combine::Or};
  int64_t combine = int64_t(combines[int(s.kind)]);
  SmallVector<UOpRef, 4> at(x->rank()), extents;
  for (unsigned i = 0, k = 0; i < x->rank(); ++i)
    if (!llvm::is_contained(s.axes, int64_t(i))) at[i] = index[k++];
  for (int64_t a : s.axes) extents.push_back(x->shape[a]);

  bool cut = false; // to what the domain has
  // The element at `at`, or the identity where `gate` or the domain excludes it.
  auto elementAt = [&](ArrayRef<UOpRef> at, UOpRef gate, UOpRef bound) {
    UOpRef valid = bound;
    // An index below 1 is the constant 0 and its load moves out of the loop: where there may be no element it is gated.
    for (UOpRef e : extents)
      if (e->lo <= 0 && e->hi <= 1) valid = both(valid, lt(c.index(0), e));
    if (!cut) valid = both(valid, inDomain(s.domain, r->indices(), at));
    return select(valid, this->at(x, at, both(gate, valid)), identity);
  };
  UOpRef result;
  bool lanes =
      s.order == ReduceOrder::Lane64 ||
      (s.order == ReduceOrder::Exact && s.axes.size() == 1 &&
       ((reduceLanes && x->shape[s.axes[0]]->hi >= fewByLanes) || laneKind == RangeKind::Thread || cooperation.parts));
  if (!lanes) { // one fold, row-major over the axes
    SmallVector<UOpRef, 6> src{identity, nullptr};
    for (int64_t a : s.axes) src.push_back(at[a] = range(x->shape[a], RangeKind::Fold));
    src[1] = elementAt(at, gate, nullptr);
    result = c.make(Op::Fold, src, {combine, 1});
  } else {
    int64_t axis = s.axes[0]; // legalization leaves one
    UOpRef n = x->shape[axis];
    UOpRef end = cutsSums && reduceLanes ? domainEnd(c, s.domain, r->indices(), axis, at) : nullptr;
    if (end && isUniform(end)) {
      UOpRef whole = idxMin(c, n, idxMax(c, end, c.index(0))), simple = simplifyIndex(c, whole);
      n = simple->hi <= whole->hi ? simple : whole; // arrays have room for the bounds
      cut = true;
    }
    UOpRef chunk = c.index(s.order == ReduceOrder::Lane64 ? laneChunk : int64_t(1) << 40);
    if (auto place = sharesAt(index, gate); place && width && s.order == ReduceOrder::Exact) {
      result = rowFold(s.kind, n, identity, [&](UOpRef i, UOpRef bound) {
        SmallVector<UOpRef, 4> own(at);
        own[axis] = i;
        return elementAt(own, gate, bound);
      });
    } else if (place) {
      int64_t most = laneChunk, teams = std::max<int64_t>(cooperation.chunks, 1);
      if (s.order == ReduceOrder::Exact && (n->isConst() || teams == 1)) // any order: no one has more than another
        most = llvm::alignTo(uint64_t(std::max<int64_t>((n->hi + teams - 1) / teams, 1)), 64);
      result = sharedFold(s.kind, n, most, identity, *place, [&](UOpRef i, UOpRef bound, ArrayRef<UOpRef> there) {
        SmallVector<UOpRef, 4> own(at);
        for (auto [a, e] : llvm::enumerate(own))
          e = int64_t(a) == axis ? i : simplifyIndex(c, idxSubstitute(c, e, *place, there));
        return elementAt(own, gate ? idxSubstitute(c, gate, *place, there) : nullptr, bound);
      });
    } else {
      UOpRef tile = r == spec.rootOp ? spill.tile : nullptr; // the columns of an item that come one after another
      result = laneFold(s.kind, n, chunk, identity, tile, [&](UOpRef i, UOpRef bound, UOpRef of) {
        SmallVector<UOpRef, 4> own(at);
        UOpRef ownGate = gate;
        own[axis] = i;
        if (of != tile) {
          for (UOpRef &e : own) e = simplifyIndex(c, idxSubstitute(c, e, {tile}, {of}));
          if (gate) ownGate = idxSubstitute(c, gate, {tile}, {of});
        }
        return elementAt(own, ownGate, bound);
      });
    }
  }
  return s.kind == ReduceKind::Sum && isFloat(r->dtype) ? zeroIfEmpty(c, result, extents) : result;
}

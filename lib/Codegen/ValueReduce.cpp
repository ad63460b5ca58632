//===- ValueReduce.cpp: reductions and contractions as folds ---------------===//
// Takes:    a reduce or contract at an index of its result.
// Gives:    folds in exactly the order stamped on it (N4): lane64 as 64 lanes and a tree, chain512 as nested folds of
// its blocks, chains as one fold. Keeps:    the order under every plan: a plan only says which lanes share a register.
#include "Value.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/View.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

/// `r`, or +0 when one of the extents is 0 (N4: a sum over an extent of 0 is +0.0).
static UOpRef zeroIfEmpty(Context &c, UOpRef r, ArrayRef<UOpRef> extents) {
  UOpRef zero = c.literal(r->dtype, 0);
  for (UOpRef e : extents) {
    if (e->lo > 0) continue;
    if (e->hi == 0) return zero;
    r = c.make(Op::Select, {c.make(Op::Lt, {c.index(0), e}), r, zero});
  }
  return r;
}

UOpRef ValueAt::laneFold(ReduceKind kind, UOpRef n, UOpRef chunk, UOpRef identity,
                         llvm::function_ref<UOpRef(UOpRef, UOpRef)> element) {
  static const Combine combines[] = {Combine::Add, Combine::Mul, Combine::Max, Combine::Min, Combine::And, Combine::Or};
  static const Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or};
  int64_t combine = int64_t(combines[int(kind)]);
  if (n->hi > *chunk->constIndex()) { // chunk results in fast memory, then the same rule over them
    UOpRef chunks = simplifyIndex(c, idxMax(c, c.index(1), idxCeilDiv(c, n, chunk))),
           q = range(chunks, RangeKind::Fold), begin = idxMul(c, q, chunk);
    UOpRef one = laneFold(kind, simplifyIndex(c, idxMin(c, chunk, idxSub(c, n, begin))), chunk, identity,
                          [&](UOpRef i, UOpRef bound) { return element(idxAdd(c, begin, i), bound); });
    UOpRef all = c.make(Op::Stage, {one, q});
    return laneFold(kind, chunks, chunk, identity, [&](UOpRef i, UOpRef bound) {
      UOpRef safe = bound ? simplifyIndex(c, idxMin(c, i, idxSub(c, chunks, c.index(1))))
                          : i; // beyond the end: any element, not taken
      return select(bound, c.make(Op::At, {all, safe}, {1}), identity);
    });
  }
  int64_t w = reduceLanes ? reduceLanes : 1;
  UOpRef c64 = c.index(64), full = simplifyIndex(c, idxDiv(c, n, c64)), rest = simplifyIndex(c, idxMod(c, n, c64));
  // Lanes of a vector along the reduced axis; or, where vectors run along another, lane after lane: eight at a time,
  // kept in fast memory, for 64 copies of what is summed are much code and more accumulators than there are registers.
  bool kept = !reduceLanes && full->hi > 0;
  SmallVector<UOpRef, 2> laneRanges;
  UOpRef lane = c.index(0), group = nullptr;
  if (kept) {
    constexpr int64_t together = 8;
    group = range(c.index(64 / together), RangeKind::Fold);
    laneRanges = {range(c.index(64 / together), RangeKind::Unroll), range(c.index(together), RangeKind::Unroll)};
    lane = idxAdd(c, idxMul(c, group, c.index(together)), laneRanges[1]);
  } else {
    if (w < 64)
      laneRanges.push_back(range(c.index(64 / w), RangeKind::Unroll)), lane = idxMul(c, laneRanges.back(), c.index(w));
    if (w > 1) laneRanges.push_back(range(c.index(w), laneKind)), lane = idxAdd(c, lane, laneRanges.back());
  }
  UOpRef acc = identity;
  if (full->hi > 0) {
    UOpRef i = range(full, RangeKind::Fold);
    acc = c.make(Op::Fold, {identity, element(idxAdd(c, idxMul(c, i, c64), lane), nullptr), i}, {combine, 1});
  }
  if (rest->hi > 0) {
    UOpRef i = idxAdd(c, idxMul(c, full, c64), lane), tail = element(i, lt(i, n));
    acc = acc == identity ? tail : c.make(ops[int(kind)], {acc, tail});
  }
  if (kept) acc = c.make(Op::At, {c.make(Op::Stage, {acc, group}), laneRanges[0]}, {1});
  SmallVector<UOpRef, 3> src{acc};
  src.append(laneRanges.begin(), laneRanges.end());
  return c.make(Op::LaneFold, src, {combine});
}

/// What of a gate is about an index: conditions on lanes that it does not depend on are those of one that reads the
/// value for each of its own elements.
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
    bool lanes = false, shared = false;
    for (UOpRef n : topoSort(g)) {
      lanes |= n->op == Op::Range && RangeKind(n->ints[1]) == laneKind;
      shared |= here.contains(n);
    }
    if (!lanes || shared) out = both(out, g);
  }
  return out;
}

UOpRef ValueAt::reduce(UOpRef r, ArrayRef<UOpRef> index, UOpRef gate) {
  gate = about(index, gate);
  ReduceSpec s = llvm::cantFail(decodeReduce(r->ints));
  UOpRef x = r->src[0], identity = c.literal(r->dtype, reduceIdentity(s.kind, r->dtype));
  static const Combine combines[] = {Combine::Add, Combine::Mul, Combine::Max, Combine::Min, Combine::And, Combine::Or};
  int64_t combine = int64_t(combines[int(s.kind)]);
  SmallVector<UOpRef, 4> at(x->rank()), extents;
  for (unsigned i = 0, k = 0; i < x->rank(); ++i)
    if (!llvm::is_contained(s.axes, int64_t(i))) at[i] = index[k++];
  for (int64_t a : s.axes) extents.push_back(x->shape[a]);

  // The element at `at`, or the identity where `gate` or the domain excludes it.
  auto elementAt = [&](ArrayRef<UOpRef> at, UOpRef gate, UOpRef bound) {
    UOpRef valid = bound;
    // An index below 1 is the constant 0 and its load moves out of the loop: where there may be no element it is gated.
    for (UOpRef e : extents)
      if (e->lo <= 0 && e->hi <= 1) valid = both(valid, lt(c.index(0), e));
    for (auto [f, limit] : llvm::zip(s.domain, r->indices())) {
      UOpRef e = limit;
      for (auto [axis, k] : f.terms) e = idxAdd(c, e, idxMul(c, at[axis], c.index(k)));
      valid = both(valid, lt(c.index(-1), e));
    }
    return select(valid, this->at(x, at, both(gate, valid)), identity);
  };
  auto element = [&](UOpRef bound) { return elementAt(at, gate, bound); };
  UOpRef result;
  bool lanes = s.order == ReduceOrder::Lane64 ||
               (s.order == ReduceOrder::Exact && s.axes.size() == 1 &&
                ((reduceLanes && x->shape[s.axes[0]]->hi >= 32) || laneKind == RangeKind::Thread || team.parts));
  if (!lanes) { // one fold, row-major over the axes
    SmallVector<UOpRef, 6> src{identity, nullptr};
    for (int64_t a : s.axes) src.push_back(at[a] = range(x->shape[a], RangeKind::Fold));
    src[1] = element(nullptr);
    result = c.make(Op::Fold, src, {combine, 1});
  } else {
    int64_t axis = s.axes[0]; // legalization leaves one
    UOpRef n = x->shape[axis], chunk = c.index(s.order == ReduceOrder::Lane64 ? 4096 : int64_t(1) << 40);
    if (auto place = sharesAt(index, gate)) {
      int64_t most = 4096, teams = std::max<int64_t>(team.chunks, 1);
      if (s.order == ReduceOrder::Exact && (n->isConst() || teams == 1)) // any order: no one has more than another
        most = llvm::alignTo(uint64_t(std::max<int64_t>((n->hi + teams - 1) / teams, 1)), 64);
      result = sharedFold(s.kind, n, most, identity, *place, [&](UOpRef i, UOpRef bound, ArrayRef<UOpRef> there) {
        SmallVector<UOpRef, 4> own(at);
        for (auto [a, e] : llvm::enumerate(own))
          e = int64_t(a) == axis ? i : simplifyIndex(c, idxSubstitute(c, e, *place, there));
        return elementAt(own, gate ? idxSubstitute(c, gate, *place, there) : nullptr, bound);
      });
    } else {
      result = laneFold(s.kind, n, chunk, identity, [&](UOpRef i, UOpRef bound) {
        at[axis] = i;
        return element(bound);
      });
    }
  }
  return s.kind == ReduceKind::Sum && isFloat(r->dtype) ? zeroIfEmpty(c, result, extents) : result;
}

UOpRef ValueAt::operand(UOpRef x, ArrayRef<AffineForm> forms, ArrayRef<UOpRef> labels, UOpRef &takesPart, UOpRef gate) {
  SmallVector<UOpRef, 4> index;
  UOpRef valid = nullptr;
  for (auto [f, extent] : llvm::zip(forms, x->shape)) {
    UOpRef e = c.index(f.constant);
    for (auto [label, k] : f.terms) e = idxAdd(c, e, idxMul(c, labels[label], c.index(k)));
    if (f.divisor != 1) {
      UOpRef d = c.index(f.divisor);
      takesPart = both(takesPart, lt(simplifyIndex(c, idxMod(c, e, d)), c.index(1)));
      e = idxDiv(c, e, d);
    }
    e = simplifyIndex(c, e);
    if (!f.isLabel()) valid = both(valid, both(lt(c.index(-1), e), lt(e, extent)));
    index.push_back(e);
  }
  return select(valid, at(x, index, both(gate, both(valid, takesPart))), c.literal(x->dtype, 0));
}

/// The operand's element from a stage of all its rows and the panel's columns.
UOpRef ValueAt::staged(UOpRef x, ArrayRef<AffineForm> forms, ArrayRef<UOpRef> labels, int64_t reduced, UOpRef length,
                       UOpRef columns) {
  UOpRef k = range(length, RangeKind::Fold), v = range(c.index(panel.vectors), RangeKind::Fold),
         l = range(c.index(panel.lanes), RangeKind::Vector), takesPart = nullptr;
  SmallVector<UOpRef, 8> own(labels);
  own[reduced] = k;
  own[panel.label] = idxAdd(c, panel.first, idxAdd(c, idxMul(c, v, c.index(panel.lanes)), l));
  std::pair tileMask{masked, mask};
  if (masked) masked = l, mask = lt(own[panel.label], columns);
  UOpRef element = operand(x, forms, own, takesPart, nullptr);
  std::tie(masked, mask) = tileMask;
  return c.make(Op::At, {c.make(Op::Stage, {element, k, v, l}), labels[reduced], panel.vector, panel.lane}, {1});
}

/// How a tile goes along what is summed in a block of chain512: by `deep` steps that are in fast memory at once. The
/// outer labels are loops of their own, or, where the innermost one is short, all are walked as one.
ValueAt::Steps ValueAt::stepsOf(ArrayRef<Along> chain, llvm::MutableArrayRef<UOpRef> labels,
                                llvm::SmallVectorImpl<UOpRef> &loops) {
  bool fixed = llvm::all_of(chain, [](const Along &a) { return a.length->isConst(); });
  bool flat = chain.size() > 1 && fixed && chain.back().length->ints[0] % shared.deep;
  Steps steps;
  for (; !flat && chain.size() > 1; chain = chain.drop_front()) {
    loops.push_back(range(chain[0].length, RangeKind::Fold));
    labels[chain[0].label] = idxAdd(c, chain[0].begin, idxMul(c, loops.back(), c.index(chain[0].step)));
  }
  SmallVector<UOpRef, 4> lengths;
  for (const Along &a : chain) lengths.push_back(a.length);
  steps.extent = idxProduct(c, lengths);
  steps.deep = std::min<int64_t>(shared.deep, llvm::PowerOf2Ceil(std::max<int64_t>(steps.extent->hi, 1)));
  UOpRef size = c.index(steps.deep), tiles = simplifyIndex(c, idxCeilDiv(c, steps.extent, size)), begin = c.index(0);
  if (tiles->constIndex() != 1) {
    loops.push_back(range(tiles, RangeKind::Fold));
    begin = idxMul(c, loops.back(), size);
  }
  UOpRef count = steps.extent->isConst() ? simplifyIndex(c, idxMin(c, steps.extent, size)) : size;
  steps.own = c.index(0);
  if (count->constIndex() != 1) loops.push_back(steps.own = range(count, RangeKind::Fold));
  // A block of 512 that is cut off a length of whole tiles has whole tiles.
  bool whole = !flat && chain.size() == 1 && chain[0].step == 1 && chain[0].all->isConst() &&
               chain[0].all->ints[0] % steps.deep == 0 && chain[0].length != chain[0].all;
  steps.inside = [this, begin, whole, extent = steps.extent](UOpRef k) {
    return whole ? nullptr : lt(idxAdd(c, begin, k), extent);
  };
  SmallVector<Along, 4> along(chain);
  steps.place = [this, begin, lengths, along](UOpRef k, llvm::MutableArrayRef<UOpRef> at) {
    auto index = unflatten(c, simplifyIndex(c, idxAdd(c, begin, k)), lengths);
    for (auto [a, i] : llvm::zip(along, index))
      at[a.label] = simplifyIndex(c, idxAdd(c, a.begin, idxMul(c, i, c.index(a.step))));
  };
  return steps;
}

llvm::SmallVector<UOpRef, 6> ValueAt::restingLoops(ArrayRef<Along> chain, llvm::MutableArrayRef<UOpRef> labels) {
  // From the innermost label outwards: whole labels while they are few steps together, then a part of one.
  int64_t steps = 1;
  size_t whole = chain.size();
  for (; whole > 0 && chain[whole - 1].length->hi <= rest.deep / steps; --whole)
    steps *= std::max<int64_t>(chain[whole - 1].length->hi, 1);
  UOpRef part = c.index(rest.deep / steps);
  SmallVector<UOpRef, 6> loops;
  for (auto [i, a] : llvm::enumerate(chain)) {
    UOpRef at;
    if (i + 1 == whole && part->ints[0] > 1) {
      loops.push_back(range(simplifyIndex(c, idxCeilDiv(c, a.length, part)), RangeKind::Around));
      UOpRef begin = idxMul(c, loops.back(), part);
      loops.push_back(range(simplifyIndex(c, idxMin(c, part, idxSub(c, a.length, begin))), RangeKind::Fold));
      at = idxAdd(c, begin, loops.back());
    } else {
      loops.push_back(at = range(a.length, i < whole ? RangeKind::Around : RangeKind::Fold));
    }
    labels[a.label] = idxAdd(c, a.begin, idxMul(c, at, c.index(a.step)));
  }
  return loops;
}

UOpRef ValueAt::contract(UOpRef r, ArrayRef<UOpRef> index, UOpRef gate) {
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  ArrayRef<UOpRef> extents = r->indices().take_front(s.kept + s.reduced),
                   limits = r->indices().drop_front(s.kept + s.reduced);
  ArrayRef<UOpRef> lengths = extents.drop_front(s.kept);
  SmallVector<UOpRef, 8> labels(index.begin(), index.end());
  labels.resize(s.kept + s.reduced);
  UOpRef one = c.index(1), start = c.literal(r->dtype, reduceIdentity(ReduceKind::Sum, r->dtype));
  const Phase *steps = r == spec.heavy && index == phase.index ? phase.labels : nullptr;
  if (steps && steps->isEmpty) return isFloat(r->dtype) ? zeroIfEmpty(c, start, lengths) : start;

  // chain512: block lengths, then loops over blocks (the innermost label's outermost), then loops inside a block.
  SmallVector<UOpRef, 4> blockRanges(s.reduced), inner;
  SmallVector<UOpRef, 4> block(s.reduced);
  UOpRef size = one;
  for (int64_t i = s.reduced; i-- > 0;) {
    UOpRef most = i + 1 == s.reduced ? c.index(512) : idxMax(c, one, simplifyIndex(c, idxDiv(c, c.index(8192), size)));
    block[i] = simplifyIndex(c, idxMin(c, lengths[i], most));
    size = idxMul(c, size, idxMax(c, block[i], one));
  }
  // A tile's sum is an element of an array over the tiles of its item.
  bool rests = rest.tile && r == spec.heavy && index == phase.index;
  UOpRef tile = nullptr;
  if (rests) {
    tile = range(rest.tile->src[0], RangeKind::Fold);
    for (UOpRef &l : llvm::MutableArrayRef(labels).take_front(s.kept)) l = idxSubstitute(c, l, {rest.tile}, {tile});
  }
  SmallVector<UOpRef, 4> outer;
  auto addBlocks = [&](int64_t i) {
    UOpRef b = idxMax(c, block[i], one), count = simplifyIndex(c, idxCeilDiv(c, lengths[i], b));
    if (count->hi <= 1) {
      labels[s.kept + i] = c.index(0);
      return;
    }
    UOpRef q = range(count, rests ? RangeKind::Around : RangeKind::Fold);
    outer.push_back(q);
    labels[s.kept + i] = idxMul(c, q, b);
  };
  if (s.reduced) addBlocks(s.reduced - 1);
  for (int64_t i = 0; i + 1 < s.reduced; ++i) addBlocks(i);
  bool tiled = shared.threads && r == spec.heavy && index == phase.index;
  SmallVector<Along, 4> chain; // what the innermost loop goes along
  for (int64_t i = 0; i < s.reduced; ++i) {
    UOpRef begin = labels[s.kept + i];
    UOpRef length =
        begin->constIndex() == 0 ? lengths[i] : simplifyIndex(c, idxMin(c, block[i], idxSub(c, lengths[i], begin)));
    Stepped at = steps && begin->constIndex() == 0 ? steps->labels[s.kept + i] : Stepped();
    length = simplifyIndex(c, idxCeilDiv(c, idxSub(c, length, c.index(at.first)), c.index(at.step)));
    begin = idxAdd(c, begin, c.index(at.first));
    labels[s.kept + i] = begin;
    if (length->constIndex() == 1) continue;
    if (tiled || rests) {
      chain.push_back({s.kept + i, begin, length, at.step, lengths[i]});
      continue;
    }
    UOpRef k = range(length, RangeKind::Fold);
    inner.push_back(k);
    labels[s.kept + i] = idxAdd(c, begin, idxMul(c, k, c.index(at.step)));
  }

  if (rests) {
    auto loops = restingLoops(chain, labels);
    inner.assign(loops.begin(), loops.end());
  }

  UOpRef a = nullptr, b = nullptr;
  if (tiled) {
    std::pair<int64_t, ArrayRef<AffineForm>> operands[] = {{0, s.a}, {1, s.b}};
    Steps steps = stepsOf(chain, labels, inner);
    for (auto [side, forms] : operands) {
      UOpRef otherwise = side ? c.literal(r->dtype, 0) : start; // -0.0 * +0.0 + c is c, whatever c is
      const Shared::Side &points = shared.side[side];
      UOpRef x = r->src[side];
      UOpRef read = fromBlock(steps.deep, points.points, steps.own, points.own, std::max(1u, byteSize(r->dtype)),
                              [&](UOpRef k, UOpRef point, UOpRef firstK, UOpRef firstPoint) {
                                SmallVector<UOpRef, 8> at(labels);
                                points.place(point, at);
                                steps.place(k, at);
                                auto whole = [&](UOpRef extent, UOpRef each, UOpRef first) {
                                  int64_t lanes = std::max<int64_t>(16 / std::max(1u, byteSize(r->dtype)), 1);
                                  return extent->isConst() && extent->ints[0] % lanes == 0 ? first : each;
                                };
                                UOpRef valid = steps.inside(whole(steps.extent, k, firstK)), unused = nullptr;
                                UOpRef inside = points.inside(whole(points.extent, point, firstPoint));
                                return select(valid, operand(x, forms, at, unused, both(inside, valid)), otherwise);
                              });
      (side ? b : a) = read;
    }
    steps.place(steps.own, labels);
  }

  UOpRef takesPart = nullptr;
  for (UOpRef e : lengths) // as in reduce: a load that moves out of an empty loop
    if (e->lo <= 0 && e->hi <= 1) takesPart = both(takesPart, lt(c.index(0), e));
  for (auto [f, limit] : llvm::zip(s.domain, limits)) {
    UOpRef e = limit;
    for (auto [label, k] : f.terms) e = idxAdd(c, e, idxMul(c, labels[label], c.index(k)));
    takesPart = both(takesPart, lt(c.index(-1), e));
  }
  auto read = [&](int side) {
    ArrayRef<AffineForm> forms = side ? s.b : s.a;
    if (panel.operand == side && !gate && !takesPart)
      return staged(r->src[side], forms, labels, s.kept, lengths[0], extents[panel.label]);
    return operand(r->src[side], forms, labels, takesPart, gate);
  };
  if (!tiled) a = read(0), b = read(1);
  bool real = isFloat(r->dtype);
  if (takesPart) // -0.0 * +0.0 + c is c, whatever c is
    a = select(takesPart, a, start), b = select(takesPart, b, c.literal(r->dtype, 0));
  auto fold = [&](UOpRef x, UOpRef y, ArrayRef<UOpRef> ranges) {
    SmallVector<UOpRef, 6> src{start, x};
    if (y) src.push_back(y);
    src.append(ranges.begin(), ranges.end());
    return c.make(Op::Fold, src, {int64_t(y ? Combine::Fma : Combine::Add), y ? 2 : 1});
  };
  UOpRef v;
  if (inner.empty())
    v = real ? c.make(Op::Fma, {a, b, start}) : c.make(Op::Mul, {a, b});
  else
    v = real ? fold(a, b, inner) : fold(c.make(Op::Mul, {a, b}), nullptr, inner);
  auto rested = [&](UOpRef sum, UOpRef of) { return c.make(Op::At, {c.make(Op::Stage, {sum, tile}), of}, {1}); };
  bool restsInside = rests && !inner.empty() && RangeKind(inner[0]->ints[1]) == RangeKind::Around;
  if (restsInside && !outer.empty()) { // the blocks' sums rest too, in an array of their own
    UOpRef blocks = range(rest.tile->src[0], RangeKind::Fold);
    v = rested(v, blocks);
    tile = blocks;
  }
  if (!outer.empty()) v = fold(v, nullptr, outer);
  if (rests) v = rested(v, rest.tile);
  return real ? zeroIfEmpty(c, v, lengths) : v;
}

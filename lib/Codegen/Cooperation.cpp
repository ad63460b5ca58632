//===- Cooperation.cpp: reductions that the threads of an item share --------===//
// Takes:    a reduction along one axis, and how the threads of an item share it (ValueAt::Cooperation).
// Gives:    its value, for every thread that asks: chunks are dealt to warps or threads, of columns also the lanes of a
//           chunk; what they have meets in stages that close their digits, and is folded from there.
// Keeps:    the order of lane64 (N4), by holes alone: a lane of a chunk that there is not has the identity. Memory that
//           does not grow with the axis: of chunk results 64 at a time are there, one for each lane of the next level.
// Does not: choose who shares what (GpuPlan.cpp), nor wait: barriers are found later.
//
// A value is asked for at a place: the digits of the thread's number that it depends on (the column at hand). A thread
// that works for another place than its own does so under digits of its own: a stage closes those, and is read at the
// place that was asked for.
#include "Value.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

static Combine combineOf(ReduceKind kind) {
  static const Combine combines[] = {Combine::Add, Combine::Mul, Combine::Max, Combine::Min, Combine::And, Combine::Or};
  return combines[int(kind)];
}

/// The place of a reduction at this index, or nothing where each thread or warp must do it by itself: inside of a loop,
/// or at an index that is a thread's alone.
std::optional<ValueAt::Place> ValueAt::sharesAt(ArrayRef<UOpRef> index, UOpRef gate) const {
  if (!cooperation.parts && cooperation.chunks < 2) return std::nullopt;
  std::vector<UOpRef> roots(index.begin(), index.end());
  if (gate) roots.push_back(gate);
  Place place;
  for (UOpRef n : topoSort(roots)) {
    if (n->op == Op::Load || n->op == Op::Extent || n->op == Op::At) return std::nullopt;
    if (n->op != Op::Range || RangeKind(n->ints[1]) == RangeKind::Parallel) continue;
    if (!columns.contains(n) && n != cooperation.column) return std::nullopt;
    place.push_back(n);
  }
  return place.size() <= 1 ? std::optional(place) : std::nullopt;
}

/// Other digits for the same places in the thread's number.
ValueAt::Place ValueAt::again(ArrayRef<UOpRef> place) {
  Place fresh;
  for (UOpRef d : place) {
    fresh.push_back(d->isConst() ? d : digit(*d->src[0]->constIndex(), strideOf(d)));
    if (columns.contains(d) || d == cooperation.column) columns.insert(fresh.back());
  }
  return fresh;
}

/// One value for each of 64 lanes, lane(number, place): folded as lane64 says, at `to`.
UOpRef ValueAt::foldLanes(ReduceKind kind, ArrayRef<UOpRef> to,
                          llvm::function_ref<UOpRef(UOpRef, ArrayRef<UOpRef>)> lane) {
  auto folded = [&](UOpRef x, ArrayRef<UOpRef> ranges) {
    SmallVector<UOpRef, 3> src{x};
    src.append(ranges.begin(), ranges.end());
    return ranges.empty() ? x : c.make(Op::LaneFold, src, {int64_t(combineOf(kind))});
  };
  int64_t parts = cooperation.parts ? cooperation.parts : reduceLanes;
  UOpRef part = cooperation.parts ? digit(parts, cooperation.partStride) : range(c.index(parts), laneKind),
         number = part;
  SmallVector<UOpRef, 2> ranges;
  if (parts < 64) {
    ranges.push_back(range(c.index(64 / parts), RangeKind::Unroll));
    number = idxAdd(c, idxMul(c, ranges[0], c.index(parts)), part);
  }
  if (!cooperation.parts) { // of a warp, whose lanes fold by themselves
    ranges.push_back(part);
    return folded(lane(number, to), ranges);
  }
  // Each thread folds its own; then some read what up to eight others have, until one value is left.
  Place place = again(to);
  UOpRef x = folded(lane(number, place), ranges);
  while (parts > 1) {
    constexpr int64_t most = 8;
    int64_t left = parts > most ? parts / most : 1;
    Place next = left > 1 ? again(to) : Place(to);
    UOpRef u = range(c.index(parts / left), RangeKind::Unroll), nextPart = digit(left, cooperation.partStride);
    SmallVector<std::pair<UOpRef, UOpRef>, 4> digits{
        {part, simplifyIndex(c, idxAdd(c, idxMul(c, u, c.index(left)), nextPart))}};
    for (auto [mine, other] : llvm::zip(place, next))
      if (!mine->isConst()) digits.push_back({mine, other});
    llvm::sort(digits, [](auto &a, auto &b) { return strideOf(a.first) > strideOf(b.first); }); // as threads lie
    SmallVector<UOpRef, 4> closed{x}, at{nullptr};
    for (auto [mine, other] : digits) closed.push_back(mine), at.push_back(other);
    at[0] = c.make(Op::Stage, closed);
    x = folded(c.make(Op::At, at, {1}), {u});
    part = nextPart, place = next, parts = left;
  }
  return x;
}

/// n elements at `to`; element(i, bound, place) is element i for another place, the identity where `bound` (null:
/// certainly inside) is false.
UOpRef ValueAt::sharedFold(ReduceKind kind, UOpRef n, int64_t chunk, UOpRef identity, ArrayRef<UOpRef> to,
                           MakeShared element) {
  static const Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or};
  auto fold = [&](UOpRef x, UOpRef along) {
    return c.make(Op::Fold, {identity, x, along}, {int64_t(combineOf(kind)), 1});
  };
  auto simple = [&](UOpRef x) { return simplifyIndex(c, x); };
  const bool dealsAll = width && to.empty(); // one warp adds up a chunk, though there be no other, and tells the others
  if (n->hi <= chunk && !dealsAll)
    return foldLanes(kind, to, [&](UOpRef lane, ArrayRef<UOpRef> place) {
      UOpRef count = simple(idxSubstitute(c, n, to, place)), full = simple(idxDiv(c, count, c.index(64))),
             acc = identity;
      if (full->hi > 0) {
        UOpRef i = range(full, RangeKind::Fold);
        acc = fold(element(idxAdd(c, idxMul(c, i, c.index(64)), lane), nullptr, place), i);
      }
      if (simple(idxMod(c, count, c.index(64)))->hi > 0) {
        UOpRef i = idxAdd(c, idxMul(c, full, c.index(64)), lane), tail = element(i, lt(i, count), place);
        acc = acc == identity ? tail : c.make(ops[int(kind)], {acc, tail});
      }
      return acc;
    });

  // Chunks of chunks, where there are more than 4096 of them: `piece` elements make one of at most 4096 results.
  int64_t piece = chunk;
  while ((n->hi - 1) / laneChunk >= piece) piece *= laneChunk;
  const int64_t dealt = piece == chunk ? std::max<int64_t>(cooperation.chunks, 1) : 1;
  UOpRef chunks = simple(idxMax(c, c.index(1), idxCeilDiv(c, n, c.index(piece))));
  const int64_t together = chunks->hi > 64 ? 64 : int64_t(llvm::alignTo(uint64_t(chunks->hi), uint64_t(dealt)));
  auto ofChunks = [&](UOpRef lane, ArrayRef<UOpRef> reader) {
    auto loop = [&](UOpRef count) { return count->constIndex() == 1 ? c.index(0) : range(count, RangeKind::Fold); };
    UOpRef round = chunks->hi > together ? loop(simple(idxCeilDiv(c, chunks, c.index(together)))) : c.index(0),
           turn = loop(c.index(together / dealt)), own = digit(dealt, cooperation.chunkStride);
    Place place = again(to);
    UOpRef number = idxAdd(c, idxMul(c, round, c.index(together)), idxAdd(c, idxMul(c, turn, c.index(dealt)), own)),
           begin = simple(idxMul(c, number, c.index(piece)));
    UOpRef all = idxSubstitute(c, n, to, place),
           length = simple(idxMax(c, c.index(0), idxMin(c, c.index(piece), simple(idxSub(c, all, begin)))));
    place.push_back(own);
    UOpRef one = sharedFold(kind, length, chunk, identity, place, [&](UOpRef i, UOpRef bound, ArrayRef<UOpRef> there) {
      return element(simple(idxAdd(c, idxSubstitute(c, begin, place, there), i)), bound, there.drop_back());
    });
    UOpRef known = together < 64 ? simple(idxMin(c, lane, c.index(together - 1))) : lane;
    SmallVector<UOpRef, 4> closed{one}, at{nullptr};
    auto close = [&](UOpRef r, UOpRef index) {
      if (!r->isConst()) closed.push_back(r), at.push_back(index);
    };
    close(turn, simple(idxDiv(c, known, c.index(dealt))));
    close(own, simple(idxMod(c, known, c.index(dealt))));
    for (auto [mine, other] : llvm::zip(place, reader)) close(mine, other);
    at[0] = c.make(Op::Stage, closed);
    UOpRef x = c.make(Op::At, at, {1});
    if (together < 64) x = select(lt(lane, c.index(together)), x, identity);
    return round->isConst() ? x : fold(x, round);
  };
  constexpr int64_t few = 16; // chunks whose results each thread folds by itself: other lanes have the identity
  if (dealsAll && together <= few) {
    UOpRef u = chunks->hi > 1 ? range(c.index(together), RangeKind::Unroll) : c.index(0), x = ofChunks(u, to);
    return u->isConst() ? x : c.make(Op::LaneFold, {x, u}, {int64_t(combineOf(kind))});
  }
  return foldLanes(kind, to, ofChunks);
}

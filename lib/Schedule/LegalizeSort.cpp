//===- LegalizeSort.cpp: sorting as comparisons ----------------------------===//
// Takes:    argsort.
// Gives:    short axes by counting what comes before each element, long ones by Batcher's bitonic network (Sorting
//           networks and their applications, 1968): n log(n)^2 comparisons, each step a map over the axis. Of the
//           first few of a long axis, minima, one after the other, of what comes behind the last; of the first k blocks
//           of k sorted, of which each two leave the lesser k (Shanbhag et al., Efficient top-k query processing on
//           massively parallel hardware, 2018): n log(k)^2.
// Keeps:    stability: an element's index is part of what is compared, so no two are equal and any network gives the
//           one order that there is.
#include "Legalize.h"
#include "Thresholds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using llvm::SmallVector;

/// Integers in the order of N9: -0 < +0, NaN greatest.
static UOpRef sortKey(Builder &b, UOpRef x) {
  if (x->dtype == DType::Bool) return b.cast(x, DType::U8);
  if (!isFloat(x->dtype)) return x;
  unsigned w = bitWidth(x->dtype), m = info(x->dtype).mantissaBits, e = info(x->dtype).exponentBits;
  DType t = w == 16 ? DType::I16 : w == 32 ? DType::I32 : DType::I64;
  UOpRef nan = b.bits(x->dtype, ((1ull << (e + 1)) - 1) << (m - 1));
  UOpRef bits = b.bitcast(b.select(b.bin(Op::Ne, x, x), nan, x), t);
  UOpRef magnitude = b.bits(t, (1ull << (w - 1)) - 1);
  return b.bin(Op::Xor, bits, b.bin(Op::And, b.bin(Op::Shr, bits, b.litInt(t, w - 1)), magnitude));
}

/// By counting, for each element, those that come before it: the square of the axis, two kernels.
static UOpRef sortByRank(Builder &b, UOpRef key, int64_t axis, bool descending) {
  UOpRef n = key->shape[axis];
  // [.., i, k, ..]: does element k come before element i?
  UOpRef mine = repeatAt(b, key, axis + 1, n), other = repeatAt(b, key, axis, n);
  UOpRef i = b.iota(DType::I64, mine->shape, axis), k = b.iota(DType::I64, mine->shape, axis + 1);
  UOpRef before =
      b.bin(Op::Or, descending ? b.lt(mine, other) : b.lt(other, mine), b.bin(Op::And, b.eq(mine, other), b.lt(k, i)));
  UOpRef rank = b.reduce(ReduceKind::Sum, b.cast(before, DType::I64), {axis + 1});
  // [.., place, i, ..]: the element whose rank is the place
  UOpRef ranks = repeatAt(b, rank, axis, n), place = b.iota(DType::I64, ranks->shape, axis),
         from = b.iota(DType::I64, ranks->shape, axis + 1);
  return b.reduce(ReduceKind::Max, b.select(b.eq(ranks, place), from, b.litInt(DType::I64, -1)), {axis + 1});
}

/// x along its last axis of extent 2^n, seen as [.., blocks, 2, distance].
static UOpRef halves(Builder &b, UOpRef x, int64_t distance) {
  auto shape = shapeOf(x);
  int64_t n = *shape.pop_back_val()->constIndex();
  for (int64_t d : {n / (2 * distance), int64_t(2), distance}) shape.push_back(b.idx(d));
  return b.reshape(x, shape);
}

/// One array of keys with their indices, or keys that carry the index in their low bits and no array of indices.
struct Sorted {
  UOpRef key, index;
};

/// Elements at `distance` exchanged where they are out of order; blocks of `run` ascend and descend in turn.
static Sorted exchange(Builder &b, Sorted s, int64_t distance, int64_t run) {
  UOpRef mine = halves(b, s.key, distance);
  auto shape = mine->shape;
  int64_t side = int64_t(mine->rank()) - 2;
  UOpRef other = b.flip(mine, {side});
  // The lesser element goes to side 0 of an ascending block and to side 1 of a descending one.
  UOpRef block = b.iota(DType::I32, shape, side - 1);
  UOpRef turn = b.litInt(DType::I32, llvm::countr_zero(uint64_t(run / (2 * distance))));
  UOpRef descends = b.bin(Op::And, b.bin(Op::Shr, block, turn), b.litInt(DType::I32, 1));
  UOpRef wantsLeast = b.eq(b.iota(DType::I32, shape, side), descends);
  auto back = [&](UOpRef x, UOpRef like) { return b.reshape(x, like->shape); };
  if (!s.index) return {back(b.select(wantsLeast, b.min(mine, other), b.max(mine, other)), s.key), nullptr};
  UOpRef i = halves(b, s.index, distance), k = b.flip(i, {side});
  UOpRef less = b.bin(Op::Or, b.lt(mine, other), b.bin(Op::And, b.eq(mine, other), b.lt(i, k)));
  UOpRef keep = b.eq(less, wantsLeast);
  return {back(b.select(keep, mine, other), s.key), back(b.select(keep, i, k), s.index)};
}

/// Of each two blocks of `length` as many least ones, if one ascends and the other descends: the lesser of each two at
/// one place, which rise and fall once.
static Sorted least(Builder &b, Sorted s, int64_t length) {
  auto lesser = [&](UOpRef x, int64_t side) {
    UOpRef both = halves(b, x, length);
    SmallVector<UOpRef, 6> first(both->rank(), b.idx(0)), shape = shapeOf(both), flat = shapeOf(x);
    shape[both->rank() - 2] = b.idx(1), first[both->rank() - 2] = b.idx(side);
    flat.back() = b.idx(*flat.back()->constIndex() / 2);
    return b.reshape(b.shrink(both, first, shape), flat);
  };
  UOpRef x = lesser(s.key, 0), y = lesser(s.key, 1);
  if (!s.index) return {b.min(x, y), nullptr};
  UOpRef i = lesser(s.index, 0), k = lesser(s.index, 1);
  UOpRef less = b.bin(Op::Or, b.lt(x, y), b.bin(Op::And, b.eq(x, y), b.lt(i, k)));
  return {b.select(less, x, y), b.select(less, i, k)};
}

/// The axis comes last, or goes back to where it was.
static UOpRef withAxisLast(Builder &b, UOpRef x, int64_t axis, bool back = false) {
  SmallVector<int64_t, 6> order, inverse(x->rank());
  for (unsigned a = 0; a < x->rank(); ++a)
    if (a != axis) order.push_back(a);
  order.push_back(axis);
  for (auto [to, from] : llvm::enumerate(order)) inverse[from] = to;
  return b.permute(x, back ? inverse : order);
}

/// What ascends along the last axis in the order asked for.
static Sorted toSort(Builder &b, UOpRef key, int64_t axis, bool descending) {
  UOpRef x = withAxisLast(b, key, axis);
  unsigned last = x->rank() - 1;
  if (descending) x = b.un(Op::Not, x); // reverses the order of integers
  if (bitWidth(x->dtype) == 64) return {x, b.iota(DType::I32, x->shape, last)};
  if (x->dtype == DType::U32) x = b.bitcast(b.bin(Op::Xor, x, b.bits(DType::U32, 1u << 31)), DType::I32);
  UOpRef high = b.bin(Op::Shl, b.cast(x, DType::I64), b.litInt(DType::I64, 32));
  return {b.bin(Op::Or, high, b.iota(DType::I64, x->shape, last)), nullptr};
}

static UOpRef indexOf(Builder &b, UOpRef key) { return b.bin(Op::And, key, b.litInt(DType::I64, INT64_C(0xffffffff))); }

/// As many of an axis as `count`, a constant, or the extent.
static UOpRef sortByNetwork(Builder &b, UOpRef key, int64_t axis, bool descending, UOpRef count) {
  unsigned rank = key->rank();
  Sorted s = toSort(b, key, axis, descending);
  bool wide = s.index;
  auto full = shapeOf(s.key);
  UOpRef n = full.back();
  int64_t size = llvm::bit_ceil(uint64_t(n->hi)), block = llvm::bit_ceil(uint64_t(count->hi));
  // What fills the axis up to a power of two comes last: the greatest key, and an index beyond all others.
  SmallVector<UOpRef, 6> none(rank, b.idx(0)), fill = none;
  fill.back() = idxSub(b.c, b.idx(size), n);
  DType t = s.key->dtype;
  uint64_t greatest = isUnsigned(t) ? ~0ull : uint64_t(INT64_MAX);
  s.key = b.pad(s.key, none, fill, greatest);
  if (wide) s.index = b.pad(s.index, none, fill, INT32_MAX);
  auto merge = [&](int64_t run) {
    for (int64_t distance = run / 2; distance; distance /= 2) s = exchange(b, s, distance, run);
  };
  for (int64_t run = 2; run <= block; run *= 2) merge(run);
  for (; size > block; size /= 2) {
    s = least(b, s, block);
    merge(block);
  }
  UOpRef index = wide ? b.cast(s.index, DType::I64) : indexOf(b, s.key);
  full.back() = count;
  return withAxisLast(b, b.shrink(index, none, full), axis, /*back=*/true);
}

/// The first few as minima.
static UOpRef firstByMinima(Builder &b, UOpRef key, int64_t axis, bool descending, int64_t count) {
  Sorted s = toSort(b, key, axis, descending);
  int64_t last = int64_t(s.key->rank()) - 1;
  auto one = shapeOf(s.key);
  one[last] = b.idx(1);
  SmallVector<UOpRef, 16> found;
  for (UOpRef left = s.key; int64_t(found.size()) < count;) {
    found.push_back(b.reshape(b.reduce(ReduceKind::Min, left, {last}), one));
    UOpRef behind = b.lt(b.expand(found.back(), s.key->shape), s.key);
    left = b.select(behind, s.key, b.litInt(DType::I64, INT64_MAX));
  }
  return withAxisLast(b, indexOf(b, count == 1 ? found[0] : b.concat(found, last)), axis, /*back=*/true);
}

static constexpr int64_t longestAxis = INT32_MAX / 2;

/// Whether a network for the first `count` leaves out what one for all does.
static bool savesSteps(int64_t extent, int64_t count) {
  return llvm::bit_ceil(uint64_t(count)) < llvm::bit_ceil(uint64_t(extent));
}

/// Whether minima take less time than a network: one reads the axis, a step reads and writes it, which is more where
/// the axis is long.
static bool isFew(DType t, int64_t extent, int64_t count) {
  auto sum = [](int64_t n) { return n * (n + 1) / 2; };
  int64_t levels = llvm::Log2_64_Ceil(count), steps = sum(levels) + levels + 1; // of blocks, of halves together
  int64_t few = extent >= threshold::minimaLongAxis
                    ? threshold::minimaOfStep * steps
                    : std::min<int64_t>(sum(llvm::Log2_64_Ceil(extent)), threshold::minimaOfShort);
  return bitWidth(t) <= 32 && count <= few;
}

int64_t astra::firstOfSortRead(UOpRef n) {
  if (n->op != Op::Shrink || n->src[0]->op != Op::ArgSort) return 0;
  UOpRef sort = n->src[0], x = sort->src[0];
  int64_t axis = sort->ints[0], extent = x->shape[axis]->hi;
  auto from = n->indices()[axis]->constIndex(), count = n->indices()[n->rank() + axis]->constIndex();
  if (!from || !count || *count < 1 || extent <= threshold::sortShort || extent > longestAxis) return 0;
  int64_t first = *from + *count;
  return savesSteps(extent, first) || isFew(x->dtype, extent, first) ? first : 0;
}

bool astra::readsByMinima(UOpRef n) {
  int64_t count = firstOfSortRead(n);
  return count && isFew(n->src[0]->src[0]->dtype, n->src[0]->src[0]->shape[n->src[0]->ints[0]]->hi, count);
}

UOpRef astra::firstOfSort(Builder &b, UOpRef sort, UOpRef x, int64_t count) {
  UOpRef key = sortKey(b, x);
  int64_t axis = sort->ints[0];
  return isFew(x->dtype, x->shape[axis]->hi, count) ? firstByMinima(b, key, axis, sort->ints[1], count)
                                                    : sortByNetwork(b, key, axis, sort->ints[1], b.idx(count));
}

UOpRef astra::argSortByRank(Builder &b, UOpRef r) {
  return sortByRank(b, sortKey(b, r->src[0]), r->ints[0], r->ints[1]);
}

UOpRef astra::legalizeArgSort(Builder &b, UOpRef r) {
  UOpRef key = sortKey(b, r->src[0]);
  int64_t axis = r->ints[0], most = key->shape[axis]->hi;
  if (most <= threshold::sortShort || most > longestAxis) return sortByRank(b, key, axis, r->ints[1]);
  return sortByNetwork(b, key, axis, r->ints[1], key->shape[axis]);
}

//===- LegalizeIndexing.cpp: searching ops as folds ------------------------===//
// Takes:    argreduce, scatter, compact and cumulate.
// Gives:    the same values by comparisons, binary searches and exact folds, or by chains where an order is stamped.
// Keeps:    bits. A scatter of a few sources costs destinations times sources this way; one of more stays, for a kernel
//           that goes through them in order (Scheduler::scatter).
#include "Legalize.h"
#include "Thresholds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

using namespace astra;
using llvm::SmallVector;

UOpRef astra::repeatAt(Builder &b, UOpRef x, unsigned axis, UOpRef n) {
  auto one = shapeOf(x);
  one.insert(one.begin() + axis, b.idx(1));
  auto full = one;
  full[axis] = n;
  return b.expand(b.reshape(x, one), full);
}

/// The narrowest signed type, no narrower than an element, that counts an axis and has a number left for "none": places
/// beside elements of as many bits fill the same vectors.
static DType placeType(UOpRef x, int64_t axis) {
  unsigned element = bitWidth(x->dtype);
  int64_t most = x->shape[axis]->hi;
  if (element <= 8 && most <= INT8_MAX) return DType::I8;
  if (element <= 16 && most <= INT16_MAX) return DType::I16;
  return most <= INT32_MAX ? DType::I32 : DType::I64;
}

UOpRef astra::legalizeArgReduce(Builder &b, UOpRef r) {
  UOpRef x = r->src[0];
  int64_t axis = r->ints[1];
  UOpRef extreme =
      repeatAt(b, b.reduce(r->ints[0] ? ReduceKind::Min : ReduceKind::Max, x, {axis}), axis, x->shape[axis]);
  UOpRef match = b.eq(x, extreme);
  if (isFloat(x->dtype)) match = b.bin(Op::Or, match, b.bin(Op::Ne, x, x)); // a NaN is the extreme, and equals nothing
  DType t = placeType(x, axis);
  UOpRef none = b.litInt(t, int64_t((uint64_t(1) << (bitWidth(t) - 1)) - 1));
  UOpRef least = b.reduce(ReduceKind::Min, b.select(match, b.iota(t, x->shape, axis), none), {axis});
  if (x->shape[axis]->lo <= 0) least = b.select(b.eq(least, none), b.litInt(t, 0), least);
  return b.cast(least, DType::I64);
}

UOpRef astra::legalizeScatter(Builder &b, UOpRef r) {
  UOpRef x = r->src[0], index = r->src[1], update = r->src[2];
  int64_t axis = r->ints[0];
  ScatterKind kind = ScatterKind(r->ints[1]);
  if (index->shape[axis]->hi > threshold::scatterFew) return r;
  UOpRef n = x->shape[axis];
  // [.., destination, source, ..]
  UOpRef to = repeatAt(b, index, axis, n), match = b.eq(to, b.iota(index->dtype, to->shape, axis));
  if (kind == ScatterKind::Set) {
    UOpRef source = b.iota(DType::I64, to->shape, axis + 1);
    UOpRef last = b.reduce(ReduceKind::Max, b.select(match, source, b.litInt(DType::I64, -1)), {axis + 1});
    return b.select(b.lt(last, b.litInt(DType::I64, 0)), x, b.pick(update, last, axis));
  }
  static const ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max,
                                     ReduceKind::Min};
  ReduceKind fold = kinds[int(kind)];
  // The destination's element first, then the updates in ascending source index: one chain.
  UOpRef value = b.select(match, repeatAt(b, update, axis, n), b.bits(x->dtype, reduceIdentity(fold, x->dtype)));
  SmallVector<UOpRef, 6> lo(value->rank(), b.idx(0)), hi = lo;
  lo[axis + 1] = b.idx(1);
  UOpRef later = b.pad(value, lo, hi);
  UOpRef first = b.eq(b.iota(DType::I64, later->shape, axis + 1), b.litInt(DType::I64, 0));
  return b.reduce(fold, b.select(first, repeatAt(b, x, axis + 1, later->shape[axis + 1]), later), {axis + 1},
                  /*chain=*/true);
}

UOpRef astra::legalizeCompact(Builder &b, UOpRef r) {
  UOpRef x = r->src[0], mask = r->src[1], k = r->src[2];
  // Row number p of the result is the first row up to which p + 1 are taken: a binary search in the running count.
  UOpRef one = b.litInt(DType::I64, 1);
  UOpRef count = legalizeCumulate(b, b.cumulate(CumulateKind::Sum, b.cast(mask, DType::I64), 0));
  UOpRef place = b.iota(DType::I64, {k}, 0), below = b.splat(b.litInt(DType::I64, 0), {k});
  for (int64_t step = int64_t(llvm::bit_floor(uint64_t(std::max<int64_t>(mask->shape[0]->hi, 1)))); step; step /= 2) {
    UOpRef next = b.add(below, b.litInt(DType::I64, step)), last = b.sub(next, one);
    UOpRef inside = b.lt(last, b.fromIndex(mask->shape[0], DType::I64));
    below = b.select(b.bin(Op::And, inside, b.bin(Op::Le, b.gather(count, last, 0), place)), next, below);
  }
  return b.gather(x, below, 0);
}

/// a[i] = a[i-s] op a[i] for s = 1, 2, 4, 8 at all places that are s or more into their block of 16 along the last
/// axis.
static UOpRef runningInBlocks(Builder &b, UOpRef a, Op op) {
  size_t axis = a->rank() - 1;
  int64_t n = a->shape[axis]->hi, last = 15;
  DType t = n <= INT32_MAX ? DType::I32 : DType::I64;
  UOpRef position = b.bin(Op::And, b.iota(t, a->shape, axis), b.litInt(t, last));
  SmallVector<UOpRef, 6> zero(a->rank(), b.idx(0)), size = shapeOf(a);
  for (int64_t s = 1; s <= std::min(last, n - 1); s *= 2) {
    auto lo = zero;
    lo[axis] = b.idx(s);
    UOpRef shifted = b.shrink(b.pad(a, lo, zero), zero, size);
    a = b.select(b.lt(position, b.litInt(t, s)), a, b.bin(op, shifted, a));
  }
  return a;
}

/// Along the last axis by blocks of 16, whose order N4 has for floats, and any will do for what is exact.
UOpRef astra::legalizeCumulate(Builder &b, UOpRef r) {
  UOpRef x = r->src[0];
  int64_t axis = r->ints[1], last = int64_t(x->rank()) - 1;
  CumulateKind kind = CumulateKind(r->ints[0]);
  static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min};
  Op op = ops[int(kind)];
  if (axis != last) return r;
  UOpRef n = x->shape[axis], a = runningInBlocks(b, x, op), c16 = b.idx(16), blocks = idxDiv(b.c, n, c16);
  if (n->hi <= 16) return a;
  // The chain of the blocks' last outputs, each the block's own plus the one before.
  SmallVector<UOpRef, 6> zero(x->rank() + 1, b.idx(0)), whole = shapeOf(x), column = whole, lo = zero;
  whole[last] = idxMul(b.c, blocks, c16);
  column[last] = blocks;
  auto inBlocks = column, ends = column;
  inBlocks.push_back(c16), ends.push_back(b.idx(1));
  lo.back() = b.idx(15);
  UOpRef first = b.shrink(a, llvm::ArrayRef(zero).drop_back(), whole);
  UOpRef chain = b.cumulate(kind, b.shrink(b.reshape(first, inBlocks), lo, ends), last);
  // Beside each element what came before its block; beside the first block nothing.
  lo = zero;
  lo[last] = b.idx(1);
  auto all = shapeOf(x);
  inBlocks[last] = idxAdd(b.c, blocks, b.idx(1));
  all[last] = idxMul(b.c, inBlocks[last], c16);
  UOpRef before = b.reshape(b.expand(b.pad(chain, lo, zero), inBlocks), all);
  before = b.shrink(before, llvm::ArrayRef(zero).drop_back(), shapeOf(x));
  DType t = n->hi <= INT32_MAX ? DType::I32 : DType::I64;
  return b.select(b.lt(b.iota(t, x->shape, axis), b.litInt(t, 16)), a, b.bin(op, a, before));
}

//===- LegalizeIndexing.cpp: searching ops as folds ------------------------===//
// Takes:    argreduce, argsort, scatter, compact and cumulate.
// Gives:    the same values by comparisons and exact folds, or by chains where an order is stamped.
// Keeps:    bits. Sorting and searching cost the square of the axis this way: correct on every target, to be replaced
// by kernels of their own where speed matters.
#include "Legalize.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

static SmallVector<UOpRef, 6> shapeOf(UOpRef x) { return {x->shape.begin(), x->shape.end()}; }

/// x with a new axis of extent n at `axis`, every element repeated along it.
static UOpRef repeatAt(Builder &b, UOpRef x, unsigned axis, UOpRef n) {
  auto one = shapeOf(x);
  one.insert(one.begin() + axis, b.idx(1));
  auto full = one;
  full[axis] = n;
  return b.expand(b.reshape(x, one), full);
}

UOpRef astra::legalizeArgReduce(Builder &b, UOpRef r) {
  UOpRef x = r->src[0];
  int64_t axis = r->ints[1];
  UOpRef extreme =
      repeatAt(b, b.reduce(r->ints[0] ? ReduceKind::Min : ReduceKind::Max, x, {axis}), axis, x->shape[axis]);
  UOpRef match = b.eq(x, extreme);
  if (isFloat(x->dtype))
    match = b.bin(Op::Or, match, b.bin(Op::And, b.bin(Op::Ne, x, x), b.bin(Op::Ne, extreme, extreme)));
  UOpRef none = b.bits(DType::I64, INT64_MAX), at = b.select(match, b.iota(DType::I64, x->shape, axis), none);
  UOpRef least = b.reduce(ReduceKind::Min, at, {axis});
  return x->shape[axis]->lo > 0 ? least : b.select(b.eq(least, none), b.litInt(DType::I64, 0), least);
}

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

UOpRef astra::legalizeArgSort(Builder &b, UOpRef r) {
  UOpRef key = sortKey(b, r->src[0]);
  int64_t axis = r->ints[0];
  bool descending = r->ints[1];
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

UOpRef astra::legalizeScatter(Builder &b, UOpRef r) {
  UOpRef x = r->src[0], index = r->src[1], update = r->src[2];
  int64_t axis = r->ints[0];
  ScatterKind kind = ScatterKind(r->ints[1]);
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
  UOpRef place =
      b.sub(legalizeCumulate(b, b.cumulate(CumulateKind::Sum, b.cast(mask, DType::I64), 0)), b.litInt(DType::I64, 1));
  // [place, row]: the row that goes there
  UOpRef rows = repeatAt(b, place, 0, k),
         taken = b.bin(Op::And, repeatAt(b, mask, 0, k), b.eq(rows, b.iota(DType::I64, rows->shape, 0)));
  UOpRef from =
      b.reduce(ReduceKind::Max, b.select(taken, b.iota(DType::I64, rows->shape, 1), b.litInt(DType::I64, -1)), {1});
  return b.gather(x, from, 0);
}

UOpRef astra::legalizeCumulate(Builder &b, UOpRef r) {
  UOpRef x = r->src[0];
  int64_t axis = r->ints[1], last = int64_t(x->rank()) - 1;
  CumulateKind kind = CumulateKind(r->ints[0]);
  if (axis != last || !isFloat(x->dtype) || (kind != CumulateKind::Sum && kind != CumulateKind::Prod)) return r;
  Op op = kind == CumulateKind::Sum ? Op::Add : Op::Mul;
  UOpRef n = x->shape[last], i = b.iota(DType::I64, x->shape, last), c16 = b.litInt(DType::I64, 16);
  // In a block of 16, all at once: a[i] = a[i-s] + a[i].
  UOpRef inBlock = b.bin(Op::Mod, i, c16), a = x;
  SmallVector<UOpRef, 6> zero(x->rank(), b.idx(0)), size = shapeOf(x);
  for (int64_t s : {1, 2, 4, 8}) {
    auto lo = zero;
    lo[last] = b.idx(s);
    UOpRef shifted = b.shrink(b.pad(a, lo, zero), zero, size);
    a = b.select(b.lt(inBlock, b.litInt(DType::I64, s)), a, b.bin(op, shifted, a));
  }
  // The chain of the blocks' last outputs, each the block's own plus the one before.
  UOpRef blocks = idxDiv(b.c, n, b.idx(16)), number = b.iota(DType::I64, {blocks}, 0);
  UOpRef ends = b.gather(a, b.add(b.mul(number, c16), b.litInt(DType::I64, 15)), last);
  auto column = shapeOf(ends), row = column;
  column.push_back(b.idx(1));
  UOpRef chain = b.reshape(b.cumulate(kind, b.reshape(ends, column), last), row);
  UOpRef flat = b.iota(DType::I64, {n}, 0), block = b.bin(Op::FloorDiv, flat, c16);
  UOpRef before = b.gather(chain, b.sub(block, b.litInt(DType::I64, 1)), last);
  return b.select(b.lt(i, c16), a, b.bin(op, a, before));
}

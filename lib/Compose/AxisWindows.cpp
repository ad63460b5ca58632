//===- AxisWindows.cpp: windows over any axes ------------------------------===//
// Takes:    operands and windows that may be wrong in every way.
// Gives:    what AxisWindows.h says.
#include "astra/Compose/AxisWindows.h"
#include "astra/Compose/Movement.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace astra::compose {

static bool check(Composer &b, UOpRef x, const AxisWindows &w) {
  if (!x) return false;
  constexpr int64_t most = 1 << 24;
  for (const Ints *list : {&w.size, &w.stride, &w.between, &w.dilation, &w.before, &w.after})
    if (list->size() != x->rank()) b.fail("the windows do not fit rank " + llvm::Twine(x->rank()));
  for (const Ints *list : {&w.size, &w.stride, &w.dilation})
    for (int64_t v : *list)
      if (v < 1 || v > most)
        b.fail("extents, strides and dilations of windows must be in 1..2^24, found " + llvm::Twine(v));
  for (const Ints *list : {&w.before, &w.after})
    for (int64_t v : *list)
      if (v < -most || v > most) b.fail("pads must be in -2^24..2^24, found " + llvm::Twine(v));
  return !b.failed();
}

static Dims indices(Composer &b, llvm::ArrayRef<int64_t> values) {
  Dims dims;
  for (int64_t v : values) dims.push_back(b.idx(v));
  return dims;
}

/// x with elements of `fill` around and between its own.
static UOpRef filled(Composer &b, UOpRef x, const AxisWindows &w, UOpRef fill) {
  bool literal = fill && fill->isConst() && !isComplex(x->dtype);
  return padAround(b, padBetween(b, x, w.between, fill), indices(b, w.before), indices(b, w.after), PadMode::Constant,
                   literal ? uint64_t(fill->ints[0]) : 0, literal ? nullptr : fill);
}

Seen seenThrough(Composer &b, UOpRef x, const AxisWindows &w, UOpRef fill) {
  if (!check(b, x, w) || !fill) return {};
  if (fill->rank() || fill->dtype != x->dtype) {
    b.fail("what pads are must be a scalar of the operand's type");
    return {};
  }
  unsigned rank = x->rank(), windows = 0;
  x = filled(b, x, w, fill);
  if (!x) return {};
  bool none = false;
  Dims empty(x->shape.begin(), x->shape.end()), sizes;
  for (unsigned axis = 0; axis < rank; ++axis) {
    UOpRef room = idxSub(b.c, x->shape[axis], b.idx((w.size[axis] - 1) * w.dilation[axis] + 1));
    if (room->hi < 0) none = true;
    empty[axis] = room->hi < 0 ? b.idx(0) : idxAdd(b.c, idxDiv(b.c, room, b.idx(w.stride[axis])), b.idx(1));
    if (w.size[axis] > 1) sizes.push_back(b.idx(w.size[axis]));
    if (room->lo < 0 && room->hi >= 0 && !b.failed())
      b.unsupported("extent " + dimsText(x->shape[axis]) + " may be smaller than its window" + b.hints.bound(room, 0));
  }
  if (b.failed()) return {};
  if (none) { // no window fits
    empty.append(sizes);
    return {b.broadcastTo(fill, empty), unsigned(sizes.size())};
  }
  for (unsigned axis = 0; x && axis < rank; ++axis) {
    if (w.size[axis] == 1 && w.stride[axis] == 1) continue;
    x = b.make(Op::Window, {x}, {axis, w.size[axis], w.stride[axis], w.dilation[axis]});
    if (w.size[axis] == 1)
      x = x ? b.squeeze(x, {int64_t(x->rank()) - 1}) : nullptr;
    else
      ++windows;
  }
  return {x, windows};
}

int64_t runningAxis(Composer &b, UOpRef x, llvm::ArrayRef<UOpRef> sizes, llvm::ArrayRef<UOpRef> before,
                    llvm::ArrayRef<UOpRef> after) {
  if (!x || sizes.size() != x->rank() || before.size() != x->rank() || after.size() != x->rank()) return 0;
  int64_t found = 0;
  UOpRef zero = b.idx(0), one = b.idx(1);
  for (unsigned axis = 0; axis < x->rank(); ++axis) {
    if (sizes[axis] == one && before[axis] == zero && after[axis] == zero) continue;
    if (found || x->shape[axis] != sizes[axis]) return 0;
    UOpRef rest = idxSub(b.c, sizes[axis], one);
    bool upTo = before[axis] == rest && after[axis] == zero, from = before[axis] == zero && after[axis] == rest;
    if (!upTo && !from) return 0;
    found = upTo ? int64_t(axis) + 1 : -int64_t(axis) - 1;
  }
  return found;
}

/// Pads never win: they are the least of what can be, and a NaN or an equal element of x that stands first wins.
UOpRef scatterToExtremes(Composer &b, UOpRef x, UOpRef source, UOpRef init, const AxisWindows &w, bool greatest) {
  if (!check(b, x, w) || !source || !init) return nullptr;
  if (source->dtype != x->dtype || init->dtype != x->dtype || init->rank())
    return b.fail("operand, source and initial value must be of one type, the last a scalar");
  if (llvm::any_of(w.between, [](int64_t v) { return v != 0; }) ||
      llvm::any_of(w.dilation, [](int64_t v) { return v != 1; }))
    return b.unsupported("dilations are not supported");
  DType t = x->dtype;
  unsigned rank = x->rank(), bits = bitWidth(t);
  UOpRef fill = isFloat(t)    ? b.literal(x, greatest ? -std::numeric_limits<double>::infinity()
                                                      : std::numeric_limits<double>::infinity())
                : isSigned(t) ? b.b.bits(t, greatest ? uint64_t(1) << (bits - 1) : (uint64_t(1) << (bits - 1)) - 1)
                              : b.b.bits(t, greatest ? 0 : ~uint64_t(0) >> (64 - bits));
  Seen seen = seenThrough(b, x, w, fill);
  if (!seen.value) return nullptr;
  Dims places(seen.value->shape.begin(), seen.value->shape.begin() + rank), flat = places;
  if (places.size() != source->rank()) return b.fail("the source's rank differs from the operand's");
  for (unsigned i = 0; i < rank; ++i) b.requireEqual(places[i], source->shape[i], "the source and the windows' places");
  flat.push_back(idxProduct(b.c, seen.value->shape.drop_front(rank)));
  UOpRef tap = b.make(Op::ArgReduce, {b.reshape(seen.value, flat)}, {greatest ? 0 : 1, int64_t(rank)});
  UOpRef index = nullptr, inside = nullptr;
  llvm::SmallVector<UOpRef, 4> at(rank);
  for (unsigned i = rank; i-- > 0;) {
    UOpRef k = nullptr;
    if (w.size[i] > 1) {
      UOpRef size = b.b.litInt(DType::I64, w.size[i]);
      k = b.bin(Op::Mod, tap, size);
      tap = b.bin(Op::FloorDiv, tap, size);
    }
    Dims dims(rank, b.idx(1));
    dims[i] = places[i];
    UOpRef place = b.reshape(b.iota(DType::I64, {places[i]}, 0), dims);
    at[i] = b.bin(Op::Add, b.bin(Op::Mul, place, double(w.stride[i])), double(-w.before[i]));
    if (k) at[i] = b.bin(Op::Add, at[i], k);
  }
  for (unsigned i = 0; i < rank; ++i) {
    UOpRef extent = b.scalar(x->shape[i], DType::I64);
    if (w.before[i] || w.after[i]) {
      UOpRef ok = b.bin(Op::And, b.bin(Op::Le, b.b.litInt(DType::I64, 0), at[i]), b.bin(Op::Lt, at[i], extent));
      inside = inside ? b.bin(Op::And, inside, ok) : ok;
    }
    index = index ? b.bin(Op::Add, b.bin(Op::Mul, index, extent), at[i]) : at[i];
  }
  if (inside) index = b.select(inside, index, b.b.litInt(DType::I64, -1));
  UOpRef count = idxProduct(b.c, places), size = idxProduct(b.c, x->shape);
  UOpRef done = b.make(
      Op::Scatter,
      {b.broadcastTo(init, {size}), b.reshape(b.broadcastTo(index, places), {count}), b.reshape(source, {count})},
      {0, int64_t(ScatterKind::Add)});
  return b.reshape(done, x->shape);
}

} // namespace astra::compose

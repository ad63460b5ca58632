//===- Pooling.cpp: pools over windows and over whole images ---------------===//
// Takes:    images and options that may be wrong in every way.
// Gives:    windows of the padded input, folded in a plain chain, row-major (N4).
// Keeps:    pads out of what a pool gives: they are the identity of the fold, unless the options count them.
#include "astra/Compose/Pooling.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

namespace astra::compose {

namespace {

/// Where windows stand, and what they need beyond the padded input.
struct Places {
  Dims extra; // per spatial axis: how far windows reach past the padded input
  Dims count; // of windows; the padded input may have room for more
};

/// Room for one more, partial window where ceil_mode asks for it. A window that begins in the padding at the end is
/// left out.
Places placesOf(Composer &b, UOpRef x, const Window &w, bool ceil) {
  Places p;
  for (unsigned i = 0; !b.failed() && i < w.spatial; ++i) {
    UOpRef extent = x->shape[2 + i], stride = b.idx(w.strides[i]), zero = b.idx(0);
    if (w.before[i] >= w.reach(i) || w.after[i] >= w.reach(i))
      b.fail("pads of " + llvm::Twine(std::max(w.before[i], w.after[i])) + " are not smaller than the window of " +
             llvm::Twine(w.reach(i)));
    UOpRef room = idxAdd(b.c, extent, b.idx(w.before[i] + w.after[i] - w.reach(i))), extra = zero;
    UOpRef count = places(b, w, extent, i, ceil);
    if (b.failed()) break;
    bool partial = ceil && w.strides[i] > 1;
    if (room->lo < 0 && !room->constIndex()) { // whole strides more; the windows that they add are cut away
      extra = idxMul(b.c, idxCeilDiv(b.c, b.idx(-room->lo), stride), stride);
      if (partial) extra = idxAdd(b.c, extra, idxSub(b.c, stride, b.idx(1)));
      UOpRef all = idxAdd(b.c, idxDiv(b.c, idxAdd(b.c, room, extra), stride), b.idx(1));
      if (idxSub(b.c, all, count)->lo < 0)
        b.unsupported("extent " + dimsText(extent) + " of a spatial axis may be smaller than the window of " +
                      llvm::Twine(w.reach(i)) + b.hints.bound(room, 0));
    } else if (partial || room->lo < 0) {
      UOpRef last = idxSub(b.c, count, b.idx(1));
      if (room->lo < 0) last = idxMax(b.c, last, zero);
      extra = idxMax(b.c, zero, idxSub(b.c, idxMul(b.c, last, stride), room));
    }
    p.extra.push_back(extra);
    p.count.push_back(count);
  }
  return p;
}

/// The windows that there are, of [leading..., places..., kernel...].
UOpRef counted(Composer &b, UOpRef x, llvm::ArrayRef<UOpRef> count, unsigned leading) {
  if (!x) return nullptr;
  Dims begin(x->rank(), b.idx(0)), size(x->shape.begin(), x->shape.end());
  for (size_t i = 0; i < count.size(); ++i) size[leading + i] = count[i];
  return b.shrink(x, begin, size);
}

/// x padded on its last `spatial` axes and seen through the window: [leading..., places..., kernel...].
UOpRef windows(Composer &b, UOpRef x, const Window &w, const Places &p, llvm::ArrayRef<UOpRef> before,
               llvm::ArrayRef<UOpRef> after, uint64_t bits, unsigned leading) {
  Dims lo(leading, b.idx(0)), hi(leading, b.idx(0));
  for (unsigned i = 0; i < w.spatial; ++i) {
    lo.push_back(before[i]);
    hi.push_back(after[i]);
  }
  x = b.pad(x, lo, hi, bits);
  for (unsigned i = 0; i < w.spatial; ++i)
    x = b.make(Op::Window, {x}, {leading + i, w.kernel[i], w.strides[i], w.dilations[i]});
  return counted(b, x, p.count, leading);
}

/// The window's axes, the last ones, folded away in plain chain order.
UOpRef foldWindow(Composer &b, ReduceKind kind, UOpRef x, unsigned spatial) {
  if (!x) return nullptr;
  Ints axes;
  for (unsigned axis = x->rank() - spatial; axis < x->rank(); ++axis) axes.push_back(axis);
  UOpRef folded = b.reduce(kind, x, axes, /*chain=*/true);
  return folded ? b.squeeze(folded, axes) : nullptr;
}

Dims indices(Composer &b, llvm::ArrayRef<int64_t> values) {
  Dims dims;
  for (int64_t v : values) dims.push_back(b.idx(v));
  return dims;
}

/// w.after with what the last window needs beyond.
Dims afterWith(Composer &b, const Window &w, llvm::ArrayRef<UOpRef> extra) {
  Dims result;
  for (unsigned i = 0; i < w.spatial; ++i) result.push_back(idxAdd(b.c, b.idx(w.after[i]), extra[i]));
  return result;
}

/// The bits of the least value of a dtype, which the pads of a max pool hold.
uint64_t leastBits(Composer &b, DType t) {
  if (isFloat(t)) return uint64_t(b.b.lit(t, -std::numeric_limits<double>::infinity())->ints[0]);
  return isSigned(t) ? uint64_t(1) << (bitWidth(t) - 1) : 0;
}

/// How many pads are before spatial axis i.
UOpRef padsBefore(Composer &b, const Window &w, unsigned i) {
  for (const Window::Same &s : w.same)
    if (s.axis == i) return s.before;
  return b.idx(w.before[i]);
}

/// Where the first maximum of each window stands in x [N, C, spatial...], row-major; with the spatial axes in reverse
/// order if columnMajor. A window of nothing but pads and -inf names the element beside the pads.
UOpRef indicesOfMaxima(Composer &b, UOpRef x, UOpRef seen, const Window &w, bool columnMajor) {
  if (!seen || b.failed()) return nullptr;
  Dims flat(seen->shape.begin(), seen->shape.end() - w.spatial);
  int64_t rank = flat.size();
  flat.push_back(idxProduct(b.c, seen->shape.take_back(w.spatial)));
  UOpRef tap = b.make(Op::ArgReduce, {b.reshape(seen, flat)}, {0, rank}); // number of the maximum in its window
  if (!tap) return nullptr;
  flat.pop_back();
  auto ramp = [&](unsigned axis) {
    Dims dims(rank, b.idx(1));
    dims[axis] = flat[axis];
    return b.reshape(b.iota(DType::I64, {flat[axis]}, 0), dims);
  };
  UOpRef index = b.bin(Op::Add, b.bin(Op::Mul, ramp(0), b.scalar(x->shape[1], DType::I64)), ramp(1));
  llvm::SmallVector<UOpRef, 3> at(w.spatial);
  for (unsigned i = w.spatial; i-- > 0;) {
    UOpRef size = b.b.litInt(DType::I64, w.kernel[i]), k = b.bin(Op::Mod, tap, size);
    tap = b.bin(Op::FloorDiv, tap, size);
    at[i] =
        b.bin(Op::Add, b.bin(Op::Mul, ramp(2 + i), double(w.strides[i])), b.bin(Op::Mul, k, double(w.dilations[i])));
    at[i] = b.bin(Op::Sub, at[i], b.scalar(padsBefore(b, w, i), DType::I64));
    UOpRef last = b.scalar(idxSub(b.c, x->shape[2 + i], b.idx(1)), DType::I64);
    at[i] = b.bin(Op::Max, b.bin(Op::Min, at[i], last), 0.0);
  }
  for (unsigned j = 0; j < w.spatial; ++j) {
    unsigned i = columnMajor ? w.spatial - 1 - j : j;
    index = b.bin(Op::Add, b.bin(Op::Mul, index, b.scalar(x->shape[2 + i], DType::I64)), at[i]);
  }
  return index;
}

/// What a max pool folds, [N, C, places..., kernel...], and the window.
std::pair<UOpRef, Window> maxima(Composer &b, UOpRef x, const PoolOptions &options) {
  if (!b.requireRank(x, 3)) return {};
  Window w = windowOver(b, x, options.window);
  if (b.failed()) return {};
  uint64_t least = leastBits(b, x->dtype);
  UOpRef fitted = withSamePads(b, x, w, least);
  if (!fitted) return {};
  Places p = placesOf(b, fitted, w, options.ceil);
  if (b.failed()) return {};
  return {windows(b, fitted, w, p, indices(b, w.before), afterWith(b, w, p.extra), least, 2), w};
}

/// x^p of magnitudes, and its inverse.
UOpRef powerOf(Composer &b, UOpRef x, double p) {
  UOpRef magnitude = b.un(Op::Abs, x);
  return p == 1 ? magnitude : p == 2 ? b.bin(Op::Mul, x, x) : b.bin(Op::Pow, magnitude, p);
}
UOpRef rootOf(Composer &b, UOpRef x, double p) {
  return p == 1 ? x : p == 2 ? rootOfSquares(b, x) : b.bin(Op::Pow, x, 1 / p);
}

void requireP(Composer &b, double p) {
  if (!(p >= 1 && std::isfinite(p))) b.fail(b.hints.option("p") + " is " + std::to_string(p) + ", expected 1 or more");
}

} // namespace

UOpRef maxPool(Composer &b, UOpRef x, const PoolOptions &options) {
  auto [seen, w] = maxima(b, x, options);
  return foldWindow(b, ReduceKind::Max, seen, w.spatial);
}

MaxPoolResult maxPoolWithIndices(Composer &b, UOpRef x, const PoolOptions &options, bool columnMajor) {
  auto [seen, w] = maxima(b, x, options);
  if (!seen) return {};
  UOpRef values = foldWindow(b, ReduceKind::Max, seen, w.spatial);
  return {values, indicesOfMaxima(b, x, seen, w, columnMajor)};
}

UOpRef unpool(Composer &b, UOpRef given, UOpRef index, llvm::ArrayRef<UOpRef> image, bool adds) {
  if (!b.requireRank(given, image.size()) || !index) return nullptr;
  if (index->shape != given->shape)
    b.fail("the indices are " + dimsText(index->shape) + ", the input " + dimsText(given->shape));
  for (UOpRef extent : image) b.requireLeast(extent, 0, "the result's extent", "negative");
  if (b.failed()) return nullptr;
  UOpRef x = adds ? b.widen(given) : given;
  llvm::ArrayRef<UOpRef> before = x->shape.drop_back(image.size());
  UOpRef channels = idxProduct(b.c, before), count = idxProduct(b.c, x->shape.take_back(image.size()));
  UOpRef zeros = b.broadcastTo(b.make(Op::Const, {}, {0}, x->dtype), {channels, idxProduct(b.c, image)});
  UOpRef at = b.reshape(b.cast(index, DType::I64), {channels, count});
  UOpRef y = b.make(Op::Scatter, {zeros, at, b.reshape(x, {channels, count})},
                    {1, int64_t(adds ? ScatterKind::Add : ScatterKind::Set)});
  Dims full(before.begin(), before.end());
  full.append(image.begin(), image.end());
  return b.cast(b.reshape(y, full), given->dtype);
}

/// The indices, which a max pool gave, stay within their channel.
UOpRef maxUnpool(Composer &b, UOpRef x, UOpRef index, llvm::ArrayRef<UOpRef> wanted, const WindowOptions &options) {
  if (!b.requireRank(x, 3) || !index) return nullptr;
  Window w = windowOver(b, x, options);
  requireFixedPads(b, w);
  if (index->shape != x->shape)
    b.fail("the indices are " + dimsText(index->shape) + ", the input " + dimsText(x->shape));
  if (b.failed()) return nullptr;
  Dims full = {x->shape[0], x->shape[1]}, zeros(x->rank(), b.idx(0));
  for (unsigned i = 0; i < w.spatial; ++i)
    full.push_back(idxAdd(b.c, idxMul(b.c, idxSub(b.c, x->shape[2 + i], b.idx(1)), b.idx(w.strides[i])),
                          b.idx(w.kernel[i] - w.before[i] - w.after[i])));
  for (UOpRef extent : full) b.requireLeast(extent, 0, "the result's extent", "negative");
  if (b.failed()) return nullptr;
  UOpRef size = idxProduct(b.c, llvm::ArrayRef<UOpRef>(full).drop_front(2));
  UOpRef channels = idxMul(b.c, full[0], full[1]);
  UOpRef own = b.bin(Op::Mul, b.iota(DType::I64, {channels}, 0), b.scalar(size, DType::I64));
  Dims each(x->rank(), b.idx(1));
  each[0] = full[0], each[1] = full[1];
  UOpRef at = b.bin(Op::Sub, b.cast(index, DType::I64), b.reshape(own, each));
  UOpRef y = unpool(b, x, at, llvm::ArrayRef<UOpRef>(full).drop_front(2), false);
  if (wanted.empty()) return y;
  Dims after;
  if (b.failed() || !y) return nullptr;
  if (wanted.size() != full.size())
    b.fail("the output's shape " + dimsText(wanted) + " does not fit " + dimsText(full));
  for (size_t i = 0; i < full.size() && !b.failed(); ++i) {
    after.push_back(idxSub(b.c, wanted[i], full[i]));
    if (after[i]->lo < 0) b.fail("the output's shape " + dimsText(wanted) + " is smaller than " + dimsText(full));
  }
  return b.failed() ? nullptr : b.pad(y, zeros, after, 0);
}

/// Pads that do not count are -0.0, the identity of the sum; those that count are +0.0; what `ceil` adds beyond them
/// never counts.
UOpRef averagePool(Composer &b, UOpRef given, const PoolOptions &options) {
  UOpRef x = b.widen(given);
  if (!b.requireFloat(x) || !b.requireRank(x, 3)) return nullptr;
  Window w = windowOver(b, x, options.window);
  bool padsCount = options.padsCount;
  if (b.failed()) return nullptr;
  uint64_t identity = uint64_t(b.b.lit(x->dtype, -0.0)->ints[0]);
  UOpRef ones = b.broadcastTo(b.b.litInt(DType::I32, 1), x->shape.drop_front(2));
  if (!padsCount) ones = withSamePads(b, ones, w, 0, 0);
  x = withSamePads(b, x, w, padsCount ? 0 : identity);
  if (!x) return nullptr;
  Places p = placesOf(b, x, w, options.ceil);
  if (b.failed()) return nullptr;
  Dims none(w.spatial, b.idx(0)), before = indices(b, w.before), pads = indices(b, w.after),
                                  after = afterWith(b, w, p.extra);
  UOpRef padded = x;
  if (padsCount) {
    Dims lo(2, b.idx(0)), hi = lo;
    lo.append(before);
    hi.append(pads);
    padded = b.pad(x, lo, hi, 0);
  }
  const Dims &lo = padsCount ? none : before, &hi = padsCount ? p.extra : after;
  UOpRef total = foldWindow(b, ReduceKind::Sum, windows(b, padded, w, p, lo, hi, identity, 2), w.spatial);
  if (!total) return nullptr;
  if (options.divisor) return b.cast(b.bin(Op::Div, total, options.divisor), given->dtype);
  auto isZero = [](UOpRef v) { return v->constIndex() == 0; };
  UOpRef count;
  bool allCount = llvm::all_of(lo, isZero) && llvm::all_of(hi, isZero) && (padsCount || w.same.empty());
  if (allCount) {
    double product = 1;
    for (int64_t k : w.kernel) product *= double(k);
    count = b.literal(x, product);
  } else { // the same windows over ones, as exact integers
    if (padsCount) ones = b.broadcastTo(b.b.litInt(DType::I32, 1), padded->shape.drop_front(2));
    count = b.cast(foldWindow(b, ReduceKind::Sum, windows(b, ones, w, p, lo, hi, 0, 0), w.spatial), x->dtype);
  }
  return b.cast(b.bin(Op::Div, total, count), given->dtype);
}

/// Pads are 0.
UOpRef lpPool(Composer &b, UOpRef given, double p, const PoolOptions &options) {
  UOpRef x = b.widen(given);
  requireP(b, p);
  if (!b.requireFloat(x) || !b.requireRank(x, 3)) return nullptr;
  Window w = windowOver(b, x, options.window);
  if (b.failed()) return nullptr;
  uint64_t identity = uint64_t(b.b.lit(x->dtype, -0.0)->ints[0]);
  x = withSamePads(b, powerOf(b, x, p), w, identity);
  if (!x) return nullptr;
  Places at = placesOf(b, x, w, options.ceil);
  if (b.failed()) return nullptr;
  UOpRef seen = windows(b, x, w, at, indices(b, w.before), afterWith(b, w, at.extra), identity, 2);
  return b.cast(rootOf(b, foldWindow(b, ReduceKind::Sum, seen, w.spatial), p), given->dtype);
}

static Ints spatialAxes(UOpRef x) { return axesBetween(2, x->rank()); }

UOpRef globalAveragePool(Composer &b, UOpRef given) {
  UOpRef x = b.widen(given);
  return b.requireFloat(x) && b.requireRank(x, 3) ? b.cast(mean(b, x, spatialAxes(x)), given->dtype) : nullptr;
}

UOpRef globalMaxPool(Composer &b, UOpRef x) {
  return b.requireRank(x, 3) ? b.reduce(ReduceKind::Max, x, spatialAxes(x)) : nullptr;
}

UOpRef globalLpPool(Composer &b, UOpRef given, double p) {
  UOpRef x = b.widen(given);
  requireP(b, p);
  if (!b.requireFloat(x) || !b.requireRank(x, 3)) return nullptr;
  return b.cast(rootOf(b, b.reduce(ReduceKind::Sum, powerOf(b, x, p), spatialAxes(x)), p), given->dtype);
}

} // namespace astra::compose

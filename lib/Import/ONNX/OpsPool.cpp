//===- OpsPool.cpp: pooling ------------------------------------------------===//
// Takes:    pools over a window and over whole images; MaxUnpool.
// Gives:    windows of the padded input, folded in a plain chain, row-major (N4).
// Keeps:    pads out of what a pool gives: they are the identity of the fold, unless ONNX counts them.
#include "OpTable.h"
#include "Sampling.h"
#include "Windows.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

namespace astra::onnx {

namespace {

/// Where windows stand, and what they need beyond the padded input.
struct Places {
  Dims extra; // per spatial axis: how far windows reach past the padded input
  Dims count; // of windows; the padded input may have room for more
};

/// Room for one more, partial window where ceil_mode asks for it. A window that begins in the padding at the end is
/// left out.
Places placesOf(Node &n, UOpRef x, const Window &w, bool ceil) {
  Places p;
  for (unsigned i = 0; !n.failed() && i < w.spatial; ++i) {
    UOpRef extent = x->shape[2 + i], stride = n.c.index(w.strides[i]), zero = n.c.index(0);
    if (w.before[i] >= w.reach(i) || w.after[i] >= w.reach(i))
      n.fail("pads of " + llvm::Twine(std::max(w.before[i], w.after[i])) + " are not smaller than the window of " +
             llvm::Twine(w.reach(i)));
    UOpRef room = idxAdd(n.c, extent, n.c.index(w.before[i] + w.after[i] - w.reach(i))), extra = zero;
    UOpRef count = places(n, w, extent, i, ceil);
    if (n.failed()) break;
    bool partial = ceil && w.strides[i] > 1;
    if (room->lo < 0 && !room->constIndex()) { // whole strides more; the windows that they add are cut away
      extra = idxMul(n.c, idxCeilDiv(n.c, n.c.index(-room->lo), stride), stride);
      if (partial) extra = idxAdd(n.c, extra, idxSub(n.c, stride, n.c.index(1)));
      UOpRef all = idxAdd(n.c, idxDiv(n.c, idxAdd(n.c, room, extra), stride), n.c.index(1));
      if (idxSub(n.c, all, count)->lo < 0)
        n.unsupported("extent " + dimsText(extent) + " of a spatial axis may be smaller than the window of " +
                      llvm::Twine(w.reach(i)) + boundHint(n.c, room, 0));
    } else if (partial || room->lo < 0) {
      UOpRef last = idxSub(n.c, count, n.c.index(1));
      if (room->lo < 0) last = idxMax(n.c, last, zero);
      extra = idxMax(n.c, zero, idxSub(n.c, idxMul(n.c, last, stride), room));
    }
    p.extra.push_back(extra);
    p.count.push_back(count);
  }
  return p;
}

/// The windows that there are, of [leading..., places..., kernel...].
UOpRef counted(Node &n, UOpRef x, llvm::ArrayRef<UOpRef> count, unsigned leading) {
  if (!x) return nullptr;
  Dims begin(x->rank(), n.c.index(0)), size(x->shape.begin(), x->shape.end());
  for (size_t i = 0; i < count.size(); ++i) size[leading + i] = count[i];
  return n.shrink(x, begin, size);
}

/// x padded on its last `spatial` axes and seen through the window: [leading..., places..., kernel...].
UOpRef windows(Node &n, UOpRef x, const Window &w, const Places &p, llvm::ArrayRef<UOpRef> before,
               llvm::ArrayRef<UOpRef> after, uint64_t bits, unsigned leading) {
  Dims lo(leading, n.c.index(0)), hi(leading, n.c.index(0));
  for (unsigned i = 0; i < w.spatial; ++i) {
    lo.push_back(before[i]);
    hi.push_back(after[i]);
  }
  x = n.pad(x, lo, hi, bits);
  for (unsigned i = 0; i < w.spatial; ++i)
    x = n.make(Op::Window, {x}, {leading + i, w.kernel[i], w.strides[i], w.dilations[i]});
  return counted(n, x, p.count, leading);
}

/// The window's axes, the last ones, folded away in plain chain order.
UOpRef foldWindow(Node &n, ReduceKind kind, UOpRef x, unsigned spatial) {
  if (!x) return nullptr;
  Ints axes;
  for (unsigned axis = x->rank() - spatial; axis < x->rank(); ++axis) axes.push_back(axis);
  UOpRef folded = n.reduce(kind, x, axes, /*chain=*/true);
  return folded ? n.squeeze(folded, axes) : nullptr;
}

Dims indices(Node &n, llvm::ArrayRef<int64_t> values) {
  Dims dims;
  for (int64_t v : values) dims.push_back(n.c.index(v));
  return dims;
}

/// w.after with what the last window needs beyond.
Dims afterWith(Node &n, const Window &w, llvm::ArrayRef<UOpRef> extra) {
  Dims result;
  for (unsigned i = 0; i < w.spatial; ++i) result.push_back(idxAdd(n.c, n.c.index(w.after[i]), extra[i]));
  return result;
}

/// The bits of the least value of a dtype, which the pads of a max pool hold.
uint64_t leastBits(Node &n, DType t) {
  if (isFloat(t)) return uint64_t(n.b.lit(t, -std::numeric_limits<double>::infinity())->ints[0]);
  return isSigned(t) ? uint64_t(1) << (bitWidth(t) - 1) : 0;
}

/// How many pads are before spatial axis i.
UOpRef padsBefore(Node &n, const Window &w, unsigned i) {
  for (const Window::Same &s : w.same)
    if (s.axis == i) return s.before;
  return n.c.index(w.before[i]);
}

/// Where the first maximum of each window stands in x [N, C, spatial...], row-major; with the spatial axes in reverse
/// order if columnMajor. A window of nothing but pads and -inf names the element beside the pads.
UOpRef indicesOfMaxima(Node &n, UOpRef x, UOpRef seen, const Window &w, bool columnMajor) {
  if (!seen || n.failed()) return nullptr;
  Dims flat(seen->shape.begin(), seen->shape.end() - w.spatial);
  int64_t rank = flat.size();
  flat.push_back(idxProduct(n.c, seen->shape.take_back(w.spatial)));
  UOpRef tap = n.make(Op::ArgReduce, {n.reshape(seen, flat)}, {0, rank}); // number of the maximum in its window
  if (!tap) return nullptr;
  flat.pop_back();
  auto ramp = [&](unsigned axis) {
    Dims dims(rank, n.c.index(1));
    dims[axis] = flat[axis];
    return n.reshape(n.iota(DType::I64, {flat[axis]}, 0), dims);
  };
  UOpRef index = n.bin(Op::Add, n.bin(Op::Mul, ramp(0), scalar(n, x->shape[1], DType::I64)), ramp(1));
  llvm::SmallVector<UOpRef, 3> at(w.spatial);
  for (unsigned i = w.spatial; i-- > 0;) {
    UOpRef size = n.b.litInt(DType::I64, w.kernel[i]), k = n.bin(Op::Mod, tap, size);
    tap = n.bin(Op::FloorDiv, tap, size);
    at[i] =
        n.bin(Op::Add, n.bin(Op::Mul, ramp(2 + i), double(w.strides[i])), n.bin(Op::Mul, k, double(w.dilations[i])));
    at[i] = n.bin(Op::Sub, at[i], scalar(n, padsBefore(n, w, i), DType::I64));
    UOpRef last = scalar(n, idxSub(n.c, x->shape[2 + i], n.c.index(1)), DType::I64);
    at[i] = n.bin(Op::Max, n.bin(Op::Min, at[i], last), 0.0);
  }
  for (unsigned j = 0; j < w.spatial; ++j) {
    unsigned i = columnMajor ? w.spatial - 1 - j : j;
    index = n.bin(Op::Add, n.bin(Op::Mul, index, scalar(n, x->shape[2 + i], DType::I64)), at[i]);
  }
  return index;
}

void maxPool(Node &n) {
  UOpRef x = n.in(0);
  if (!n.requireRank(x, 3)) return;
  Window w = readWindow(n, x, {});
  bool ceil = n.intAttr("ceil_mode", 0) != 0, columnMajor = n.intAttr("storage_order", 0) != 0;
  if (n.failed()) return;
  uint64_t least = leastBits(n, x->dtype);
  UOpRef fitted = withSamePads(n, x, w, least);
  if (!fitted) return;
  Places p = placesOf(n, fitted, w, ceil);
  if (n.failed()) return;
  UOpRef seen = windows(n, fitted, w, p, indices(n, w.before), afterWith(n, w, p.extra), least, 2);
  n.give(foldWindow(n, ReduceKind::Max, seen, w.spatial));
  if (n.wants(1)) n.give(1, indicesOfMaxima(n, x, seen, w, columnMajor));
}

/// Each element where its index says, zeros elsewhere. The indices, which a max pool gave, stay within their channel.
void maxUnpool(Node &n) {
  UOpRef x = n.in(0), index = n.in(1);
  if (!n.requireRank(x, 3) || !index) return;
  Window w = readWindow(n, x, {});
  requireFixedPads(n, w);
  if (index->shape != x->shape)
    n.fail("the indices are " + dimsText(index->shape) + ", the input " + dimsText(x->shape));
  if (n.failed()) return;
  Dims full = {x->shape[0], x->shape[1]}, zeros(x->rank(), n.c.index(0));
  for (unsigned i = 0; i < w.spatial; ++i)
    full.push_back(idxAdd(n.c, idxMul(n.c, idxSub(n.c, x->shape[2 + i], n.c.index(1)), n.c.index(w.strides[i])),
                          n.c.index(w.kernel[i] - w.before[i] - w.after[i])));
  for (UOpRef extent : full) n.requireLeast(extent, 0, "the result's extent", "negative");
  if (n.failed()) return;
  UOpRef size = idxProduct(n.c, llvm::ArrayRef<UOpRef>(full).drop_front(2));
  UOpRef channels = idxMul(n.c, full[0], full[1]), count = idxProduct(n.c, x->shape.drop_front(2));
  UOpRef own = n.unsqueeze(n.bin(Op::Mul, n.iota(DType::I64, {channels}, 0), scalar(n, size, DType::I64)), {1});
  UOpRef at = n.bin(Op::Sub, n.reshape(n.cast(index, DType::I64), {channels, count}), own);
  UOpRef zero = n.make(Op::Const, {}, {0}, x->dtype);
  UOpRef y = n.make(Op::Scatter, {n.broadcastTo(zero, {channels, size}), at, n.reshape(x, {channels, count})},
                    {1, int64_t(ScatterKind::Set)});
  y = n.reshape(y, full);
  if (!n.has(2)) return n.give(y);
  Dims wanted = n.knownDims(2, "the output's shape"), after;
  if (n.failed() || !y) return;
  if (wanted.size() != full.size())
    n.fail("the output's shape " + dimsText(wanted) + " does not fit " + dimsText(full));
  for (size_t i = 0; i < full.size() && !n.failed(); ++i) {
    after.push_back(idxSub(n.c, wanted[i], full[i]));
    if (after[i]->lo < 0) n.fail("the output's shape " + dimsText(wanted) + " is smaller than " + dimsText(full));
  }
  if (!n.failed()) n.give(n.pad(y, zeros, after, 0));
}

/// The sum of the window over the number of elements in it. Pads that do not count are -0.0, the identity of the sum;
/// those that count are +0.0; what ceil_mode adds beyond them never counts.
void averagePool(Node &n) {
  UOpRef x = n.widen(n.in(0));
  if (!n.requireFloat(x) || !n.requireRank(x, 3)) return;
  Window w = readWindow(n, x, {});
  bool padsCount = n.intAttr("count_include_pad", 0), ceil = n.intAttr("ceil_mode", 0) != 0;
  if (n.failed()) return;
  uint64_t identity = uint64_t(n.b.lit(x->dtype, -0.0)->ints[0]);
  UOpRef ones = n.broadcastTo(n.b.litInt(DType::I32, 1), x->shape.drop_front(2));
  if (!padsCount) ones = withSamePads(n, ones, w, 0, 0);
  x = withSamePads(n, x, w, padsCount ? 0 : identity);
  if (!x) return;
  Places p = placesOf(n, x, w, ceil);
  if (n.failed()) return;
  Dims none(w.spatial, n.c.index(0)), before = indices(n, w.before), pads = indices(n, w.after),
                                      after = afterWith(n, w, p.extra);
  UOpRef padded = x;
  if (padsCount) {
    Dims lo(2, n.c.index(0)), hi = lo;
    lo.append(before);
    hi.append(pads);
    padded = n.pad(x, lo, hi, 0);
  }
  const Dims &lo = padsCount ? none : before, &hi = padsCount ? p.extra : after;
  UOpRef total = foldWindow(n, ReduceKind::Sum, windows(n, padded, w, p, lo, hi, identity, 2), w.spatial);
  if (!total) return;
  auto isZero = [](UOpRef v) { return v->constIndex() == 0; };
  UOpRef count;
  bool allCount = llvm::all_of(lo, isZero) && llvm::all_of(hi, isZero) && (padsCount || w.same.empty());
  if (allCount) {
    double product = 1;
    for (int64_t k : w.kernel) product *= double(k);
    count = n.literal(x, product);
  } else { // the same windows over ones, as exact integers
    if (padsCount) ones = n.broadcastTo(n.b.litInt(DType::I32, 1), padded->shape.drop_front(2));
    count = n.cast(foldWindow(n, ReduceKind::Sum, windows(n, ones, w, p, lo, hi, 0, 0), w.spatial), x->dtype);
  }
  n.give(n.cast(n.bin(Op::Div, total, count), n.in(0)->dtype));
}

/// x^p of magnitudes, and its inverse.
UOpRef powerOf(Node &n, UOpRef x, double p) {
  UOpRef magnitude = n.un(Op::Abs, x);
  return p == 1 ? magnitude : p == 2 ? n.bin(Op::Mul, x, x) : n.bin(Op::Pow, magnitude, p);
}
UOpRef rootOf(Node &n, UOpRef x, double p) {
  return p == 1 ? x : p == 2 ? rootOfSquares(n, x) : n.bin(Op::Pow, x, 1 / p);
}

/// A whole number from opset 2 on.
double readP(Node &n) {
  double p = n.opset < 2 ? n.floatAttr("p", 2) : double(n.intAttr("p", 2));
  if (!(p >= 1 && std::isfinite(p))) n.fail("attribute 'p' is " + std::to_string(p) + ", expected 1 or more");
  return p;
}

/// The p-th root of the sum of p-th powers of magnitudes; pads are 0.
void lpPool(Node &n) {
  UOpRef x = n.widen(n.in(0));
  double p = readP(n);
  if (!n.requireFloat(x) || !n.requireRank(x, 3)) return;
  Window w = readWindow(n, x, {});
  bool ceil = n.intAttr("ceil_mode", 0) != 0;
  if (n.failed()) return;
  uint64_t identity = uint64_t(n.b.lit(x->dtype, -0.0)->ints[0]);
  x = withSamePads(n, powerOf(n, x, p), w, identity);
  if (!x) return;
  Places at = placesOf(n, x, w, ceil);
  if (n.failed()) return;
  UOpRef seen = windows(n, x, w, at, indices(n, w.before), afterWith(n, w, at.extra), identity, 2);
  n.give(n.cast(rootOf(n, foldWindow(n, ReduceKind::Sum, seen, w.spatial), p), n.in(0)->dtype));
}

Ints spatialAxes(UOpRef x) {
  Ints axes;
  for (unsigned axis = 2; axis < x->rank(); ++axis) axes.push_back(axis);
  return axes;
}

void globalAveragePool(Node &n) {
  UOpRef x = n.widen(n.in(0));
  if (n.requireFloat(x) && n.requireRank(x, 3)) n.give(n.cast(mean(n, x, spatialAxes(x)), n.in(0)->dtype));
}

void globalMaxPool(Node &n) {
  UOpRef x = n.in(0);
  if (n.requireRank(x, 3)) n.give(n.reduce(ReduceKind::Max, x, spatialAxes(x)));
}

/// One window over the whole image.
void globalLpPool(Node &n) {
  UOpRef x = n.widen(n.in(0));
  double p = readP(n);
  if (n.requireFloat(x) && n.requireRank(x, 3))
    n.give(n.cast(rootOf(n, n.reduce(ReduceKind::Sum, powerOf(n, x, p), spatialAxes(x)), p), n.in(0)->dtype));
}

constexpr Row rows[] = {
    {"MaxPool", 1, latest, 1, 1, maxPool, realTypes},
    {"AveragePool", 7, latest, 1, 1, averagePool, floatTypes},
    {"LpPool", 1, latest, 1, 1, lpPool, floatTypes},
    {"GlobalAveragePool", 1, latest, 1, 1, globalAveragePool, floatTypes},
    {"GlobalMaxPool", 1, latest, 1, 1, globalMaxPool, realTypes},
    {"GlobalLpPool", 1, latest, 1, 1, globalLpPool, floatTypes},
    {"MaxUnpool", 9, latest, 2, 3, maxUnpool, anyType, "an index outside of its own channel is dropped"},
};

} // namespace

llvm::ArrayRef<Row> poolRows() { return rows; }

} // namespace astra::onnx

//===- Resize.cpp: images of another size ----------------------------------===//
// Takes:    options that may be wrong in every way; extents may be symbolic.
// Gives:    what Resize.h says.
#include "astra/Compose/Resize.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Settled.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace astra::compose {

UOpRef cubicKernel(Composer &b, UOpRef d, double a) {
  auto horner = [&](std::initializer_list<double> coefficients) {
    UOpRef sum = nullptr;
    for (double c : coefficients) {
      UOpRef term = b.literal(d, c);
      sum = sum ? b.bin(Op::Add, b.bin(Op::Mul, sum, d), term) : term;
    }
    return sum;
  };
  UOpRef inner = horner({a + 2, -(a + 3), 0, 1}), outer = horner({a, -5 * a, 8 * a, -4 * a});
  UOpRef beyond = b.select(b.bin(Op::Lt, d, 2), outer, b.literal(d, 0));
  return b.select(b.bin(Op::Le, d, 1), inner, beyond);
}

namespace {

struct Axis;
using Transform = UOpRef (*)(Composer &, const Axis &, UOpRef at);
using Rounding = UOpRef (*)(Composer &, const Axis &, UOpRef x);

using Mode = ResizeMode;

/// One axis that is resized. Numbers are f64 scalars.
struct Axis {
  int64_t axis;
  UOpRef in, out;               // extents
  std::optional<double> factor; // the scale, where it is known
  UOpRef scale = nullptr;
  UOpRef width = nullptr;                // the length that the scale asks for, which need not be whole
  UOpRef begin = nullptr, end = nullptr; // the part of the input that is seen; null: all
  bool keeps() const { return in == out && factor == 1 && !begin; } // every transform is then the identity
};

// ---- where an element reads: from its index, the coordinate in the input

UOpRef number(Composer &b, double value) { return b.b.lit(DType::F64, value); }

UOpRef halfPixel(Composer &b, const Axis &a, UOpRef at) {
  return b.bin(Op::Sub, b.bin(Op::Div, b.bin(Op::Add, at, 0.5), a.scale), 0.5);
}
UOpRef pytorchHalfPixel(Composer &b, const Axis &a, UOpRef at) {
  return b.select(b.bin(Op::Eq, b.scalar(a.out, DType::F64), 1), number(b, 0), halfPixel(b, a, at));
}
UOpRef tfHalfPixel(Composer &b, const Axis &a, UOpRef at) { return b.bin(Op::Div, b.bin(Op::Add, at, 0.5), a.scale); }
UOpRef asymmetric(Composer &b, const Axis &a, UOpRef at) { return b.bin(Op::Div, at, a.scale); }
/// Half pixels, shifted by what the whole extent lacks of the length asked for: in / 2 * (1 - out / (in * scale)),
/// written with one rounding.
UOpRef symmetric(Composer &b, const Axis &a, UOpRef at) {
  UOpRef covered = b.bin(Op::Div, b.scalar(a.out, DType::F64), a.scale);
  UOpRef offset = b.bin(Op::Div, b.bin(Op::Sub, b.scalar(a.in, DType::F64), covered), 2);
  return b.bin(Op::Add, offset, halfPixel(b, a, at));
}
UOpRef lastIndex(Composer &b, const Axis &a) { return b.scalar(idxSub(b.c, a.in, b.idx(1)), DType::F64); }
UOpRef alignCorners(Composer &b, const Axis &a, UOpRef at) {
  UOpRef x = b.bin(Op::Div, b.bin(Op::Mul, at, lastIndex(b, a)), b.bin(Op::Sub, a.width, 1));
  return b.select(b.bin(Op::Eq, a.width, 1), number(b, 0), x);
}
UOpRef cropAndResize(Composer &b, const Axis &a, UOpRef at) {
  if (!a.begin) return alignCorners(b, a, at);
  UOpRef last = lastIndex(b, a), seen = b.bin(Op::Mul, b.bin(Op::Sub, a.end, a.begin), last);
  UOpRef x = b.bin(Op::Div, b.bin(Op::Mul, at, seen), b.bin(Op::Sub, a.width, 1));
  x = b.select(b.bin(Op::Eq, a.width, 1), b.bin(Op::Div, seen, 2), x);
  return b.bin(Op::Add, x, b.bin(Op::Mul, a.begin, last));
}

/// By Coordinates.
constexpr Transform transforms[] = {halfPixel, pytorchHalfPixel, asymmetric, alignCorners,
                                    symmetric, cropAndResize,    tfHalfPixel};

// ---- which element is the nearest

UOpRef preferFloor(Composer &b, const Axis &, UOpRef x) { return b.un(Op::Ceil, b.bin(Op::Sub, x, 0.5)); }
UOpRef preferCeil(Composer &b, const Axis &, UOpRef x) { return b.un(Op::Floor, b.bin(Op::Add, x, 0.5)); }
UOpRef down(Composer &b, const Axis &, UOpRef x) { return b.un(Op::Floor, x); }
UOpRef up(Composer &b, const Axis &, UOpRef x) { return b.un(Op::Ceil, x); }
/// As Resize of ONNX's opset 10 does.
UOpRef downUnlessShrinking(Composer &b, const Axis &a, UOpRef x) {
  return b.un(a.factor && *a.factor < 1 ? Op::Ceil : Op::Floor, x);
}

/// By NearestRounding.
constexpr Rounding roundings[] = {preferFloor, preferCeil, down, up, downUnlessShrinking};

// ---- one axis

/// Values along an axis of x: [extent, 1, ...].
UOpRef along(Composer &b, UOpRef values, UOpRef x, int64_t axis) {
  if (!values) return nullptr;
  Dims dims(x->rank() - axis, b.idx(1));
  dims[0] = values->shape[0];
  return b.reshape(values, dims);
}

/// Whether output element o reads input element o / factor, rounded down: then each element is repeated. By halves of a
/// pixel: (o + 0.5) / k - 0.5 is never half-way between two elements.
bool repeats(const ResizeOptions &s, const Axis &a) {
  if (s.mode != Mode::Nearest || a.begin || !a.factor || *a.factor != std::floor(*a.factor) || *a.factor < 1 ||
      *a.factor > 65536)
    return false;
  bool half = s.coordinates == Coordinates::HalfPixel || s.coordinates == Coordinates::PytorchHalfPixel ||
              s.coordinates == Coordinates::HalfPixelSymmetric;
  bool rounds = s.rounding == NearestRounding::PreferFloor || s.rounding == NearestRounding::PreferCeil;
  bool floors = s.rounding == NearestRounding::Floor || s.rounding == NearestRounding::FloorUnlessShrinking;
  return half ? rounds : s.coordinates == Coordinates::Asymmetric && floors;
}

UOpRef repeated(Composer &b, UOpRef x, const Axis &a) {
  Dims split(x->shape.begin(), x->shape.end()), result = split;
  UOpRef times = b.idx(int64_t(*a.factor));
  if (idxMul(b.c, a.in, times) != a.out) return nullptr;
  split.insert(split.begin() + a.axis + 1, b.idx(1));
  UOpRef columns = b.reshape(x, split);
  split[a.axis + 1] = times;
  result[a.axis] = a.out;
  return b.reshape(b.broadcastTo(columns, split), result);
}

/// x [..., in, ...] with neighbours index [out, taps] weighed by weights [out, taps].
UOpRef weighedSum(Composer &b, UOpRef x, int64_t axis, UOpRef index, UOpRef weights, int64_t taps) {
  if (!index || !weights || b.failed()) return nullptr;
  UOpRef out = index->shape[0];
  constexpr int64_t mostUnrolled = 4;
  if (taps <= mostUnrolled) {
    auto column = [&](UOpRef table, int64_t t) {
      return settled(b, b.squeeze(b.shrink(table, {b.idx(0), b.idx(t)}, {out, b.idx(1)}), {1}));
    };
    UOpRef sum = nullptr;
    for (int64_t t = 0; t < taps && !b.failed(); ++t) {
      UOpRef term = b.make(Op::Gather, {x, column(index, t)}, {axis});
      term = b.bin(Op::Mul, term, along(b, column(weights, t), x, axis));
      sum = sum ? b.bin(Op::Add, sum, term) : term;
    }
    return sum;
  }
  UOpRef gathered = b.make(Op::Gather, {x, settled(b, index)}, {axis});
  weights = settled(b, weights);
  if (!gathered || !weights) return nullptr;
  ContractSpec spec;
  spec.kept = x->rank();
  spec.reduced = 1;
  Dims extents;
  for (unsigned i = 0; i < gathered->rank(); ++i) {
    bool isTap = i == axis + 1;
    spec.a.push_back(label(isTap ? spec.kept : i - (i > axis + 1)));
    if (!isTap) extents.push_back(gathered->shape[i]);
  }
  spec.b = {label(axis), label(spec.kept)};
  extents.push_back(b.idx(taps));
  return b.contract(spec, gathered, weights, extents);
}

/// The number of neighbours that have a weight; 0 after a failure.
int64_t countTaps(Composer &b, const ResizeOptions &s, const Axis &a) {
  int64_t radius = s.mode == Mode::Cubic ? 2 : 1;
  if (!s.antialias) return 2 * radius;
  if (!a.factor) {
    b.unsupported("antialiasing needs a scale that is known while building, found extents " + dimsText({a.in, a.out}) +
                  b.hints.fix({a.in, a.out}));
    return 0;
  }
  double wide = std::ceil(radius / std::min(*a.factor, 1.0));
  if (!(wide * double(std::max<int64_t>(a.out->hi, 1)) <= double(1 << 21))) {
    b.unsupported("antialiasing from extent " + dimsText(a.in) + " to " + dimsText(a.out) +
                  " reads too many elements for each: resize in two steps");
    return 0;
  }
  return 2 * int64_t(wide);
}

UOpRef resizeAxis(Composer &b, UOpRef x, const ResizeOptions &s, const Axis &a) {
  if (!x || b.failed()) return nullptr;
  if (a.in->hi == 0 && a.out->hi > 0) return b.fail("an extent of 0 cannot be resized to " + dimsText(a.out));
  if (repeats(s, a))
    if (UOpRef y = repeated(b, x, a)) return y;
  UOpRef last = lastIndex(b, a), zero = number(b, 0);
  UOpRef at = transforms[unsigned(s.coordinates)](b, a, b.iota(DType::F64, {a.out}, 0));
  if (!at) return nullptr;
  at = b.broadcastTo(at, {a.out}); // a transform may give one coordinate for all
  UOpRef y;
  if (s.mode == Mode::Nearest) {
    UOpRef index = b.cast(clampBetween(b, roundings[unsigned(s.rounding)](b, a, at), zero, last), DType::I64);
    y = b.make(Op::Gather, {x, settled(b, index)}, {a.axis});
  } else {
    int64_t taps = countTaps(b, s, a);
    if (b.failed()) return nullptr;
    UOpRef base = b.un(Op::Floor, at);
    UOpRef offset = b.bin(Op::Add, b.iota(DType::F64, {b.idx(taps)}, 0), number(b, double(1 - taps / 2)));
    UOpRef position = b.bin(Op::Add, b.unsqueeze(base, {1}), offset);
    UOpRef distance = b.un(Op::Abs, b.bin(Op::Sub, offset, b.unsqueeze(b.bin(Op::Sub, at, base), {1})));
    if (s.antialias && *a.factor < 1) distance = b.bin(Op::Mul, distance, *a.factor);
    UOpRef weights = s.mode == Mode::Cubic ? cubicKernel(b, distance, s.cubicCoefficient)
                                           : b.bin(Op::Max, b.bin(Op::Sub, number(b, 1), distance), zero);
    if (s.excludeOutside) {
      UOpRef inside = b.bin(Op::And, b.bin(Op::Le, zero, position), b.bin(Op::Le, position, last));
      weights = b.select(inside, weights, zero);
    }
    if (s.excludeOutside || s.antialias) {
      UOpRef sum = b.reduce(ReduceKind::Sum, weights, {1}, /*chain=*/true);
      weights = b.bin(Op::Div, weights, b.select(b.bin(Op::Eq, sum, 0.0), number(b, 1), sum));
    }
    UOpRef index = b.cast(clampBetween(b, position, zero, last), DType::I64);
    y = weighedSum(b, x, a.axis, index, b.cast(weights, x->dtype), taps);
  }
  if (s.coordinates == Coordinates::CropAndResize && y) {
    UOpRef outside = settled(b, b.bin(Op::Or, b.bin(Op::Lt, at, zero), b.bin(Op::Lt, last, at)));
    if (outside) y = b.select(along(b, outside, x, a.axis), b.literal(y, s.extrapolation), y);
  }
  return y;
}

// ---- the axes of a node

/// floor(in * factor) as ONNX's shape inference computes it, in f32. Of a symbolic extent: in * p / q for the first
/// simple fraction that gives the same for every value within the bounds.
UOpRef scaledExtent(Composer &b, UOpRef in, float factor) {
  auto of = [&](int64_t v) { return std::floor(float(v) * factor); };
  constexpr float most = 1099511627776.0f; // 2^40
  if (!(factor > 0) || !(of(in->hi) <= most))
    return b.fail("the scale " + std::to_string(factor) + " of an extent " + dimsText(in) +
                  " is not positive or too large");
  if (in->constIndex()) return b.idx(int64_t(of(*in->constIndex())));
  double rest = factor;
  int64_t p[2] = {1, int64_t(std::floor(rest))}, q[2] = {0, 1}; // convergents of the continued fraction
  constexpr int64_t mostValues = 1 << 20;
  for (int step = 0; step < 12 && in->hi - in->lo < mostValues; ++step) {
    int64_t v = in->lo;
    while (v <= in->hi && of(v) == double(v * p[1] / q[1])) ++v;
    if (v > in->hi) return idxDiv(b.c, idxMul(b.c, in, b.idx(p[1])), b.idx(q[1]));
    rest -= std::floor(rest);
    if (rest < 1e-7) break;
    rest = 1 / rest;
    int64_t digit = int64_t(std::floor(rest));
    int64_t nextQ = digit > 65536 ? digit : digit * q[1] + q[0];
    if (nextQ > 65536) break; // so that v * p stays below 2^58
    int64_t nextP = digit * p[1] + p[0];
    p[0] = p[1], q[0] = q[1], p[1] = nextP, q[1] = nextQ;
  }
  return b.unsupported("the scale " + std::to_string(factor) + " of the dynamic extent " + dimsText(in) +
                       " is no simple fraction: give sizes, or fix the extent" + b.hints.means());
}

/// The factor by which `out` exceeds `in`, where that is known.
std::optional<double> ratio(Context &c, UOpRef in, UOpRef out) {
  if (in->constIndex() && out->constIndex()) return double(*out->constIndex()) / double(*in->constIndex());
  for (auto [less, more] : {std::pair(in, out), std::pair(out, in)})
    if (less->hi > 0 && more->hi % less->hi == 0)
      if (int64_t k = more->hi / less->hi; idxMul(c, less, c.index(k)) == more) return less == in ? k : 1.0 / k;
  return std::nullopt;
}

void finish(Composer &b, Axis &a) {
  UOpRef in = b.scalar(a.in, DType::F64);
  a.scale = a.factor ? number(b, *a.factor) : b.bin(Op::Div, b.scalar(a.out, DType::F64), in);
  if (!a.width) a.width = b.scalar(a.out, DType::F64);
}

std::vector<Axis> scaledAxes(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<double> scales) {
  std::vector<Axis> result;
  if (scales.size() != axes.size())
    b.fail("found " + llvm::Twine(scales.size()) + " scales for " + llvm::Twine(axes.size()) + " axes");
  for (size_t i = 0; i < axes.size() && !b.failed(); ++i) {
    Axis a{axes[i], x->shape[axes[i]], nullptr, scales[i]};
    a.out = scaledExtent(b, a.in, float(scales[i]));
    if (!a.out) break;
    a.width = b.bin(Op::Mul, number(b, scales[i]), b.scalar(a.in, DType::F64));
    finish(b, a);
    result.push_back(a);
  }
  return result;
}

const char *textOf(AspectRatio a) { return a == AspectRatio::NotLarger ? "not_larger" : "not_smaller"; }

std::vector<Axis> sizedAxes(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<UOpRef> sizes,
                            AspectRatio policy) {
  std::vector<Axis> result;
  if (sizes.size() != axes.size())
    b.fail("found " + llvm::Twine(sizes.size()) + " sizes for " + llvm::Twine(axes.size()) + " axes");
  for (UOpRef size : sizes) b.requireLeast(size, 0, "the size", "negative");
  if (b.failed()) return result;
  for (auto [axis, size] : llvm::zip(axes, sizes)) {
    UOpRef in = x->shape[axis];
    result.push_back({axis, in, size, ratio(b.c, in, size)});
    if (policy != AspectRatio::Stretch && !(in->constIndex() && size->constIndex() && *in->constIndex() > 0))
      b.unsupported(llvm::Twine("keep_aspect_ratio_policy '") + textOf(policy) + "' needs constant extents, found " +
                    dimsText({in, size}));
  }
  if (b.failed()) return result;
  if (policy != AspectRatio::Stretch && !result.empty()) {
    double common = *result[0].factor;
    for (const Axis &a : result)
      common = policy == AspectRatio::NotLarger ? std::min(common, *a.factor) : std::max(common, *a.factor);
    for (Axis &a : result) {
      double length = common * double(*a.in->constIndex());
      if (!(length < 1e12)) b.fail("the sizes are too large");
      if (b.failed()) return result;
      a.factor = common;
      a.out = b.idx(int64_t(length + 0.5));
      a.width = number(b, length);
    }
  }
  for (Axis &a : result) finish(b, a);
  return result;
}

/// The part of each axis that is seen, [begin..., end...], which may be data.
void readRegion(Composer &b, UOpRef given, std::vector<Axis> &axes, bool byScale) {
  if (!given) return;
  UOpRef region = b.cast(given, DType::F64);
  if (!b.requireRank(region, 1, 1)) return;
  if (region->shape[0]->constIndex() != int64_t(2 * axes.size()))
    b.fail("the regions are " + dimsText(region->shape) + ", expected two numbers for each of " +
           llvm::Twine(axes.size()) + " axes");
  std::optional<std::vector<double>> known = settledNumbers(b, region);
  for (size_t i = 0; i < axes.size() && !b.failed(); ++i) {
    if (known && (*known)[i] == 0 && (*known)[axes.size() + i] == 1) continue;
    auto element = [&](size_t k) {
      return known ? number(b, (*known)[k]) : b.reshape(b.shrink(region, {b.idx(k)}, {b.idx(1)}), {});
    };
    axes[i].begin = element(i);
    axes[i].end = element(axes.size() + i);
    if (byScale)
      b.unsupported("scales of a part of the input (tf_crop_and_resize) are not supported, since ONNX's text and cases "
                    "disagree on the size: give sizes");
  }
}

/// Each axis in turn; types other than f32 and f64 are widened unless the nearest element is copied.
UOpRef resizeAxes(Composer &b, UOpRef x, const ResizeOptions &s, llvm::ArrayRef<Axis> axes) {
  DType t = x->dtype;
  if (s.mode != Mode::Nearest) {
    if (!isFloat(t) && !isInt(t))
      b.unsupported(llvm::Twine("interpolation of type ") + info(t).text + " is not supported: use mode nearest");
    x = isInt(t) ? b.cast(x, bitWidth(t) < 32 ? DType::F32 : DType::F64) : b.widen(x);
  }
  for (const Axis &a : axes)
    if (!a.keeps()) x = resizeAxis(b, x, s, a);
  if (s.mode != Mode::Nearest && isInt(t)) x = b.un(Op::RoundEven, x);
  return b.cast(x, t);
}

/// Checks what is not of one axis, and resizes.
UOpRef resized(Composer &b, UOpRef x, const ResizeOptions &s, std::vector<Axis> axes, bool byScale) {
  if (s.antialias && s.mode == Mode::Nearest) b.fail("antialiasing is of the modes linear and cubic");
  if (s.coordinates == Coordinates::CropAndResize && !b.failed()) readRegion(b, s.region, axes, byScale);
  return b.failed() ? nullptr : resizeAxes(b, x, s, axes);
}

} // namespace

UOpRef resizeByScales(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<double> scales,
                      const ResizeOptions &options) {
  if (!x || b.failed()) return nullptr;
  return resized(b, x, options, scaledAxes(b, x, axes, scales), true);
}

UOpRef resizeToSizes(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<UOpRef> sizes,
                     const ResizeOptions &options) {
  if (!x || b.failed()) return nullptr;
  return resized(b, x, options, sizedAxes(b, x, axes, sizes, options.aspectRatio), false);
}

} // namespace astra::compose

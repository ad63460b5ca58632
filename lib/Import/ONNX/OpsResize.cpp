//===- OpsResize.cpp: Resize and Upsample ----------------------------------===//
// Takes:    nodes whose scales or sizes are known while importing; extents may be symbolic.
// Gives:    one step per axis that changes: where the elements read (f64 arithmetic on the index), which neighbours
//           those are and with what weight, then a sum of a few gathered tensors, or one `contract` where an
//           antialiasing filter has many taps.
// Keeps:    all that follows from constants computed while importing, by the reference evaluator.
#include "OpTable.h"
#include "Sampling.h"
#include "astra/Compose/Settled.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace astra::onnx {

UOpRef scalar(Node &n, UOpRef index, DType t) {
  return index->constIndex() ? n.b.litInt(t, *index->constIndex()) : n.fromIndex(index, t);
}

UOpRef clampBetween(Node &n, UOpRef x, UOpRef lo, UOpRef hi) {
  x = n.select(n.bin(Op::Lt, x, lo), lo, x);
  return n.select(n.bin(Op::Lt, hi, x), hi, x);
}

UOpRef cubicKernel(Node &n, UOpRef d, double a) {
  auto horner = [&](std::initializer_list<double> coefficients) {
    UOpRef sum = nullptr;
    for (double c : coefficients) {
      UOpRef term = n.literal(d, c);
      sum = sum ? n.bin(Op::Add, n.bin(Op::Mul, sum, d), term) : term;
    }
    return sum;
  };
  UOpRef inner = horner({a + 2, -(a + 3), 0, 1}), outer = horner({a, -5 * a, 8 * a, -4 * a});
  UOpRef beyond = n.select(n.bin(Op::Lt, d, 2), outer, n.literal(d, 0));
  return n.select(n.bin(Op::Le, d, 1), inner, beyond);
}

namespace {

struct Axis;
using Transform = UOpRef (*)(Node &, const Axis &, UOpRef at);
using Rounding = UOpRef (*)(Node &, const Axis &, UOpRef x);
enum class Mode { Nearest, Linear, Cubic };

struct Settings {
  Mode mode = Mode::Nearest;
  llvm::StringRef transformName; // of the table below
  Transform transform = nullptr;
  llvm::StringRef roundingName;
  Rounding rounding = nullptr;
  double cubicCoefficient = -0.75, extrapolation = 0;
  bool antialias = false, excludeOutside = false;
};

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

UOpRef number(Node &n, double value) { return n.b.lit(DType::F64, value); }

UOpRef halfPixel(Node &n, const Axis &a, UOpRef at) {
  return n.bin(Op::Sub, n.bin(Op::Div, n.bin(Op::Add, at, 0.5), a.scale), 0.5);
}
UOpRef pytorchHalfPixel(Node &n, const Axis &a, UOpRef at) {
  return n.select(n.bin(Op::Eq, scalar(n, a.out, DType::F64), 1), number(n, 0), halfPixel(n, a, at));
}
UOpRef tfHalfPixel(Node &n, const Axis &a, UOpRef at) { return n.bin(Op::Div, n.bin(Op::Add, at, 0.5), a.scale); }
UOpRef asymmetric(Node &n, const Axis &a, UOpRef at) { return n.bin(Op::Div, at, a.scale); }
/// Half pixels, shifted by what the whole extent lacks of the length asked for: in / 2 * (1 - out / (in * scale)),
/// written with one rounding.
UOpRef symmetric(Node &n, const Axis &a, UOpRef at) {
  UOpRef covered = n.bin(Op::Div, scalar(n, a.out, DType::F64), a.scale);
  UOpRef offset = n.bin(Op::Div, n.bin(Op::Sub, scalar(n, a.in, DType::F64), covered), 2);
  return n.bin(Op::Add, offset, halfPixel(n, a, at));
}
UOpRef lastIndex(Node &n, const Axis &a) { return scalar(n, idxSub(n.c, a.in, n.c.index(1)), DType::F64); }
UOpRef alignCorners(Node &n, const Axis &a, UOpRef at) {
  UOpRef x = n.bin(Op::Div, n.bin(Op::Mul, at, lastIndex(n, a)), n.bin(Op::Sub, a.width, 1));
  return n.select(n.bin(Op::Eq, a.width, 1), number(n, 0), x);
}
UOpRef cropAndResize(Node &n, const Axis &a, UOpRef at) {
  if (!a.begin) return alignCorners(n, a, at);
  UOpRef last = lastIndex(n, a), seen = n.bin(Op::Mul, n.bin(Op::Sub, a.end, a.begin), last);
  UOpRef x = n.bin(Op::Div, n.bin(Op::Mul, at, seen), n.bin(Op::Sub, a.width, 1));
  x = n.select(n.bin(Op::Eq, a.width, 1), n.bin(Op::Div, seen, 2), x);
  return n.bin(Op::Add, x, n.bin(Op::Mul, a.begin, last));
}

constexpr struct {
  const char *name;
  Transform transform;
} transforms[] = {
    {"half_pixel", halfPixel},
    {"pytorch_half_pixel", pytorchHalfPixel},
    {"asymmetric", asymmetric},
    {"align_corners", alignCorners},
    {"half_pixel_symmetric", symmetric},
    {"tf_crop_and_resize", cropAndResize},
    {"tf_half_pixel_for_nn", tfHalfPixel},
};

// ---- which element is the nearest

UOpRef preferFloor(Node &n, const Axis &, UOpRef x) { return n.un(Op::Ceil, n.bin(Op::Sub, x, 0.5)); }
UOpRef preferCeil(Node &n, const Axis &, UOpRef x) { return n.un(Op::Floor, n.bin(Op::Add, x, 0.5)); }
UOpRef down(Node &n, const Axis &, UOpRef x) { return n.un(Op::Floor, x); }
UOpRef up(Node &n, const Axis &, UOpRef x) { return n.un(Op::Ceil, x); }
/// Opset 10 does not say; what its cases show is this.
UOpRef downUnlessShrinking(Node &n, const Axis &a, UOpRef x) {
  return n.un(a.factor && *a.factor < 1 ? Op::Ceil : Op::Floor, x);
}

constexpr struct {
  const char *name;
  Rounding rounding;
} roundings[] = {
    {"round_prefer_floor", preferFloor},
    {"round_prefer_ceil", preferCeil},
    {"floor", down},
    {"ceil", up},
};

// ---- one axis

/// Values along an axis of x: [extent, 1, ...].
UOpRef along(Node &n, UOpRef values, UOpRef x, int64_t axis) {
  if (!values) return nullptr;
  Dims dims(x->rank() - axis, n.c.index(1));
  dims[0] = values->shape[0];
  return n.reshape(values, dims);
}

/// Whether output element o reads input element o / factor, rounded down: then each element is repeated. By halves of a
/// pixel: (o + 0.5) / k - 0.5 is never half-way between two elements.
bool repeats(const Settings &s, const Axis &a) {
  if (s.mode != Mode::Nearest || a.begin || !a.factor || *a.factor != std::floor(*a.factor) || *a.factor < 1 ||
      *a.factor > 65536)
    return false;
  bool half = s.transformName == "half_pixel" || s.transformName == "pytorch_half_pixel" ||
              s.transformName == "half_pixel_symmetric";
  bool rounds = s.roundingName == "round_prefer_floor" || s.roundingName == "round_prefer_ceil";
  return half ? rounds : s.transformName == "asymmetric" && s.roundingName == "floor";
}

UOpRef repeated(Node &n, UOpRef x, const Axis &a) {
  Dims split(x->shape.begin(), x->shape.end()), result = split;
  UOpRef times = n.c.index(int64_t(*a.factor));
  if (idxMul(n.c, a.in, times) != a.out) return nullptr;
  split.insert(split.begin() + a.axis + 1, n.c.index(1));
  UOpRef columns = n.reshape(x, split);
  split[a.axis + 1] = times;
  result[a.axis] = a.out;
  return n.reshape(n.broadcastTo(columns, split), result);
}

/// x [..., in, ...] with neighbours index [out, taps] weighed by weights [out, taps].
UOpRef weighedSum(Node &n, UOpRef x, int64_t axis, UOpRef index, UOpRef weights, int64_t taps) {
  if (!index || !weights || n.failed()) return nullptr;
  UOpRef out = index->shape[0];
  constexpr int64_t mostUnrolled = 4;
  if (taps <= mostUnrolled) {
    auto column = [&](UOpRef table, int64_t t) {
      return settled(n, n.squeeze(n.shrink(table, {n.c.index(0), n.c.index(t)}, {out, n.c.index(1)}), {1}));
    };
    UOpRef sum = nullptr;
    for (int64_t t = 0; t < taps && !n.failed(); ++t) {
      UOpRef term = n.make(Op::Gather, {x, column(index, t)}, {axis});
      term = n.bin(Op::Mul, term, along(n, column(weights, t), x, axis));
      sum = sum ? n.bin(Op::Add, sum, term) : term;
    }
    return sum;
  }
  UOpRef gathered = n.make(Op::Gather, {x, settled(n, index)}, {axis});
  weights = settled(n, weights);
  if (!gathered || !weights) return nullptr;
  auto label = [](int64_t l) { return AffineForm{{{l, 1}}, 0, 1}; };
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
  extents.push_back(n.c.index(taps));
  return n.contract(spec, gathered, weights, extents);
}

/// The number of neighbours that have a weight; 0 after a failure.
int64_t countTaps(Node &n, const Settings &s, const Axis &a) {
  int64_t radius = s.mode == Mode::Cubic ? 2 : 1;
  if (!s.antialias) return 2 * radius;
  if (!a.factor) {
    n.unsupported("antialiasing needs a scale that is known while importing, found extents " + dimsText({a.in, a.out}) +
                  fixHint({a.in, a.out}));
    return 0;
  }
  double wide = std::ceil(radius / std::min(*a.factor, 1.0));
  if (!(wide * double(std::max<int64_t>(a.out->hi, 1)) <= double(1 << 21))) {
    n.unsupported("antialiasing from extent " + dimsText(a.in) + " to " + dimsText(a.out) +
                  " reads too many elements for each: resize in two steps");
    return 0;
  }
  return 2 * int64_t(wide);
}

UOpRef resizeAxis(Node &n, UOpRef x, const Settings &s, const Axis &a) {
  if (!x || n.failed()) return nullptr;
  if (a.in->hi == 0 && a.out->hi > 0) return n.fail("an extent of 0 cannot be resized to " + dimsText(a.out));
  if (repeats(s, a))
    if (UOpRef y = repeated(n, x, a)) return y;
  UOpRef last = lastIndex(n, a), zero = number(n, 0);
  UOpRef at = s.transform(n, a, n.iota(DType::F64, {a.out}, 0));
  if (!at) return nullptr;
  at = n.broadcastTo(at, {a.out}); // a transform may give one coordinate for all
  UOpRef y;
  if (s.mode == Mode::Nearest) {
    UOpRef index = n.cast(clampBetween(n, s.rounding(n, a, at), zero, last), DType::I64);
    y = n.make(Op::Gather, {x, settled(n, index)}, {a.axis});
  } else {
    int64_t taps = countTaps(n, s, a);
    if (n.failed()) return nullptr;
    UOpRef base = n.un(Op::Floor, at);
    UOpRef offset = n.bin(Op::Add, n.iota(DType::F64, {n.c.index(taps)}, 0), number(n, double(1 - taps / 2)));
    UOpRef position = n.bin(Op::Add, n.unsqueeze(base, {1}), offset);
    UOpRef distance = n.un(Op::Abs, n.bin(Op::Sub, offset, n.unsqueeze(n.bin(Op::Sub, at, base), {1})));
    if (s.antialias && *a.factor < 1) distance = n.bin(Op::Mul, distance, *a.factor);
    UOpRef weights = s.mode == Mode::Cubic ? cubicKernel(n, distance, s.cubicCoefficient)
                                           : n.bin(Op::Max, n.bin(Op::Sub, number(n, 1), distance), zero);
    if (s.excludeOutside) {
      UOpRef inside = n.bin(Op::And, n.bin(Op::Le, zero, position), n.bin(Op::Le, position, last));
      weights = n.select(inside, weights, zero);
    }
    if (s.excludeOutside || s.antialias) {
      UOpRef sum = n.reduce(ReduceKind::Sum, weights, {1}, /*chain=*/true);
      weights = n.bin(Op::Div, weights, n.select(n.bin(Op::Eq, sum, 0.0), number(n, 1), sum));
    }
    UOpRef index = n.cast(clampBetween(n, position, zero, last), DType::I64);
    y = weighedSum(n, x, a.axis, index, n.cast(weights, x->dtype), taps);
  }
  if (s.transform == cropAndResize && y) {
    UOpRef outside = settled(n, n.bin(Op::Or, n.bin(Op::Lt, at, zero), n.bin(Op::Lt, last, at)));
    if (outside) y = n.select(along(n, outside, x, a.axis), n.literal(y, s.extrapolation), y);
  }
  return y;
}

// ---- the axes of a node

/// floor(in * factor) as ONNX's shape inference computes it, in f32. Of a symbolic extent: in * p / q for the first
/// simple fraction that gives the same for every value within the bounds.
UOpRef scaledExtent(Node &n, UOpRef in, float factor) {
  auto of = [&](int64_t v) { return std::floor(float(v) * factor); };
  constexpr float most = 1099511627776.0f; // 2^40
  if (!(factor > 0) || !(of(in->hi) <= most))
    return n.fail("the scale " + std::to_string(factor) + " of an extent " + dimsText(in) +
                  " is not positive or too large");
  if (in->constIndex()) return n.c.index(int64_t(of(*in->constIndex())));
  double rest = factor;
  int64_t p[2] = {1, int64_t(std::floor(rest))}, q[2] = {0, 1}; // convergents of the continued fraction
  constexpr int64_t mostValues = 1 << 20;
  for (int step = 0; step < 12 && in->hi - in->lo < mostValues; ++step) {
    int64_t v = in->lo;
    while (v <= in->hi && of(v) == double(v * p[1] / q[1])) ++v;
    if (v > in->hi) return idxDiv(n.c, idxMul(n.c, in, n.c.index(p[1])), n.c.index(q[1]));
    rest -= std::floor(rest);
    if (rest < 1e-7) break;
    rest = 1 / rest;
    int64_t digit = int64_t(std::floor(rest));
    int64_t nextQ = digit > 65536 ? digit : digit * q[1] + q[0];
    if (nextQ > 65536) break; // so that v * p stays below 2^58
    int64_t nextP = digit * p[1] + p[0];
    p[0] = p[1], q[0] = q[1], p[1] = nextP, q[1] = nextQ;
  }
  return n.unsupported("the scale " + std::to_string(factor) + " of the dynamic extent " + dimsText(in) +
                       " is no simple fraction: give sizes, or fix the extent with --dim");
}

/// The factor by which `out` exceeds `in`, where that is known.
std::optional<double> ratio(Context &c, UOpRef in, UOpRef out) {
  if (in->constIndex() && out->constIndex()) return double(*out->constIndex()) / double(*in->constIndex());
  for (auto [less, more] : {std::pair(in, out), std::pair(out, in)})
    if (less->hi > 0 && more->hi % less->hi == 0)
      if (int64_t k = more->hi / less->hi; idxMul(c, less, c.index(k)) == more) return less == in ? k : 1.0 / k;
  return std::nullopt;
}

void finish(Node &n, Axis &a) {
  UOpRef in = scalar(n, a.in, DType::F64);
  a.scale = a.factor ? number(n, *a.factor) : n.bin(Op::Div, scalar(n, a.out, DType::F64), in);
  if (!a.width) a.width = scalar(n, a.out, DType::F64);
}

std::vector<Axis> scaledAxes(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<double> scales) {
  std::vector<Axis> result;
  if (scales.size() != axes.size())
    n.fail("found " + llvm::Twine(scales.size()) + " scales for " + llvm::Twine(axes.size()) + " axes");
  for (size_t i = 0; i < axes.size() && !n.failed(); ++i) {
    Axis a{axes[i], x->shape[axes[i]], nullptr, scales[i]};
    a.out = scaledExtent(n, a.in, float(scales[i]));
    if (!a.out) break;
    a.width = n.bin(Op::Mul, number(n, scales[i]), scalar(n, a.in, DType::F64));
    finish(n, a);
    result.push_back(a);
  }
  return result;
}

std::vector<Axis> sizedAxes(Node &n, UOpRef x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<UOpRef> sizes,
                            llvm::StringRef policy) {
  std::vector<Axis> result;
  if (sizes.size() != axes.size())
    n.fail("found " + llvm::Twine(sizes.size()) + " sizes for " + llvm::Twine(axes.size()) + " axes");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    n.fail("attribute 'keep_aspect_ratio_policy' is '" + policy + "', which is not one of ONNX's");
  for (UOpRef size : sizes) n.requireLeast(size, 0, "the size", "negative");
  if (n.failed()) return result;
  for (auto [axis, size] : llvm::zip(axes, sizes)) {
    UOpRef in = x->shape[axis];
    result.push_back({axis, in, size, ratio(n.c, in, size)});
    if (policy != "stretch" && !(in->constIndex() && size->constIndex() && *in->constIndex() > 0))
      n.unsupported("keep_aspect_ratio_policy '" + policy + "' needs constant extents, found " + dimsText({in, size}));
  }
  if (n.failed()) return result;
  if (policy != "stretch" && !result.empty()) {
    double common = *result[0].factor;
    for (const Axis &a : result)
      common = policy == "not_larger" ? std::min(common, *a.factor) : std::max(common, *a.factor);
    for (Axis &a : result) {
      double length = common * double(*a.in->constIndex());
      if (!(length < 1e12)) n.fail("the sizes are too large");
      if (n.failed()) return result;
      a.factor = common;
      a.out = n.c.index(int64_t(length + 0.5));
      a.width = number(n, length);
    }
  }
  for (Axis &a : result) finish(n, a);
  return result;
}

/// The input, when it is there and not empty, which has the same meaning.
bool isGiven(Node &n, unsigned i) {
  return n.has(i) && !(n.in(i)->rank() == 1 && n.in(i)->shape[0]->constIndex() == 0);
}

std::vector<double> knownScales(Node &n, unsigned i) {
  if (std::optional<std::vector<double>> values = settledNumbers(n, n.in(i))) return *values;
  n.knownDims(i, "the scales"); // which says that they depend on data
  return {};
}

/// The part of each axis that is seen, [begin..., end...], which may be data.
void readRegion(Node &n, std::vector<Axis> &axes, bool byScale) {
  if (!isGiven(n, 1)) return;
  UOpRef region = n.cast(n.in(1), DType::F64);
  if (!n.requireRank(region, 1, 1)) return;
  if (region->shape[0]->constIndex() != int64_t(2 * axes.size()))
    n.fail("the regions are " + dimsText(region->shape) + ", expected two numbers for each of " +
           llvm::Twine(axes.size()) + " axes");
  std::optional<std::vector<double>> known = settledNumbers(n, region);
  for (size_t i = 0; i < axes.size() && !n.failed(); ++i) {
    if (known && (*known)[i] == 0 && (*known)[axes.size() + i] == 1) continue;
    auto element = [&](size_t k) {
      return known ? number(n, (*known)[k]) : n.reshape(n.shrink(region, {n.c.index(k)}, {n.c.index(1)}), {});
    };
    axes[i].begin = element(i);
    axes[i].end = element(axes.size() + i);
    if (byScale)
      n.unsupported("scales of a part of the input (tf_crop_and_resize) are not supported, since ONNX's text and cases "
                    "disagree on the size: give sizes");
  }
}

/// Each axis in turn; types other than f32 and f64 are widened unless the nearest element is copied.
void resizeAxes(Node &n, const Settings &s, llvm::ArrayRef<Axis> axes) {
  UOpRef x = n.in(0);
  DType t = x->dtype;
  if (s.mode != Mode::Nearest) {
    if (!isFloat(t) && !isInt(t))
      n.unsupported(llvm::Twine("interpolation of type ") + info(t).text + " is not supported: use mode nearest");
    x = isInt(t) ? n.cast(x, bitWidth(t) < 32 ? DType::F32 : DType::F64) : n.widen(x);
  }
  for (const Axis &a : axes)
    if (!a.keeps()) x = resizeAxis(n, x, s, a);
  if (s.mode != Mode::Nearest && isInt(t)) x = n.un(Op::RoundEven, x);
  n.give(n.cast(x, t));
}

Mode readMode(Node &n, bool cubic) {
  std::string mode = n.stringAttr("mode", "nearest");
  if (mode == "linear" || mode == "bilinear") return Mode::Linear;
  if (mode == "cubic" && cubic) return Mode::Cubic;
  if (mode != "nearest") n.fail("attribute 'mode' is '" + mode + "', which is not one of ONNX's");
  return Mode::Nearest;
}

Ints everyAxis(UOpRef x) {
  Ints axes;
  for (unsigned i = 0; i < x->rank(); ++i) axes.push_back(i);
  return axes;
}

/// Upsample, and Resize of opset 10: coordinates are index / scale.
void resizeByScales(Node &n, std::vector<double> scales, Rounding rounding) {
  UOpRef x = n.in(0);
  Settings s;
  s.mode = readMode(n, false);
  s.transformName = "asymmetric";
  s.transform = asymmetric;
  s.roundingName = "floor";
  s.rounding = rounding;
  if (!x || n.failed()) return;
  std::vector<Axis> axes = scaledAxes(n, x, everyAxis(x), scales);
  if (!n.failed()) resizeAxes(n, s, axes);
}
void upsampleAttr(Node &n) {
  auto scales = n.floatsAttr("scales");
  resizeByScales(n, {scales.begin(), scales.end()}, down);
}
/// The two scales of an image.
void upsampleImage(Node &n) {
  double height = n.floatAttr("height_scale", 0), width = n.floatAttr("width_scale", 0);
  if (n.requireRank(n.in(0), 4, 4)) resizeByScales(n, {1, 1, height, width}, down);
}
void upsample(Node &n) { resizeByScales(n, knownScales(n, 1), down); }
void resizeOf10(Node &n) { resizeByScales(n, knownScales(n, 1), downUnlessShrinking); }

void resize(Node &n) {
  UOpRef x = n.in(0);
  Settings s;
  s.mode = readMode(n, true);
  std::string transform = n.stringAttr("coordinate_transformation_mode", "half_pixel"),
              rounding = n.stringAttr("nearest_mode", "round_prefer_floor"),
              policy = n.stringAttr("keep_aspect_ratio_policy", "stretch");
  for (const auto &row : transforms)
    if (transform == row.name) s.transformName = row.name, s.transform = row.transform;
  for (const auto &row : roundings)
    if (rounding == row.name) s.roundingName = row.name, s.rounding = row.rounding;
  if (!s.transform)
    n.fail("attribute 'coordinate_transformation_mode' is '" + transform + "', which is not one of ONNX's");
  if (!s.rounding) n.fail("attribute 'nearest_mode' is '" + rounding + "', which is not one of ONNX's");
  s.cubicCoefficient = n.floatAttr("cubic_coeff_a", -0.75);
  s.extrapolation = n.floatAttr("extrapolation_value", 0);
  s.excludeOutside = n.intAttr("exclude_outside", 0) != 0;
  s.antialias = n.intAttr("antialias", 0) != 0;
  if (s.antialias && s.mode == Mode::Nearest) n.fail("antialiasing is of the modes linear and cubic");
  Ints given = n.intsAttr("axes");
  if (!x || n.failed()) return;
  bool byScale = isGiven(n, 2), bySize = isGiven(n, 3);
  if (byScale == bySize) n.fail("exactly one of scales and sizes must be given");
  Ints axes;
  for (int64_t axis : given) axes.push_back(n.axis(axis, x->rank()));
  n.axes(given, x->rank()); // refuses an axis that is named twice
  if (!n.hasAttr("axes")) axes = everyAxis(x);
  if (n.failed()) return;
  std::vector<Axis> changes =
      byScale ? scaledAxes(n, x, axes, knownScales(n, 2)) : sizedAxes(n, x, axes, n.knownDims(3, "the sizes"), policy);
  if (s.transform == cropAndResize && !n.failed()) readRegion(n, changes, byScale);
  if (!n.failed()) resizeAxes(n, s, changes);
}

constexpr Row rows[] = {
    {"Upsample", 1, 6, 1, 1, upsampleImage},
    {"Upsample", 7, 8, 1, 1, upsampleAttr},
    {"Upsample", 9, 9, 2, 2, upsample},
    {"Resize", 10, 10, 2, 2, resizeOf10, anyType,
     "integers are interpolated in f32, wider ones in f64, and rounded to nearest"},
    {"Resize", 11, latest, 1, 4, resize, anyType,
     "bool and complex numbers in mode nearest only; antialiasing needs a scale that is known; align_corners with "
     "scales "
     "goes by the length that they ask for, which need not be whole, as ONNX's cases have it (ONNX Runtime and PyTorch "
     "round it down: give sizes for that); where rounding decides which element is nearest (scale 0.3) ONNX's "
     "reference "
     "is followed, not ONNX Runtime"},
};

} // namespace

llvm::ArrayRef<Row> resizeRows() { return rows; }

} // namespace astra::onnx

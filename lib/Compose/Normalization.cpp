//===- Normalization.cpp: normalizations -----------------------------------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    means, variances and quotients along axes; f16 and bf16 compute in f32 and round once.
#include "astra/Compose/Normalization.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

/// v, [C], so that it broadcasts along an axis of `rank` axes.
static UOpRef alongAxis(Composer &b, UOpRef v, unsigned rank, int64_t axis) {
  if (!b.requireRank(v, 1, 1)) return nullptr;
  Dims dims(rank - axis, b.idx(1));
  dims[0] = v->shape[0];
  return b.reshape(v, dims);
}

/// scale * x + shift with one scale and shift per channel, of x's dtype; null: none.
static UOpRef perChannelAffine(Composer &b, UOpRef x, UOpRef scale, UOpRef shift, int64_t axis = 1) {
  UOpRef y = scale ? b.bin(Op::Mul, x, alongAxis(b, scale, x->rank(), axis)) : x;
  return shift ? b.bin(Op::Add, y, alongAxis(b, shift, x->rank(), axis)) : y;
}

/// The axes along which statistics of a batch norm are taken.
static Ints axesOfBatch(UOpRef x, const BatchNormalizationOptions &options) {
  Ints axes;
  for (unsigned axis = 0; axis < x->rank(); ++axis)
    if (options.perElement ? axis == 0 : axis != options.axis) axes.push_back(axis);
  return axes;
}

static UOpRef deviationOf(Composer &b, UOpRef variance, double epsilon) {
  return b.un(Op::Sqrt, b.bin(Op::Add, variance, epsilon));
}

UOpRef unbiased(Composer &b, UOpRef variance, UOpRef count) {
  if (!variance) return nullptr;
  UOpRef less = idxMax(b.c, idxSub(b.c, count, b.idx(1)), b.idx(1));
  DType t = variance->dtype;
  return b.bin(Op::Mul, variance, b.bin(Op::Div, b.fromIndex(count, t), b.fromIndex(less, t)));
}

UOpRef movingAverage(Composer &b, UOpRef running, UOpRef now, double momentum) {
  return b.bin(Op::Add, b.bin(Op::Mul, running, momentum), b.bin(Op::Mul, now, 1 - momentum));
}

BatchNormalized batchNormalization(Composer &b, UOpRef given, UOpRef scale, UOpRef bias, UOpRef mean, UOpRef variance,
                                   const BatchNormalizationOptions &options) {
  UOpRef x = b.widen(given);
  if (!x) return {};
  scale = b.cast(scale, x->dtype);
  bias = b.cast(bias, x->dtype);
  BatchNormalized result;
  result.mean = b.cast(mean, x->dtype);
  result.variance = b.cast(variance, x->dtype);
  if (b.failed() || !b.requireFloat(x) || !b.requireRank(x, options.axis + 1)) return {};
  auto spread = [&](UOpRef v) { return options.perElement ? v : alongAxis(b, v, x->rank(), options.axis); };
  UOpRef middle = nullptr;
  if (options.ofBatch) {
    Ints axes = axesOfBatch(x, options);
    result.count = b.idx(1);
    for (int64_t axis : axes) result.count = idxMul(b.c, result.count, x->shape[axis]);
    middle = compose::mean(b, x, axes);
    result.mean = b.squeeze(middle, axes);
    result.variance = compose::variance(b, x, axes, 0, /*keep=*/false);
  } else if (options.centred) {
    middle = spread(result.mean);
  }
  UOpRef deviation = deviationOf(b, result.variance, options.epsilon);
  if (!deviation) return {};
  result.inverse = b.bin(Op::Div, b.literal(deviation, 1), deviation);
  UOpRef y;
  if (options.centred) {
    y = b.bin(Op::Div, b.bin(Op::Sub, x, middle), spread(deviation));
    if (scale) y = b.bin(Op::Mul, y, spread(scale));
    if (bias) y = b.bin(Op::Add, y, spread(bias));
  } else {
    UOpRef factor = b.bin(Op::Div, scale ? scale : b.literal(deviation, 1), deviation);
    UOpRef moved = b.bin(Op::Mul, result.mean, factor),
           shift = bias ? b.bin(Op::Sub, bias, moved) : b.un(Op::Neg, moved);
    y = options.perElement ? b.bin(Op::Add, b.bin(Op::Mul, x, factor), shift)
                           : perChannelAffine(b, x, factor, shift, options.axis);
  }
  result.value = b.cast(y, given->dtype);
  return result;
}

UOpRef throughStandardization(Composer &b, UOpRef g, UOpRef unit, llvm::ArrayRef<int64_t> axes) {
  UOpRef along = mean(b, b.bin(Op::Mul, g, unit), axes);
  return b.bin(Op::Sub, b.bin(Op::Sub, g, mean(b, g, axes)), b.bin(Op::Mul, unit, along));
}

BatchNormalizationGradients batchNormalizationGradients(Composer &b, UOpRef g, UOpRef given, UOpRef scale, UOpRef mean,
                                                        UOpRef variance, UOpRef inverse,
                                                        const BatchNormalizationOptions &options) {
  UOpRef x = b.widen(given);
  if (!x || !b.requireFloat(x) || !b.requireRank(x, options.axis + 1)) return {};
  DType outer = scale ? scale->dtype : given->dtype;
  auto wide = [&](UOpRef v) { return b.cast(v, x->dtype); };
  auto spread = [&](UOpRef v) { return options.perElement ? v : alongAxis(b, v, x->rank(), options.axis); };
  g = wide(g), scale = wide(scale), inverse = wide(inverse);
  UOpRef deviation = inverse ? nullptr : deviationOf(b, wide(variance), options.epsilon);
  UOpRef centred = b.bin(Op::Sub, x, spread(wide(mean)));
  UOpRef unit = inverse ? b.bin(Op::Mul, centred, spread(inverse)) : b.bin(Op::Div, centred, spread(deviation));
  if (b.failed() || !unit || !g) return {};
  Ints axes = axesOfBatch(x, options);
  UOpRef factor = inverse; // scale / deviation
  if (!inverse)
    factor = b.bin(Op::Div, scale ? scale : b.literal(deviation, 1), deviation);
  else if (scale)
    factor = b.bin(Op::Mul, scale, inverse);
  UOpRef rest = options.ofBatch ? throughStandardization(b, g, unit, axes) : g;
  auto sum = [&](UOpRef v) { return b.cast(b.squeeze(b.reduce(ReduceKind::Sum, v, axes), axes), outer); };
  return {b.cast(b.bin(Op::Mul, rest, spread(factor)), given->dtype), sum(b.bin(Op::Mul, g, unit)), sum(g)};
}

namespace {

struct Standardized {
  UOpRef value, mean, inverse;
};

/// (x - mean) / sqrt(variance + epsilon), the variance two-pass, the inverse once per row.
Standardized standardize(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, double epsilon) {
  UOpRef m = mean(b, x, axes), centred = b.bin(Op::Sub, x, m);
  UOpRef deviation = deviationOf(b, variance(b, x, axes, 0, /*keep=*/true), epsilon);
  UOpRef inverse = b.bin(Op::Div, b.literal(deviation, 1), deviation);
  return {b.bin(Op::Mul, centred, inverse), m, inverse};
}

/// The first stage of a normalization in its type.
struct Stage {
  Composer &b;
  DType type;

  UOpRef in(UOpRef x) { return b.widen(b.cast(x, type)); }
  UOpRef round(UOpRef y) { return b.cast(y, type); }
  /// y in the type in which the second stage computes: that of `like`, widened.
  UOpRef out(UOpRef y, UOpRef like) {
    if (!y || !like) return nullptr;
    if (like->dtype != type) y = round(y);
    return b.cast(y, like->dtype == DType::F64 ? DType::F64 : DType::F32);
  }
};

} // namespace

LayerNormalized layerNormalization(Composer &b, UOpRef given, UOpRef scale, UOpRef bias,
                                   const LayerNormalizationOptions &options) {
  Stage stage{b, options.stage};
  UOpRef x = stage.in(given);
  if (!b.requireFloat(given)) return {};
  int64_t axis = b.axis(options.axis, given->rank());
  if (b.failed()) return {};
  Standardized s = standardize(b, x, axesBetween(axis, x->rank()), options.epsilon);
  UOpRef y = stage.out(s.value, given);
  if (scale) y = b.bin(Op::Mul, y, b.widen(scale));
  if (bias) y = b.bin(Op::Add, y, b.widen(bias));
  return {b.cast(y, given->dtype), stage.round(s.mean), stage.round(s.inverse)};
}

LayerNormalized rmsNormalization(Composer &b, UOpRef given, UOpRef scale, const LayerNormalizationOptions &options) {
  Stage stage{b, options.stage};
  UOpRef x = stage.in(given);
  if (!b.requireFloat(given) || (scale && !b.requireFloat(scale))) return {};
  int64_t axis = b.axis(options.axis, given->rank());
  if (b.failed()) return {};
  UOpRef squares = mean(b, b.bin(Op::Mul, x, x), axesBetween(axis, x->rank()));
  UOpRef root = deviationOf(b, squares, options.epsilon);
  UOpRef inverse = b.bin(Op::Div, b.literal(root, 1), root);
  UOpRef y = stage.out(b.bin(Op::Mul, x, inverse), given);
  if (!scale) return {b.cast(y, given->dtype), nullptr, stage.round(inverse)};
  if (y && scale->dtype == DType::F64) y = b.cast(y, DType::F64);
  y = b.bin(Op::Mul, y, b.cast(scale, y ? y->dtype : DType::F32));
  return {b.cast(y, scale->dtype), nullptr, stage.round(inverse)};
}

BatchNormalizationGradients layerNormalizationGradients(Composer &b, UOpRef g, UOpRef given, UOpRef scale, UOpRef mean,
                                                        UOpRef inverse, int64_t axis) {
  UOpRef x = b.widen(given);
  if (!b.requireFloat(x)) return {};
  axis = b.axis(axis, x->rank());
  DType outer = scale ? scale->dtype : given->dtype;
  g = b.cast(g, x->dtype), mean = b.cast(mean, x->dtype), inverse = b.cast(inverse, x->dtype);
  UOpRef unit = b.bin(Op::Mul, b.bin(Op::Sub, x, mean), inverse);
  if (b.failed() || !unit || !g) return {};
  Ints samples = axesBetween(0, axis);
  UOpRef scaled = scale ? b.bin(Op::Mul, g, b.cast(scale, x->dtype)) : g;
  UOpRef ofX = b.bin(Op::Mul, throughStandardization(b, scaled, unit, axesBetween(axis, x->rank())), inverse);
  auto sum = [&](UOpRef v) { return b.cast(b.squeeze(b.reduce(ReduceKind::Sum, v, samples), samples), outer); };
  return {b.cast(ofX, given->dtype), sum(b.bin(Op::Mul, g, unit)), sum(g)};
}

UOpRef instanceNormalization(Composer &b, UOpRef given, UOpRef scale, UOpRef bias, double epsilon) {
  UOpRef x = b.widen(given);
  if (!b.requireFloat(x) || !b.requireRank(x, 3)) return nullptr;
  UOpRef y = standardize(b, x, axesBetween(2, x->rank()), epsilon).value;
  return y ? b.cast(perChannelAffine(b, y, b.widen(scale), b.widen(bias)), given->dtype) : nullptr;
}

/// The extents of x [N, C, ...] as [N, groups, C / groups, ...]; none after a failure.
static Dims groupedDims(Composer &b, UOpRef x, int64_t groups) {
  int64_t channels = b.constExtent(x, 1, "the number of channels");
  if (groups < 1 || channels % groups)
    b.fail(llvm::Twine(groups) + " groups do not divide " + llvm::Twine(channels) + " channels");
  if (b.failed()) return {};
  Dims grouped(x->shape.begin(), x->shape.end());
  grouped[1] = b.idx(channels / groups);
  grouped.insert(grouped.begin() + 1, b.idx(groups));
  return grouped;
}

LayerNormalized groupNormalization(Composer &b, UOpRef given, UOpRef scale, UOpRef bias,
                                   const GroupNormalizationOptions &options) {
  Stage stage{b, options.stage.value_or(DType::F32)};
  UOpRef x = options.stage ? stage.in(given) : b.widen(given);
  if (!b.requireFloat(given) || !b.requireRank(x, 2)) return {};
  Dims grouped = groupedDims(b, x, options.groups);
  if (b.failed()) return {};
  Ints axes = axesBetween(2, grouped.size());
  Standardized s = standardize(b, b.reshape(x, grouped), axes, options.epsilon);
  UOpRef y = options.stage ? stage.out(s.value, given) : s.value;
  UOpRef factor = b.widen(scale), shift = b.widen(bias);
  if (!y || b.failed()) return {};
  y = options.perGroup ? b.reshape(perChannelAffine(b, y, factor, shift), x->shape)
                       : perChannelAffine(b, b.reshape(y, x->shape), factor, shift);
  return {b.cast(y, given->dtype), b.squeeze(s.mean, axes), b.squeeze(s.inverse, axes)};
}

BatchNormalizationGradients groupNormalizationGradients(Composer &b, UOpRef g, UOpRef given, UOpRef scale, UOpRef mean,
                                                        UOpRef inverse, int64_t groups) {
  UOpRef x = b.widen(given);
  if (!b.requireFloat(x) || !b.requireRank(x, 2)) return {};
  DType outer = scale ? scale->dtype : given->dtype;
  Dims grouped = groupedDims(b, x, groups);
  if (b.failed()) return {};
  Ints axes = axesBetween(2, grouped.size()), others = {0};
  for (unsigned axis = 2; axis < x->rank(); ++axis) others.push_back(axis);
  auto statistic = [&](UOpRef v) { return b.unsqueeze(b.cast(v, x->dtype), axes); };
  g = b.cast(g, x->dtype), inverse = statistic(inverse);
  UOpRef unit = b.bin(Op::Mul, b.bin(Op::Sub, b.reshape(x, grouped), statistic(mean)), inverse);
  UOpRef scaled = scale ? b.bin(Op::Mul, g, b.perChannel(b.cast(scale, x->dtype), x->rank())) : g;
  scaled = b.reshape(scaled, grouped);
  if (b.failed() || !unit || !scaled) return {};
  UOpRef ofX = b.bin(Op::Mul, throughStandardization(b, scaled, unit, axes), inverse);
  auto sum = [&](UOpRef v) { return b.cast(b.squeeze(b.reduce(ReduceKind::Sum, v, others), others), outer); };
  return {b.cast(b.reshape(ofX, x->shape), given->dtype), sum(b.bin(Op::Mul, g, b.reshape(unit, x->shape))), sum(g)};
}

UOpRef localResponseNormalization(Composer &b, UOpRef given, const LocalResponseOptions &options) {
  UOpRef x = b.widen(given);
  int64_t size = options.size;
  if (!b.requireFloat(x) || !b.requireRank(x, 2)) return nullptr;
  if (size < 1 || size > (1 << 24)) b.fail(b.hints.option("size") + " is " + llvm::Twine(size) + ", expected 1..2^24");
  b.requireLeast(x->shape[1], 1, "the number of channels", "0");
  if (b.failed()) return nullptr;
  Dims before(x->rank(), b.idx(0)), after = before;
  before[1] = b.idx((size - 1) / 2);
  after[1] = b.idx(size / 2);
  UOpRef squares = b.pad(b.bin(Op::Mul, x, x), before, after, uint64_t(b.b.lit(x->dtype, -0.0)->ints[0]));
  UOpRef seen = squares ? b.make(Op::Window, {squares}, {1, size, 1, 1}) : nullptr;
  if (!seen) return nullptr;
  int64_t last = seen->rank() - 1;
  UOpRef sum = b.squeeze(b.reduce(ReduceKind::Sum, seen, {last}, /*chain=*/true), {last});
  UOpRef base = b.bin(Op::Add, b.bin(Op::Mul, sum, options.alpha / double(size)), options.bias);
  return b.cast(b.bin(Op::Div, x, b.bin(Op::Pow, base, options.beta)), given->dtype);
}

UOpRef lpNormalization(Composer &b, UOpRef given, int64_t axis, int64_t p) {
  UOpRef x = b.widen(given);
  if (p != 1 && p != 2) b.fail(b.hints.option("p") + " is " + llvm::Twine(p) + ", expected 1 or 2");
  if (!b.requireFloat(x) || !b.requireRank(x, 1)) return nullptr;
  axis = b.axis(axis, x->rank());
  if (b.failed()) return nullptr;
  UOpRef norm = b.reduce(ReduceKind::Sum, p == 1 ? b.un(Op::Abs, x) : b.bin(Op::Mul, x, x), {axis});
  if (p == 2) norm = rootOfSquares(b, norm);
  UOpRef zero = b.literal(x, 0), none = b.bin(Op::Eq, norm, zero);
  if (b.wantsGradients()) norm = b.select(none, b.literal(x, 1), norm); // what is not chosen is finite in a gradient
  return b.cast(b.select(none, zero, b.bin(Op::Div, x, norm)), given->dtype);
}

UOpRef meanVarianceNormalization(Composer &b, UOpRef given, llvm::ArrayRef<int64_t> givenAxes) {
  UOpRef x = b.widen(given);
  if (!b.requireFloat(x)) return nullptr;
  Ints axes = b.axes(givenAxes, x->rank());
  if (b.failed()) return nullptr;
  UOpRef centred = b.bin(Op::Sub, x, mean(b, x, axes));
  UOpRef deviation = rootOfSquares(b, variance(b, x, axes, 0, /*keep=*/true));
  return b.cast(b.bin(Op::Div, centred, b.bin(Op::Add, deviation, 1e-9)), given->dtype);
}

} // namespace astra::compose

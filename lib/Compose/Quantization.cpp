//===- Quantization.cpp: quantized tensors -------------------------------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    what Quantization.h says.
#include "astra/Compose/Quantization.h"
#include "astra/Compose/Product.h"
#include "astra/IR/Index.h"

namespace astra::compose {

namespace {

bool isSmallFloat(DType t) { return info(t).cls == DTypeClass::Storage && info(t).exponentBits; }
/// int2 and uint2 as well, which are no arithmetic types of Astra's.
bool isInteger(DType t) { return isInt(t) || (info(t).cls == DTypeClass::Storage && !info(t).exponentBits); }

UOpRef asScalar(Composer &b, UOpRef x) {
  return x && x->rank() == 1 && x->shape[0]->constIndex() == 1 ? b.reshape(x, {}) : x;
}

/// How scales and zero points lie over x.
struct Granularity {
  int64_t axis, block;

  Granularity(Composer &b, const QuantizationOptions &options) : axis(options.axis), block(options.block) {
    if (block < 0 || block > int64_t(1) << 32)
      b.fail(b.hints.option("block_size") + " is " + llvm::Twine(block) + ", expected 0 to 2^32");
  }

  /// A scale or zero point so that it broadcasts to x.
  UOpRef spread(Composer &b, UOpRef value, UOpRef x) const {
    value = asScalar(b, value);
    if (!value || b.failed() || value->rank() == 0) return value;
    int64_t at = x->rank() == 1 ? 0 : b.axis(axis, x->rank());
    if (b.failed()) return nullptr;
    if (!block) {
      if (!b.requireRank(value, 1, 1)) return nullptr;
      Dims dims(x->rank(), b.idx(1));
      dims[at] = value->shape[0];
      return b.broadcastTo(b.reshape(value, dims), x->shape);
    }
    if (!b.requireRank(value, x->rank(), x->rank())) return nullptr;
    UOpRef extent = x->shape[at], blocks = value->shape[at], covered = idxMul(b.c, blocks, b.idx(block));
    if (idxSub(b.c, covered, extent)->lo < 0 || idxSub(b.c, covered, extent)->lo >= block)
      return b.fail("blocks of " + llvm::Twine(block) + " along axis " + llvm::Twine(at) + " of " + dimsText(x->shape) +
                    " do not fit scales or zero points of shape " + dimsText(value->shape));
    Dims one(value->shape.begin(), value->shape.end()), repeated, whole = one, zero(x->rank(), b.idx(0));
    one.insert(one.begin() + at + 1, b.idx(1));
    repeated = one;
    repeated[at + 1] = b.idx(block);
    whole[at] = covered;
    UOpRef all = b.reshape(b.broadcastTo(b.reshape(value, one), repeated), whole);
    return all ? b.shrink(all, zero, x->shape) : nullptr;
  }
};

/// Rounded to nearest even (an integer type), the zero point added, saturated. `zero` is null where there is none.
UOpRef quantized(Composer &b, UOpRef quotient, UOpRef zero, DType to, bool saturate) {
  if (!quotient) return nullptr;
  if (isInteger(to)) quotient = b.un(Op::RoundEven, quotient);
  quotient = b.widen(quotient); // where a sum with the zero point is exact before it is out of range
  if (zero && quotient) quotient = b.bin(Op::Add, quotient, b.cast(zero, quotient->dtype));
  return b.cast(quotient, to, saturate && isSmallFloat(to) && bitWidth(to) == 8);
}

/// x - zero: exact in i32 where x is of 16 bits or fewer.
UOpRef centered(Composer &b, UOpRef x, UOpRef zero) {
  if (!x) return nullptr;
  x = b.cast(x, isSmallFloat(x->dtype) ? DType::F32 : DType::I32);
  return zero && x ? b.bin(Op::Sub, x, b.broadcastTo(b.cast(zero, x->dtype), x->shape)) : x;
}

} // namespace

// ---- linear quantization

UOpRef quantize(Composer &b, UOpRef x, UOpRef scale, UOpRef zero, const QuantizationOptions &options) {
  Granularity g(b, options);
  if (b.failed() || !x || !scale) return nullptr;
  DType to = options.to, precision = options.precision;
  if (zero && to != DType::Void && to != zero->dtype)
    b.fail(llvm::Twine(b.hints.option("output_dtype") + " is ") + info(to).text + ", the zero point is of type " +
           info(zero->dtype).text);
  if (zero) to = zero->dtype;
  if (to == DType::Void) to = DType::U8;
  if (precision == DType::Void) // of the scale; integers divide exactly enough to be rounded once
    precision = isFloat(scale->dtype) ? scale->dtype : isInt(scale->dtype) ? DType::F64 : DType::F32;
  if (!isFloat(precision))
    b.fail(llvm::Twine(b.hints.option("precision") + " is ") + info(precision).text + ", expected a float type");
  if (!isInteger(to) && !isSmallFloat(to))
    b.fail(llvm::Twine("the quantized type is ") + info(to).text + ", expected an integer or a narrow float type");
  if (b.failed()) return nullptr;
  UOpRef quotient = b.bin(Op::Div, b.cast(x, precision), b.cast(g.spread(b, scale, x), precision));
  return quantized(b, quotient, zero ? g.spread(b, zero, x) : nullptr, to, options.saturate);
}

UOpRef dequantize(Composer &b, UOpRef x, UOpRef scale, UOpRef zero, const QuantizationOptions &options) {
  Granularity g(b, options);
  DType to = options.to;
  if (b.failed() || !x || !scale) return nullptr;
  if (to == DType::Void) to = scale->dtype;
  if (!isFloat(to)) b.fail(llvm::Twine("the result would be of type ") + info(to).text + ": give 'output_dtype'");
  if (zero && zero->dtype != x->dtype)
    b.fail(llvm::Twine("the zero point is of type ") + info(zero->dtype).text + ", the operand of type " +
           info(x->dtype).text);
  if (b.failed()) return nullptr;
  UOpRef value = centered(b, x, zero ? g.spread(b, zero, x) : nullptr);
  UOpRef product = b.bin(Op::Mul, b.cast(value, DType::F32), b.cast(g.spread(b, scale, x), DType::F32));
  return b.cast(product, to);
}

/// By extremes that hold 0.
static DynamicallyQuantized quantizeBetween(Composer &b, UOpRef x, UOpRef least, UOpRef most) {
  UOpRef range = b.select(b.bin(Op::Eq, most, least), b.literal(x, 1), b.bin(Op::Sub, most, least));
  UOpRef scale = b.bin(Op::Div, range, 255);
  UOpRef zero = b.cast(b.un(Op::RoundEven, b.un(Op::Neg, b.bin(Op::Div, least, scale))), DType::U8);
  return {quantized(b, b.bin(Op::Div, x, scale), zero, DType::U8, true), scale, zero};
}

DynamicallyQuantized quantizeByRange(Composer &b, UOpRef x) {
  if (!b.requireFloat(x)) return {};
  Ints all = axesBetween(0, x->rank());
  auto extreme = [&](ReduceKind kind, Op op) { return b.bin(op, b.reshape(b.reduce(kind, x, all), {}), 0.0); };
  UOpRef most = extreme(ReduceKind::Max, Op::Max), least = extreme(ReduceKind::Min, Op::Min);
  return quantizeBetween(b, x, least, most);
}

DynamicallyQuantized quantizeByRange(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes) {
  if (!b.requireFloat(x)) return {};
  UOpRef most = b.bin(Op::Max, b.reduce(ReduceKind::Max, x, axes), 0.0);
  UOpRef least = b.bin(Op::Min, b.reduce(ReduceKind::Min, x, axes), 0.0);
  return quantizeBetween(b, x, least, most);
}

// ---- products

namespace {

/// The scale or zero point of a matrix whose rows (columns) have one each, so that it broadcasts to a product.
UOpRef perLine(Composer &b, UOpRef value, bool rows) {
  value = asScalar(b, value);
  return value && value->rank() == 1 && rows ? b.unsqueeze(value, {1}) : value;
}

/// x * scales, quantized by `to` and of its type. It is open how a scale of rank 1 of the result would lie.
UOpRef requantized(Composer &b, UOpRef x, UOpRef scales, const Quantized &to) {
  UOpRef scale = asScalar(b, to.scale), zero = asScalar(b, to.zero);
  if (!x || !scales || !scale || !zero) return nullptr;
  if (scale->rank() == 1 || zero->rank() == 1)
    return b.unsupported("a scale or zero point of the result of shape " +
                         dimsText((scale->rank() == 1 ? scale : zero)->shape) +
                         " is not supported: give one element, or the rank of the result");
  UOpRef factor = b.bin(Op::Div, scales, b.cast(scale, DType::F32));
  UOpRef value = b.bin(Op::Mul, b.cast(x, DType::F32), factor);
  UOpRef spread = value ? b.broadcastTo(zero, value->shape) : nullptr;
  return spread ? quantized(b, value, spread, zero->dtype, true) : nullptr;
}

/// The exact product of integers, or the f32 one of narrow floats, of operands made matrices; `squeezed` are the axes
/// of extent 1 that the result has for that.
UOpRef centeredProduct(Composer &b, const Quantized &left, const Quantized &right, Ints &squeezed) {
  UOpRef x = left.value, y = right.value;
  if (!b.requireRank(x, 1) || !b.requireRank(y, 1)) return nullptr;
  bool row = x->rank() == 1, column = y->rank() == 1;
  if (row) x = b.unsqueeze(x, {0});
  if (column) y = b.unsqueeze(y, {1});
  x = centered(b, x, perLine(b, left.zero, true));
  y = centered(b, y, perLine(b, right.zero, false));
  if (!x || !y) return nullptr;
  if (x->dtype != y->dtype) x = b.cast(x, DType::F32), y = b.cast(y, DType::F32);
  UOpRef z = product(b, x, y);
  if (row && z) squeezed.push_back(z->rank() - 2);
  if (column && z) squeezed.push_back(z->rank() - 1);
  return z;
}

} // namespace

UOpRef integerProduct(Composer &b, const Quantized &x, const Quantized &y) {
  Ints squeezed;
  UOpRef z = centeredProduct(b, x, y, squeezed);
  return z ? b.squeeze(z, squeezed) : nullptr;
}

UOpRef quantizedProduct(Composer &b, const Quantized &x, const Quantized &y, const Quantized &to) {
  Ints squeezed;
  UOpRef z = centeredProduct(b, x, y, squeezed);
  UOpRef scales =
      b.bin(Op::Mul, b.cast(perLine(b, x.scale, true), DType::F32), b.cast(perLine(b, y.scale, false), DType::F32));
  UOpRef result = requantized(b, z, scales, to);
  if (result && z && result->shape != z->shape)
    b.fail("scales of shape " + dimsText(scales->shape) + " do not fit a product of shape " + dimsText(z->shape));
  return result ? b.squeeze(result, squeezed) : nullptr;
}

// ---- convolutions

namespace {

/// A scale or zero point of one element, or with one for each output channel: [M, 1, ...], `leading` axes before it.
UOpRef perOutput(Composer &b, UOpRef value, UOpRef weights, unsigned leading) {
  value = asScalar(b, value);
  if (!value || !weights || value->rank() == 0) return value;
  if (!b.requireRank(value, 1, 1) || !b.requireRank(weights, leading + 1)) return nullptr;
  if (value->shape[0] != weights->shape[0])
    return b.fail("a scale or zero point of shape " + dimsText(value->shape) + " does not fit weights of shape " +
                  dimsText(weights->shape));
  Dims dims(weights->rank(), b.idx(1));
  dims[leading] = value->shape[0];
  return b.reshape(value, dims);
}

UOpRef single(Composer &b, UOpRef value, const char *what) {
  value = asScalar(b, value);
  if (value && value->rank())
    return b.fail(llvm::Twine(what) + " has the shape " + dimsText(value->shape) + ", expected one element");
  return value;
}

} // namespace

UOpRef integerConvolution(Composer &b, const Quantized &x, const Quantized &w, const ConvolutionOptions &options) {
  UOpRef image = centered(b, x.value, x.zero ? single(b, x.zero, "the zero point of the input") : nullptr);
  UOpRef zero = w.zero ? perOutput(b, w.zero, w.value, 0) : nullptr;
  return convolution(b, image, centered(b, w.value, zero), nullptr, options);
}

UOpRef quantizedConvolution(Composer &b, const Quantized &x, const Quantized &w, const Quantized &to, UOpRef bias,
                            const ConvolutionOptions &options) {
  UOpRef y = integerConvolution(b, x, w, options);
  if (bias && y) y = b.bin(Op::Add, y, b.perChannel(bias, y->rank()));
  UOpRef scales = b.bin(Op::Mul, single(b, x.scale, "the scale of the input"), perOutput(b, w.scale, w.value, 1));
  single(b, to.scale, "the scale of the result");
  single(b, to.zero, "the zero point of the result");
  return b.failed() ? nullptr : requantized(b, y, scales, to);
}

} // namespace astra::compose

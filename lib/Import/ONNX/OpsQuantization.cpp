//===- OpsQuantization.cpp: quantized tensors ------------------------------===//
// Takes:    nodes with scales and zero points: of one element, along an axis, or one for each block of an axis.
// Gives:    quotients rounded to nearest even and saturated; products of 8-bit integers as exact i32 contractions.
// Keeps:    the type of the division that ONNX names; all other arithmetic on f16 and bf16 is in f32, rounded once
// (N4).
#include "OpTable.h"
#include "WindowAttributes.h"
#include "astra/Compose/Product.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

namespace {

bool isSmallFloat(DType t) { return info(t).cls == DTypeClass::Storage && info(t).exponentBits; }
/// int2 and uint2 as well, which are no arithmetic types of Astra's.
bool isInteger(DType t) { return isInt(t) || (info(t).cls == DTypeClass::Storage && !info(t).exponentBits); }

UOpRef asScalar(Node &n, UOpRef x) {
  return x && x->rank() == 1 && x->shape[0]->constIndex() == 1 ? n.reshape(x, {}) : x;
}

// ---- linear quantization

/// How scales and zero points lie over x.
struct Granularity {
  int64_t axis, block;

  Granularity(Node &n, bool anyAxis) : axis(1), block(0) {
    if (!anyAxis) return;
    axis = n.intAttr("axis", 1);
    block = n.intAttr("block_size", 0);
    if (block < 0 || block > int64_t(1) << 32)
      n.fail("attribute 'block_size' is " + llvm::Twine(block) + ", expected 0 to 2^32");
  }

  /// A scale or zero point so that it broadcasts to x.
  UOpRef spread(Node &n, UOpRef value, UOpRef x) const {
    value = asScalar(n, value);
    if (!value || n.failed() || value->rank() == 0) return value;
    int64_t at = x->rank() == 1 ? 0 : n.axis(axis, x->rank());
    if (n.failed()) return nullptr;
    if (!block) {
      if (!n.requireRank(value, 1, 1)) return nullptr;
      Dims dims(x->rank(), n.c.index(1));
      dims[at] = value->shape[0];
      return n.broadcastTo(n.reshape(value, dims), x->shape);
    }
    if (!n.requireRank(value, x->rank(), x->rank())) return nullptr;
    UOpRef extent = x->shape[at], blocks = value->shape[at], covered = idxMul(n.c, blocks, n.c.index(block));
    if (idxSub(n.c, covered, extent)->lo < 0 || idxSub(n.c, covered, extent)->lo >= block)
      return n.fail("blocks of " + llvm::Twine(block) + " along axis " + llvm::Twine(at) + " of " + dimsText(x->shape) +
                    " do not fit scales or zero points of shape " + dimsText(value->shape));
    Dims one(value->shape.begin(), value->shape.end()), repeated, whole = one, zero(x->rank(), n.c.index(0));
    one.insert(one.begin() + at + 1, n.c.index(1));
    repeated = one;
    repeated[at + 1] = n.c.index(block);
    whole[at] = covered;
    UOpRef all = n.reshape(n.broadcastTo(n.reshape(value, one), repeated), whole);
    return all ? n.shrink(all, zero, x->shape) : nullptr;
  }
};

/// Rounded to nearest even (an integer type), the zero point added, saturated. `zero` is null where there is none.
UOpRef quantized(Node &n, UOpRef quotient, UOpRef zero, DType to, bool saturate) {
  if (!quotient) return nullptr;
  if (isInteger(to)) quotient = n.un(Op::RoundEven, quotient);
  quotient = n.widen(quotient); // where a sum with the zero point is exact before it is out of range
  if (zero && quotient) quotient = n.bin(Op::Add, quotient, n.cast(zero, quotient->dtype));
  return n.cast(quotient, to, saturate && isSmallFloat(to) && bitWidth(to) == 8);
}

template <bool anyAxis> void quantizeLinear(Node &n) {
  UOpRef x = n.in(0), scale = n.in(1);
  Granularity g(n, anyAxis);
  DType to = anyAxis ? dtypeAttr(n, "output_dtype") : DType::Void,
        precision = anyAxis ? dtypeAttr(n, "precision") : DType::Void;
  bool saturate = !anyAxis || n.intAttr("saturate", 1);
  if (n.failed() || !x || !scale) return;
  UOpRef zero = n.has(2) ? n.in(2) : nullptr;
  if (zero && to != DType::Void && to != zero->dtype)
    n.fail(llvm::Twine("attribute 'output_dtype' is ") + info(to).text + ", the zero point is of type " +
           info(zero->dtype).text);
  if (zero) to = zero->dtype;
  if (to == DType::Void) to = DType::U8;
  if (precision == DType::Void) // of the scale; integers divide exactly enough to be rounded once
    precision = isFloat(scale->dtype) ? scale->dtype : isInt(scale->dtype) ? DType::F64 : DType::F32;
  if (!isFloat(precision))
    n.fail(llvm::Twine("attribute 'precision' is ") + info(precision).text + ", expected a float type");
  if (!isInteger(to) && !isSmallFloat(to))
    n.fail(llvm::Twine("the quantized type is ") + info(to).text + ", expected an integer or a narrow float type");
  if (n.failed()) return;
  UOpRef quotient = n.bin(Op::Div, n.cast(x, precision), n.cast(g.spread(n, scale, x), precision));
  n.give(quantized(n, quotient, zero ? g.spread(n, zero, x) : nullptr, to, saturate));
}

/// x - zero: exact in i32 where x is of 16 bits or fewer.
UOpRef centered(Node &n, UOpRef x, UOpRef zero) {
  if (!x) return nullptr;
  x = n.cast(x, isSmallFloat(x->dtype) ? DType::F32 : DType::I32);
  return zero && x ? n.bin(Op::Sub, x, n.broadcastTo(n.cast(zero, x->dtype), x->shape)) : x;
}

template <bool anyAxis> void dequantizeLinear(Node &n) {
  UOpRef x = n.in(0), scale = n.in(1);
  Granularity g(n, anyAxis);
  DType to = anyAxis ? dtypeAttr(n, "output_dtype") : DType::Void;
  if (n.failed() || !x || !scale) return;
  if (to == DType::Void) to = scale->dtype;
  if (!isFloat(to)) n.fail(llvm::Twine("the result would be of type ") + info(to).text + ": give 'output_dtype'");
  if (n.has(2) && n.in(2)->dtype != x->dtype)
    n.fail(llvm::Twine("the zero point is of type ") + info(n.in(2)->dtype).text + ", the operand of type " +
           info(x->dtype).text);
  if (n.failed()) return;
  UOpRef value = centered(n, x, n.has(2) ? g.spread(n, n.in(2), x) : nullptr);
  UOpRef product = n.bin(Op::Mul, n.cast(value, DType::F32), n.cast(g.spread(n, scale, x), DType::F32));
  n.give(n.cast(product, to));
}

/// To u8, by the range of x widened to hold 0.
void dynamicQuantizeLinear(Node &n) {
  UOpRef x = n.in(0);
  if (!n.requireFloat(x)) return;
  Ints all;
  for (unsigned i = 0; i < x->rank(); ++i) all.push_back(i);
  auto extreme = [&](ReduceKind kind, Op op) { return n.bin(op, n.reshape(n.reduce(kind, x, all), {}), 0.0); };
  UOpRef most = extreme(ReduceKind::Max, Op::Max), least = extreme(ReduceKind::Min, Op::Min);
  UOpRef range = n.select(n.bin(Op::Eq, most, least), n.literal(x, 1), n.bin(Op::Sub, most, least));
  UOpRef scale = n.bin(Op::Div, range, 255);
  UOpRef zero = n.cast(n.un(Op::RoundEven, n.un(Op::Neg, n.bin(Op::Div, least, scale))), DType::U8);
  n.give(0, quantized(n, n.bin(Op::Div, x, scale), zero, DType::U8, true));
  n.give(1, scale);
  n.give(2, zero);
}

// ---- products

/// The scale or zero point of a matrix whose rows (columns) have one each, so that it broadcasts to a product.
UOpRef perLine(Node &n, UOpRef value, bool rows) {
  value = asScalar(n, value);
  return value && value->rank() == 1 && rows ? n.unsqueeze(value, {1}) : value;
}

/// y = x * scale, quantized by input `at` + 1 and of its type. ONNX leaves open how y's scale of rank 1 would lie.
UOpRef requantized(Node &n, UOpRef x, UOpRef scales, unsigned at) {
  UOpRef scale = asScalar(n, n.in(at)), zero = asScalar(n, n.in(at + 1));
  if (!x || !scales || !scale || !zero) return nullptr;
  if (scale->rank() == 1 || zero->rank() == 1)
    return n.unsupported("a scale or zero point of the result of shape " +
                         dimsText((scale->rank() == 1 ? scale : zero)->shape) +
                         " is not supported: give one element, or the rank of the result");
  UOpRef factor = n.bin(Op::Div, scales, n.cast(scale, DType::F32));
  UOpRef value = n.bin(Op::Mul, n.cast(x, DType::F32), factor);
  UOpRef spread = value ? n.broadcastTo(zero, value->shape) : nullptr;
  return spread ? quantized(n, value, spread, zero->dtype, true) : nullptr;
}

/// The exact product of integers, or the f32 one of narrow floats, of operands made matrices; `squeezed` are the axes
/// of extent 1 that the result has for that.
UOpRef centeredProduct(Node &n, UOpRef a, UOpRef zeroA, UOpRef b, UOpRef zeroB, Ints &squeezed) {
  if (!n.requireRank(a, 1) || !n.requireRank(b, 1)) return nullptr;
  bool row = a->rank() == 1, column = b->rank() == 1;
  if (row) a = n.unsqueeze(a, {0});
  if (column) b = n.unsqueeze(b, {1});
  a = centered(n, a, perLine(n, zeroA, true));
  b = centered(n, b, perLine(n, zeroB, false));
  if (!a || !b) return nullptr;
  if (a->dtype != b->dtype) a = n.cast(a, DType::F32), b = n.cast(b, DType::F32);
  UOpRef y = product(n, a, b);
  if (row && y) squeezed.push_back(y->rank() - 2);
  if (column && y) squeezed.push_back(y->rank() - 1);
  return y;
}

void matMulInteger(Node &n) {
  Ints squeezed;
  UOpRef y = centeredProduct(n, n.in(0), n.has(2) ? n.in(2) : nullptr, n.in(1), n.has(3) ? n.in(3) : nullptr, squeezed);
  if (y) n.give(n.squeeze(y, squeezed));
}

void qLinearMatMul(Node &n) {
  Ints squeezed;
  UOpRef y = centeredProduct(n, n.in(0), n.in(2), n.in(3), n.in(5), squeezed);
  UOpRef scales =
      n.bin(Op::Mul, n.cast(perLine(n, n.in(1), true), DType::F32), n.cast(perLine(n, n.in(4), false), DType::F32));
  UOpRef result = requantized(n, y, scales, 6);
  if (result && y && result->shape != y->shape)
    n.fail("scales of shape " + dimsText(scales->shape) + " do not fit a product of shape " + dimsText(y->shape));
  if (result) n.give(n.squeeze(result, squeezed));
}

/// A scale or zero point of one element, or with one for each output channel: [M, 1, ...], `leading` axes before it.
UOpRef perOutput(Node &n, UOpRef value, UOpRef weights, unsigned leading) {
  value = asScalar(n, value);
  if (!value || !weights || value->rank() == 0) return value;
  if (!n.requireRank(value, 1, 1) || !n.requireRank(weights, leading + 1)) return nullptr;
  if (value->shape[0] != weights->shape[0])
    return n.fail("a scale or zero point of shape " + dimsText(value->shape) + " does not fit weights of shape " +
                  dimsText(weights->shape));
  Dims dims(weights->rank(), n.c.index(1));
  dims[leading] = value->shape[0];
  return n.reshape(value, dims);
}

UOpRef single(Node &n, UOpRef value, const char *what) {
  value = asScalar(n, value);
  if (value && value->rank())
    return n.fail(llvm::Twine(what) + " has the shape " + dimsText(value->shape) + ", expected one element");
  return value;
}

void convInteger(Node &n) {
  UOpRef w = n.in(1);
  UOpRef x = centered(n, n.in(0), n.has(2) ? single(n, n.in(2), "the zero point of the input") : nullptr);
  UOpRef zero = n.has(3) ? perOutput(n, n.in(3), w, 0) : nullptr;
  n.give(convolution(n, x, centered(n, w, zero), nullptr, convolutionAttributes(n)));
}

void qLinearConv(Node &n) {
  UOpRef w = n.in(3);
  UOpRef x = centered(n, n.in(0), single(n, n.in(2), "the zero point of the input"));
  UOpRef y = convolution(n, x, centered(n, w, perOutput(n, n.in(5), w, 0)), nullptr, convolutionAttributes(n));
  if (n.has(8) && y) y = n.bin(Op::Add, y, n.perChannel(n.in(8), y->rank()));
  UOpRef scales = n.bin(Op::Mul, single(n, n.in(1), "the scale of the input"), perOutput(n, n.in(4), w, 1));
  single(n, n.in(6), "the scale of the result");
  single(n, n.in(7), "the zero point of the result");
  if (!n.failed()) n.give(requantized(n, y, scales, 6));
}

constexpr Types bytes = only(DType::I8) | only(DType::U8);
constexpr Types smallFloats =
    only(DType::F8E4M3FN) | only(DType::F8E4M3FNUZ) | only(DType::F8E5M2) | only(DType::F8E5M2FNUZ);
constexpr Types quantizable = only(DType::F16) | only(DType::BF16) | only(DType::F32) | only(DType::I32);
constexpr Types quantizedTypes = bytes | smallFloats | only(DType::I16) | only(DType::U16) | only(DType::I32) |
                                 only(DType::I2) | only(DType::U2) | only(DType::I4) | only(DType::U4) |
                                 only(DType::F4E2M1);
constexpr const char *remark = "the division is in the type of the scale, or `precision`; a NaN gives 0";

constexpr Row rows[] = {
    {"QuantizeLinear", 10, 12, 2, 3, quantizeLinear<false>, quantizable, remark, input(1)},
    {"QuantizeLinear", 13, latest, 2, 3, quantizeLinear<true>, quantizable, remark, input(1)},
    {"DequantizeLinear", 10, 12, 2, 3, dequantizeLinear<false>, quantizedTypes, "", input(1)},
    {"DequantizeLinear", 13, latest, 2, 3, dequantizeLinear<true>, quantizedTypes, "", input(1)},
    {"DynamicQuantizeLinear", 11, latest, 1, 1, dynamicQuantizeLinear, only(DType::F32)},
    {"MatMulInteger", 10, latest, 2, 4, matMulInteger, bytes},
    {"QLinearMatMul", 10, latest, 8, 8, qLinearMatMul, bytes | smallFloats,
     "a result with one scale for all, or one of the result's rank"},
    {"ConvInteger", 10, latest, 2, 4, convInteger, bytes},
    {"QLinearConv", 10, latest, 8, 9, qLinearConv, bytes},
};

} // namespace

llvm::ArrayRef<Row> quantizationRows() { return rows; }

} // namespace astra::onnx

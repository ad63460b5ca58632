//===- OpsMicrosoftQuantized.cpp: quantized layers of ONNX Runtime ---------===//
// Takes:    nodes of the domain com.microsoft that ONNX Runtime's quantizer and optimizer write.
// Gives:    the composites of QuantizedLayers.h.
// Source:   ONNX Runtime's ContribOperators documentation.
#include "OpTable.h"
#include "RecurrentAttributes.h"
#include "WindowAttributes.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/FusedAttention.h"
#include "astra/Compose/QuantizedLayers.h"
#include "astra/Compose/Reduction.h"

namespace astra::onnx {

namespace {

using compose::Quantized;

UOpRef optional(Node &n, unsigned i) { return n.has(i) ? n.in(i) : nullptr; }

/// A value, its scale and its zero point, which may be left out, one after the other.
Quantized triple(Node &n, unsigned first) { return {n.in(first), n.in(first + 1), optional(n, first + 2)}; }
/// A scale and a zero point.
Quantized pair(Node &n, unsigned first) { return {nullptr, n.in(first), optional(n, first + 1)}; }

// ---- element by element

void qLinearAdd(Node &n) {
  auto sum = [&](UOpRef x, UOpRef y) { return n.bin(Op::Add, x, y); };
  n.give(quantizedFunction(n, triple(n, 0), triple(n, 3), pair(n, 6), sum));
}

void qLinearMul(Node &n) { n.give(quantizedElementProduct(n, triple(n, 0), triple(n, 3), pair(n, 6))); }

void mulInteger(Node &n) {
  n.give(integerElementProduct(n, {n.in(0), nullptr, optional(n, 1)}, {n.in(2), nullptr, optional(n, 3)}));
}

void qLinearSigmoid(Node &n) {
  n.give(quantizedFunction(n, triple(n, 0), pair(n, 3),
                           [&](UOpRef x) { return activation(n, compose::activations::sigmoid, x, 0, 0); }));
}

void qLinearLeakyRelu(Node &n) {
  double alpha = n.floatAttr("alpha", 0.01f);
  n.give(quantizedFunction(n, triple(n, 0), pair(n, 3),
                           [&](UOpRef x) { return activation(n, compose::activations::leakyRelu, x, alpha, 0); }));
}

void qLinearWhere(Node &n) {
  n.give(quantizedFunction(n, triple(n, 1), triple(n, 4), pair(n, 7),
                           [&](UOpRef x, UOpRef y) { return n.select(n.in(0), x, y); }));
}

// ---- along axes

/// Before opset 13 of the default domain all axes from the one given on are normalized together.
void qLinearSoftmax(Node &n) {
  int64_t given = n.intAttr("axis", -1), opset = n.intAttr("opset", 13);
  n.give(quantizedFunction(n, triple(n, 0), pair(n, 3), [&](UOpRef x) -> UOpRef {
    int64_t rank = x->rank(), axis = n.axis(given, rank);
    return n.failed() ? nullptr : softmax(n, x, compose::axesBetween(axis, opset < 13 ? rank : axis + 1));
  }));
}

void qLinearReduceMean(Node &n) {
  Ints axes = n.intsAttr("axes");
  bool keep = n.intAttr("keepdims", 1) != 0;
  n.give(quantizedFunction(n, triple(n, 0), pair(n, 3), [&](UOpRef x) -> UOpRef {
    Ints all = axes.empty() ? compose::axesBetween(0, x->rank()) : n.axes(axes, x->rank());
    return n.failed() ? nullptr : reduction(n, compose::mean, x, all, keep);
  }));
}

void reduceSumInteger(Node &n) { n.give(integerSum(n, n.in(0), n.intsAttr("axes"), n.intAttr("keepdims", 1) != 0)); }

/// f of an image whose channels may be the last axis.
UOpRef ofImage(Node &n, bool last, UOpRef x, llvm::function_ref<UOpRef(UOpRef)> f) {
  if (!last) return f(x);
  UOpRef y = f(compose::channelsFirst(n, x));
  return y ? compose::channelsLast(n, y) : nullptr;
}

void qLinearAveragePool(Node &n) {
  compose::PoolOptions options{windowAttributes(n), n.intAttr("ceil_mode", 0) != 0,
                               n.intAttr("count_include_pad", 0) != 0};
  bool last = n.intAttr("channels_last", 0) != 0;
  n.give(quantizedFunction(n, triple(n, 0), pair(n, 3), [&](UOpRef x) {
    return ofImage(n, last, x, [&](UOpRef image) { return averagePool(n, image, options); });
  }));
}

void qLinearGlobalAveragePool(Node &n) {
  bool last = n.intAttr("channels_last", 0) != 0;
  n.give(quantizedFunction(n, triple(n, 0), pair(n, 3), [&](UOpRef x) {
    return ofImage(n, last, x, [&](UOpRef image) { return globalAveragePool(n, image); });
  }));
}

void nhwcMaxPool(Node &n) {
  compose::PoolOptions options{windowAttributes(n), n.intAttr("ceil_mode", 0) != 0, false};
  n.give(ofImage(n, true, n.in(0), [&](UOpRef image) { return maxPool(n, image, options); }));
}

void qLinearConcat(Node &n) {
  int64_t axis = n.intAttr("axis", 0);
  if (n.numInputs() % 3 != 2)
    return void(n.fail("the inputs behind the first two are not triples of a value, a scale "
                       "and a zero point"));
  std::vector<Quantized> parts;
  for (unsigned i = 2; i < n.numInputs(); i += 3) {
    UOpRef x = n.in(i);
    parts.push_back(x && isFloat(x->dtype) ? Quantized{x, nullptr, nullptr} : triple(n, i));
  }
  n.give(quantizedConcat(n, parts, pair(n, 0), axis));
}

// ---- products

void qLinearConv(Node &n) {
  compose::ConvolutionOptions options = convolutionAttributes(n);
  bool last = n.intAttr("channels_last", 0) != 0;
  Quantized w = triple(n, 3), to = pair(n, 6);
  n.give(ofImage(n, last, n.in(0), [&](UOpRef image) {
    return quantizedConvolution(n, {image, n.in(1), n.in(2)}, w, to, optional(n, 8), options);
  }));
}

void matMulInteger16(Node &n) { n.give(wrappingProduct(n, n.in(0), n.in(1))); }

void qGemm(Node &n) {
  compose::ScaledProductOptions options{n.floatAttr("alpha", 1), n.intAttr("transA", 0) != 0,
                                        n.intAttr("transB", 0) != 0};
  Quantized to;
  if (n.has(7)) to = pair(n, 7);
  n.give(scaledProduct(n, triple(n, 0), triple(n, 3), optional(n, 6), nullptr, to, options));
}

void matMulIntegerToFloat(Node &n) {
  n.give(scaledProduct(n, {n.in(0), n.in(2), optional(n, 4)}, {n.in(1), n.in(3), optional(n, 5)}, nullptr,
                       optional(n, 6), {}));
}

void dynamicQuantizeMatMul(Node &n) {
  n.give(dynamicProduct(n, n.in(0), {n.in(1), n.in(2), optional(n, 3)}, optional(n, 4)));
}

void qAttention(Node &n) {
  compose::FusedAttentionOptions options;
  options.heads = n.intAttr("num_heads", 0);
  double scale = n.floatAttr("scale", 0);
  if (scale != 0) options.scale = scale;
  options.hidden = n.floatAttr("mask_filter_value", -10000.0f);
  options.causal = n.intAttr("unidirectional", 0) != 0;
  if (n.intAttr("do_rotary", 0)) n.unsupported("attribute 'do_rotary' is set, which is not supported");
  if (n.intAttr("past_present_share_buffer", 0))
    n.unsupported("attribute 'past_present_share_buffer' is set, which is not supported");
  UOpRef all =
      scaledProduct(n, {n.in(0), n.in(3), optional(n, 6)}, {n.in(1), n.in(4), optional(n, 7)}, nullptr, n.in(2), {});
  compose::JoinedProjection p = compose::thirds(n, all);
  compose::FusedAttentionOperands operands;
  operands.query = p.query, operands.key = p.key, operands.value = p.value, operands.mask = optional(n, 5);
  std::tie(operands.pastKey, operands.pastValue) = compose::splitCache(n, optional(n, 8));
  if (n.failed()) return;
  compose::AttentionResult r = fusedAttention(n, operands, options);
  n.give(r.result);
  if (n.wants(1)) n.give(1, compose::joinedCache(n, r.keys, r.values));
}

void dynamicQuantizeLSTM(Node &n) {
  compose::RecurrentOptions options = recurrentAttributes(n);
  options.inputForget = n.intAttr("input_forget", 0) != 0;
  compose::RecurrentOperands operands;
  operands.x = n.in(0), operands.bias = optional(n, 3), operands.lengths = optional(n, 4);
  operands.hidden = optional(n, 5), operands.cell = optional(n, 6), operands.peepholes = optional(n, 7);
  if (n.failed()) return;
  compose::RecurrentResult r =
      quantizedLSTM(n, {n.in(1), n.in(8), n.in(9)}, {n.in(2), n.in(10), n.in(11)}, operands, options);
  if (n.wants(0)) n.give(r.all);
  if (n.wants(1)) n.give(1, r.hidden);
  if (n.wants(2)) n.give(2, r.cell);
}

constexpr Types bytes = only(DType::I8) | only(DType::U8);
constexpr Types shorts = only(DType::I16) | only(DType::U16);

constexpr Row rows[] = {
    {"com.microsoft::QLinearAdd", 1, latest, 7, 8, qLinearAdd, bytes},
    {"com.microsoft::QLinearMul", 1, latest, 7, 8, qLinearMul, bytes},
    {"com.microsoft::MulInteger", 1, latest, 3, 4, mulInteger, bytes},
    {"com.microsoft::QLinearSigmoid", 1, latest, 4, 5, qLinearSigmoid, bytes},
    {"com.microsoft::QLinearLeakyRelu", 1, latest, 4, 5, qLinearLeakyRelu, bytes},
    {"com.microsoft::QLinearWhere", 1, latest, 9, 9, qLinearWhere, boolType},
    {"com.microsoft::QLinearSoftmax", 1, latest, 5, 5, qLinearSoftmax, bytes},
    {"com.microsoft::QLinearReduceMean", 1, latest, 4, 5, qLinearReduceMean, bytes},
    {"com.microsoft::ReduceSumInteger", 1, latest, 1, 1, reduceSumInteger, bytes, "of u8 as u32"},
    {"com.microsoft::QLinearAveragePool", 1, latest, 4, 5, qLinearAveragePool, bytes,
     "pads that count are zeros of the dequantized image"},
    {"com.microsoft::QLinearGlobalAveragePool", 1, latest, 5, 5, qLinearGlobalAveragePool, bytes},
    {"com.microsoft::NhwcMaxPool", 1, latest, 1, 1, nhwcMaxPool, bytes},
    {"com.microsoft::QLinearConcat", 1, latest, 5, anyNumber, qLinearConcat, only(DType::F32)},
    {"com.microsoft::QLinearConv", 1, latest, 8, 9, qLinearConv, bytes},
    {"com.microsoft::MatMulInteger16", 1, latest, 2, 2, matMulInteger16, shorts, "sums wrap"},
    {"com.microsoft::QGemm", 1, latest, 6, 9, qGemm, bytes},
    {"com.microsoft::MatMulIntegerToFloat", 1, latest, 4, 7, matMulIntegerToFloat, bytes},
    {"com.microsoft::DynamicQuantizeMatMul", 1, latest, 3, 5, dynamicQuantizeMatMul, only(DType::F32)},
    {"com.microsoft::QAttention", 1, latest, 5, 9, qAttention, bytes,
     "masks as of MultiHeadAttention; no rotary embedding, no shared buffer"},
    {"com.microsoft::DynamicQuantizeLSTM", 1, latest, 12, 12, dynamicQuantizeLSTM, only(DType::F32),
     "states are quantized by the range that they have in the whole batch, which ONNX Runtime cuts up by threads"},
};

} // namespace

llvm::ArrayRef<Row> microsoftQuantizedRows() { return rows; }

} // namespace astra::onnx

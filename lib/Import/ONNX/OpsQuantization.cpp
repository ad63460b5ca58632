//===- OpsQuantization.cpp: quantized tensors ----------------------------===//
// Takes:    nodes with scales and zero points.
// Gives:    the composites of Quantization.h.
#include "OpTable.h"
#include "WindowAttributes.h"
#include "astra/Compose/Quantization.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

UOpRef optional(Node &n, unsigned i) { return n.has(i) ? n.in(i) : nullptr; }

template <bool anyAxis> void quantizeLinear(Node &n) {
  compose::QuantizationOptions options;
  if (anyAxis) {
    options.axis = n.intAttr("axis", 1);
    options.block = n.intAttr("block_size", 0);
    options.to = dtypeAttr(n, "output_dtype");
    options.precision = dtypeAttr(n, "precision");
    options.saturate = n.intAttr("saturate", 1) != 0;
  }
  n.give(quantize(n, n.in(0), n.in(1), optional(n, 2), options));
}

template <bool anyAxis> void dequantizeLinear(Node &n) {
  compose::QuantizationOptions options;
  if (anyAxis) {
    options.axis = n.intAttr("axis", 1);
    options.block = n.intAttr("block_size", 0);
    options.to = dtypeAttr(n, "output_dtype");
  }
  n.give(dequantize(n, n.in(0), n.in(1), optional(n, 2), options));
}

void dynamicQuantizeLinear(Node &n) {
  compose::DynamicallyQuantized r = quantizeByRange(n, n.in(0));
  n.give(0, r.value);
  n.give(1, r.scale);
  n.give(2, r.zero);
}

void matMulInteger(Node &n) {
  n.give(integerProduct(n, {n.in(0), nullptr, optional(n, 2)}, {n.in(1), nullptr, optional(n, 3)}));
}

void qLinearMatMul(Node &n) {
  n.give(quantizedProduct(n, {n.in(0), n.in(1), n.in(2)}, {n.in(3), n.in(4), n.in(5)}, {nullptr, n.in(6), n.in(7)}));
}

void convInteger(Node &n) {
  n.give(integerConvolution(n, {n.in(0), nullptr, optional(n, 2)}, {n.in(1), nullptr, optional(n, 3)},
                            convolutionAttributes(n)));
}

void qLinearConv(Node &n) {
  n.give(quantizedConvolution(n, {n.in(0), n.in(1), n.in(2)}, {n.in(3), n.in(4), n.in(5)}, {nullptr, n.in(6), n.in(7)},
                              optional(n, 8), convolutionAttributes(n)));
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
    {"com.microsoft::QuantizeLinear", 1, latest, 2, 3, quantizeLinear<true>, quantizable, remark, input(1)},
    {"com.microsoft::DequantizeLinear", 1, latest, 2, 3, dequantizeLinear<true>, quantizedTypes, "", input(1)},
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

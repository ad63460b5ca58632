//===- QuantizedLayers.h: layers whose operands and results are quantized --===//
// Takes:    operands of 8-bit integers with their scales and zero points, which may be null; `to` says how the result
//           is quantized, and its value is not read: null scales there give floats.
// Gives:    sums of products exact in i32, all else as a function of the dequantized operands in f32, quantized again.
// Keeps:    what Quantization.h keeps. A result is of the zero point's type, or of the operand's where there is none.
#pragma once
#include "astra/Compose/Pooling.h"
#include "astra/Compose/Quantization.h"
#include "astra/Compose/Recurrent.h"

namespace astra::compose {

/// f of one dequantized operand.
UOpRef quantizedFunction(Composer &b, const Quantized &x, const Quantized &to, llvm::function_ref<UOpRef(UOpRef)> f);
/// f of two, which broadcast.
UOpRef quantizedFunction(Composer &b, const Quantized &x, const Quantized &y, const Quantized &to,
                         llvm::function_ref<UOpRef(UOpRef, UOpRef)> f);
/// Products of elements, exact before they are scaled once.
UOpRef quantizedElementProduct(Composer &b, const Quantized &x, const Quantized &y, const Quantized &to);
/// The same as i32, the zero points taken off.
UOpRef integerElementProduct(Composer &b, const Quantized &x, const Quantized &y);
/// Joined along an axis; an operand without a scale is of floats.
UOpRef quantizedConcat(Composer &b, llvm::ArrayRef<Quantized> xs, const Quantized &to, int64_t axis);

/// x [N, ..., C] as [N, C, ...], and back.
UOpRef channelsFirst(Composer &b, UOpRef x);
UOpRef channelsLast(Composer &b, UOpRef x);

struct ScaledProductOptions {
  double alpha = 1;
  bool transposeX = false, transposeY = false; // of matrices
};
/// (alpha * scales) * (x y + integer bias) + float bias, of matrices (Product.h); biases may be null. The scale of y
/// may be one for each column. In f32 where `to` has no scale.
UOpRef scaledProduct(Composer &b, const Quantized &x, const Quantized &y, UOpRef integerBias, UOpRef floatBias,
                     const Quantized &to, const ScaledProductOptions &options = {});
/// The same of floats, which are quantized to u8 by their range.
UOpRef dynamicProduct(Composer &b, UOpRef x, const Quantized &y, UOpRef bias);
/// The product of integers of any width in i32, or u32 where both are unsigned; it wraps.
UOpRef wrappingProduct(Composer &b, UOpRef x, UOpRef y);
/// The sum along axes as i32, or u32 of unsigned integers.
UOpRef integerSum(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, bool keep);

/// An LSTM whose W [D, I, 4 H] and R [D, H, 4 H] are quantized, with one scale for each direction or each column; its
/// input and, in every step, its state are quantized to u8 by the range that they have in the whole batch.
RecurrentResult quantizedLSTM(Composer &b, const Quantized &w, const Quantized &r, RecurrentOperands operands,
                              RecurrentOptions options);

} // namespace astra::compose

//===- Quantization.h: quantized tensors -----------------------------------===//
// Takes:    scales and zero points: of one element, one for each place of an axis, or one for each block of an axis.
// Gives:    quotients rounded to nearest even and saturated; products of 8-bit integers as exact i32 contractions.
// Keeps:    the type of the division that is named; all other arithmetic on f16 and bf16 is in f32, rounded once (N4).
//           A NaN gives 0.
#pragma once
#include "astra/Compose/Convolution.h"

namespace astra::compose {

struct QuantizationOptions {
  int64_t axis = 1;       // along which scales lie, where there are several
  int64_t block = 0;      // elements that share one; 0: each place has its own
  DType to = DType::Void; // of the result; Void: the zero point's, or u8; the scale's where numbers are given back
  DType precision = DType::Void; // of the division; Void: the scale's, where that is a float type
  bool saturate = true;          // casts to 8-bit floats
};

/// x / scale, rounded, plus the zero point, saturated; the zero point may be null. To integers of up to 32 bits and
/// narrow floats.
UOpRef quantize(Composer &b, UOpRef x, UOpRef scale, UOpRef zero, const QuantizationOptions &options);
/// (x - zero) * scale; the zero point is of x's type, or null.
UOpRef dequantize(Composer &b, UOpRef x, UOpRef scale, UOpRef zero, const QuantizationOptions &options);

struct DynamicallyQuantized {
  UOpRef value = nullptr; // u8
  UOpRef scale = nullptr, zero = nullptr;
};
/// To u8, by the range of x widened to hold 0.
DynamicallyQuantized quantizeByRange(Composer &b, UOpRef x);
/// The same for each place of the axes that are not in `axes`, by the range along these: scale and zero point have
/// extent 1 there.
DynamicallyQuantized quantizeByRange(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);

/// A quantized operand: zero point and scale may be null where they are not asked for.
struct Quantized {
  UOpRef value = nullptr, scale = nullptr, zero = nullptr;
};

/// The product of matrices (Product.h) with the zero points taken off, one each or one for each row of x, or column of
/// y: exact in i32, of narrow floats in f32.
UOpRef integerProduct(Composer &b, const Quantized &x, const Quantized &y);
/// The same, quantized by `to`, whose value is not read, and of its type.
UOpRef quantizedProduct(Composer &b, const Quantized &x, const Quantized &y, const Quantized &to);

/// The convolution of integers; the zero point of w may be one for each output channel.
UOpRef integerConvolution(Composer &b, const Quantized &x, const Quantized &w, const ConvolutionOptions &options);
/// The same with a bias [O], i32 or null, quantized by `to`.
UOpRef quantizedConvolution(Composer &b, const Quantized &x, const Quantized &w, const Quantized &to, UOpRef bias,
                            const ConvolutionOptions &options);

} // namespace astra::compose

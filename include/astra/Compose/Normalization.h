//===- Normalization.h: normalizations -------------------------------------===//
// Takes:    x of a float type, [N, C, ...] where channels are spoken of; scales and shifts.
// Gives:    results of x's type, of the scale's for the RMS norm.
// Keeps:    f16 and bf16 compute in f32 and round once; variances are two-pass.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct BatchNormalizationOptions {
  double epsilon = 1e-5;
  bool ofBatch = false;    // the statistics are those of x, not the ones given
  bool perElement = false; // a channel is an element of a sample: statistics along axis 0 alone
  /// How the value is computed. False: x * factor + shift, one product and one sum per element (N4), as ONNX has it,
  /// where factor = scale / deviation and shift = bias - mean * factor. True: (x - mean) / deviation * scale + bias, as
  /// StableHLO and PyTorch have it: nothing cancels where the mean is far from 0.
  bool centred = false;
  int64_t axis = 1; // that of the channels, 0 and up; not of perElement
};

struct BatchNormalized {
  UOpRef value = nullptr;
  UOpRef mean = nullptr, variance = nullptr; // that were taken, of x's type or f32; the variance is divided by `count`
  UOpRef inverse = nullptr;                  // 1 / sqrt(variance + epsilon)
  UOpRef count = nullptr;                    // of values of a channel, an index; null unless ofBatch
};

/// (x - mean) / deviation * scale + bias, where the deviation is sqrt(variance + epsilon). scale, bias, mean and
/// variance are [C], or [C, ...] perElement. No scale is 1, no bias 0; mean and variance are not read where they are
/// `ofBatch`.
BatchNormalized batchNormalization(Composer &b, UOpRef x, UOpRef scale, UOpRef bias, UOpRef mean, UOpRef variance,
                                   const BatchNormalizationOptions &options);

struct BatchNormalizationGradients {
  UOpRef x = nullptr, scale = nullptr, bias = nullptr; // of the types of x, scale, scale: without one all of x's
};

/// What the gradient g of a batch norm's value is by x, scale and bias: the backward pass for who has saved the
/// statistics, [C], that were taken. Either `variance`, or `inverse`, which is 1 / deviation, and then no variance.
/// Where they are `ofBatch` they are functions of x too, else constants. `centred` says nothing here.
BatchNormalizationGradients batchNormalizationGradients(Composer &b, UOpRef g, UOpRef x, UOpRef scale, UOpRef mean,
                                                        UOpRef variance, UOpRef inverse,
                                                        const BatchNormalizationOptions &options);
/// g less its mean, less `unit` times the mean of g * unit, along the axes: times 1 / deviation that is the gradient by
/// x of unit = (x - mean) / deviation, where both are those of x along the axes. Of any normalization that is made so.
UOpRef throughStandardization(Composer &b, UOpRef g, UOpRef unit, llvm::ArrayRef<int64_t> axes);

/// The variance of a sample: times count / (count - 1), 1 at least.
UOpRef unbiased(Composer &b, UOpRef variance, UOpRef count);
/// running * momentum + now * (1 - momentum).
UOpRef movingAverage(Composer &b, UOpRef running, UOpRef now, double momentum);

struct LayerNormalizationOptions {
  int64_t axis = -1; // the first of the axes that are normalized together
  double epsilon = 1e-5;
  /// The type of the first stage, the standardization. The operand goes into it rounded once; what comes out is rounded
  /// to it only where it is another narrow type than the operand's.
  DType stage = DType::F32;
};

/// inverse: 1 / deviation. Both statistics are of the stage's type, their axes of extent 1.
struct LayerNormalized {
  UOpRef value = nullptr, mean = nullptr, inverse = nullptr;
};

/// (x - mean) / sqrt(variance + epsilon) * scale + bias; scale and bias may be null.
LayerNormalized layerNormalization(Composer &b, UOpRef x, UOpRef scale, UOpRef bias,
                                   const LayerNormalizationOptions &options);
/// x / sqrt(mean of squares + epsilon) * scale, of the scale's type, or without one of x's. There is no mean.
LayerNormalized rmsNormalization(Composer &b, UOpRef x, UOpRef scale, const LayerNormalizationOptions &options);
/// What the gradient g of a layer norm's value is by x, scale and bias, for who has saved mean and inverse.
BatchNormalizationGradients layerNormalizationGradients(Composer &b, UOpRef g, UOpRef x, UOpRef scale, UOpRef mean,
                                                        UOpRef inverse, int64_t axis);
/// Each channel of each image by its own statistics; scale and bias are [C], or null.
UOpRef instanceNormalization(Composer &b, UOpRef x, UOpRef scale, UOpRef bias, double epsilon = 1e-5);

struct GroupNormalizationOptions {
  int64_t groups = 1; // of channels, whose number they divide
  double epsilon = 1e-5;
  std::optional<DType> stage = DType::F32; // as of a layer norm; none: that of the operand
  bool perGroup = false;                   // scale and bias are [groups], not [C]
};
/// As a layer norm of each group of channels; its statistics are [N, groups]. scale and bias may be null.
LayerNormalized groupNormalization(Composer &b, UOpRef x, UOpRef scale, UOpRef bias,
                                   const GroupNormalizationOptions &options);
/// What the gradient g of its value is by x, scale and bias, [C] each.
BatchNormalizationGradients groupNormalizationGradients(Composer &b, UOpRef g, UOpRef x, UOpRef scale, UOpRef mean,
                                                        UOpRef inverse, int64_t groups);

struct LocalResponseOptions {
  int64_t size = 1; // neighbouring channels, 1..2^24
  double alpha = 1e-4, beta = 0.75, bias = 1;
};
/// x / (bias + alpha / size * the sum of squares over `size` neighbouring channels) ^ beta.
UOpRef localResponseNormalization(Composer &b, UOpRef x, const LocalResponseOptions &options);

/// x over its norm along an axis, p 1 or 2; 0 where the norm is 0, and there of the gradient 0.
UOpRef lpNormalization(Composer &b, UOpRef x, int64_t axis, int64_t p = 2);
/// (x - mean) / (deviation + 1e-9) along the axes.
UOpRef meanVarianceNormalization(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes);

} // namespace astra::compose

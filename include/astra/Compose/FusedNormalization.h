//===- FusedNormalization.h: what exporters fuse with a layer norm ---------===//
// Takes:    summands of a float type, embedding tables and the integers that index them.
// Gives:    the sum and its layer norm, or RMS norm.
// Keeps:    f16 and bf16 in f32, rounded once: the norm takes the sum before it is rounded (N4).
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct SumNormalized {
  UOpRef value = nullptr, sum = nullptr;    // of the operand's type
  UOpRef mean = nullptr, inverse = nullptr; // f32, the last axis of extent 1; no mean of an RMS norm
};

struct SumNormalizationOptions {
  double epsilon = 1e-12;
  bool rootMeanSquare = false; // x / sqrt(mean of squares + epsilon): no mean is taken off
};

/// The norm along the last axis of x + skip + bias, times the scale, plus the shift. The skip may lack leading axes, or
/// have extent 1 there; bias and shift may be null.
SumNormalized sumNormalization(Composer &b, UOpRef x, UOpRef skip, UOpRef bias, UOpRef scale, UOpRef shift,
                               const SumNormalizationOptions &options);

struct EmbeddingOperands {
  UOpRef words = nullptr;        // integers [batch, sequence]
  UOpRef segments = nullptr;     // the same; null: none
  UOpRef positions = nullptr;    // the same, or [1, sequence]; null: 0, 1, ...
  UOpRef wordTable = nullptr;    // [words, hidden]
  UOpRef placeTable = nullptr;   // [positions, hidden]
  UOpRef segmentTable = nullptr; // null: none
};

/// The layer norm of the sum of the rows.
SumNormalized embeddingNormalization(Composer &b, const EmbeddingOperands &operands, UOpRef scale, UOpRef shift,
                                     double epsilon);

/// How many elements of each row of a mask [batch, sequence] are 1, of the mask's type.
UOpRef onesOfRows(Composer &b, UOpRef mask);
/// 0 for each row of `like` [batch, sequence], of its type.
UOpRef zeroOfRows(Composer &b, UOpRef like);

struct FusedGroupNormalizationOptions {
  int64_t groups = 1;
  double epsilon = 1e-5;
  bool channelsLast = true; // [N, ..., C] in place of [N, C, ...]
  bool swish = false;       // y sigmoid(y) of the result
};

/// The group norm of x + skip + bias, each with its channels where those of x are; skip and bias may be null, a skip of
/// rank 2 is [N, C]. `value` and `sum` of the result alone.
SumNormalized sumGroupNormalization(Composer &b, UOpRef x, UOpRef skip, UOpRef bias, UOpRef scale, UOpRef shift,
                                    const FusedGroupNormalizationOptions &options);

} // namespace astra::compose

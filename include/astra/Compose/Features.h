//===- Features.h: what is done to features before a model, and to labels --===//
// Takes:    features [..., F] of real types; numbers of a fitted model, which are known while building.
// Gives:    elementwise functions, and lookups of keys by comparison with all of them.
// Source:   ONNX's ai.onnx.ml; where it is open, ONNX Runtime's kernels.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// (x - offset) * scale in f32; one number for all features or one for each, none for 0 and 1.
UOpRef scaledFeatures(Composer &b, UOpRef x, llvm::ArrayRef<float> offset, llvm::ArrayRef<float> scale);

/// What a row is divided by: its greatest element, the sum of magnitudes, the root of the sum of squares.
enum class RowNorm { Max, Magnitudes, Euclidean };
/// Rows over their norms, in f32; as they are where the norm is 0.
UOpRef normalizedRows(Composer &b, UOpRef x, RowNorm norm);

/// 1 above the threshold, else 0, of x's type.
UOpRef binarized(Composer &b, UOpRef x, double threshold);

/// x with `values`, one for all features or one for each, in place of what equals `replaced`; a NaN equals a NaN.
UOpRef imputed(Composer &b, UOpRef x, llvm::ArrayRef<double> values, double replaced);
UOpRef imputedIntegers(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> values, int64_t replaced);

/// f32 [..., categories]: 1 at the category that x, made an integer, is.
UOpRef oneHotRows(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> categories);

/// The features of x [..., F] or [F] that `index`, taken as flat, names: [..., count].
UOpRef pickedFeatures(Composer &b, UOpRef x, UOpRef index);

/// The value of the key that each element of x equals, the last of equal keys, or `otherwise`, a scalar. A NaN equals a
/// NaN. Keys are of x's type, values of that of `otherwise`.
UOpRef encodedLabels(Composer &b, UOpRef x, const Payload &keys, const Payload &values, UOpRef otherwise);

/// labels[index].
UOpRef labelsAt(Composer &b, UOpRef index, llvm::ArrayRef<int64_t> labels);
/// 1 above 0, else -1.
UOpRef signs(Composer &b, UOpRef x);
/// A score [N, 1] of two classes as (-s, s), s being above 0 for the first.
UOpRef mirrored(Composer &b, UOpRef score);

} // namespace astra::compose

//===- Scores.h: scores of classes, and linear and kernel machines ---------===//
// Takes:    features [N, F] and numbers of a fitted model, which are known while building.
// Gives:    scores [N, targets] in f32 or f64, what they are turned into, labels.
// Keeps:    sums in the order lane64 (N4).
// Source:   ONNX's ai.onnx.ml; where it is open (two classes with one score), ONNX Runtime's kernels.
#pragma once
#include "astra/Compose/Creation.h"

namespace astra::compose {

/// What scores become: softmax; sigmoid; a softmax of those that are not 0; the inverse of a normal distribution, by
/// ONNX's approximation.
enum class ScoreTransform { None, Softmax, Logistic, SoftmaxZero, Probit };

/// scores [N, targets] plus one number for each target, or one for all, or none.
UOpRef plusBase(Composer &b, UOpRef scores, llvm::ArrayRef<double> base);
/// [N, targets], transformed along the last axis.
UOpRef transformed(Composer &b, UOpRef scores, ScoreTransform transform);
/// One score s of two classes: (1 - s, s); of one that has a sign (-s, s); the sigmoids of (-s, s).
UOpRef bothClasses(Composer &b, UOpRef score, bool isSigned, ScoreTransform transform);

/// The label of the greatest score, the first of several: [N], i64.
UOpRef bestLabel(Composer &b, UOpRef scores, llvm::ArrayRef<int64_t> labels);
/// labels[1] where the score [N, 1] is above the threshold, else labels[0]; 1 and 0 where there are no two labels.
UOpRef signLabel(Composer &b, UOpRef score, double threshold, llvm::ArrayRef<int64_t> labels);

struct Classified {
  UOpRef label = nullptr, scores = nullptr; // i64 [N]; [N, classes], or [N, 1] of one score that stays alone
};
/// By scores [N, targets]: the label of the greatest one, and what they become. One score alone stands for two labels,
/// by its sign, and becomes the scores of both.
Classified classified(Composer &b, UOpRef scores, llvm::ArrayRef<int64_t> labels, ScoreTransform transform);

/// x [N, F] or [F], of any real type, as f32 [N, F].
UOpRef featureRows(Composer &b, UOpRef x);
/// Rows x times coefficients [targets, F], plus intercepts, of which there may be none: [N, targets].
UOpRef linearScores(Composer &b, UOpRef x, llvm::ArrayRef<float> coefficients, llvm::ArrayRef<float> intercepts,
                    int64_t targets);

enum class KernelFunction { Linear, Polynomial, Radial, Sigmoid };
struct KernelOptions {
  KernelFunction function = KernelFunction::Linear;
  double gamma = 0, offset = 0, degree = 0;
};
/// The kernel function of each row of x [N, F] and each of the vectors [count, F]: [N, count].
UOpRef kernelValues(Composer &b, UOpRef x, llvm::ArrayRef<float> vectors, int64_t count, const KernelOptions &options);

struct PairwiseScores {
  UOpRef scores = nullptr; // [N, classes * (classes - 1) / 2]: above 0 the first class of a pair
  UOpRef best = nullptr;   // i64 [N]: the class that most pairs prefer, the first of several
};
/// Support vectors, class by class; coefficients [classes - 1, count], as LIBSVM lays them out; an offset for each
/// pair.
PairwiseScores pairwiseScores(Composer &b, UOpRef kernels, llvm::ArrayRef<int64_t> vectorsOfClass,
                              llvm::ArrayRef<float> coefficients, llvm::ArrayRef<float> offsets);

/// The label that most pairs prefer; scores of pairs, of two classes the pair's made one for each.
Classified classifiedByPairs(Composer &b, const PairwiseScores &pairs, llvm::ArrayRef<int64_t> labels,
                             ScoreTransform transform);

} // namespace astra::compose

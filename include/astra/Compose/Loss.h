//===- Loss.h: losses of a classifier --------------------------------------===//
// Takes:    scores or log-probabilities [N, C, ...], the class of each element [N, ...], a weight per class.
// Gives:    the loss per element, their sum, or their weighted mean; f16 and bf16 compute in f32 and round once.
// Keeps:    an ignored element takes no part, whatever class it names and whatever value stands there; a class outside
//           [0, C) reads 0.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct ClassLossOptions {
  enum class Reduction { None, Sum, Mean } reduction = Reduction::Mean;
  std::optional<int64_t> ignored; // a class number
  double smoothing = 0;           // of a cross-entropy: the part of a target that is spread over all classes
};

/// -logs[n, target, ...] * weights[target]; classes are i32 or i64, weights [C] of the type of logs, or null.
UOpRef negativeLogLikelihood(Composer &b, UOpRef logs, UOpRef target, UOpRef weights, const ClassLossOptions &options);

struct CrossEntropy {
  UOpRef loss = nullptr, logs = nullptr; // logs: log(softmax(scores))
};
CrossEntropy crossEntropy(Composer &b, UOpRef scores, UOpRef target, UOpRef weights, const ClassLossOptions &options);

/// The mean over all classes but the target's of max(0, margin - x[target] + x[class]), [N, ...]; of f32 or f64.
UOpRef multiMargin(Composer &b, UOpRef x, UOpRef target, double margin = 1);

struct TemporalLoss {
  UOpRef losses = nullptr;  // [N]: -log of the sum over all alignments
  UOpRef lengths = nullptr; // i64 [N]: of the targets
};
/// Connectionist temporal classification (Graves et al. 2006) of log-probabilities [T, N, C], f32 or f64, and targets
/// [N, L] of an integer type, each as long as it has classes before its first blank.
TemporalLoss temporalLoss(Composer &b, UOpRef logs, UOpRef target, int64_t blank = 0);

} // namespace astra::compose

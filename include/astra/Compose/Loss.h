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
};

/// -logs[n, target, ...] * weights[target]; classes are i32 or i64, weights [C] of the type of logs, or null.
UOpRef negativeLogLikelihood(Composer &b, UOpRef logs, UOpRef target, UOpRef weights, const ClassLossOptions &options);

struct CrossEntropy {
  UOpRef loss = nullptr, logs = nullptr; // logs: log(softmax(scores))
};
CrossEntropy crossEntropy(Composer &b, UOpRef scores, UOpRef target, UOpRef weights, const ClassLossOptions &options);

} // namespace astra::compose

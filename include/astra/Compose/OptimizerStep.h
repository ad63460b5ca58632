//===- OptimizerStep.h: one step of an optimizer, as a function -------------===//
// Takes:    the rate and the number of the step as scalars; a tensor, its gradient and what the optimizer keeps, of one
//           float type.
// Gives:    the tensor and what is kept after the step, as ONNX's domain ai.onnx.preview.training defines them.
// Does not: train a model (astra/NN/Optimizer.h).
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct StepOperands {
  UOpRef rate = nullptr, count = nullptr; // scalars; `count`, an integer, is 0 at the first step
  UOpRef x = nullptr, gradient = nullptr;
  UOpRef kept[2] = {}; // as many as the optimizer has
};

struct StepResult {
  UOpRef x = nullptr;
  UOpRef kept[2] = {};
};

/// `decay` is that of the rate; `regularization` times x is added to the gradient.
struct AdagradStep {
  double decay = 0, epsilon = 0, regularization = 0;
};
StepResult optimizerStep(Composer &b, const StepOperands &operands, const AdagradStep &step);

/// kept: the mean, the mean of squares. `shrinking`: the part that x loses at the end.
struct AdamStep {
  double alpha = 0, beta = 0, epsilon = 0, regularization = 0, shrinking = 0;
};
StepResult optimizerStep(Composer &b, const StepOperands &operands, const AdamStep &step);

/// kept: the momentum.
struct MomentumStep {
  double alpha = 0, beta = 0, regularization = 0;
  bool nesterov = false;
};
StepResult optimizerStep(Composer &b, const StepOperands &operands, const MomentumStep &step);

} // namespace astra::compose

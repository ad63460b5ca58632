//===- Activation.h: activations by name -----------------------------------===//
// Gives:    the activations that the recurrent ops name, with the parameters that each takes.
// Does not: widen or round: x is f32 or f64.
#pragma once
#include "Node.h"

namespace astra::onnx {

/// x, whose gradient is 0 where x equals the bound (of x's dtype and shape, or a scalar). What is detached is x again
/// after the numerics stage, and the choice is gone.
UOpRef flatAt(Node &n, UOpRef x, UOpRef bound);

struct Activation {
  const char *name;
  bool takesAlpha, takesBeta;
  double alpha, beta; // where the model gives none
  UOpRef (*apply)(Node &n, UOpRef x, double alpha, double beta);
};

namespace activations {
extern const Activation relu, tanh, sigmoid, affine, leakyRelu, thresholdedRelu, scaledTanh, hardSigmoid, elu, softsign,
    softplus;
} // namespace activations

/// Capital letters and small ones are the same; null when there is none of this name.
const Activation *findActivation(llvm::StringRef name);
/// "Relu, Tanh, ...": for diagnostics.
std::string activationNames();

} // namespace astra::onnx

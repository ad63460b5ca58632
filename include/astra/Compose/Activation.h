//===- Activation.h: activations -------------------------------------------===//
// Takes:    x of a float type.
// Gives:    f(x), element by element, of x's type; a NaN passes.
// Keeps:    f16 and bf16 compute in f32 and round once. At a kink the derivative is the one that PyTorch takes.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// One that is known by name too, as recurrent layers ask for it. `apply` takes f32 or f64.
struct Activation {
  const char *name;
  bool takesAlpha, takesBeta;
  double alpha, beta; // where the caller gives none
  UOpRef (*apply)(Composer &b, UOpRef x, double alpha, double beta);
};

namespace activations {
/// relu: max(x, 0). affine: alpha x + beta. leakyRelu: alpha x below 0. thresholdedRelu: 0 below alpha. scaledTanh:
/// alpha tanh(beta x). hardSigmoid: alpha x + beta within [0, 1]. elu: alpha (e^x - 1) below 0. softsign: x / (1 +
/// |x|). softplus: log(1 + e^x) without overflow.
extern const Activation relu, tanh, sigmoid, affine, leakyRelu, thresholdedRelu, scaledTanh, hardSigmoid, elu, softsign,
    softplus;
} // namespace activations

/// Capital letters and small ones are the same; null when there is none of this name.
const Activation *findActivation(llvm::StringRef name);
/// "Relu, Tanh, ...": for diagnostics.
std::string activationNames();

/// f(x) of a table's row, x of any float type.
UOpRef activation(Composer &b, const Activation &f, UOpRef x, double alpha, double beta);

/// What a fused op names: one of the table with the parameters that it takes, in their order, or "Clip" with least and
/// greatest; "" is x itself. Parameters that are missing are the table's.
UOpRef fusedActivation(Composer &b, UOpRef x, llvm::StringRef name, llvm::ArrayRef<float> parameters);

/// x, through which no gradient goes where it equals the bound: what is cut at a bound stands still there.
UOpRef flatAt(Composer &b, UOpRef x, UOpRef bound);
/// x between lo and hi, each a scalar or null, of any real type: two selects (N5); at a bound the gradient is 0.
UOpRef clip(Composer &b, UOpRef x, UOpRef lo, UOpRef hi);
/// The same of f32 or f64 values of which no derivative is special.
UOpRef clampBetween(Composer &b, UOpRef x, UOpRef lo, UOpRef hi);

/// slope * x where x is not above 0; the slope broadcasts to x.
UOpRef prelu(Composer &b, UOpRef x, UOpRef slope);
/// x above alpha, else 0.
UOpRef thresholdedRelu(Composer &b, UOpRef x, double alpha = 1);
/// scale x, or scale alpha (e^(inputScale x) - 1) where x is not above 0: what elu, celu and selu are cases of.
UOpRef scaledElu(Composer &b, UOpRef x, double alpha, double scale = 1, double inputScale = 1);
/// alpha (e^(x / alpha) - 1) where x is not above 0.
UOpRef celu(Composer &b, UOpRef x, double alpha = 1);
/// gamma x, or gamma alpha (e^x - 1) where x is not above 0.
UOpRef selu(Composer &b, UOpRef x, double alpha = 1.67326319217681884765625, double gamma = 1.05070102214813232421875);
/// log(1 + e^(beta x)) / beta without overflow; x itself where beta x is above the threshold.
UOpRef thresholdedSoftplus(Composer &b, UOpRef x, double beta = 1, double threshold = 20);
/// log(sigmoid(x)) without overflow.
UOpRef logSigmoid(Composer &b, UOpRef x);
/// x times x / 6 + 1/2 brought within [0, 1].
UOpRef hardSwish(Composer &b, UOpRef x);
/// x tanh(softplus(x)).
UOpRef mish(Composer &b, UOpRef x);
/// x sigmoid(alpha x).
UOpRef swish(Composer &b, UOpRef x, double alpha = 1);
/// x - tanh(x).
UOpRef tanhShrink(Composer &b, UOpRef x);
/// The first half along an axis times the sigmoid of the second.
UOpRef glu(Composer &b, UOpRef x, int64_t axis = -1);
/// swish(gate) * value, of one shape.
UOpRef swiGLU(Composer &b, UOpRef gate, UOpRef value, double alpha = 1);
/// 0.5 x (1 + erf(x / sqrt 2)), or its approximation by tanh.
UOpRef gelu(Composer &b, UOpRef x, bool approximate = false);
/// gelu(x + bias); the bias broadcasts to x, or is null.
UOpRef biasedGelu(Composer &b, UOpRef x, UOpRef bias, bool approximate = false);
/// Of x + bias, cut in two along the last axis: the first half times the gelu of the second.
UOpRef splitGelu(Composer &b, UOpRef x, UOpRef bias);
/// x + bias below -lambda, x - bias above lambda, else 0; integers are compared and moved as f64.
UOpRef shrinkage(Composer &b, UOpRef x, double bias = 0, double lambda = 0.5);
/// -1, 1, or x itself, a zero or a NaN; of any real type.
UOpRef sign(Composer &b, UOpRef x);

} // namespace astra::compose

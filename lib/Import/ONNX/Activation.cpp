//===- Activation.cpp: activations by name ---------------------------------===//
// Takes:    x, of f32 or f64.
// Gives:    f(x), element by element; a NaN passes.
#include "Activation.h"
#include "llvm/ADT/StringExtras.h"

namespace astra::onnx {

UOpRef flatAt(Node &n, UOpRef x, UOpRef bound) {
  return x && bound && isFloat(x->dtype) ? n.select(n.bin(Op::Eq, x, bound), n.un(Op::Detach, x), x) : x;
}

namespace {

UOpRef below(Node &n, UOpRef x, double bound) { return n.bin(Op::Lt, x, bound); }
/// What has two branches that meet at the bound takes the lower one's gradient there, as in PyTorch.
UOpRef above(Node &n, UOpRef x, double bound) { return n.bin(Op::Lt, n.literal(x, bound), x); }

/// select(x < 0, 0, x) (N5). At 0 its gradient is 0, as people expect of relu.
UOpRef relu(Node &n, UOpRef x, double, double) {
  return n.select(below(n, x, 0), n.literal(x, 0), flatAt(n, x, n.literal(x, 0)));
}

UOpRef affine(Node &n, UOpRef x, double alpha, double beta) { return n.bin(Op::Add, n.bin(Op::Mul, x, alpha), beta); }

UOpRef leakyRelu(Node &n, UOpRef x, double alpha, double) {
  return n.select(above(n, x, 0), x, n.bin(Op::Mul, x, alpha));
}

UOpRef thresholdedRelu(Node &n, UOpRef x, double alpha, double) {
  return n.select(below(n, x, alpha), n.literal(x, 0), x);
}

UOpRef tanh(Node &n, UOpRef x, double, double) { return n.un(Op::Tanh, x); }
UOpRef sigmoid(Node &n, UOpRef x, double, double) { return n.un(Op::Sigmoid, x); }

UOpRef scaledTanh(Node &n, UOpRef x, double alpha, double beta) {
  return n.bin(Op::Mul, n.un(Op::Tanh, n.bin(Op::Mul, x, beta)), alpha);
}

UOpRef hardSigmoid(Node &n, UOpRef x, double alpha, double beta) {
  UOpRef y = affine(n, x, alpha, beta), one = n.literal(x, 1);
  y = n.select(below(n, y, 0), n.literal(x, 0), flatAt(n, y, n.literal(x, 0)));
  return n.select(n.bin(Op::Lt, one, y), one, flatAt(n, y, one));
}

UOpRef elu(Node &n, UOpRef x, double alpha, double) {
  return n.select(above(n, x, 0), x, n.bin(Op::Mul, n.un(Op::Expm1, x), alpha));
}

UOpRef softsign(Node &n, UOpRef x, double, double) { return n.bin(Op::Div, x, n.bin(Op::Add, n.un(Op::Abs, x), 1)); }

/// log(1 + e^x), written so that nothing overflows: max(x, 0) + log1p(e^-|x|). The max shares its gradient where both
/// are equal, and |x| has none there: together 1/2 at 0.
UOpRef softplus(Node &n, UOpRef x, double, double) {
  UOpRef tail = n.un(Op::Log1p, n.un(Op::Exp, n.un(Op::Neg, n.un(Op::Abs, x))));
  return n.bin(Op::Add, n.bin(Op::Max, x, n.literal(x, 0)), tail);
}

} // namespace

namespace activations {
const Activation relu{"Relu", false, false, 0, 0, onnx::relu};
const Activation tanh{"Tanh", false, false, 0, 0, onnx::tanh};
const Activation sigmoid{"Sigmoid", false, false, 0, 0, onnx::sigmoid};
const Activation affine{"Affine", true, true, 1, 0, onnx::affine};
const Activation leakyRelu{"LeakyRelu", true, false, 0.01f, 0, onnx::leakyRelu};
const Activation thresholdedRelu{"ThresholdedRelu", true, false, 1, 0, onnx::thresholdedRelu};
const Activation scaledTanh{"ScaledTanh", true, true, 1, 1, onnx::scaledTanh};
const Activation hardSigmoid{"HardSigmoid", true, true, 0.2f, 0.5, onnx::hardSigmoid};
const Activation elu{"Elu", true, false, 1, 0, onnx::elu};
const Activation softsign{"Softsign", false, false, 0, 0, onnx::softsign};
const Activation softplus{"Softplus", false, false, 0, 0, onnx::softplus};
} // namespace activations

static const Activation *const table[] = {
    &activations::relu,       &activations::tanh,        &activations::sigmoid,
    &activations::affine,     &activations::leakyRelu,   &activations::thresholdedRelu,
    &activations::scaledTanh, &activations::hardSigmoid, &activations::elu,
    &activations::softsign,   &activations::softplus,
};

const Activation *findActivation(llvm::StringRef name) {
  for (const Activation *a : table)
    if (name.equals_insensitive(a->name)) return a;
  return nullptr;
}

std::string activationNames() {
  std::string names;
  for (const Activation *a : table) names += (names.empty() ? "" : ", ") + std::string(a->name);
  return names;
}

} // namespace astra::onnx

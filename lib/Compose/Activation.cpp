//===- Activation.cpp: activations -----------------------------------------===//
// Takes:    x, which may be missing or of another type.
// Gives:    f(x), element by element; a NaN passes.
#include "astra/Compose/Activation.h"
#include "llvm/ADT/StringExtras.h"

namespace astra::compose {

UOpRef flatAt(Composer &b, UOpRef x, UOpRef bound) {
  return x && bound && isFloat(x->dtype) ? b.select(b.bin(Op::Eq, x, bound), b.un(Op::Detach, x), x) : x;
}

namespace {

UOpRef below(Composer &b, UOpRef x, double bound) { return b.bin(Op::Lt, x, bound); }
/// What has two branches that meet at the bound takes the lower one's gradient there, as in PyTorch.
UOpRef above(Composer &b, UOpRef x, double bound) { return b.bin(Op::Lt, b.literal(x, bound), x); }

/// select(x < 0, 0, x) (N5). At 0 its gradient is 0, as people expect of relu.
UOpRef relu(Composer &b, UOpRef x, double, double) {
  return b.select(below(b, x, 0), b.literal(x, 0), flatAt(b, x, b.literal(x, 0)));
}

UOpRef affine(Composer &b, UOpRef x, double alpha, double beta) {
  return b.bin(Op::Add, b.bin(Op::Mul, x, alpha), beta);
}

UOpRef leakyRelu(Composer &b, UOpRef x, double alpha, double) {
  return b.select(above(b, x, 0), x, b.bin(Op::Mul, x, alpha));
}

UOpRef thresholded(Composer &b, UOpRef x, double alpha, double) {
  return b.select(below(b, x, alpha), b.literal(x, 0), x);
}

UOpRef tanh(Composer &b, UOpRef x, double, double) { return b.un(Op::Tanh, x); }
UOpRef sigmoid(Composer &b, UOpRef x, double, double) { return b.un(Op::Sigmoid, x); }

UOpRef scaledTanh(Composer &b, UOpRef x, double alpha, double beta) {
  return b.bin(Op::Mul, b.un(Op::Tanh, b.bin(Op::Mul, x, beta)), alpha);
}

UOpRef hardSigmoid(Composer &b, UOpRef x, double alpha, double beta) {
  UOpRef y = affine(b, x, alpha, beta), one = b.literal(x, 1);
  y = b.select(below(b, y, 0), b.literal(x, 0), flatAt(b, y, b.literal(x, 0)));
  return b.select(b.bin(Op::Lt, one, y), one, flatAt(b, y, one));
}

UOpRef elu(Composer &b, UOpRef x, double alpha, double) {
  return b.select(above(b, x, 0), x, b.bin(Op::Mul, b.un(Op::Expm1, x), alpha));
}

UOpRef softsign(Composer &b, UOpRef x, double, double) {
  return b.bin(Op::Div, x, b.bin(Op::Add, b.un(Op::Abs, x), 1));
}

/// log(1 + e^x), written so that nothing overflows: max(x, 0) + log1p(e^-|x|). The max shares its gradient where both
/// are equal, and |x| has none there: together 1/2 at 0.
UOpRef softplus(Composer &b, UOpRef x, double, double) {
  UOpRef tail = b.un(Op::Log1p, b.un(Op::Exp, b.un(Op::Neg, b.un(Op::Abs, x))));
  return b.bin(Op::Add, b.bin(Op::Max, x, b.literal(x, 0)), tail);
}

} // namespace

namespace activations {
const Activation relu{"Relu", false, false, 0, 0, compose::relu};
const Activation tanh{"Tanh", false, false, 0, 0, compose::tanh};
const Activation sigmoid{"Sigmoid", false, false, 0, 0, compose::sigmoid};
const Activation affine{"Affine", true, true, 1, 0, compose::affine};
const Activation leakyRelu{"LeakyRelu", true, false, 0.01f, 0, compose::leakyRelu};
const Activation thresholdedRelu{"ThresholdedRelu", true, false, 1, 0, compose::thresholded};
const Activation scaledTanh{"ScaledTanh", true, true, 1, 1, compose::scaledTanh};
const Activation hardSigmoid{"HardSigmoid", true, true, 0.2f, 0.5, compose::hardSigmoid};
const Activation elu{"Elu", true, false, 1, 0, compose::elu};
const Activation softsign{"Softsign", false, false, 0, 0, compose::softsign};
const Activation softplus{"Softplus", false, false, 0, 0, compose::softplus};
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

// ---- whole ops: f gets the widened operand; what it gives is rounded once

template <class F> static UOpRef widened(Composer &b, UOpRef given, F f) {
  UOpRef x = b.widen(given);
  return b.requireFloat(x) ? b.cast(f(x), given->dtype) : nullptr;
}

UOpRef activation(Composer &b, const Activation &f, UOpRef given, double alpha, double beta) {
  return widened(b, given, [&](UOpRef x) { return f.apply(b, x, alpha, beta); });
}

UOpRef clip(Composer &b, UOpRef x, UOpRef lo, UOpRef hi) {
  if (lo) x = b.select(b.bin(Op::Lt, x, lo), lo, flatAt(b, x, lo));
  if (hi) x = b.select(b.bin(Op::Lt, hi, x), hi, flatAt(b, x, hi));
  return x;
}

UOpRef clampBetween(Composer &b, UOpRef x, UOpRef lo, UOpRef hi) {
  x = b.select(b.bin(Op::Lt, x, lo), lo, x);
  return b.select(b.bin(Op::Lt, hi, x), hi, x);
}

UOpRef fusedActivation(Composer &b, UOpRef x, llvm::StringRef name, llvm::ArrayRef<float> parameters) {
  if (name.empty() || !x) return x;
  if (name.equals_insensitive("Clip")) {
    if (parameters.size() > 2) return b.fail("Clip has " + llvm::Twine(parameters.size()) + " parameters, expected 2");
    UOpRef lo = parameters.empty() ? nullptr : b.literal(x, parameters[0]);
    return clip(b, x, lo, parameters.size() < 2 ? nullptr : b.literal(x, parameters[1]));
  }
  const Activation *f = findActivation(name);
  if (!f) return b.fail("activation '" + name + "' is not known: expected one of Clip, " + activationNames());
  double alpha = f->alpha, beta = f->beta;
  if (f->takesAlpha && !parameters.empty()) alpha = parameters[0];
  if (f->takesBeta && parameters.size() > 1) beta = parameters[1];
  return activation(b, *f, x, alpha, beta);
}

UOpRef prelu(Composer &b, UOpRef given, UOpRef givenSlope) {
  UOpRef x = b.widen(given), slope = b.widen(givenSlope);
  if (!x || !slope) return nullptr;
  UOpRef scaled = b.bin(Op::Mul, x, b.broadcastTo(slope, x->shape));
  return b.cast(b.select(above(b, x, 0), x, scaled), given->dtype);
}

UOpRef thresholdedRelu(Composer &b, UOpRef given, double alpha) {
  return widened(b, given, [&](UOpRef x) { return b.select(above(b, x, alpha), x, b.literal(x, 0)); });
}

UOpRef scaledElu(Composer &b, UOpRef given, double alpha, double scale, double inputScale) {
  auto times = [&](UOpRef x, double k) { return k == 1 ? x : b.bin(Op::Mul, x, k); };
  return widened(b, given, [&](UOpRef x) {
    return b.select(above(b, x, 0), times(x, scale), times(b.un(Op::Expm1, times(x, inputScale)), alpha * scale));
  });
}

UOpRef celu(Composer &b, UOpRef given, double alpha) {
  return widened(b, given, [&](UOpRef x) {
    return b.select(above(b, x, 0), x, b.bin(Op::Mul, b.un(Op::Expm1, b.bin(Op::Div, x, alpha)), alpha));
  });
}

UOpRef selu(Composer &b, UOpRef given, double alpha, double gamma) {
  return widened(b, given, [&](UOpRef x) {
    return b.bin(Op::Mul, b.select(above(b, x, 0), x, b.bin(Op::Mul, b.un(Op::Expm1, x), alpha)), gamma);
  });
}

UOpRef thresholdedSoftplus(Composer &b, UOpRef given, double beta, double threshold) {
  return widened(b, given, [&](UOpRef x) {
    UOpRef scaled = beta == 1 ? x : b.bin(Op::Mul, x, beta), soft = softplus(b, scaled, 0, 0);
    return b.select(above(b, scaled, threshold), x, beta == 1 ? soft : b.bin(Op::Div, soft, beta));
  });
}

UOpRef logSigmoid(Composer &b, UOpRef given) {
  return widened(b, given, [&](UOpRef x) { return b.un(Op::Neg, softplus(b, b.un(Op::Neg, x), 0, 0)); });
}

UOpRef hardSwish(Composer &b, UOpRef given) {
  return widened(b, given, [&](UOpRef x) {
    UOpRef line = b.bin(Op::Add, b.bin(Op::Div, x, 6), 0.5);
    return b.bin(Op::Mul, x, clip(b, line, b.literal(line, 0), b.literal(line, 1)));
  });
}

UOpRef mish(Composer &b, UOpRef given) {
  return widened(b, given, [&](UOpRef x) { return b.bin(Op::Mul, x, b.un(Op::Tanh, softplus(b, x, 0, 0))); });
}

/// sigmoid(alpha x).
static UOpRef gate(Composer &b, UOpRef x, double alpha) {
  return b.un(Op::Sigmoid, alpha == 1 ? x : b.bin(Op::Mul, x, alpha));
}

UOpRef swish(Composer &b, UOpRef given, double alpha) {
  return widened(b, given, [&](UOpRef x) { return b.bin(Op::Mul, x, gate(b, x, alpha)); });
}

UOpRef tanhShrink(Composer &b, UOpRef given) {
  return widened(b, given, [&](UOpRef x) { return b.bin(Op::Sub, x, b.un(Op::Tanh, x)); });
}

/// The extent of half an axis; 0 after a failure.
static int64_t halfOf(Composer &b, UOpRef x, int64_t axis) {
  int64_t size = b.constExtent(x, unsigned(axis), "the axis that is cut in two");
  if (size % 2) b.fail("the axis that is cut in two has " + llvm::Twine(size) + " elements");
  return b.failed() ? 0 : size / 2;
}

UOpRef glu(Composer &b, UOpRef given, int64_t axis) {
  if (!b.requireRank(given, 1)) return nullptr;
  axis = b.axis(axis, given->rank());
  int64_t half = b.failed() ? 0 : halfOf(b, given, axis);
  if (b.failed()) return nullptr;
  return widened(b, given, [&](UOpRef x) {
    return b.bin(Op::Mul, b.part(x, axis, 0, half), b.un(Op::Sigmoid, b.part(x, axis, half, half)));
  });
}

UOpRef swiGLU(Composer &b, UOpRef given, UOpRef givenValue, double alpha) {
  UOpRef value = b.widen(givenValue);
  if (value && given && value->shape != given->shape)
    b.fail("the inputs are " + dimsText(given->shape) + " and " + dimsText(value->shape) + ", expected one shape");
  return widened(b, given, [&](UOpRef x) { return b.bin(Op::Mul, b.bin(Op::Mul, x, gate(b, x, alpha)), value); });
}

/// Of f32 or f64.
static UOpRef wideGelu(Composer &b, UOpRef x, bool approximate) {
  UOpRef inner;
  if (!approximate) {
    inner = b.un(Op::Erf, b.bin(Op::Mul, x, 0.70710678118654752440));
  } else {
    UOpRef cube = b.bin(Op::Mul, b.bin(Op::Mul, x, x), x);
    inner = b.un(Op::Tanh, b.bin(Op::Mul, b.bin(Op::Add, x, b.bin(Op::Mul, cube, 0.044715)), 0.79788456080286535588));
  }
  return b.bin(Op::Mul, b.bin(Op::Mul, x, 0.5), b.bin(Op::Add, inner, 1));
}

UOpRef gelu(Composer &b, UOpRef given, bool approximate) {
  return widened(b, given, [&](UOpRef x) { return wideGelu(b, x, approximate); });
}

/// x + bias, the bias broadcast to x.
static UOpRef withBias(Composer &b, UOpRef x, UOpRef bias) {
  return bias ? b.bin(Op::Add, x, b.broadcastTo(b.cast(bias, x->dtype), x->shape)) : x;
}

UOpRef biasedGelu(Composer &b, UOpRef given, UOpRef bias, bool approximate) {
  return widened(b, given, [&](UOpRef x) -> UOpRef {
    UOpRef sum = withBias(b, x, bias);
    return sum ? wideGelu(b, sum, approximate) : nullptr;
  });
}

UOpRef splitGelu(Composer &b, UOpRef given, UOpRef bias) {
  if (!b.requireRank(given, 1)) return nullptr;
  int64_t last = int64_t(given->rank()) - 1, half = halfOf(b, given, last);
  if (b.failed()) return nullptr;
  return widened(b, given, [&](UOpRef x) -> UOpRef {
    UOpRef sum = withBias(b, x, bias);
    UOpRef right = b.part(sum, last, half, half);
    return right ? b.bin(Op::Mul, b.part(sum, last, 0, half), wideGelu(b, right, false)) : nullptr;
  });
}

UOpRef shrinkage(Composer &b, UOpRef given, double bias, double lambda) {
  if (!given) return nullptr;
  UOpRef x = isInt(given->dtype) ? b.cast(given, DType::F64) : b.widen(given);
  if (!b.requireFloat(x)) return nullptr;
  UOpRef inner = b.select(above(b, x, lambda), b.bin(Op::Sub, x, bias), b.literal(x, 0));
  return b.cast(b.select(b.bin(Op::Lt, x, -lambda), b.bin(Op::Add, x, bias), inner), given->dtype);
}

/// Through what is x itself no gradient goes either.
UOpRef sign(Composer &b, UOpRef x) {
  UOpRef zero = b.literal(x, 0), rest = x && isFloat(x->dtype) ? b.un(Op::Detach, x) : x;
  UOpRef positive = b.select(b.bin(Op::Lt, zero, x), b.literal(x, 1), rest);
  bool isUnsigned = x && !isFloat(x->dtype) && !isSigned(x->dtype);
  return isUnsigned ? positive : b.select(b.bin(Op::Lt, x, zero), b.literal(x, -1), positive);
}

} // namespace astra::compose

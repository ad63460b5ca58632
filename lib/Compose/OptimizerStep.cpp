//===- OptimizerStep.cpp: one step of an optimizer, as a function -----------===//
// Source:   the ONNX operator specification, ai.onnx.preview.training.
#include "astra/Compose/OptimizerStep.h"
#include "astra/Compose/Arithmetic.h"

namespace astra::compose {

namespace {

/// Checks the operands, and gives them with the rate in x's type and the count as a number of it.
std::optional<StepOperands> checked(Composer &b, StepOperands o, unsigned kept) {
  if (!o.rate || !o.count || !o.x || !o.gradient || !b.requireFloat(o.x)) return std::nullopt;
  llvm::SmallVector<UOpRef, 3> like = {o.gradient};
  for (unsigned i = 0; i < kept; ++i) like.push_back(o.kept[i]);
  for (UOpRef y : like) {
    if (!y) return std::nullopt;
    if (y->dtype != o.x->dtype || y->rank() != o.x->rank()) {
      b.fail("a gradient or a state is not of its tensor's type and rank");
      return std::nullopt;
    }
    for (auto [p, q] : llvm::zip(y->shape, o.x->shape))
      if (!b.requireEqual(p, q, "a tensor and its gradient or state")) return std::nullopt;
  }
  auto scalar = [&](UOpRef x) { return b.cast(b.reshape(x, {}), o.x->dtype); };
  o.rate = scalar(o.rate), o.count = scalar(o.count);
  return b.failed() ? std::nullopt : std::optional(o);
}

/// The gradient with `regularization` times x.
UOpRef regularized(Composer &b, const StepOperands &o, double regularization) {
  return b.bin(Op::Add, b.bin(Op::Mul, o.x, regularization), o.gradient);
}

/// weight * x + (1 - weight) * y
UOpRef mixed(Composer &b, UOpRef x, UOpRef y, double weight) {
  return b.bin(Op::Add, b.bin(Op::Mul, x, weight), b.bin(Op::Mul, y, 1 - weight));
}

/// 1 - base^count
UOpRef correction(Composer &b, double base, UOpRef count) {
  return b.bin(Op::Sub, b.literal(count, 1), power(b, b.literal(count, base), count));
}

} // namespace

StepResult optimizerStep(Composer &b, const StepOperands &operands, const AdagradStep &step) {
  std::optional<StepOperands> o = checked(b, operands, 1);
  if (!o) return {};
  UOpRef rate = b.bin(Op::Div, o->rate, b.bin(Op::Add, b.bin(Op::Mul, o->count, step.decay), 1.0));
  UOpRef g = regularized(b, *o, step.regularization), squares = b.bin(Op::Add, o->kept[0], b.bin(Op::Mul, g, g));
  UOpRef divisor = b.bin(Op::Add, b.un(Op::Sqrt, squares), step.epsilon);
  return {b.bin(Op::Sub, o->x, b.bin(Op::Div, b.bin(Op::Mul, g, rate), divisor)), {squares}};
}

StepResult optimizerStep(Composer &b, const StepOperands &operands, const AdamStep &step) {
  std::optional<StepOperands> o = checked(b, operands, 2);
  if (!o) return {};
  UOpRef g = regularized(b, *o, step.regularization), mean = mixed(b, o->kept[0], g, step.alpha),
         squares = mixed(b, o->kept[1], b.bin(Op::Mul, g, g), step.beta);
  // The first step has no correction, which would divide by 0.
  UOpRef corrected = b.bin(Op::Div, b.bin(Op::Mul, o->rate, b.un(Op::Sqrt, correction(b, step.beta, o->count))),
                           correction(b, step.alpha, o->count));
  UOpRef rate = b.select(b.bin(Op::Lt, b.literal(o->count, 0), o->count), corrected, o->rate);
  UOpRef divisor = b.bin(Op::Add, b.un(Op::Sqrt, squares), step.epsilon);
  UOpRef moved = b.bin(Op::Sub, o->x, b.bin(Op::Mul, b.bin(Op::Div, mean, divisor), rate));
  return {b.bin(Op::Mul, moved, 1 - step.shrinking), {mean, squares}};
}

StepResult optimizerStep(Composer &b, const StepOperands &operands, const MomentumStep &step) {
  std::optional<StepOperands> o = checked(b, operands, 1);
  if (!o) return {};
  UOpRef g = regularized(b, *o, step.regularization);
  UOpRef weight = b.select(b.bin(Op::Lt, b.literal(o->count, 0), o->count), b.literal(g, step.beta), b.literal(g, 1));
  UOpRef momentum = b.bin(Op::Add, b.bin(Op::Mul, o->kept[0], step.alpha), b.bin(Op::Mul, g, weight));
  UOpRef direction = step.nesterov ? b.bin(Op::Add, g, b.bin(Op::Mul, momentum, step.alpha)) : momentum;
  return {b.bin(Op::Sub, o->x, b.bin(Op::Mul, direction, o->rate)), {momentum}};
}

} // namespace astra::compose

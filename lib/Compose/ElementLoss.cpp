//===- ElementLoss.cpp: losses of a prediction beside a target of its shape -----===//
// Takes:    see ElementLoss.h.
// Gives:    formulas over Builder, once both operands are known to fit.
#include "astra/Compose/ElementLoss.h"
#include "astra/Compose/Activation.h"
#include "astra/IR/Text.h"

using namespace astra;
using namespace astra::compose;

/// Whether the operands are there, real floats of 32 or 64 bits, and of one type and shape.
static bool fit(Composer &c, UOpRef x, UOpRef y) {
  if (!x || !y) return false;
  bool isWide = x->dtype == DType::F32 || x->dtype == DType::F64;
  if (isWide && x->dtype == y->dtype && x->shape == y->shape) return true;
  c.fail("a loss needs a prediction and a target, f32 or f64, of one type and shape; found " +
         typeText(x->dtype, x->shape) + " and " + typeText(y->dtype, y->shape));
  return false;
}

/// A number of x's type.
static UOpRef num(Builder &b, UOpRef x, double v) { return b.lit(x->dtype, v); }

UOpRef compose::squaredError(Composer &c, UOpRef x, UOpRef y) {
  if (!fit(c, x, y)) return nullptr;
  UOpRef d = c.b.sub(x, y);
  return c.b.mul(d, d);
}

UOpRef compose::absoluteError(Composer &c, UOpRef x, UOpRef y) {
  return fit(c, x, y) ? c.b.un(Op::Abs, c.b.sub(x, y)) : nullptr;
}

UOpRef compose::smoothAbsoluteError(Composer &c, UOpRef x, UOpRef y, double beta) {
  UOpRef d = absoluteError(c, x, y);
  if (!d || beta == 0) return d;
  Builder &b = c.b;
  return b.select(b.lt(d, num(b, x, beta)), b.mul(b.mul(d, d), num(b, x, 0.5 / beta)), b.sub(d, num(b, x, beta / 2)));
}

UOpRef compose::huberLoss(Composer &c, UOpRef x, UOpRef y, double delta) {
  UOpRef d = absoluteError(c, x, y);
  if (!d) return nullptr;
  Builder &b = c.b;
  return b.select(b.bin(Op::Le, d, num(b, x, delta)), b.mul(b.mul(d, d), num(b, x, 0.5)),
                  b.mul(b.sub(d, num(b, x, delta / 2)), num(b, x, delta)));
}

UOpRef compose::binaryCrossEntropy(Composer &c, UOpRef x, UOpRef y) {
  if (!fit(c, x, y)) return nullptr;
  Builder &b = c.b;
  auto logs = [&](UOpRef x) {
    UOpRef least = num(b, x, -100);
    return std::pair(b.max(b.un(Op::Log, x), least), b.max(b.un(Op::Log1p, b.un(Op::Neg, x)), least));
  };
  auto [yes, no] = logs(x);
  UOpRef loss = b.un(Op::Neg, b.add(b.mul(y, yes), b.mul(b.sub(num(b, x, 1), y), no)));
  // The function is given loss, x, y and the cotangent.
  auto arg = [&](int64_t i) { return b.arg(i, x->dtype, x->shape); };
  UOpRef p = arg(1), target = arg(2), g = arg(3);
  UOpRef slope = b.div(b.sub(p, target), b.max(b.mul(p, b.sub(num(b, x, 1), p)), num(b, x, 1e-12)));
  auto [ofOne, ofZero] = logs(p);
  UOpRef gradient = b.c.make(Op::Func, {b.mul(g, slope), b.mul(g, b.sub(ofZero, ofOne))}, {4});
  return b.c.make(Op::WithGradient, {loss, x, y}, {}, {}, DType::Void, {gradient});
}

/// (1 - y) x + (1 + (w - 1) y) log(1 + exp(-x)).
UOpRef compose::binaryCrossEntropyWithLogits(Composer &c, UOpRef x, UOpRef y, double w) {
  if (!fit(c, x, y)) return nullptr;
  Builder &b = c.b;
  UOpRef one = num(b, x, 1), soft = activations::softplus.apply(c, b.un(Op::Neg, x), 0, 0);
  if (w != 1) soft = b.mul(soft, b.add(b.mul(y, num(b, x, w - 1)), one));
  return b.add(b.mul(b.sub(one, y), x), soft);
}

UOpRef compose::divergence(Composer &c, UOpRef x, UOpRef y, bool targetIsLog) {
  if (!fit(c, x, y)) return nullptr;
  Builder &b = c.b;
  if (targetIsLog) return b.mul(b.un(Op::Exp, y), b.sub(y, x));
  UOpRef zero = num(b, x, 0), one = num(b, x, 1), isZero = b.eq(y, zero);
  UOpRef entropy = b.select(isZero, zero, b.mul(y, b.un(Op::Log, b.select(isZero, one, y))));
  return b.sub(entropy, b.mul(y, x));
}

UOpRef compose::hinge(Composer &c, UOpRef x) {
  if (!x) return nullptr;
  UOpRef zero = num(c.b, x, 0);
  return c.b.select(c.b.bin(Op::Le, x, zero), zero, x);
}

UOpRef compose::hingeEmbedding(Composer &c, UOpRef x, UOpRef y, double margin) {
  if (!fit(c, x, y)) return nullptr;
  Builder &b = c.b;
  return b.select(b.eq(y, num(b, x, 1)), x, hinge(c, b.sub(num(b, x, margin), x)));
}

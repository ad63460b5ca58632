//===- Elementary.cpp: functions of real numbers beside the ops -----------===//
// Takes:    operands that may be wrong in every way.
// Gives:    what Elementary.h says.
#include "astra/Compose/Elementary.h"
#include "astra/Compose/ComplexFunction.h"
#include "astra/Compose/Special.h"
#include <cmath>
#include <limits>

namespace astra::compose {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// f of the operands, broadcast and widened; the result is rounded once.
template <class F> UOpRef ofTwo(Composer &b, UOpRef givenX, UOpRef givenY, F f) {
  if (!givenX || !givenY) return nullptr;
  if (givenX->dtype != givenY->dtype)
    return b.fail(llvm::Twine("operands of types ") + info(givenX->dtype).text + " and " + info(givenY->dtype).text);
  if (!b.requireFloat(givenX)) return nullptr;
  Dims dims = b.broadcastShape({givenX->shape, givenY->shape});
  UOpRef x = b.broadcastTo(b.widen(givenX), dims), y = b.broadcastTo(b.widen(givenY), dims);
  return x && y ? b.cast(f(x, y), givenX->dtype) : nullptr;
}

UOpRef both(Composer &b, UOpRef x, UOpRef y) { return b.bin(Op::And, x, y); }
UOpRef magnitude(Composer &b, UOpRef x) { return b.un(Op::Abs, x); }

} // namespace

UOpRef signBit(Composer &b, UOpRef x) {
  return b.requireFloat(x) ? b.bin(Op::Lt, b.bin(Op::CopySign, b.literal(x, 1), x), 0.0) : nullptr;
}

UOpRef signOrZero(Composer &b, UOpRef x) {
  if (!x) return nullptr;
  UOpRef zero = b.literal(x, 0), above = b.cast(b.bin(Op::Lt, zero, x), x->dtype);
  if (!isFloat(x->dtype) && !isSigned(x->dtype)) return above;
  return b.bin(Op::Sub, above, b.cast(b.bin(Op::Lt, x, zero), x->dtype));
}

/// A select for each operand that may be no number.
static UOpRef numberOf(Composer &b, Op op, UOpRef x, UOpRef y) {
  UOpRef found = b.bin(op, x, y);
  if (!found || !isFloat(found->dtype)) return found;
  return b.select(b.bin(Op::Ne, x, x), y, b.select(b.bin(Op::Ne, y, y), x, found));
}
UOpRef maximumNumber(Composer &b, UOpRef x, UOpRef y) { return numberOf(b, Op::Max, x, y); }
UOpRef minimumNumber(Composer &b, UOpRef x, UOpRef y) { return numberOf(b, Op::Min, x, y); }

UOpRef interpolated(Composer &b, UOpRef givenX, UOpRef givenY, UOpRef givenWeight) {
  UOpRef x = b.widen(givenX), y = b.widen(givenY), weight = b.widen(givenWeight);
  if (!b.requireFloat(x)) return nullptr;
  UOpRef step = b.bin(Op::Sub, y, x), near = b.bin(Op::Add, x, b.bin(Op::Mul, weight, step));
  UOpRef far = b.bin(Op::Sub, y, b.bin(Op::Mul, step, b.bin(Op::Sub, b.literal(x, 1), weight)));
  return b.cast(b.select(b.bin(Op::Lt, magnitude(b, weight), 0.5), near, far), givenX->dtype);
}

UOpRef sinc(Composer &b, UOpRef given) {
  UOpRef x = b.widen(given);
  if (!x || (!isComplex(x->dtype) && !b.requireFloat(x))) return nullptr;
  auto number = [&](double v) { return b.b.lit(x->dtype, v); };
  UOpRef angle = b.bin(Op::Mul, x, number(M_PI));
  UOpRef sine = isComplex(x->dtype) ? findComplexFunction("sin")->apply(b, angle) : b.un(Op::Sin, angle);
  return b.cast(b.select(b.bin(Op::Eq, x, number(0)), number(1), b.bin(Op::Div, sine, angle)), given->dtype);
}

UOpRef log10(Composer &b, UOpRef given) {
  if (!b.requireFloat(given)) return nullptr;
  if (given->dtype != DType::F64) // rounded from f64: powers of ten are exact
    return b.cast(b.bin(Op::Mul, b.un(Op::Log, b.cast(given, DType::F64)), 0.43429448190325182765), given->dtype);
  // The product with log10(e) in two parts, so that the logarithm's error is what is left.
  UOpRef l = b.un(Op::Log, given), high = b.bin(Op::Mul, l, 0.43429448190325182765);
  UOpRef scale = b.broadcastTo(b.literal(l, 0.43429448190325182765), given->shape);
  UOpRef low = b.make(Op::Fma, {l, scale, b.un(Op::Neg, high)});
  UOpRef sum = b.bin(Op::Add, high, b.bin(Op::Add, low, b.bin(Op::Mul, l, 1.098319650216765e-17)));
  return b.select(b.bin(Op::Lt, magnitude(b, l), infinity), sum, l);
}

UOpRef arcTangent2(Composer &b, UOpRef givenY, UOpRef givenX) {
  return ofTwo(b, givenY, givenX, [&](UOpRef y, UOpRef x) {
    UOpRef u = magnitude(b, x), v = magnitude(b, y), steep = b.bin(Op::Lt, u, v);
    UOpRef large = b.bin(Op::Max, u, v), small = b.bin(Op::Min, u, v);
    // The tangent of the angle to the nearer axis, at most 1: 1 between two infinities, 0 at the origin.
    UOpRef ratio = b.bin(Op::Div, small, large);
    ratio = b.select(b.bin(Op::Eq, large, 0.0), b.literal(x, 0), ratio);
    ratio = b.select(b.bin(Op::Eq, small, infinity), b.literal(x, 1), ratio);
    UOpRef angle = b.un(Op::Atan, ratio);
    // pi and half of it in two parts.
    bool wide = x->dtype == DType::F64;
    double pi = wide ? M_PI : double(float(M_PI)), rest = wide ? 1.2246467991473532e-16 : M_PI - double(float(M_PI));
    auto from = [&](double scale) {
      return b.bin(Op::Add, b.bin(Op::Sub, b.literal(x, pi * scale), angle), rest * scale);
    };
    angle = b.select(steep, from(0.5), angle);
    angle = b.select(signBit(b, x), from(1), angle);
    return b.bin(Op::CopySign, angle, y);
  });
}

UOpRef hypotenuse(Composer &b, UOpRef givenX, UOpRef givenY) {
  return ofTwo(b, givenX, givenY, [&](UOpRef x, UOpRef y) -> UOpRef {
    UOpRef length = b.un(Op::Abs, b.make(Op::Complex, {x, y}));
    if (!length || !b.wantsGradients() || llvm::any_of(length->shape, isDataDim)) return length;
    // x / length of numbers whose greater one is 1: no scale changes it, so its derivatives are those of this form.
    auto argument = [&](int64_t i) { return b.b.arg(i, length->dtype, length->shape); };
    UOpRef scale = b.un(Op::Detach, b.bin(Op::Max, magnitude(b, argument(1)), magnitude(b, argument(2))));
    UOpRef u = b.bin(Op::Div, argument(1), scale), v = b.bin(Op::Div, argument(2), scale), g = argument(3);
    UOpRef one = b.un(Op::Sqrt, b.bin(Op::Add, b.bin(Op::Mul, u, u), b.bin(Op::Mul, v, v)));
    UOpRef byX = b.bin(Op::Mul, g, b.bin(Op::Div, u, one)), byY = b.bin(Op::Mul, g, b.bin(Op::Div, v, one));
    if (!byX || !byY) return nullptr;
    return b.c.make(Op::WithGradient, {length, x, y}, {}, {}, DType::Void, {b.c.make(Op::Func, {byX, byY}, {4})});
  });
}

UOpRef logAddExp(Composer &b, UOpRef givenX, UOpRef givenY) {
  return ofTwo(b, givenX, givenY, [&](UOpRef x, UOpRef y) {
    // Of equal numbers, which may be infinite, both are 0 in the difference: neither it nor its gradient is a NaN.
    UOpRef most = b.bin(Op::Max, x, y), same = b.bin(Op::Eq, x, y), zero = b.literal(x, 0);
    UOpRef distance = magnitude(b, b.bin(Op::Sub, b.select(same, zero, x), b.select(same, zero, y)));
    return b.bin(Op::Add, most, b.un(Op::Log1p, b.un(Op::Exp, b.un(Op::Neg, distance))));
  });
}

UOpRef nextAfter(Composer &b, UOpRef x, UOpRef y) {
  if (!x || !y) return nullptr;
  if (x->dtype != y->dtype)
    return b.fail(llvm::Twine("operands of types ") + info(x->dtype).text + " and " + info(y->dtype).text);
  if (!b.requireFloat(x)) return nullptr;
  Dims dims = b.broadcastShape({x->shape, y->shape});
  x = b.broadcastTo(x, dims), y = b.broadcastTo(y, dims);
  if (!x || !y) return nullptr;
  DType t = signedOf(x->dtype);
  auto bits = [&](UOpRef v) { return b.make(Op::Bitcast, {v}, {}, t); };
  UOpRef zero = b.literal(x, 0), one = b.b.litInt(t, 1), i = bits(x);
  // Away from zero the bits grow by one.
  UOpRef away = b.bin(Op::Eq, b.bin(Op::Lt, x, y), b.bin(Op::Lt, zero, x));
  UOpRef next = b.select(away, b.bin(Op::Add, i, one), b.bin(Op::Sub, i, one));
  UOpRef least = b.bin(Op::CopySign, b.make(Op::Bitcast, {one}, {}, x->dtype), y);
  UOpRef moved = b.select(b.bin(Op::Eq, x, zero), least, b.make(Op::Bitcast, {next}, {}, x->dtype));
  UOpRef unordered = b.bin(Op::Or, b.bin(Op::Ne, x, x), b.bin(Op::Ne, y, y));
  moved = b.select(unordered, b.literal(x, std::numeric_limits<double>::quiet_NaN()), moved);
  return b.select(b.bin(Op::Eq, x, y), y, moved);
}

UOpRef floorQuotient(Composer &b, UOpRef givenX, UOpRef givenY) {
  return ofTwo(b, givenX, givenY, [&](UOpRef x, UOpRef y) {
    UOpRef zero = b.literal(x, 0), quotient = b.bin(Op::Div, x, y), q = b.un(Op::Floor, quotient);
    // A quotient that was rounded up to an integer is one too many: what is left of x then has not the sign of y. The
    // fma's sign is exact.
    UOpRef rest = b.make(Op::Fma, {b.un(Op::Neg, q), y, x});
    UOpRef over = b.bin(Op::Or, both(b, b.bin(Op::Lt, rest, zero), b.bin(Op::Lt, zero, y)),
                        both(b, b.bin(Op::Lt, zero, rest), b.bin(Op::Lt, y, zero)));
    double exact = x->dtype == DType::F64 ? 0x1p53 : 0x1p24;
    over = both(b, over, b.bin(Op::Le, magnitude(b, q), exact));
    q = b.select(over, b.bin(Op::Sub, q, 1), q);
    // Of a number and an infinity of the other sign it is -1: between -1 and -0.
    UOpRef tiny = both(b, b.bin(Op::Eq, magnitude(b, y), infinity), b.bin(Op::Lt, magnitude(b, x), infinity));
    UOpRef differ = b.bin(Op::Or, both(b, b.bin(Op::Lt, x, zero), b.bin(Op::Lt, zero, y)),
                          both(b, b.bin(Op::Lt, zero, x), b.bin(Op::Lt, y, zero)));
    return b.select(both(b, tiny, differ), b.literal(x, -1), q);
  });
}

} // namespace astra::compose

//===- ComplexFunction.cpp: functions of complex numbers ------------------===//
// Takes, gives: ComplexFunction.h.
// How:      parts by real functions; the inverse functions by W. Kahan, "Branch cuts for complex elementary functions"
//           (1987). What goes round by i (sin, asin, ...) is made of the hyperbolic functions.
#include "astra/Compose/ComplexFunction.h"
#include "WithRule.h"
#include "astra/Compose/Elementary.h"
#include <cmath>
#include <limits>

namespace astra::compose {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

struct Z {
  UOpRef re = nullptr, im = nullptr;
};

/// Arithmetic on real parts, with short names.
struct Real {
  Composer &b;
  bool wide;

  UOpRef lit(UOpRef like, double v) { return b.literal(like, v); }
  UOpRef add(UOpRef x, UOpRef y) { return b.bin(Op::Add, x, y); }
  UOpRef add(UOpRef x, double y) { return b.bin(Op::Add, x, y); }
  UOpRef sub(UOpRef x, UOpRef y) { return b.bin(Op::Sub, x, y); }
  UOpRef mul(UOpRef x, UOpRef y) { return b.bin(Op::Mul, x, y); }
  UOpRef mul(UOpRef x, double y) { return b.bin(Op::Mul, x, y); }
  UOpRef div(UOpRef x, UOpRef y) { return b.bin(Op::Div, x, y); }
  UOpRef div(UOpRef x, double y) { return b.bin(Op::Div, x, y); }
  UOpRef fma(UOpRef x, UOpRef y, UOpRef z) { return x ? b.make(Op::Fma, {x, y, b.broadcastTo(z, x->shape)}) : nullptr; }
  UOpRef neg(UOpRef x) { return b.un(Op::Neg, x); }
  UOpRef abs(UOpRef x) { return b.un(Op::Abs, x); }
  UOpRef un(Op op, UOpRef x) { return b.un(op, x); }
  UOpRef sign(UOpRef magnitude, UOpRef x) { return b.bin(Op::CopySign, magnitude, x); }
  UOpRef sign(double magnitude, UOpRef x) { return b.bin(Op::CopySign, lit(x, magnitude), x); }
  UOpRef less(UOpRef x, UOpRef y) { return b.bin(Op::Lt, x, y); }
  UOpRef less(UOpRef x, double y) { return b.bin(Op::Lt, x, y); }
  UOpRef above(UOpRef x, double y) { return b.bin(Op::Lt, lit(x, y), x); }
  UOpRef is(UOpRef x, double y) { return b.bin(Op::Eq, x, y); }
  UOpRef isNaN(UOpRef x) { return b.bin(Op::Ne, x, x); }
  UOpRef isInf(UOpRef x) { return is(abs(x), infinity); }
  UOpRef both(UOpRef x, UOpRef y) { return b.bin(Op::And, x, y); }
  UOpRef either(UOpRef x, UOpRef y) { return b.bin(Op::Or, x, y); }
  UOpRef pick(UOpRef c, UOpRef x, UOpRef y) { return b.select(c, x, y); }
  UOpRef pick(UOpRef c, double x, UOpRef y) { return b.select(c, lit(y, x), y); }
  Z pick(UOpRef c, Z x, Z y) { return {pick(c, x.re, y.re), pick(c, x.im, y.im)}; }

  UOpRef length(Z z) { return hypotenuse(b, z.re, z.im); }
  UOpRef angle(Z z) { return arcTangent2(b, z.im, z.re); }
  /// What is large: its square overflows, or 1 beside it is nothing.
  double large() const { return wide ? 0x1p60 : 0x1p30; }
};

/// e^(scaled) beyond what e^a alone reaches: e^(a/2) * x * e^(a/2).
UOpRef timesExp(Real &r, UOpRef a, UOpRef x) {
  UOpRef half = r.un(Op::Exp, r.mul(a, 0.5));
  UOpRef inSteps = r.mul(r.mul(half, x), half);
  return r.pick(r.less(r.abs(a), r.wide ? 600 : 60), r.mul(r.un(Op::Exp, a), x), inSteps);
}

Z exp(Real &r, Z z) {
  UOpRef bad = r.isNaN(r.un(Op::Cos, z.im)), up = r.is(z.re, infinity), down = r.is(z.re, -infinity);
  UOpRef c = r.un(Op::Cos, z.im), s = r.un(Op::Sin, z.im);
  c = r.pick(r.both(bad, up), 1, r.pick(r.both(bad, down), 0.0, c));
  s = r.pick(r.both(bad, down), 0.0, s);
  return {timesExp(r, z.re, c), r.pick(r.is(z.im, 0), z.im, timesExp(r, z.re, s))};
}

Z expm1(Real &r, Z z) {
  Z whole = exp(r, z);
  UOpRef half = r.un(Op::Sin, r.mul(z.im, 0.5)), c = r.un(Op::Cos, z.im);
  UOpRef near = r.fma(r.un(Op::Expm1, z.re), c, r.mul(r.mul(half, half), -2));
  return {r.add(r.pick(r.less(r.abs(z.re), 20), near, r.add(whole.re, -1)), 0.0), whole.im}; // of -0 it is +0
}

/// log |z|, by log1p where |z| is near 1 and by halves where it overflows.
UOpRef logLength(Real &r, Z z) {
  UOpRef u = r.abs(z.re), v = r.abs(z.im), m = r.b.bin(Op::Max, u, v), n = r.b.bin(Op::Min, u, v), h = r.length(z);
  UOpRef near = r.mul(r.un(Op::Log1p, r.fma(n, n, r.mul(r.add(m, -1), r.add(m, 1)))), 0.5);
  UOpRef halves = r.add(r.un(Op::Log, r.length({r.mul(z.re, 0.5), r.mul(z.im, 0.5)})), M_LN2);
  UOpRef isNear = r.both(r.above(h, 0.7), r.less(h, 1.4));
  return r.pick(isNear, near, r.pick(r.is(h, infinity), halves, r.un(Op::Log, h)));
}

Z log(Real &r, Z z) { return {logLength(r, z), r.angle(z)}; }

Z log1p(Real &r, Z z) {
  Z sum = {r.add(z.re, 1), z.im};
  UOpRef near = r.mul(r.un(Op::Log1p, r.fma(z.im, z.im, r.mul(z.re, r.add(z.re, 2)))), 0.5);
  UOpRef isNear = r.less(r.length(z), 0.5);
  return {r.pick(isNear, near, logLength(r, sum)), r.angle(sum)};
}

Z over(Real &r, Z z, double divisor) { return {r.mul(z.re, 1 / divisor), r.mul(z.im, 1 / divisor)}; }
Z log2(Real &r, Z z) { return over(r, log(r, z), M_LN2); }
Z log10(Real &r, Z z) { return over(r, log(r, z), M_LN10); }

Z sqrt(Real &r, Z z) {
  UOpRef m = r.b.bin(Op::Max, r.abs(z.re), r.abs(z.im));
  UOpRef high = r.above(m, r.wide ? 0x1p1000 : 0x1p120), low = r.less(m, r.wide ? 0x1p-1000 : 0x1p-100);
  auto scale = [&](double up, double down) { return r.pick(high, down, r.pick(low, up, r.lit(m, 1))); };
  UOpRef in = scale(r.wide ? 0x1p100 : 0x1p48, 0x1p-4), out = scale(r.wide ? 0x1p-50 : 0x1p-24, 0x1p2);
  Z w = {r.mul(z.re, in), r.mul(z.im, in)};
  UOpRef t = r.un(Op::Sqrt, r.mul(r.add(r.abs(w.re), r.length(w)), 0.5));
  UOpRef other = r.div(w.im, r.mul(t, 2));
  UOpRef minus = r.less(z.re, 0.0);
  Z root = {r.mul(r.pick(minus, r.abs(other), t), out), r.mul(r.pick(minus, r.sign(t, z.im), other), out)};
  root = r.pick(r.is(t, 0), {r.lit(t, 0), z.im}, root);
  return r.pick(r.isInf(z.im), {r.abs(z.im), z.im}, root);
}

Z rsqrt(Real &r, Z z) {
  Z root = sqrt(r, z);
  UOpRef one = r.wide ? r.b.b.lit(DType::C128, 1) : r.b.b.lit(DType::C64, 1);
  UOpRef q = r.b.bin(Op::Div, one, r.b.make(Op::Complex, {root.re, root.im}));
  return {r.un(Op::Real, q), r.un(Op::Imag, q)};
}

/// 1 / (1 + e^-z). With t = e^-|x| and c = cos(y / 2) the square of |1 + t e^iy| is (1 - t)^2 + 4 t c^2, a sum of what
/// is not negative: nothing overflows, and nothing cancels beside a pole.
Z sigmoid(Real &r, Z z) {
  UOpRef wave = r.un(Op::Cos, z.im), s = r.un(Op::Sin, z.im), half = r.un(Op::Cos, r.mul(z.im, 0.5));
  UOpRef end = r.both(r.isInf(z.re), r.isNaN(wave)); // where the angle does not matter
  wave = r.pick(end, 1, wave), s = r.pick(end, 0.0, s), half = r.pick(end, 1, half);
  UOpRef far = r.neg(r.abs(z.re)), t = r.un(Op::Exp, far), left = r.neg(r.un(Op::Expm1, far));
  UOpRef twice = r.mul(r.mul(r.mul(half, half), t), 2); // 2 t c^2
  UOpRef square = r.add(r.mul(left, left), r.mul(twice, 2));
  UOpRef re = r.pick(r.less(z.re, 0.0), r.mul(t, r.add(t, wave)), r.add(left, twice));
  return {r.div(re, square), r.div(r.mul(t, s), square)};
}

/// cosh a or sinh a, times x, beyond what they reach alone.
UOpRef timesHyperbolic(Real &r, Op op, UOpRef a, UOpRef x) {
  UOpRef far = timesExp(r, r.abs(a), r.mul(x, 0.5));
  if (op == Op::Sinh) far = r.mul(far, r.sign(1, a));
  return r.pick(r.less(r.abs(a), r.wide ? 600 : 60), r.mul(r.un(op, a), x), far);
}

Z sinh(Real &r, Z z) {
  UOpRef c = r.un(Op::Cos, z.im), s = r.un(Op::Sin, z.im), bad = r.isNaN(c);
  c = r.pick(r.both(bad, r.either(r.is(z.re, 0), r.isInf(z.re))), 1, c);
  return {timesHyperbolic(r, Op::Sinh, z.re, c), r.pick(r.is(z.im, 0), z.im, timesHyperbolic(r, Op::Cosh, z.re, s))};
}

Z cosh(Real &r, Z z) {
  UOpRef c = r.un(Op::Cos, z.im), s = r.un(Op::Sin, z.im), bad = r.isNaN(c);
  c = r.pick(r.both(bad, r.isInf(z.re)), 1, c);
  UOpRef zero = r.mul(r.sign(0.0, z.im), r.sign(1, z.re));
  UOpRef im = timesHyperbolic(r, Op::Sinh, z.re, s);
  return {timesHyperbolic(r, Op::Cosh, z.re, c), r.pick(r.either(r.is(z.im, 0), r.is(z.re, 0)), zero, im)};
}

Z tanh(Real &r, Z z) {
  UOpRef s = r.un(Op::Sinh, z.re), t = r.un(Op::Tan, z.im), c = r.un(Op::Cos, z.im), bad = r.isNaN(c);
  UOpRef beta = r.add(r.mul(t, t), 1), rho = r.un(Op::Sqrt, r.add(r.mul(s, s), 1));
  UOpRef below = r.fma(r.mul(beta, s), s, r.lit(s, 1));
  Z near = {r.div(r.mul(r.mul(beta, rho), s), below), r.div(t, below)};
  UOpRef wave = r.pick(r.both(bad, r.isInf(z.re)), 0.0, r.mul(r.un(Op::Sin, z.im), c));
  Z far = {r.pick(r.isNaN(wave), wave, r.sign(1, z.re)), r.mul(r.mul(wave, r.un(Op::Exp, r.mul(r.abs(z.re), -2))), 4)};
  far.im = r.pick(r.isInf(z.re), r.sign(0.0, z.im), far.im);
  Z out = r.pick(r.above(r.abs(z.re), r.wide ? 22 : 11), far, near);
  return {r.pick(r.both(bad, r.is(z.re, 0)), z.re, out.re), r.pick(r.is(z.im, 0), z.im, out.im)};
}

Z asinh(Real &r, Z z) {
  // With s = sqrt(1 - iz) and t = sqrt(1 + iz): asinh(Im(conj(s) t)) and the angle of Re(s t) and the imaginary part.
  Z s = sqrt(r, {r.add(z.im, 1), r.neg(z.re)}), t = sqrt(r, {r.sub(r.lit(z.im, 1), z.im), z.re});
  UOpRef cross = r.sub(r.mul(s.re, t.im), r.mul(s.im, t.re)), inner = r.sub(r.mul(s.re, t.re), r.mul(s.im, t.im));
  Z near = {r.un(Op::Asinh, cross), arcTangent2(r.b, z.im, inner)};
  near.im = r.pick(r.is(z.im, 0), z.im, near.im);
  Z far = {r.sign(r.add(logLength(r, z), M_LN2), z.re), arcTangent2(r.b, z.im, r.abs(z.re))};
  return r.pick(r.above(r.length(z), r.large()), far, near);
}

Z acos(Real &r, Z z) {
  // With s = sqrt(1 - z) and t = sqrt(1 + z): 2 atan(Re s / Re t) and asinh(Im(conj(t) s)).
  Z s = sqrt(r, {r.sub(r.lit(z.re, 1), z.re), r.neg(z.im)}), t = sqrt(r, {r.add(z.re, 1), z.im});
  UOpRef cross = r.sub(r.mul(t.re, s.im), r.mul(t.im, s.re));
  Z near = {r.mul(arcTangent2(r.b, s.re, t.re), 2), r.un(Op::Asinh, cross)};
  near.re = r.pick(r.both(r.is(z.re, 0), r.isNaN(z.im)), M_PI_2, near.re);
  near.im = r.pick(r.both(r.is(z.im, 0), r.isNaN(near.re)), notANumber, near.im);
  Z far = {arcTangent2(r.b, r.abs(z.im), z.re), r.neg(r.sign(r.add(logLength(r, z), M_LN2), z.im))};
  return r.pick(r.above(r.length(z), r.large()), far, near);
}

Z acosh(Real &r, Z z) {
  Z w = acos(r, z);
  return {r.abs(w.im), r.sign(w.re, z.im)};
}

Z atanh(Real &r, Z z) {
  UOpRef u = r.abs(z.re), less = r.sub(r.lit(u, 1), u), more = r.add(u, 1), v = r.abs(z.im);
  UOpRef below = r.fma(z.im, z.im, r.mul(less, less));
  UOpRef re = r.mul(r.un(Op::Log1p, r.div(r.mul(u, 4), below)), 0.25);
  // Beside the branch point the square of the imaginary part may be too small.
  UOpRef atBranch = r.both(r.is(u, 1), r.less(v, 0x1p-20));
  re = r.pick(atBranch, r.mul(r.sub(r.lit(v, M_LN2), r.un(Op::Log, v)), 0.5), re);
  UOpRef im = r.mul(arcTangent2(r.b, r.mul(z.im, 2), r.fma(r.neg(z.im), z.im, r.mul(less, more))), 0.5);
  im = r.pick(r.is(z.im, 0), r.pick(r.above(u, 1), r.sign(M_PI_2, z.im), z.im), im);
  UOpRef h = r.length(z);
  Z far = {r.pick(r.is(h, infinity), 0.0, r.div(r.div(u, h), h)), r.pick(r.isNaN(z.im), z.im, r.sign(M_PI_2, z.im))};
  Z out = r.pick(r.above(h, r.large()), far, Z{re, im});
  out.im = r.pick(r.isNaN(z.re), r.pick(r.isInf(z.im), r.sign(M_PI_2, z.im), r.lit(z.im, notANumber)), out.im);
  out.re = r.pick(r.both(r.is(u, 0), r.isNaN(z.im)), 0.0, out.re);
  return {r.sign(out.re, z.re), out.im};
}

/// f of iz, turned back: -i f(iz).
template <Z (*f)(Real &, Z)> Z turned(Real &r, Z z) {
  Z w = f(r, {r.neg(z.im), z.re});
  return {w.im, r.neg(w.re)};
}
Z cos(Real &r, Z z) { return cosh(r, {r.neg(z.im), z.re}); }

template <Z (*f)(Real &, Z)> UOpRef whole(Composer &b, UOpRef z) {
  if (!z) return nullptr;
  if (!isComplex(z->dtype))
    return b.fail(llvm::Twine("an operand of type ") + info(z->dtype).text + ", expected a complex one");
  Real r{b, z->dtype == DType::C128};
  Z y = f(r, {b.un(Op::Real, z), b.un(Op::Imag, z)});
  return b.make(Op::Complex, {y.re, y.im});
}

// ---- derivatives: functions of parts choose between forms, some for one point alone, which have none

/// Complex arithmetic, with short names; how often what is made may be differentiated by rules.
struct Complex {
  Composer &b;
  int order;

  UOpRef number(UOpRef like, double v) { return like ? b.b.lit(like->dtype, v) : nullptr; }
  UOpRef add(UOpRef x, double v) { return b.bin(Op::Add, x, number(x, v)); }
  UOpRef from(double v, UOpRef x) { return b.bin(Op::Sub, number(x, v), x); }
  UOpRef mul(UOpRef x, UOpRef y) { return b.bin(Op::Mul, x, y); }
  UOpRef mul(UOpRef x, double v) { return mul(x, number(x, v)); }
  UOpRef over(double v, UOpRef x) { return b.bin(Op::Div, number(x, v), x); }
  UOpRef square(UOpRef x) { return mul(x, x); }
  UOpRef neg(UOpRef x) { return b.un(Op::Neg, x); }
};
/// f'(z), of z and f(z).
using Slope = UOpRef (*)(Complex &c, UOpRef z, UOpRef f);

template <Z (*f)(Real &, Z), Slope slope> UOpRef ruled(Composer &b, UOpRef z, int order) {
  UOpRef y = whole<f>(b, z);
  if (!y || order == 0) return y;
  return withRule(b, y, {z}, [&](UOpRef y, llvm::ArrayRef<UOpRef> x, UOpRef g) -> llvm::SmallVector<UOpRef, 2> {
    Complex c{b, order - 1};
    return {c.mul(g, conjugate(b, slope(c, x[0], y)))};
  });
}
template <Z (*f)(Real &, Z), Slope slope> UOpRef function(Composer &b, UOpRef z) { return ruled<f, slope>(b, z, 2); }

UOpRef slopeOfCos(Complex &c, UOpRef z, UOpRef);
UOpRef slopeOfCosh(Complex &c, UOpRef z, UOpRef);
UOpRef slopeOfSin(Complex &c, UOpRef z, UOpRef) { return ruled<cos, slopeOfCos>(c.b, z, c.order); }
UOpRef slopeOfCos(Complex &c, UOpRef z, UOpRef) { return c.neg(ruled<turned<sinh>, slopeOfSin>(c.b, z, c.order)); }
UOpRef slopeOfSinh(Complex &c, UOpRef z, UOpRef) { return ruled<cosh, slopeOfCosh>(c.b, z, c.order); }
UOpRef slopeOfCosh(Complex &c, UOpRef z, UOpRef) { return ruled<sinh, slopeOfSinh>(c.b, z, c.order); }
UOpRef slopeOfExp(Complex &, UOpRef, UOpRef f) { return f; }
UOpRef slopeOfExpm1(Complex &c, UOpRef, UOpRef f) { return c.add(f, 1); }
UOpRef slopeOfLog(Complex &c, UOpRef z, UOpRef) { return c.over(1, z); }
UOpRef slopeOfLog2(Complex &c, UOpRef z, UOpRef) { return c.over(1 / M_LN2, z); }
UOpRef slopeOfLog10(Complex &c, UOpRef z, UOpRef) { return c.over(1 / M_LN10, z); }
UOpRef slopeOfLog1p(Complex &c, UOpRef z, UOpRef) { return c.over(1, c.add(z, 1)); }
UOpRef slopeOfSqrt(Complex &c, UOpRef, UOpRef f) { return c.over(0.5, f); }
UOpRef slopeOfRsqrt(Complex &c, UOpRef, UOpRef f) { return c.mul(c.mul(c.square(f), f), -0.5); }
UOpRef slopeOfTan(Complex &c, UOpRef, UOpRef f) { return c.add(c.square(f), 1); }
UOpRef slopeOfTanh(Complex &c, UOpRef, UOpRef f) { return c.from(1, c.square(f)); }
UOpRef slopeOfSigmoid(Complex &c, UOpRef, UOpRef f) { return c.mul(f, c.from(1, f)); }
UOpRef root(Complex &c, UOpRef z) { return ruled<sqrt, slopeOfSqrt>(c.b, z, c.order); }
UOpRef slopeOfAsin(Complex &c, UOpRef z, UOpRef) { return c.over(1, root(c, c.from(1, c.square(z)))); }
UOpRef slopeOfAcos(Complex &c, UOpRef z, UOpRef) { return c.over(-1, root(c, c.from(1, c.square(z)))); }
UOpRef slopeOfAtan(Complex &c, UOpRef z, UOpRef) { return c.over(1, c.add(c.square(z), 1)); }
UOpRef slopeOfAsinh(Complex &c, UOpRef z, UOpRef) { return c.over(1, root(c, c.add(c.square(z), 1))); }
UOpRef slopeOfAcosh(Complex &c, UOpRef z, UOpRef) {
  return c.over(1, c.mul(root(c, c.add(z, -1)), root(c, c.add(z, 1))));
}
UOpRef slopeOfAtanh(Complex &c, UOpRef z, UOpRef) { return c.over(1, c.from(1, c.square(z))); }

constexpr ComplexFunction table[] = {
    {"exp", function<exp, slopeOfExp>},
    {"expm1", function<expm1, slopeOfExpm1>},
    {"log", function<log, slopeOfLog>},
    {"log2", function<log2, slopeOfLog2>},
    {"log10", function<log10, slopeOfLog10>},
    {"log1p", function<log1p, slopeOfLog1p>},
    {"sqrt", function<sqrt, slopeOfSqrt>},
    {"sin", function<turned<sinh>, slopeOfSin>},
    {"cos", function<cos, slopeOfCos>},
    {"tan", function<turned<tanh>, slopeOfTan>},
    {"sinh", function<sinh, slopeOfSinh>},
    {"cosh", function<cosh, slopeOfCosh>},
    {"tanh", function<tanh, slopeOfTanh>},
    {"asin", function<turned<asinh>, slopeOfAsin>},
    {"acos", function<acos, slopeOfAcos>},
    {"atan", function<turned<atanh>, slopeOfAtan>},
    {"asinh", function<asinh, slopeOfAsinh>},
    {"acosh", function<acosh, slopeOfAcosh>},
    {"atanh", function<atanh, slopeOfAtanh>},
    {"rsqrt", function<rsqrt, slopeOfRsqrt>},
    {"sigmoid", function<sigmoid, slopeOfSigmoid>},
};

} // namespace

const ComplexFunction *findComplexFunction(llvm::StringRef name) {
  for (const ComplexFunction &f : table)
    if (name == f.name) return &f;
  return nullptr;
}

/// By z it is w z^(w - 1), 0 where w is 0; by w z^w log z, 0 where z is 0 and the real part of w is not negative.
static UOpRef power(Composer &b, UOpRef z, UOpRef w, int order) {
  Dims dims = b.broadcastShape({z->shape, w->shape});
  z = b.broadcastTo(z, dims), w = b.broadcastTo(w, dims);
  if (!z || !w) return nullptr;
  UOpRef y = whole<exp>(b, b.bin(Op::Mul, w, whole<log>(b, z))), zero = b.cast(b.b.lit(DType::F32, 0), z->dtype);
  if (!y || !zero) return nullptr;
  UOpRef re = b.un(Op::Real, w), isZero = b.bin(Op::Eq, z, zero);
  UOpRef undefined = b.cast(b.b.lit(DType::F32, notANumber), z->dtype);
  UOpRef one = b.b.lit(z->dtype, 1);
  y = b.select(isZero, b.select(b.bin(Op::Lt, b.literal(re, 0), re), zero, undefined), y);
  y = b.select(b.bin(Op::Eq, w, zero), one, y);
  if (order == 0) return y;
  return withRule(b, y, {z, w}, [&](UOpRef y, llvm::ArrayRef<UOpRef> x, UOpRef g) -> llvm::SmallVector<UOpRef, 2> {
    Complex c{b, order - 1};
    UOpRef z = x[0], w = x[1], none = b.bin(Op::Eq, z, zero), re = b.un(Op::Real, w);
    UOpRef byZ = c.mul(w, power(b, z, c.add(w, -1), c.order));
    byZ = b.select(b.bin(Op::Eq, w, zero), zero, byZ);
    UOpRef byW = c.mul(y, ruled<log, slopeOfLog>(b, b.select(none, one, z), c.order));
    byW = b.select(b.bin(Op::And, none, b.bin(Op::Le, b.literal(re, 0), re)), zero, byW);
    return {c.mul(g, conjugate(b, byZ)), c.mul(g, conjugate(b, byW))};
  });
}

UOpRef complexPower(Composer &b, UOpRef z, UOpRef w) { return z && w ? power(b, z, w, 2) : nullptr; }

UOpRef realPart(Composer &b, UOpRef z) { return z && isComplex(z->dtype) ? b.un(Op::Real, z) : z; }

UOpRef imaginaryPart(Composer &b, UOpRef z) {
  return !z || isComplex(z->dtype) ? b.un(Op::Imag, z) : b.broadcastTo(b.literal(z, 0), z->shape);
}

UOpRef conjugate(Composer &b, UOpRef z) {
  if (!z || !isComplex(z->dtype)) return z;
  return b.make(Op::Complex, {b.un(Op::Real, z), b.un(Op::Neg, b.un(Op::Imag, z))});
}

UOpRef complexSign(Composer &b, UOpRef z) {
  if (!z) return nullptr;
  UOpRef length = b.un(Op::Abs, z), none = b.bin(Op::Eq, length, 0.0);
  UOpRef divisor = b.wantsGradients() ? b.select(none, b.literal(length, 1), length) : length;
  auto part = [&](Op op) { return b.select(none, b.literal(length, 0), b.bin(Op::Div, b.un(op, z), divisor)); };
  return b.make(Op::Complex, {part(Op::Real), part(Op::Imag)});
}

} // namespace astra::compose

//===- Functions.h: the function programs of numerics clause N5 -----------===//
// Takes:    values of f32 or f64, of any class V<T> that has the primitives of clause N1 (below).
// Gives:    exp2, exp, expm1, log2, log, log1p, sin, cos, tan, tanh, erf, sigmoid, pow, rsqrt, asin, acos, atan, sinh,
//           cosh, asinh, acosh, atanh.
// Keeps:    straight-line code: no branch, no loop over data, no table but lookup16; NaN propagates (pow: as IEEE 754
//           says, so 1^NaN = NaN^0 = 1); signed zeros, overflow, underflow and subnormal results as the function has
//           them.
// Does not: know what V is. HostValue.h computes, GraphValue.h builds UOps: one source for both.
//
// V<T> offers:  + - * / and unary - on floats; + - * & | ^ << >> on integers (>> follows the sign of T, a count is
// below the width); < == on both; & | ^ ! on bools; a literal of type T stands for a value. Functions: fma, sqrt, abs,
// copysign, trunc, select, bitcast<U>, convert<U>, lookup16(table, index mod 16).
//
// The measured errors are in docs/functions.md. Methods: argument reduction and the s = f / (2 + f) form of log follow
// P. T. P. Tang (ACM TOMS 15 and 16) and the published descriptions of fdlibm; full-range trigonometric reduction is
// M. Payne and R. Hanek (SIGNUM 18) in integers; sums and products in two words are T. Dekker's (Numer. Math. 18).
#pragma once

#include "astra/Numerics/Coefficients.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace astra::numerics {

/// What the programs know of a binary format.
template <class T> struct Format;
template <> struct Format<float> {
  using Word = uint32_t;
  using Signed = int32_t;
  static constexpr int precision = 24, bias = 127, width = 32, logWidth = 5;
  static constexpr float expLow = -105, expHigh = 89;    // exp is 0 below, infinite above
  static constexpr float exp2Low = -151, exp2High = 128; // exp2 is 0 at the first, infinite at the second
  static constexpr float expm1Low = -18;                 // expm1 is -1 below
  static constexpr float sigmoidHigh = 87;               // sigmoid is 1 above
  static constexpr int32_t sigmoidNear = 100;            // 2^-100 times 0.35 ... 1.42 is normal
  static constexpr float tanhHigh = 10;                  // tanh is 1 above
  static constexpr float sinhHigh = 89.5f;               // sinh is infinite above
};
template <> struct Format<double> {
  using Word = uint64_t;
  using Signed = int64_t;
  static constexpr int precision = 53, bias = 1023, width = 64, logWidth = 6;
  static constexpr double expLow = -746, expHigh = 710;
  static constexpr double exp2Low = -1076, exp2High = 1024;
  static constexpr double expm1Low = -38;
  static constexpr double sigmoidHigh = 707;
  static constexpr int64_t sigmoidNear = 1000;
  static constexpr double tanhHigh = 20;
  static constexpr double sinhHigh = 710.5;
};
template <class T> using Word = typename Format<T>::Word;
template <class T> using Signed = typename Format<T>::Signed;
template <class T> constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T> constexpr T quietNaN = std::numeric_limits<T>::quiet_NaN();
template <class T> constexpr Word<T> signBit = Word<T>(1) << (Format<T>::width - 1);

/// 2^n as a constant.
template <class T> constexpr T power2(int n) {
  return std::bit_cast<T>(Word<T>(n + Format<T>::bias) << (Format<T>::precision - 1));
}

/// 2^n for a value n in the range of normal exponents.
template <class T, template <class> class V> V<T> power2(V<Signed<T>> n) {
  return bitcast<T>((n + Signed<T>(Format<T>::bias)) << (Format<T>::precision - 1));
}

/// x * 2^n rounded once, for 1/4 <= |x| < 4 (or a NaN) and 2^n twice as far out as numbers go: the first of the two
/// factors is exact but where the result is 0 or infinite anyway.
template <class T, template <class> class V> V<T> scaled(V<T> x, V<Signed<T>> n) {
  V<Signed<T>> half = n >> 1;
  return x * power2<T, V>(half) * power2<T, V>(n - half);
}

/// c[0] + c[1] x + ... by Horner's rule.
template <class T, template <class> class V, size_t N> V<T> polynomial(const T (&c)[N], V<T> x) {
  V<T> y = fma(x, c[N - 1], c[N - 2]);
  for (size_t i = N - 2; i-- > 0;) y = fma(x, y, c[i]);
  return y;
}

template <class T, template <class> class V> V<T> clamp(V<T> x, T low, T high) {
  x = select(x < low, low, x);
  return select(high < x, high, x);
}

/// The unevaluated sum hi + lo, |lo| at most half an ulp of hi.
template <class T, template <class> class V> struct Pair {
  V<T> hi, lo;
};

/// a + b exactly; |a| >= |b| or a = 0.
template <class T, template <class> class V> Pair<T, V> fastSum(V<T> a, V<T> b) {
  V<T> s = a + b;
  return {s, b - (s - a)};
}

/// The integer nearest to x * scale, as a float and as an integer; |x * scale| < 2^(precision - 3).
template <class T, template <class> class V> struct Nearest {
  V<T> value;
  V<Signed<T>> integer;
  Nearest(V<T> x, T scale) : Nearest(fma(x, scale, magic)) {}
  explicit Nearest(V<T> shifted)
      : value(shifted - magic), integer(bitcast<Signed<T>>(shifted) - std::bit_cast<Signed<T>>(magic)) {}
  static constexpr T magic = power2<T>(Format<T>::precision - 1) + power2<T>(Format<T>::precision - 2);
};

//===-- exponentials -------------------------------------------------------===//

/// x = k ln 2 + r, |r| <= ln2 / 2 (and a little); tail = (e^r - 1 - r) / r^2.
template <class T, template <class> class V> struct ExpParts {
  using C = Coefficients<T>;
  V<Signed<T>> k;
  V<T> r, tail;
  explicit ExpParts(V<T> x) : ExpParts(x, Nearest<T, V>(x, C::log2e)) {}

private:
  ExpParts(V<T> x, Nearest<T, V> n)
      : k(n.integer), r(fma(n.value, -C::ln2Lo, fma(n.value, -C::ln2Hi, x))), tail(polynomial<T, V>(C::expTail, r)) {}
};

/// What is 0 anyway is not multiplied down to it: an underflow costs as much as the whole program on some machines, and
/// in a masked softmax that is every other element.
template <class T, template <class> class V> V<T> exp(V<T> x) {
  auto isZero = x < Format<T>::expLow;
  x = select(isZero, T(0), x);
  ExpParts<T, V> e(select(Format<T>::expHigh < x, Format<T>::expHigh, x));
  return select(isZero, T(0), scaled<T, V>(fma(e.r, fma(e.r, e.tail, T(1)), T(1)), e.k));
}

template <class T, template <class> class V> V<T> exp2(V<T> x) {
  x = clamp<T, V>(x, Format<T>::exp2Low, Format<T>::exp2High);
  Nearest<T, V> n(x + Nearest<T, V>::magic);
  V<T> r = x - n.value;
  return scaled<T, V>(fma(r, polynomial<T, V>(Coefficients<T>::exp2Tail, r), T(1)), n.integer);
}

/// With h = 2^(k - 1): half the result is (h - 1/2) + h r + h r^2 tail; the halves keep 2^k in range where the result
/// overflows.
template <class T, template <class> class V> V<T> expm1(V<T> x) {
  ExpParts<T, V> e(clamp<T, V>(x, Format<T>::expm1Low, Format<T>::expHigh));
  V<T> h = power2<T, V>(e.k - Signed<T>(1));
  V<T> half = fma(h, e.r * e.r * e.tail, fma(h, e.r, h - T(0.5)));
  return select(abs(x) < power2<T>(-Format<T>::precision - 1), x, half + half);
}

/// 1 / (1 + e^z) with z = -x and e^z = 2^k (1 + y): numerator and denominator are scaled by 2^-k where k > 0, so that
/// the small results are quotients, not differences. The denominator is kept in two words and the quotient corrected;
/// it is scaled back in two steps, the first of them exact.
template <class T, template <class> class V> V<T> sigmoid(V<T> x) {
  using S = Signed<T>;
  ExpParts<T, V> e(clamp<T, V>(-x, -Format<T>::sigmoidHigh, -Format<T>::expLow));
  V<S> up = select(e.k < S(0), S(0), e.k), down = e.k - up;
  V<S> near = select(Format<T>::sigmoidNear < up, Format<T>::sigmoidNear, up);
  V<T> a = power2<T, V>(-near), b = power2<T, V>(down), br = b * e.r; // one of a and b is 1
  V<T> u = a + b, lost = a * b - (u - T(1));
  Pair<T, V> d = fastSum<T, V>(u, fma(br * e.r, e.tail, br));
  V<T> q = T(1) / d.hi, rest = fma(-q, d.lo + lost, fma(-q, d.hi, T(1)));
  return fma(q, rest, q) * a * power2<T, V>(near - up);
}

/// An odd polynomial below tanhSplit, 1 - 2 / (e^(2 |x|) + 1) above.
template <class T, template <class> class V> V<T> tanh(V<T> x) {
  using C = Coefficients<T>;
  V<T> a = abs(x), z = x * x;
  V<T> small = fma(a * z, polynomial<T, V>(C::tanhTail, z), a);
  V<T> c = select(Format<T>::tanhHigh < a, Format<T>::tanhHigh, a);
  ExpParts<T, V> e(c + c);
  V<T> t = power2<T, V>(e.k);
  V<T> large = T(1) - T(2) / fma(t * e.r, fma(e.r, e.tail, T(1)), t + T(1));
  return copysign(select(a < C::tanhSplit, small, large), x);
}

/// e^|x| = 4 g (hi + lo) with hi + lo in two words; a fourth and less of it keeps g in range where sinh overflows.
template <class T, template <class> class V> struct Growth {
  V<T> g, hi, lo, shrinking; // 2 * shrinking = e^-|x| / 2

  explicit Growth(V<T> a) : Growth(ExpParts<T, V>(select(Format<T>::sinhHigh < a, Format<T>::sinhHigh, a))) {}

private:
  explicit Growth(ExpParts<T, V> e) : Growth(e, fastSum<T, V>(T(1), fma(e.r * e.r, e.tail, e.r))) {}
  Growth(const ExpParts<T, V> &e, Pair<T, V> s)
      : g(power2<T, V>(e.k - Signed<T>(2))), hi(s.hi), lo(s.lo), shrinking(T(0.0625) / (g * hi)) {}
};

/// An odd polynomial below 1, (e^|x| - e^-|x|) / 2 above.
template <class T, template <class> class V> V<T> sinh(V<T> x) {
  V<T> a = abs(x), z = x * x;
  V<T> small = fma(a * z, polynomial<T, V>(Coefficients<T>::sinhTail, z), a);
  Growth<T, V> e(a);
  V<T> half = fma(e.g, e.hi, fma(e.g, e.lo, -e.shrinking));
  return copysign(select(a < T(1), small, half + half), x);
}

template <class T, template <class> class V> V<T> cosh(V<T> x) {
  Growth<T, V> e(abs(x));
  V<T> half = fma(e.g, e.hi, fma(e.g, e.lo, e.shrinking));
  return half + half;
}

//===-- logarithms ---------------------------------------------------------===//

/// x = 2^k m with sqrt(1/2) <= m < sqrt(2), for positive finite x.
template <class T, template <class> class V> struct LogParts {
  V<T> k, m;
  explicit LogParts(V<T> x) : LogParts(x, x < std::numeric_limits<T>::min()) {}

private:
  static constexpr int p = Format<T>::precision;
  static constexpr Signed<T> root = std::bit_cast<Signed<T>>(Coefficients<T>::sqrtHalf);
  LogParts(V<T> x, V<bool> small)
      : LogParts(bitcast<Signed<T>>(select(small, x * power2<T>(p), x)) - root,
                 select(small, Signed<T>(p), Signed<T>(0))) {}
  LogParts(V<Signed<T>> bits, V<Signed<T>> scaled)
      : k(convert<T>((bits >> (p - 1)) - scaled)), m(bitcast<T>((bits & ((Signed<T>(1) << (p - 1)) - 1)) + root)) {}
};

/// The results at arguments that have no LogParts: x is the number whose logarithm is asked for.
template <class T, template <class> class V> V<T> logSpecial(V<T> x, V<T> result) {
  V<T> special = select(x == T(0), -infinity<T>, select(x < T(0), quietNaN<T>, x));
  return select((T(0) < x) & (x < infinity<T>), result, special);
}

/// log(1 + f) - f for sqrt(1/2) <= 1 + f < sqrt(2).
template <class T, template <class> class V> V<T> logTail(V<T> f) {
  V<T> s = f / (f + T(2)), z = s * s, half = f * f * T(0.5);
  return fma(s, fma(z, polynomial<T, V>(Coefficients<T>::logTail, z), half), -half);
}

template <class T, template <class> class V> V<T> log(V<T> x) {
  using C = Coefficients<T>;
  LogParts<T, V> e(x);
  V<T> f = e.m - T(1);
  return logSpecial<T, V>(x, fma(e.k, C::ln2Hi, f + fma(e.k, C::ln2Lo, logTail<T, V>(f))));
}

template <class T, template <class> class V> V<T> log2(V<T> x) {
  using C = Coefficients<T>;
  LogParts<T, V> e(x);
  V<T> f = e.m - T(1), hi = f * C::invLn2Hi;
  V<T> lo = fma(f, C::invLn2Lo, fma(f, C::invLn2Hi, -hi));
  Pair<T, V> sum = fastSum<T, V>(e.k, hi);
  return logSpecial<T, V>(x, sum.hi + (sum.lo + fma(logTail<T, V>(f), C::invLn2Hi, lo)));
}

/// log(u + c), or with another k than e's log((u + c) 2^(k - e.k)); u = 2^e.k e.m, |c| small beside u.
template <class T, template <class> class V> V<T> logOfSum(V<T> u, V<T> c, const LogParts<T, V> &e, V<T> k) {
  using C = Coefficients<T>;
  V<T> f = e.m - T(1), small = fma(k, C::ln2Lo, logTail<T, V>(f) + c / u);
  return logSpecial<T, V>(u, fma(k, C::ln2Hi, f + small));
}

/// log(u + c) with u = 1 + x rounded and c its error.
template <class T, template <class> class V> V<T> log1p(V<T> x) {
  V<T> u = x + T(1), back = u - T(1), c = (T(1) - (u - back)) + (x - back);
  LogParts<T, V> e(u);
  return select(abs(x) < power2<T>(-Format<T>::precision - 1), x, logOfSum<T, V>(u, c, e, e.k));
}

/// log(a + sqrt(a^2 + one)), one being 1 (a >= 1/2) or -1 (a >= 1): the square, the root and the sum in two words.
/// Where a^2 is beyond reach of `one`, it is log(2a).
template <class T, template <class> class V> V<T> logOfRoot(V<T> a, T one) {
  V<T> p = a * a, lost = fma(a, a, -p), s = p + one, back = s - one;
  lost = lost + ((one - (s - back)) + (p - back));
  V<T> r = sqrt(s), rest = fma(-r, r, s) + lost;
  rest = select(T(0) < r, rest / (r + r), T(0));
  Pair<T, V> sum = one < 0 ? fastSum<T, V>(a, r) : fastSum<T, V>(r, a);
  V<bool> huge = power2<T>(Format<T>::precision / 2 + 3) < a;
  V<T> u = select(huge, a, sum.hi), c = select(huge, T(0), sum.lo + rest);
  LogParts<T, V> e(u);
  return logOfSum<T, V>(u, c, e, select(huge, e.k + T(1), e.k));
}

/// An odd polynomial below 1/2, log(a + sqrt(a^2 + 1)) above.
template <class T, template <class> class V> V<T> asinh(V<T> x) {
  V<T> a = abs(x), z = x * x;
  V<T> small = fma(a * z, polynomial<T, V>(Coefficients<T>::asinhTail, z), a);
  return copysign(select(a < T(0.5), small, logOfRoot<T, V>(a, T(1))), x);
}

template <class T, template <class> class V> V<T> acosh(V<T> x) {
  return select(x < T(1), quietNaN<T>, logOfRoot<T, V>(x, T(-1)));
}

/// Below (sqrt 2 - 1) / (sqrt 2 + 1) the polynomial of log; above half of log((1 + a) / (1 - a)), the quotient in two
/// words.
template <class T, template <class> class V> V<T> atanh(V<T> x) {
  constexpr T split = T(0.17);
  V<T> a = abs(x), z = x * x, half = a * T(0.5);
  V<T> small = fma(half * z, polynomial<T, V>(Coefficients<T>::logTail, z), a);
  Pair<T, V> n = fastSum<T, V>(T(1), a), d = fastSum<T, V>(T(1), -a);
  V<T> q = n.hi / d.hi, c = (fma(-q, d.hi, n.hi) + fma(-q, d.lo, n.lo)) / d.hi;
  LogParts<T, V> e(q);
  V<T> large = logOfSum<T, V>(q, c, e, e.k) * T(0.5);
  return copysign(select(a < split, small, large), x);
}

//===-- powers -------------------------------------------------------------===//

/// log2 of positive finite x in two words, to about 2^-36 (f32) and 2^-65 (f64) of itself: s = (m - 1) / (m + 1) in two
/// words, then s * (C1 + z * (C3 + z * tail)), z = s^2, whose first two terms are in two words.
template <class T, template <class> class V> Pair<T, V> log2Pair(V<T> x) {
  using C = Coefficients<T>;
  LogParts<T, V> e(x);
  V<T> f = e.m - T(1);
  Pair<T, V> d = fastSum<T, V>(T(1), e.m); // m has at most the exponent of 1
  V<T> reciprocal = T(1) / d.hi, sh = f * reciprocal;
  V<T> sl = fma(-sh, d.lo, fma(-sh, d.hi, f)) * reciprocal;
  V<T> zh = sh * sh, zl = fma(sh + sh, sl, fma(sh, sh, -zh));
  V<T> tail = zh * polynomial<T, V>(C::powTail, zh);
  Pair<T, V> t = fastSum<T, V>(C::pow3Hi, tail);
  V<T> tl = t.lo + C::pow3Lo;
  V<T> uh = zh * t.hi, ul = fma(zh, tl, fma(zl, t.hi, fma(zh, t.hi, -uh)));
  Pair<T, V> v = fastSum<T, V>(C::pow1Hi, uh);
  V<T> vl = v.lo + (ul + C::pow1Lo);
  V<T> lh = sh * v.hi, ll = fma(sh, vl, fma(sl, v.hi, fma(sh, v.hi, -lh)));
  Pair<T, V> sum = fastSum<T, V>(e.k, lh);
  return fastSum<T, V>(sum.hi, sum.lo + ll);
}

template <class T, template <class> class V> V<T> pow(V<T> x, V<T> y) {
  constexpr T low = Format<T>::exp2Low, high = Format<T>::exp2High + 1;
  V<T> a = abs(x);
  Pair<T, V> l = log2Pair<T, V>(a);
  V<T> ph = y * l.hi, pl = fma(y, l.lo, fma(y, l.hi, -ph));
  V<bool> inside = (low < ph) & (ph < high);
  V<T> hi = clamp<T, V>(ph, low, high), lo = select(inside, pl, T(0));
  Nearest<T, V> n(hi + Nearest<T, V>::magic);
  V<T> r = (hi - n.value) + lo;
  V<T> result = scaled<T, V>(fma(r, polynomial<T, V>(Coefficients<T>::exp2Tail, r), T(1)), n.integer);

  // Where the logarithm or y is not finite, the result is 0 or infinity; a base of 1 stays 1.
  V<bool> extreme = (a == T(0)) | (a == infinity<T>) | (abs(y) == infinity<T>);
  V<bool> grows = !((T(1) < a) ^ (T(0) < y));
  result = select(extreme, select(grows, infinity<T>, T(0)), result);
  result = select(a == T(1), T(1), result);
  // A negative base: the sign of an odd power; no other power but of zero and infinity.
  V<T> half = y * T(0.5);
  V<bool> whole = trunc(y) == y, odd = whole & !(trunc(half) == half);
  result = select(odd, copysign(result, x), result);
  result = select((x < T(0)) & (-infinity<T> < x) & !whole, quietNaN<T>, result);
  result = select((x == x) & (y == y), result, x + y);
  return select((y == T(0)) | (x == T(1)), T(1), result);
}

template <class T, template <class> class V> V<T> rsqrt(V<T> x) { return T(1) / sqrt(x); }

//===-- trigonometric functions --------------------------------------------===//

/// The high word of a * b by halves.
template <class T, template <class> class V> V<Word<T>> multiplyHigh(V<Word<T>> a, V<Word<T>> b) {
  constexpr int half = Format<T>::width / 2;
  constexpr Word<T> mask = (Word<T>(1) << half) - 1;
  V<Word<T>> al = a & mask, ah = a >> half, bl = b & mask, bh = b >> half;
  V<Word<T>> middle = ah * bl + ((al * bl) >> half);
  V<Word<T>> carry = al * bh + (middle & mask);
  return ah * bh + (middle >> half) + (carry >> half);
}

/// |x| = quadrant * pi/2 + r modulo 2 pi, |r| <= pi/4 (and a little), r in two words, for every finite x.
///
/// With |x| = M 2^e, M a full word, the product M * (2/pi) matters modulo 4 only: a window of three words of 2/pi,
/// beginning where the product's bit of weight 2 is, gives the quadrant and twice a word of fraction.
template <class T, template <class> class V> struct Quadrant {
  using W = Word<T>;
  using S = Signed<T>;
  V<W> quadrant;
  V<T> r, lo;

  explicit Quadrant(V<T> x) : quadrant(bitcast<W>(x)), r(x), lo(x) {
    using C = Coefficients<T>;
    constexpr int p = Format<T>::precision, width = Format<T>::width, spare = width - p, drop = 2 * spare;
    V<T> a = abs(x);
    V<W> bits = bitcast<W>(a), exponent = bits >> (p - 1);
    V<W> mantissa = ((bits << spare) | (W(1) << (width - 1)));
    // Arguments below 2 take the window of [2, 4); those that matter, above pi/4, lose only zeros.
    V<W> start = select(exponent < W(Format<T>::bias + 1), W(Format<T>::bias + 1), exponent);
    mantissa = mantissa >> ((start - exponent) & W(width - 1));
    start = start - W(Format<T>::bias + 1);
    V<W> index = start >> Format<T>::logWidth, shift = start & W(width - 1), back = shift ^ W(width - 1);
    V<W> t0 = lookup16(C::twoOverPi[0], index), t1 = lookup16(C::twoOverPi[1], index);
    V<W> t2 = lookup16(C::twoOverPi[2], index), t3 = lookup16(C::twoOverPi[3], index);
    V<W> w0 = (t0 << shift) | ((t1 >> 1) >> back), w1 = (t1 << shift) | ((t2 >> 1) >> back);
    V<W> w2 = (t2 << shift) | ((t3 >> 1) >> back);
    V<W> carry = multiplyHigh<T, V>(mantissa, w2), low = mantissa * w1 + carry;
    V<W> high = mantissa * w0 + multiplyHigh<T, V>(mantissa, w1) + select(low < carry, W(1), W(0));

    quadrant = (high + (W(1) << (width - 3))) >> (width - 2);
    high = high - (quadrant << (width - 2));
    // The fraction, signed, in pieces that are exact floats.
    constexpr W mask = (W(1) << spare) - 1, rest = (W(1) << drop) - 1;
    V<T> f0 = convert<T>(bitcast<S>(high & W(~mask))) * power2<T>(2 - width);
    V<T> f1 =
        convert<T>(bitcast<S>(((high & mask) << (width - drop)) | (low >> drop))) * power2<T>(drop + 2 - 2 * width);
    V<T> f2 = convert<T>(bitcast<S>(low & rest)) * power2<T>(2 - 2 * width);
    Pair<T, V> top = fastSum<T, V>(f0, f1);
    Pair<T, V> f = fastSum<T, V>(top.hi, top.lo + f2);
    V<T> product = f.hi * C::halfPiHi;
    V<T> error = fma(f.hi, C::halfPiLo, fma(f.lo, C::halfPiHi, fma(f.hi, C::halfPiHi, -product)));
    Pair<T, V> reduced = fastSum<T, V>(product, error);
    V<bool> direct = !(T(C::halfPiHi / 2) < a);
    quadrant = select(direct, W(0), quadrant);
    r = select(direct, a, reduced.hi);
    lo = select(direct, T(0), reduced.lo);
  }

  V<T> sine() const {
    V<T> z = r * r, first = lo - z * T(0.5) * lo;
    return r + fma(r * z, polynomial<T, V>(Coefficients<T>::sinTail, z), first);
  }
  V<T> cosine() const {
    V<T> z = r * r, half = z * T(0.5), w = T(1) - half;
    return w + (((T(1) - w) - half) + fma(z * z, polynomial<T, V>(Coefficients<T>::cosTail, z), -(r * lo)));
  }
};

/// `value` for a finite argument, NaN for the others; `sign` in its highest bit flips the value's sign.
template <class T, template <class> class V> V<T> finishTrigonometric(V<T> x, V<T> value, V<Word<T>> sign) {
  V<T> signedValue = bitcast<T>(bitcast<Word<T>>(value) ^ (sign & signBit<T>));
  return select(abs(x) < infinity<T>, signedValue, x - x);
}

template <class T, template <class> class V> V<T> sin(V<T> x) {
  Quadrant<T, V> e(x);
  V<T> value = select((e.quadrant & Word<T>(1)) == Word<T>(1), e.cosine(), e.sine());
  return finishTrigonometric<T, V>(x, value, (e.quadrant << (Format<T>::width - 2)) ^ bitcast<Word<T>>(x));
}

template <class T, template <class> class V> V<T> cos(V<T> x) {
  Quadrant<T, V> e(x);
  V<T> value = select((e.quadrant & Word<T>(1)) == Word<T>(1), e.sine(), e.cosine());
  return finishTrigonometric<T, V>(x, value, (e.quadrant + Word<T>(1)) << (Format<T>::width - 2));
}

/// tan(r) in two words t + rest; in odd quadrants -1 / (t + rest) by one step of correction.
template <class T, template <class> class V> V<T> tan(V<T> x) {
  Quadrant<T, V> e(x);
  V<T> z = e.r * e.r, w = e.r * z * polynomial<T, V>(Coefficients<T>::tanTail, z), t0 = e.r + w;
  Pair<T, V> t = fastSum<T, V>(e.r, fma(e.lo, fma(t0, t0, T(1)), w));
  V<T> g = T(1) / t.hi, inverse = fma(g, fma(-g, t.lo, fma(-g, t.hi, T(1))), g);
  V<T> value = select((e.quadrant & Word<T>(1)) == Word<T>(1), -inverse, t.hi);
  return finishTrigonometric<T, V>(x, value, bitcast<Word<T>>(x));
}

/// An odd polynomial up to 1; above pi/2 - atan(1 / a), the reciprocal in two words.
template <class T, template <class> class V> V<T> atan(V<T> x) {
  using C = Coefficients<T>;
  V<T> a = abs(x);
  V<bool> large = T(1) < a;
  V<T> g = T(1) / a, t = select(large, g, a), z = t * t, cubic = t * z * polynomial<T, V>(C::atanTail, z);
  V<T> lost = select(a < infinity<T>, fma(-g, a, T(1)) * g, T(0));
  Pair<T, V> turn = fastSum<T, V>(C::halfPiHi, -g);
  V<T> beyond = turn.hi + (turn.lo - (cubic + (lost - C::halfPiLo)));
  return copysign(select(large, beyond, t + cubic), x);
}

/// asin(t) = s + cubic + rest and, where t > 1/2, pi/2 - 2 asin(sqrt((1 - t) / 2)): the root in two words.
template <class T, template <class> class V> struct ArcParts {
  V<bool> large;
  V<T> s, tail; // asin of |x| where it is small, else of sqrt((1 - |x|) / 2): s + tail

  explicit ArcParts(V<T> x) : large(T(0.5) < abs(x)), s(abs(x)), tail(s) {
    V<T> half = (T(1) - s) * T(0.5), root = sqrt(half);
    V<T> lost = select(T(0) < root, fma(-root, root, half) / (root + root), T(0));
    V<T> z = select(large, half, s * s);
    s = select(large, root, s);
    tail = fma(s * z, polynomial<T, V>(Coefficients<T>::asinTail, z), select(large, lost, T(0)));
  }
};

template <class T, template <class> class V> V<T> asin(V<T> x) {
  using C = Coefficients<T>;
  ArcParts<T, V> e(x);
  Pair<T, V> turn = fastSum<T, V>(C::halfPiHi, -(e.s + e.s));
  V<T> beyond = turn.hi + (turn.lo - (e.tail + e.tail - C::halfPiLo));
  return copysign(select(e.large, beyond, e.s + e.tail), x);
}

/// pi/2 - asin(x) where |x| is small, 2 asin(...) near 1, pi - 2 asin(...) near -1.
template <class T, template <class> class V> V<T> acos(V<T> x) {
  using C = Coefficients<T>;
  ArcParts<T, V> e(x);
  V<T> twice = e.s + e.s, twiceTail = e.tail + e.tail;
  V<T> hi = select(e.large, C::halfPiHi * 2, C::halfPiHi), lo = select(e.large, C::halfPiLo * 2, C::halfPiLo);
  V<T> part = select(e.large, twice, copysign(e.s, x)), tail = select(e.large, twiceTail, copysign(e.tail, x));
  Pair<T, V> turn = fastSum<T, V>(hi, -part);
  V<T> fromTurn = turn.hi + (turn.lo - (tail - lo));
  return select(e.large & (T(0) < x), twice + twiceTail, fromTurn);
}

//===-- erf ----------------------------------------------------------------===//

/// A polynomial around the nearest of sixteen centres; beyond the last interval erf rounds to 1. The slope is in two
/// parts because it is the whole error near 0.
template <class T, template <class> class V> V<T> erf(V<T> x) {
  using C = Coefficients<T>;
  constexpr T high = T(15.25) * C::erfStep;
  V<T> a = abs(x);
  a = select(high < a, high, a);
  Nearest<T, V> n(a, T(1) / C::erfStep);
  V<T> t = fma(n.value, -C::erfStep, a);
  V<Word<T>> index = bitcast<Word<T>>(n.integer);
  constexpr size_t degree = sizeof(C::erfTable) / sizeof(C::erfTable[0]) - 1;
  V<T> tail = lookup16(C::erfTable[degree], index);
  for (size_t i = degree - 1; i > 1; --i) tail = fma(t, tail, lookup16(C::erfTable[i], index));
  V<T> slope = lookup16(C::erfTable[1], index), centre = lookup16(C::erfTable[0], index);
  V<T> rise = fma(t, slope, t * fma(t, tail, C::erfSlopeLo));
  return copysign(centre + rise, x);
}

} // namespace astra::numerics

//===- Reference.h: how far a function program is from the truth -----------===//
// Takes:    a result in f32 or f64 and the exact value in a wider format (double for f32, long double for f64).
// Gives:    the error in ulps of the exact value; the wide functions themselves, from the host's libm; a hash of
//           results.
// Keeps:    the wide functions err by less than an ulp of the wide format, so measured errors are true to about 2^-11
//           (f64; the wide format has 64 bits) and 2^-29 (f32).
// Does not: run on hosts whose long double is a double.
#pragma once
#include "astra/Numerics/Functions.h"
#include "astra/Numerics/HostValue.h"
#include <cmath>

namespace astra::numerics {

template <class T> struct WideOf;
template <> struct WideOf<float> {
  using Type = double;
};
template <> struct WideOf<double> {
  using Type = long double;
};
template <class T> using Wide = typename WideOf<T>::Type;
static_assert(std::numeric_limits<long double>::digits >= 64);

/// The unit of the last place in format T of a positive number.
template <class T> Wide<T> ulp(Wide<T> x) {
  constexpr int p = std::numeric_limits<T>::digits, least = std::numeric_limits<T>::min_exponent;
  if constexpr (sizeof(T) == 4) {
    double power = std::bit_cast<double>(std::bit_cast<uint64_t>(x) & 0x7ff0000000000000);
    return std::fmax(power, power2<double>(least - 1)) * power2<double>(1 - p);
  } else {
    int exponent;
    std::frexp(x, &exponent);
    return std::ldexp(Wide<T>(1), std::max(exponent, least) - p);
  }
}

/// |result - exact| in ulps; infinite if one is NaN and the other is not, or if a zero has the wrong sign. A result of
/// infinity stands for the first number beyond the format's range.
template <class T> double ulpError(T result, Wide<T> exact) {
  using W = Wide<T>;
  constexpr int p = std::numeric_limits<T>::digits;
  if (std::isnan(result) || std::isnan(exact)) return std::isnan(result) && std::isnan(exact) ? 0 : infinity<double>;
  if (std::isinf(exact)) return result == exact ? 0 : infinity<double>;
  if (exact == 0 && (result != 0 || std::signbit(result) != std::signbit(exact))) return infinity<double>;
  const W beyond = std::ldexp(W(1), std::numeric_limits<T>::max_exponent);
  if (std::isinf(result)) {
    if (std::fabs(exact) >= beyond && std::signbit(result) == std::signbit(exact)) return 0;
    return double((beyond - std::fabs(exact)) / std::ldexp(beyond, -p));
  }
  return double(std::fabs(W(result) - exact) / ulp<T>(std::fmin(std::fabs(exact), beyond)));
}

// The exact functions under the programs' names.
namespace wide {
#define WIDE(name)                                                                                                     \
  template <class W> W name(W x) { return std::name(x); }
WIDE(exp2)
WIDE(exp)
WIDE(expm1)
WIDE(log2)
WIDE(log)
WIDE(log1p)
WIDE(sin)
WIDE(cos)
WIDE(tan)
WIDE(tanh)
WIDE(erf)
WIDE(asin)
WIDE(acos)
WIDE(atan)
WIDE(sinh)
WIDE(cosh)
WIDE(asinh)
WIDE(acosh)
WIDE(atanh)
#undef WIDE
template <class W> W sigmoid(W x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
template <class W> W rsqrt(W x) { return 1 / std::sqrt(x); }
template <class W> W pow(W x, W y) { return std::pow(x, y); }
} // namespace wide

/// A bijective mix of 64 bits (S. Vigna's splitmix64), for hashes that may be summed in any order.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The bits of a result, every NaN as the canonical one.
template <class T> uint64_t resultBits(T y) { return std::bit_cast<Word<T>>(std::isnan(y) ? quietNaN<T> : y); }

/// Measured over a set of arguments.
struct Measurement {
  double error = 0;                // the largest, in ulps
  double argument = 0, second = 0; // where
  uint64_t hash = 0;               // sum over the arguments of mix(argument bits, result bits)
  void add(const Measurement &o) {
    hash += o.hash;
    if (o.error > error) error = o.error, argument = o.argument, second = o.second;
  }
};

/// Arguments argument(begin) ... argument(end - 1). The program runs over blocks, which compilers make vectors of.
template <class T, class Program, class Exact, class Argument>
void measure(Measurement &m, Program program, Exact exact, Argument argument, uint64_t begin, uint64_t end) {
  constexpr uint64_t block = 256;
  T x[block], y[block];
  for (; begin < end; begin += block) {
    uint64_t n = std::min(block, end - begin);
    for (uint64_t i = 0; i < n; ++i) x[i] = argument(begin + i);
    for (uint64_t i = 0; i < n; ++i) y[i] = program(Host<T>(x[i])).v;
    for (uint64_t i = 0; i < n; ++i) m.hash += mix(mix(std::bit_cast<Word<T>>(x[i])) ^ resultBits(y[i]));
    for (uint64_t i = 0; i < n; ++i)
      if (double e = ulpError<T>(y[i], exact(Wide<T>(x[i]))); e > m.error) m.error = e, m.argument = x[i];
  }
}

template <class T, class Program, class Exact> void measure(Measurement &m, Program program, Exact exact, T x, T z) {
  T y = program(Host<T>(x), Host<T>(z)).v;
  m.hash += mix(mix(mix(std::bit_cast<Word<T>>(x)) ^ std::bit_cast<Word<T>>(z)) ^ resultBits(y));
  if (double e = ulpError<T>(y, exact(Wide<T>(x), Wide<T>(z))); e > m.error) m.error = e, m.argument = x, m.second = z;
}

// ---- arguments: argument number i of a fixed sequence

/// Any bits.
template <class T> T anyBits(uint64_t i) { return std::bit_cast<T>(Word<T>(mix(i) >> (64 - Format<T>::width))); }

/// Magnitudes 2^-40 ... 2^12, where functions are neither trivial nor saturated.
template <class T> T moderate(uint64_t i) {
  uint64_t r = mix(i);
  T x = std::ldexp(T(1) + std::ldexp(T(mix(r) >> 12), -52), int(r % 53) - 40);
  return r >> 23 & 1 ? -x : x;
}

/// One-argument functions: both kinds by turns. In f32 the hashed sample is sampleOf32.
template <class T> T sampleArgument(uint64_t i) { return i & 1 ? anyBits<T>(i) : moderate<T>(i); }

/// 2^24 of the 2^32 f32 numbers, each once.
inline float sampleOf32(uint32_t i) { return std::bit_cast<float>(i * 0x9e3779b1u); }

/// Bases and exponents of pow: any bits; results spread over the range; bases near 1; small integers and halves.
template <class T> std::pair<T, T> powArguments(uint64_t i) {
  uint64_t r = mix(2 * i), q = mix(2 * i + 1);
  switch (i % 4) {
  case 0: return {std::bit_cast<T>(Word<T>(r)), std::bit_cast<T>(Word<T>(q))};
  case 1: {
    T x = std::fabs(anyBits<T>(r)), range = 2 * Format<T>::exp2High;
    T target = range * (std::ldexp(T(q >> 40), -24) - T(0.5));
    int exponent;
    T m = std::frexp(x, &exponent); // a rough logarithm keeps the sequence free of libm
    return {x, target / (T(exponent) + (m - T(1)) * T(1.5) + T(0.01))};
  }
  case 2: {
    T x = T(1) + std::ldexp(T(int64_t(r) >> 20), -45), y = std::ldexp(T(q & 0xffffff), int(q >> 40 & 15) - 24);
    return {x, q >> 63 ? -y : y};
  }
  default: return {T(int(r % 41) - 20), T(int(q % 41) - 20) / 2};
  }
}

} // namespace astra::numerics

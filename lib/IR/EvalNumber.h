//===- EvalNumber.h: element formats, decoded and encoded with integers ----===//
// Gives:    exact widening of every narrow format to binary64, one correct rounding (nearest even) into any format from
//           an exact value, N9's max and min, and element access for the evaluator's loops.
// Keeps:    independence of the host's rounding of narrow types; canonical NaNs from every conversion (N6).
// Does not: compute in f16 or bf16: an op on them is the f32 op, then one rounding (N12).
#pragma once
#include "astra/IR/DType.h"
#include <cmath>
#include <cstring>
#include <type_traits>

namespace astra::eval {

/// The value (-1)^negative * significand * 2^exponent, or a NaN or infinity.
struct Exact {
  enum Kind : uint8_t { Finite, Infinity, NaN } kind = Finite;
  bool negative = false;
  uint64_t significand = 0;
  int exponent = 0;
};
Exact exactOf(double v);
Exact exactOf(int64_t v);
Exact exactOf(uint64_t v);
/// The value of the bits of a float or float storage type.
Exact decode(DType t, uint64_t bits);
/// v rounded once to the float or float storage type t, as bits. Beyond the greatest: infinity where t has one, else
/// NaN; with `saturate` the greatest (fp8 types). f4e2m1 has neither: the greatest, NaN gives 0. e8m0: negative and NaN
/// give NaN, what lies below the least (zero too) gives the least, ties go to the even exponent.
uint64_t encode(DType t, const Exact &v, bool saturate = false);

double widen(DType t, uint64_t bits); // exact
inline uint64_t narrow(DType t, double v) { return encode(t, exactOf(v)); }
/// v * 2^n, rounded once to t (F32 or F64).
double scale2(DType t, double v, int64_t n);
/// The canonical NaN of a float or fp8 type; 0 for types without one.
uint64_t canonicalNaN(DType t);
bool isNaN(DType t, uint64_t bits);

/// N9: a NaN wins, -0 < +0. Integers: the usual.
template <class T> T maxOf(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}
template <class T> T minOf(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return b < a ? b : a;
}

/// Wrapping arithmetic on any integer type: the low bits of the 64-bit result.
template <class T> T wrap(uint64_t v) { return T(v); }
/// N10: rounded down; x/0 = 0, MIN/-1 = MIN.
template <class T> T floorDiv(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == T(-1)) return wrap<T>(0 - uint64_t(a));
  return T(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}

/// Access to elements that the host has as they are.
template <class T> struct Native {
  using Compute = T;
  static T load(const uint8_t *p, int64_t i) {
    T v;
    memcpy(&v, p + i * sizeof(T), sizeof(T));
    return v;
  }
  static void store(uint8_t *p, int64_t i, T v) { memcpy(p + i * sizeof(T), &v, sizeof(T)); }
};
/// Access to f16 and bf16: computed in f32, rounded when stored.
template <DType t> struct Narrow {
  using Compute = float;
  static float load(const uint8_t *p, int64_t i) { return float(widen(t, Native<uint16_t>::load(p, i))); }
  static void store(uint8_t *p, int64_t i, float v) { Native<uint16_t>::store(p, i, uint16_t(narrow(t, v))); }
};

template <class F> auto withFloat(DType t, F f) {
  switch (t) {
  case DType::F16: return f(Narrow<DType::F16>{});
  case DType::BF16: return f(Narrow<DType::BF16>{});
  case DType::F64: return f(Native<double>{});
  default: return f(Native<float>{});
  }
}
/// Bool goes as u8: its values are 0 and 1.
template <class F> auto withInt(DType t, F f) {
  switch (t) {
  case DType::I8: return f(Native<int8_t>{});
  case DType::I16: return f(Native<int16_t>{});
  case DType::I32: return f(Native<int32_t>{});
  case DType::I64: return f(Native<int64_t>{});
  case DType::U16: return f(Native<uint16_t>{});
  case DType::U32: return f(Native<uint32_t>{});
  case DType::U64: return f(Native<uint64_t>{});
  default: return f(Native<uint8_t>{});
  }
}
template <class F> auto withArithmetic(DType t, F f) { return isFloat(t) ? withFloat(t, f) : withInt(t, f); }

} // namespace astra::eval

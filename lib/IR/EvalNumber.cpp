//===- EvalNumber.cpp: element formats, decoded and encoded with integers --===//
// Takes:    bits of any float or float storage type, or an exact value.
// Gives:    the exact value, or the bits after one rounding to nearest even.
#include "EvalNumber.h"
#include "llvm/ADT/bit.h"
#include <algorithm>

using namespace astra;
using namespace astra::eval;

namespace {
/// How a format spends its codes beyond the finite numbers. Codes are without the sign.
struct Format {
  int bias;
  uint64_t greatest; // the code of the greatest finite value
  bool infinity;     // greatest + 1 is the infinity
  bool unsignedZero; // fnuz: the code of -0 is the NaN
};
Format formatOf(DType t) {
  const DTypeInfo &i = info(t);
  uint64_t top = ((1ull << i.exponentBits) - 1) << i.mantissaBits;
  int bias = (1 << (i.exponentBits - 1)) - 1;
  switch (t) {
  case DType::F8E4M3FN: return {bias, 0x7e, false, false};
  case DType::F8E4M3FNUZ: return {8, 0x7f, false, true};
  case DType::F8E5M2FNUZ: return {16, 0x7f, false, true};
  case DType::F4E2M1: return {bias, 7, false, false};
  default: return {bias, top - 1, true, false};
  }
}
} // namespace

Exact eval::exactOf(double v) {
  uint64_t bits;
  memcpy(&bits, &v, 8);
  return decode(DType::F64, bits);
}
Exact eval::exactOf(int64_t v) {
  Exact e = exactOf(v < 0 ? 0 - uint64_t(v) : uint64_t(v));
  e.negative = v < 0;
  return e;
}
Exact eval::exactOf(uint64_t v) { return {Exact::Finite, false, v, 0}; }

uint64_t eval::canonicalNaN(DType t) {
  switch (t) {
  case DType::F8E4M3FN: return 0x7f;
  case DType::F8E5M2: return 0x7e;
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2FNUZ: return 0x80;
  case DType::F8E8M0: return 0xff;
  case DType::F4E2M1: return 0;
  default: { // the quiet NaN with no other payload
    const DTypeInfo &i = info(t);
    return ((1ull << (i.exponentBits + 1)) - 1) << (i.mantissaBits - 1);
  }
  }
}

bool eval::isNaN(DType t, uint64_t bits) {
  uint64_t code = bits & ((1ull << (bitWidth(t) - 1)) - 1);
  switch (t) {
  case DType::F8E4M3FN: return code == 0x7f;
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2FNUZ: return bits == 0x80;
  case DType::F8E8M0: return bits == 0xff;
  case DType::F4E2M1: return false;
  default: return code > formatOf(t).greatest + 1;
  }
}

Exact eval::decode(DType t, uint64_t bits) {
  if (isNaN(t, bits)) return {Exact::NaN};
  if (t == DType::F8E8M0) return {Exact::Finite, false, 1, int(bits) - 127};
  const DTypeInfo &i = info(t);
  Format f = formatOf(t);
  Exact e;
  e.negative = bits >> (i.bits - 1) & 1;
  uint64_t code = bits & ((1ull << (i.bits - 1)) - 1);
  if (f.infinity && code == f.greatest + 1) {
    e.kind = Exact::Infinity;
    return e;
  }
  uint64_t exponent = code >> i.mantissaBits;
  e.significand = code & ((1ull << i.mantissaBits) - 1);
  if (exponent) e.significand |= 1ull << i.mantissaBits;
  e.exponent = int(std::max<uint64_t>(exponent, 1)) - f.bias - int(i.mantissaBits);
  return e;
}

static uint64_t encodeE8M0(const Exact &v, bool saturate) {
  if (v.kind == Exact::NaN || (v.negative && (v.significand || v.kind == Exact::Infinity))) return 0xff;
  if (v.kind == Exact::Infinity) return saturate ? 0xfe : 0xff;
  if (!v.significand) return 0;
  int lead = 63 - llvm::countl_zero(v.significand), code = v.exponent + lead + 127;
  uint64_t rest = v.significand - (1ull << lead), half = lead ? 1ull << (lead - 1) : 1;
  if (code < 0) return 0;
  if (rest > half || (rest == half && (code & 1))) ++code;
  return code < 0xff ? code : saturate ? 0xfe : 0xff;
}

uint64_t eval::encode(DType t, const Exact &v, bool saturate) {
  if (t == DType::F8E8M0) return encodeE8M0(v, saturate);
  const DTypeInfo &i = info(t);
  Format f = formatOf(t);
  if (v.kind == Exact::NaN) return canonicalNaN(t);
  uint64_t sign = uint64_t(v.negative) << (i.bits - 1), code = f.greatest + 1;
  if (v.kind == Exact::Finite) {
    if (!v.significand) return f.unsignedZero ? 0 : sign;
    int mantissa = i.mantissaBits, least = 1 - f.bias; // the exponent of the least normal number
    int lead = v.exponent + 63 - llvm::countl_zero(v.significand);
    int drop = std::max(lead, least) - mantissa - v.exponent; // bits below the last that is kept
    if (lead <= int(f.greatest >> i.mantissaBits) - f.bias) {
      uint64_t kept = drop <= 0 ? v.significand << -drop : drop < 64 ? v.significand >> drop : 0;
      code = (uint64_t(std::max(lead, least) - least) << mantissa) + kept;
      if (drop > 0 && drop <= 64) { // what is dropped against half a unit: up when more, or on a tie to an odd code
        uint64_t half = 1ull << (drop - 1), rest = drop == 64 ? v.significand : v.significand & ((1ull << drop) - 1);
        code += rest > half || (rest == half && (code & 1));
      }
    }
  }
  if (code > f.greatest) {
    bool narrowest = i.bits <= 8;
    if (t == DType::F4E2M1 || (narrowest && saturate))
      code = f.greatest;
    else if (!f.infinity)
      return canonicalNaN(t);
    else
      code = f.greatest + 1;
  }
  return code == 0 && f.unsignedZero ? 0 : sign | code;
}

double eval::widen(DType t, uint64_t bits) {
  if (t == DType::BF16 && !isNaN(t, bits)) {
    float v;
    uint32_t wide = uint32_t(bits) << 16;
    memcpy(&v, &wide, 4);
    return v;
  }
  uint64_t wide = encode(DType::F64, decode(t, bits));
  double v;
  memcpy(&v, &wide, 8);
  return v;
}

double eval::scale2(DType t, double v, int64_t n) {
  Exact e = exactOf(v);
  e.exponent += int(std::clamp<int64_t>(n, -5000, 5000)); // far beyond every format on both sides
  return widen(t, encode(t, e));
}

//===- Arithmetic.cpp: remainders and powers -----------------------------===//
// Takes:    operands that may be wrong in every way.
// Gives:    what Arithmetic.h says.
#include "astra/Compose/Arithmetic.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace astra::compose {

namespace {

/// x - trunc(x / y) * y, exact, with the sign of x. Each step takes x below y * 2^k for the next smaller k, by a
/// quotient of at most 26 bits (f64: 50), which a division rounded once gives but for one too many. f32 is divided in
/// f64, where the products are exact; in f64 an fma gives the difference, which always fits.
UOpRef floatRemainder(Composer &b, UOpRef x, UOpRef y) {
  bool wide = x->dtype == DType::F64;
  int highest = wide ? 2100 : 278, bits = wide ? 50 : 26; // the greatest exponent of a quotient
  UOpRef rest = b.un(Op::Abs, b.cast(x, DType::F64)), divisor = b.un(Op::Abs, b.cast(y, DType::F64));
  for (int k = highest - highest % bits; k >= 0; k -= bits) {
    UOpRef part = divisor; // * 2^k; inf where that is too large, which leaves the rest as it is
    for (int left = k; left > 0; left -= std::min(left, 1000))
      part = b.bin(Op::Mul, part, std::ldexp(1.0, std::min(left, 1000)));
    UOpRef quotient = b.un(Op::Trunc, b.bin(Op::Div, rest, part));
    if (!quotient) return nullptr;
    UOpRef below = wide ? b.make(Op::Fma, {b.un(Op::Neg, quotient), part, rest})
                        : b.bin(Op::Sub, rest, b.bin(Op::Mul, quotient, part));
    below = b.select(b.bin(Op::Lt, below, 0.0), b.bin(Op::Add, below, part), below);
    rest = b.select(b.bin(Op::Eq, quotient, 0.0), rest, below);
  }
  return b.make(Op::CopySign, {b.cast(rest, x->dtype), x});
}

/// A remainder of x by y of one shape with PyTorch's gradients: that of x is the cotangent, also where the remainder is
/// 0, and that of y the cotangent times -trunc(x / y), or -floor.
UOpRef withGradient(Composer &b, UOpRef rest, UOpRef x, UOpRef y, Op rounding) {
  if (!rest || !b.wantsGradients() || llvm::any_of(rest->shape, isDataDim)) return rest;
  auto argument = [&](int64_t i) { return b.b.arg(i, rest->dtype, rest->shape); };
  UOpRef g = argument(3), quotient = b.un(rounding, b.bin(Op::Div, argument(1), argument(2)));
  UOpRef ofDivisor = b.un(Op::Neg, b.bin(Op::Mul, g, quotient));
  if (!ofDivisor) return nullptr;
  return b.c.make(Op::WithGradient, {rest, x, y}, {}, {}, DType::Void, {b.c.make(Op::Func, {g, ofDivisor}, {4})});
}

/// The same with the sign of y: x - floor(x / y) * y.
UOpRef floorRemainder(Composer &b, UOpRef x, UOpRef y) {
  UOpRef rest = floatRemainder(b, x, y), zero = b.literal(y, 0);
  if (!rest) return nullptr;
  UOpRef differ = b.bin(Op::Ne, b.bin(Op::Lt, rest, zero), b.bin(Op::Lt, y, zero));
  UOpRef moved = b.select(differ, b.bin(Op::Add, rest, y), rest);
  return b.select(b.bin(Op::Eq, rest, zero),
                  b.make(Op::CopySign, {zero->rank() ? zero : b.broadcastTo(zero, y->shape), y}), moved);
}

/// x^y of integers, y >= 0, modulo 2^width; where y < 0 the quotient 1 / x^-y rounded toward zero, and 0 for x = 0.
UOpRef integerPower(Composer &b, UOpRef x, UOpRef y) {
  unsigned width = isSigned(y->dtype) ? bitWidth(y->dtype) - 1 : bitWidth(y->dtype);
  if (const std::vector<UOpRef> *known = b.elements(y)) { // as many steps as the largest exponent needs
    int64_t most = 0;
    for (UOpRef v : *known) most = std::max(most, v->hi);
    unsigned used = 1;
    while (used < width && most >> used) ++used;
    width = used;
  }
  UOpRef result = b.b.litInt(x->dtype, 1), power = x;
  for (unsigned bit = 0; bit < width; ++bit) {
    UOpRef isSet = b.bin(Op::Ne, b.bin(Op::And, b.bin(Op::Shr, y, b.b.litInt(y->dtype, bit)), b.b.litInt(y->dtype, 1)),
                         b.b.litInt(y->dtype, 0));
    result = b.select(isSet, b.bin(Op::Mul, result, power), result);
    if (bit + 1 < width) power = b.bin(Op::Mul, power, power);
  }
  if (!isSigned(y->dtype)) return result;
  UOpRef one = b.b.litInt(x->dtype, 1), zero = b.b.litInt(x->dtype, 0);
  UOpRef unit = b.bin(Op::Eq, x, one);
  if (isSigned(x->dtype)) unit = b.bin(Op::Or, unit, b.bin(Op::Eq, x, b.b.litInt(x->dtype, -1)));
  UOpRef odd = b.bin(Op::Ne, b.bin(Op::And, y, b.b.litInt(y->dtype, 1)), b.b.litInt(y->dtype, 0));
  UOpRef inverse = b.select(unit, b.select(odd, x, one), zero);
  return b.select(b.bin(Op::Lt, y, b.b.litInt(y->dtype, 0)), inverse, result);
}

} // namespace

UOpRef remainder(Composer &b, UOpRef given, UOpRef divisor, bool truncating) {
  UOpRef x = given, y = divisor;
  if (!x || !y) return nullptr;
  if (!isFloat(x->dtype)) return b.bin(truncating ? Op::Rem : Op::Mod, x, y);
  if (x->dtype != y->dtype)
    return b.fail(llvm::Twine("operands of types ") + info(x->dtype).text + " and " + info(y->dtype).text);
  Dims dims = b.broadcastShape({x->shape, y->shape});
  x = b.broadcastTo(b.widen(x), dims);
  y = b.broadcastTo(b.widen(y), dims);
  if (!x || !y) return nullptr;
  UOpRef rest = truncating ? floatRemainder(b, x, y) : floorRemainder(b, x, y);
  return b.cast(withGradient(b, rest, x, y, truncating ? Op::Trunc : Op::Floor), given->dtype);
}

UOpRef power(Composer &b, UOpRef x, UOpRef y) {
  if (!x || !y) return nullptr;
  for (UOpRef v : {x, y})
    if (!isFloat(v->dtype) && !isInt(v->dtype)) b.fail(llvm::Twine("powers of type ") + info(v->dtype).text);
  if (b.failed()) return nullptr;
  auto isAlways = [&](int64_t k) {
    return y->rank() == 0 && y->isConst() &&
           (isFloat(y->dtype) ? y == b.literal(y, double(k)) : b.elements(y)->front()->constIndex() == k);
  };
  if (isAlways(2)) return b.bin(Op::Mul, x, x);
  // Two roundings are within pow's bound, and x * x underflows or overflows only where the cube does.
  bool cubes = isFloat(x->dtype) ? bitWidth(x->dtype) >= 32 : isInt(y->dtype);
  if (isAlways(3) && cubes) return b.bin(Op::Mul, b.bin(Op::Mul, x, x), x);
  if (isInt(x->dtype) && isInt(y->dtype)) return integerPower(b, x, y);
  bool wide = x->dtype == DType::F64 || y->dtype == DType::F64 || isInt(x->dtype);
  DType t = wide ? DType::F64 : x->dtype == y->dtype || isInt(y->dtype) ? x->dtype : DType::F32;
  return b.cast(b.bin(Op::Pow, b.cast(x, t), b.cast(y, t)), x->dtype);
}

UOpRef sum(Composer &b, llvm::ArrayRef<UOpRef> xs) {
  UOpRef all = b.widen(xs[0]);
  for (UOpRef x : xs.drop_front()) all = all ? b.bin(Op::Add, all, b.cast(x, all->dtype)) : nullptr;
  return all && xs[0] ? b.cast(all, xs[0]->dtype) : nullptr;
}

UOpRef meanOfAll(Composer &b, llvm::ArrayRef<UOpRef> xs) {
  UOpRef sum = xs.empty() ? nullptr : b.widen(xs[0]);
  if (!b.requireFloat(sum)) return nullptr;
  for (UOpRef x : xs.drop_front()) sum = b.bin(Op::Add, sum, b.widen(x));
  return b.cast(b.bin(Op::Div, sum, double(xs.size())), xs[0]->dtype);
}

UOpRef reciprocal(Composer &b, UOpRef x) { return x ? b.bin(Op::Div, b.literal(x, 1), x) : nullptr; }

} // namespace astra::compose

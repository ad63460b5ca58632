//===- OpsArithmetic.cpp: remainders and powers ----------------------------===//
// Takes:    Mod and Pow on integers and floats.
// Gives:    exact remainders of floats by long division; powers of integers by squaring, modulo 2^width.
#include "OpTable.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace astra::onnx {

namespace {

/// x - trunc(x / y) * y, exact, with the sign of x. Each step takes x below y * 2^k for the next smaller k, by a
/// quotient of at most 26 bits (f64: 50), which a division rounded once gives but for one too many. f32 is divided in
/// f64, where the products are exact; in f64 an fma gives the difference, which always fits.
UOpRef floatRemainder(Node &n, UOpRef x, UOpRef y) {
  bool wide = x->dtype == DType::F64;
  int highest = wide ? 2100 : 278, bits = wide ? 50 : 26; // the greatest exponent of a quotient
  UOpRef rest = n.un(Op::Abs, n.cast(x, DType::F64)), divisor = n.un(Op::Abs, n.cast(y, DType::F64));
  for (int k = highest - highest % bits; k >= 0; k -= bits) {
    UOpRef part = divisor; // * 2^k; inf where that is too large, which leaves the rest as it is
    for (int left = k; left > 0; left -= std::min(left, 1000))
      part = n.bin(Op::Mul, part, std::ldexp(1.0, std::min(left, 1000)));
    UOpRef quotient = n.un(Op::Trunc, n.bin(Op::Div, rest, part));
    if (!quotient) return nullptr;
    UOpRef below = wide ? n.make(Op::Fma, {n.un(Op::Neg, quotient), part, rest})
                        : n.bin(Op::Sub, rest, n.bin(Op::Mul, quotient, part));
    below = n.select(n.bin(Op::Lt, below, 0.0), n.bin(Op::Add, below, part), below);
    rest = n.select(n.bin(Op::Eq, quotient, 0.0), rest, below);
  }
  return n.make(Op::CopySign, {n.cast(rest, x->dtype), x});
}

/// A remainder of x by y of one shape with PyTorch's gradients: that of x is the cotangent, also where the remainder is
/// 0, and that of y the cotangent times -trunc(x / y), or -floor.
UOpRef withGradient(Node &n, UOpRef rest, UOpRef x, UOpRef y, Op rounding) {
  if (!rest || !n.training() || llvm::any_of(rest->shape, isDataDim)) return rest;
  auto argument = [&](int64_t i) { return n.b.arg(i, rest->dtype, rest->shape); };
  UOpRef g = argument(3), quotient = n.un(rounding, n.bin(Op::Div, argument(1), argument(2)));
  UOpRef ofDivisor = n.un(Op::Neg, n.bin(Op::Mul, g, quotient));
  if (!ofDivisor) return nullptr;
  return n.c.make(Op::WithGradient, {rest, x, y}, {}, {}, DType::Void, {n.c.make(Op::Func, {g, ofDivisor}, {4})});
}

/// The same with the sign of y: x - floor(x / y) * y.
UOpRef floorRemainder(Node &n, UOpRef x, UOpRef y) {
  UOpRef rest = floatRemainder(n, x, y), zero = n.literal(y, 0);
  if (!rest) return nullptr;
  UOpRef differ = n.bin(Op::Ne, n.bin(Op::Lt, rest, zero), n.bin(Op::Lt, y, zero));
  UOpRef moved = n.select(differ, n.bin(Op::Add, rest, y), rest);
  return n.select(n.bin(Op::Eq, rest, zero),
                  n.make(Op::CopySign, {zero->rank() ? zero : n.broadcastTo(zero, y->shape), y}), moved);
}

void mod(Node &n) {
  bool truncating = n.intAttr("fmod", 0) != 0;
  UOpRef x = n.in(0), y = n.in(1);
  if (!x || !y) return;
  if (!isFloat(x->dtype)) return n.give(n.bin(truncating ? Op::Rem : Op::Mod, x, y));
  if (x->dtype != y->dtype) {
    n.fail(llvm::Twine("operands of types ") + info(x->dtype).text + " and " + info(y->dtype).text);
    return;
  }
  Dims dims = n.broadcastShape({x->shape, y->shape});
  x = n.broadcastTo(n.widen(x), dims);
  y = n.broadcastTo(n.widen(y), dims);
  if (!x || !y) return;
  UOpRef rest = truncating ? floatRemainder(n, x, y) : floorRemainder(n, x, y);
  n.give(n.cast(withGradient(n, rest, x, y, truncating ? Op::Trunc : Op::Floor), n.in(0)->dtype));
}

/// x^y of integers, y >= 0, modulo 2^width; where y < 0 the quotient 1 / x^-y rounded toward zero, and 0 for x = 0.
UOpRef integerPower(Node &n, UOpRef x, UOpRef y) {
  unsigned width = isSigned(y->dtype) ? bitWidth(y->dtype) - 1 : bitWidth(y->dtype);
  if (const std::vector<UOpRef> *known = n.elements(y)) { // as many steps as the largest exponent needs
    int64_t most = 0;
    for (UOpRef v : *known) most = std::max(most, v->hi);
    unsigned used = 1;
    while (used < width && most >> used) ++used;
    width = used;
  }
  UOpRef result = n.b.litInt(x->dtype, 1), power = x;
  for (unsigned bit = 0; bit < width; ++bit) {
    UOpRef isSet = n.bin(Op::Ne, n.bin(Op::And, n.bin(Op::Shr, y, n.b.litInt(y->dtype, bit)), n.b.litInt(y->dtype, 1)),
                         n.b.litInt(y->dtype, 0));
    result = n.select(isSet, n.bin(Op::Mul, result, power), result);
    if (bit + 1 < width) power = n.bin(Op::Mul, power, power);
  }
  if (!isSigned(y->dtype)) return result;
  UOpRef one = n.b.litInt(x->dtype, 1), zero = n.b.litInt(x->dtype, 0);
  UOpRef unit = n.bin(Op::Eq, x, one);
  if (isSigned(x->dtype)) unit = n.bin(Op::Or, unit, n.bin(Op::Eq, x, n.b.litInt(x->dtype, -1)));
  UOpRef odd = n.bin(Op::Ne, n.bin(Op::And, y, n.b.litInt(y->dtype, 1)), n.b.litInt(y->dtype, 0));
  UOpRef inverse = n.select(unit, n.select(odd, x, one), zero);
  return n.select(n.bin(Op::Lt, y, n.b.litInt(y->dtype, 0)), inverse, result);
}

/// The result is of the type of the base. A mixed pair is computed in a float type that holds both.
void power(Node &n) {
  UOpRef x = n.in(0), y = n.in(1);
  if (!x || !y) return;
  for (UOpRef v : {x, y})
    if (!isFloat(v->dtype) && !isInt(v->dtype)) n.fail(llvm::Twine("powers of type ") + info(v->dtype).text);
  if (n.failed()) return;
  auto isAlways = [&](int64_t k) {
    return y->rank() == 0 && y->isConst() &&
           (isFloat(y->dtype) ? y == n.literal(y, double(k)) : n.elements(y)->front()->constIndex() == k);
  };
  if (isAlways(2)) return n.give(n.bin(Op::Mul, x, x));
  // Two roundings are within pow's bound, and x * x underflows or overflows only where the cube does.
  bool cubes = isFloat(x->dtype) ? bitWidth(x->dtype) >= 32 : isInt(y->dtype);
  if (isAlways(3) && cubes) return n.give(n.bin(Op::Mul, n.bin(Op::Mul, x, x), x));
  if (isInt(x->dtype) && isInt(y->dtype)) return n.give(integerPower(n, x, y));
  bool wide = x->dtype == DType::F64 || y->dtype == DType::F64 || isInt(x->dtype);
  DType t = wide ? DType::F64 : x->dtype == y->dtype || isInt(y->dtype) ? x->dtype : DType::F32;
  n.give(n.cast(n.bin(Op::Pow, n.cast(x, t), n.cast(y, t)), x->dtype));
}

constexpr Row rows[] = {
    {"Mod", 10, latest, 2, 2, mod, realTypes},
    {"Pow", 7, latest, 2, 2, power, realTypes, "integers wrap; a negative exponent truncates", input(1)},
};

} // namespace

llvm::ArrayRef<Row> arithmeticRows() { return rows; }

} // namespace astra::onnx

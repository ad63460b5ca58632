//===- Special.cpp: functions of numbers that are no op of their own -------===//
// Takes:    operands that may be wrong in every way.
// Gives:    what Special.h says.
#include "astra/Compose/Special.h"
#include "astra/Compose/Arithmetic.h"
#include "astra/IR/Index.h"
#include <cmath>
#include <limits>
#include <numbers>

namespace astra::compose {

DType unsignedOf(DType t) {
  unsigned bits = bitWidth(t);
  return bits == 8 ? DType::U8 : bits == 16 ? DType::U16 : bits == 32 ? DType::U32 : DType::U64;
}
DType signedOf(DType t) {
  unsigned bits = bitWidth(t);
  return bits == 8 ? DType::I8 : bits == 16 ? DType::I16 : bits == 32 ? DType::I32 : DType::I64;
}

namespace {

UOpRef cast(Composer &b, UOpRef bits, DType to) {
  return !bits || bits->dtype == to ? bits : b.make(Op::Bitcast, {bits}, {}, to);
}

} // namespace

/// The distance to the integer below is exact.
UOpRef roundAwayFromZero(Composer &b, UOpRef given) {
  if (!b.requireFloat(given)) return nullptr;
  UOpRef x = b.widen(given), whole = b.un(Op::Trunc, x);
  UOpRef isFar = b.bin(Op::Le, b.literal(x, 0.5), b.un(Op::Abs, b.bin(Op::Sub, x, whole)));
  UOpRef next = b.bin(Op::Add, whole, b.bin(Op::CopySign, b.literal(x, 1), x));
  return b.cast(b.select(isFar, next, whole), given->dtype);
}

/// By a power, and one step of Newton's method.
UOpRef cubeRoot(Composer &b, UOpRef given) {
  if (!b.requireFloat(given)) return nullptr;
  UOpRef x = b.widen(given), magnitude = b.un(Op::Abs, x);
  UOpRef root = b.bin(Op::Pow, magnitude, 1.0 / 3), square = b.bin(Op::Mul, root, root);
  UOpRef step = b.bin(Op::Div, b.bin(Op::Sub, root, b.bin(Op::Div, magnitude, square)), 3);
  UOpRef isPlain = b.bin(Op::And, b.bin(Op::Lt, b.literal(x, 0), magnitude),
                         b.bin(Op::Lt, magnitude, std::numeric_limits<double>::infinity()));
  root = b.select(isPlain, b.bin(Op::Sub, root, step), root);
  return b.cast(b.bin(Op::CopySign, root, x), given->dtype);
}

/// In f64: the difference keeps the digits of f32 down to 1e-9, and is 0 below 1e-16.
UOpRef complementaryError(Composer &b, UOpRef given) {
  if (!b.requireFloat(given)) return nullptr;
  UOpRef x = b.cast(given, DType::F64);
  return b.cast(b.bin(Op::Sub, b.literal(x, 1), b.un(Op::Erf, x)), given->dtype);
}

UOpRef reducedPrecision(Composer &b, UOpRef x, int64_t exponentBits, int64_t mantissaBits) {
  if (!b.requireFloat(x)) return nullptr;
  const DTypeInfo &t = info(x->dtype);
  if (exponentBits < 1 || mantissaBits < 0)
    return b.fail("a type of " + llvm::Twine(exponentBits) + " and " + llvm::Twine(mantissaBits) +
                  " bits of exponent and mantissa");
  DType u = unsignedOf(x->dtype);
  UOpRef bits = cast(b, x, u);
  auto number = [&](uint64_t v) { return b.b.bits(u, v); };
  if (mantissaBits < int64_t(t.mantissaBits)) {
    uint64_t last = uint64_t(1) << (int64_t(t.mantissaBits) - mantissaBits);
    UOpRef odd = b.bin(Op::And, b.bin(Op::Shr, bits, number(t.mantissaBits - uint64_t(mantissaBits))), number(1));
    UOpRef bias = b.bin(Op::Add, number((last >> 1) - 1), odd);
    bits = b.bin(Op::And, b.bin(Op::Add, bits, bias), b.un(Op::Not, number(last - 1)));
  }
  if (exponentBits < int64_t(t.exponentBits)) {
    uint64_t sign = uint64_t(1) << (t.bits - 1), mask = ((uint64_t(1) << t.exponentBits) - 1) << t.mantissaBits;
    uint64_t own = (uint64_t(1) << (t.exponentBits - 1)) - 1, other = (uint64_t(1) << (exponentBits - 1)) - 1;
    UOpRef exponent = b.bin(Op::And, bits, number(mask)), signOnly = b.bin(Op::And, bits, number(sign));
    UOpRef above = b.bin(Op::Lt, number((own + other) << t.mantissaBits), exponent);
    UOpRef below = b.bin(Op::Le, exponent, number((own - other) << t.mantissaBits));
    bits = b.select(above, b.bin(Op::Or, signOnly, number(mask)), bits);
    bits = b.select(below, signOnly, bits);
  }
  return b.select(b.bin(Op::Eq, x, x), cast(b, bits, x->dtype), x);
}

/// In f64, where every number of the narrower types is normal: a cast of a power of two is exact.
UOpRef powersOfTwo(Composer &b, UOpRef given, PowerRounding rounding, bool saturate) {
  constexpr uint64_t exponent = 0x7ff0000000000000, fraction = 0x000fffffffffffff, half = 0x0008000000000000;
  uint64_t bias = rounding == PowerRounding::Up ? fraction : rounding == PowerRounding::Nearest ? half : 0;
  UOpRef x = b.requireFloat(given) ? b.cast(given, DType::F64) : nullptr;
  if (!x) return nullptr;
  UOpRef bits = b.bin(Op::Add, b.make(Op::Bitcast, {x}, {}, DType::U64), b.b.bits(DType::U64, bias));
  UOpRef power = b.make(Op::Bitcast, {b.bin(Op::And, bits, b.b.bits(DType::U64, exponent))}, {}, DType::F64);
  UOpRef least = b.literal(x, 0x1p-127), none = b.literal(x, std::numeric_limits<double>::quiet_NaN());
  power = b.select(b.bin(Op::Lt, x, least), saturate ? least : none, power);
  UOpRef rest = saturate ? x : b.select(b.bin(Op::Eq, x, 0.0), none, x);
  return b.cast(b.select(b.bin(Op::Lt, b.literal(x, 0), x), power, rest), DType::F8E8M0, saturate);
}

/// The highest bit is copied to all places below it.
UOpRef leadingZeros(Composer &b, UOpRef given) {
  if (!given) return nullptr;
  if (!isInt(given->dtype)) return b.fail(llvm::Twine("the operand is of type ") + info(given->dtype).text);
  DType u = unsignedOf(given->dtype);
  UOpRef x = cast(b, given, u);
  for (unsigned shift = 1; shift < bitWidth(u); shift *= 2) x = b.bin(Op::Or, x, b.bin(Op::Shr, x, b.b.bits(u, shift)));
  return cast(b, b.un(Op::PopCount, b.un(Op::Not, x)), given->dtype);
}

UOpRef orderKey(Composer &b, UOpRef x) {
  if (!x || !isFloat(x->dtype)) return x;
  DType s = signedOf(x->dtype);
  UOpRef bits = cast(b, x, s);
  UOpRef flipped = b.bin(Op::Xor, bits, b.b.bits(s, (uint64_t(1) << (bitWidth(s) - 1)) - 1));
  return b.select(b.bin(Op::Lt, bits, 0.0), flipped, bits);
}

/// x, or an f32 in place of a type that only stores numbers.
static UOpRef looked(Composer &b, UOpRef x) {
  return x && info(x->dtype).cls == DTypeClass::Storage ? b.cast(x, DType::F32) : x;
}

UOpRef isNaN(Composer &b, UOpRef given) {
  UOpRef x = looked(b, given);
  return b.bin(Op::Ne, x, x);
}

UOpRef isInfinite(Composer &b, UOpRef given, bool positive, bool negative) {
  UOpRef x = looked(b, given);
  if (!b.requireFloat(x)) return nullptr;
  double infinity = std::numeric_limits<double>::infinity();
  UOpRef never = b.broadcastTo(b.b.lit(DType::Bool, 0), x->shape);
  UOpRef up = positive ? b.bin(Op::Eq, x, infinity) : never, down = negative ? b.bin(Op::Eq, x, -infinity) : never;
  return b.bin(Op::Or, up, down);
}

UOpRef isFinite(Composer &b, UOpRef given) {
  UOpRef x = looked(b, given);
  if (!b.requireFloat(x)) return nullptr;
  return b.bin(Op::Lt, b.un(Op::Abs, x), std::numeric_limits<double>::infinity());
}

UOpRef shiftRight(Composer &b, UOpRef x, UOpRef count, bool arithmetic) {
  if (!x || !count) return nullptr;
  if (!isInt(x->dtype)) return b.fail(llvm::Twine("the operand is of type ") + info(x->dtype).text);
  DType t = arithmetic ? signedOf(x->dtype) : unsignedOf(x->dtype);
  return cast(b, b.bin(Op::Shr, cast(b, x, t), cast(b, count, t)), x->dtype);
}

UOpRef quotient(Composer &b, UOpRef x, UOpRef y) {
  if (!x || !y) return nullptr;
  UOpRef q = b.bin(Op::TruncDiv, x, y);
  const std::vector<UOpRef> *known = b.elements(y);
  bool never = known && llvm::all_of(*known, [](UOpRef v) { return v->lo > 0 || v->hi < 0; });
  if (never || !isInt(x->dtype)) return q;
  return b.select(b.bin(Op::Eq, y, 0.0), b.b.bits(x->dtype, ~uint64_t(0) >> (64 - bitWidth(x->dtype))), q);
}

UOpRef reinterpret(Composer &b, UOpRef x, DType to) {
  if (!x || x->dtype == to) return x;
  auto plain = [](DType t) { return isFloat(t) || isInt(t); };
  if (!plain(x->dtype) || !plain(to))
    return b.unsupported(llvm::Twine("from ") + info(x->dtype).text + " to " + info(to).text +
                         " is not supported: integers and floats of 8 bits and more are");
  unsigned from = bitWidth(x->dtype), wanted = bitWidth(to);
  if (from == wanted) return cast(b, x, to);
  DType wide = from > wanted ? unsignedOf(x->dtype) : unsignedOf(to);
  unsigned low = std::min(from, wanted), parts = std::max(from, wanted) / low;
  if (from > wanted) {
    UOpRef bits = b.unsqueeze(cast(b, x, wide), {int64_t(x->rank())});
    UOpRef shift = b.bin(Op::Mul, b.iota(wide, {b.idx(parts)}, 0), b.b.bits(wide, low));
    return cast(b, b.cast(b.bin(Op::Shr, bits, shift), unsignedOf(to)), to);
  }
  if (!b.requireRank(x, 1)) return nullptr;
  if (x->shape.back()->constIndex() != int64_t(parts))
    return b.fail("the last extent of " + dimsText(x->shape) + " is not " + llvm::Twine(parts));
  UOpRef bits = b.cast(cast(b, x, unsignedOf(x->dtype)), wide), whole = nullptr;
  for (unsigned i = 0; i < parts; ++i) {
    UOpRef part = b.bin(Op::Shl, b.element(bits, x->rank() - 1, i), b.b.bits(wide, i * low));
    whole = whole ? b.bin(Op::Or, whole, part) : part;
  }
  return cast(b, whole, to);
}

} // namespace astra::compose

//===- Scalar.cpp: one row per op and class of types -----------------------===//
// Takes:    an op and operands (Scalar.h).
// Gives:    its row's operations. f16 and bf16 without a row: the f32 op on widened operands, rounded once (N12).
#include "Scalar.h"

using namespace astra;
using namespace astra::gpu;

namespace {

enum Class : unsigned { F = 1, N = 2, S = 4, U = 8, B = 16 }; // f32 f64, f16 bf16, signed, unsigned, bool

unsigned classOf(DType t) { return t == DType::Bool ? B : isNarrow(t) ? N : isFloat(t) ? F : isUnsigned(t) ? U : S; }

struct Row {
  Op op;
  unsigned classes;
  V (*emit)(Scalar &s, DType t, llvm::ArrayRef<V> x);
};
#define EMIT []([[maybe_unused]] Scalar & s, [[maybe_unused]] DType t, llvm::ArrayRef<V> x)->V

uint64_t signBit(DType t) { return 1ull << (bitWidth(t) - 1); }
uint64_t infinityOf(DType t) { return ((1ull << info(t).exponentBits) - 1) << info(t).mantissaBits; }

V isZero(Scalar &s, V x) { return s.cmp(ICmp::eq, x, 0); }
V isMinusOne(Scalar &s, V x) { return s.cmp(ICmp::eq, x, ~0ull); }
/// A divisor that a division does not trap on: 1 in place of 0 and of -1, which get their results by selects.
V safe(Scalar &s, V y, bool isSigned) {
  V bad = isSigned ? s.bor(isZero(s, y), isMinusOne(s, y)) : isZero(s, y);
  return s.select(bad, s.like(y, 1), y);
}
V truncDiv(Scalar &s, V a, V b) {
  V q = s.sdiv(a, safe(s, b, true));
  q = s.select(isMinusOne(s, b), s.sub(s.like(a, 0), a), q);
  return s.select(isZero(s, b), s.like(a, 0), q);
}
V rem(Scalar &s, V a, V b) {
  V r = s.srem(a, safe(s, b, true));
  r = s.select(isMinusOne(s, b), s.like(a, 0), r);
  return s.select(isZero(s, b), a, r);
}
/// Whether a remainder and its divisor point apart: then quotients round down by one more.
V apart(Scalar &s, V r, V b) {
  V differ = s.cmp(ICmp::slt, s.bxor(r, b), 0);
  return s.band(s.cmp(ICmp::ne, r, 0), differ);
}
/// x * 2^n in three steps within the range of normal factors. All steps but the last are exact, or so small that the
/// factors still to come make the result zero.
V scale2(Scalar &s, DType t, V x, V count) {
  unsigned bits = bitWidth(t), mantissa = info(t).mantissaBits;
  int64_t bias = bits == 32 ? 127 : 1023, most = bits == 32 ? 300 : 2200;
  auto clamp = [&](V n, int64_t lo, int64_t hi) {
    n = s.select(s.cmp(ICmp::slt, n, hi), n, s.like(n, hi));
    return s.select(s.cmp(ICmp::sgt, n, uint64_t(lo)), n, s.like(n, uint64_t(lo)));
  };
  auto factor = [&](V n) { return s.asReal(s.shl(s.add(n, bias), mantissa)); };
  V n = clamp(s.sext(count, bits), -most, most), last = clamp(n, 1 - bias, bias);
  n = s.sub(n, last);
  V middle = clamp(n, 1 - bias, bias);
  n = s.sub(n, middle);
  return s.fmul(s.fmul(s.fmul(x, factor(n)), factor(middle)), factor(last));
}

constexpr Row rows[] = {{Op::Neg, F, EMIT{return s.fneg(x[0]);
} // namespace
}
, {Op::Neg, N, EMIT{return s.bxor(x[0], signBit(t));
}
}
, {Op::Neg, S | U, EMIT{return s.sub(s.like(x[0], 0), x[0]);
}
}
, {Op::Abs, F, EMIT{return s.fabs(x[0]);
}
}
, {Op::Abs, N, EMIT{return s.band(x[0], signBit(t) - 1);
}
}
, {Op::Abs, S, EMIT{return s.select(s.cmp(ICmp::slt, x[0], 0), s.sub(s.like(x[0], 0), x[0]), x[0]);
}
}
, {Op::Abs, U, EMIT{return x[0];
}
}
, {Op::Sqrt, F, EMIT{return s.sqrt(x[0]);
}
}
, {Op::RoundEven, F, EMIT{return s.roundeven(x[0]);
}
}
, {Op::Floor, F, EMIT{return s.floor(x[0]);
}
}
, {Op::Ceil, F, EMIT{return s.ceil(x[0]);
}
}
, {Op::Trunc, F, EMIT{return s.ftrunc(x[0]);
}
}
, {Op::Not, S | U | B, EMIT{return s.bxor(x[0], ~0ull);
}
}
, {Op::PopCount, S | U, EMIT{return s.ones(x[0]);
}
}
, {Op::Add, F, EMIT{return s.fadd(x[0], x[1]);
}
}
, {Op::Add, S | U, EMIT{return s.add(x[0], x[1]);
}
}
, {Op::Sub, F, EMIT{return s.fsub(x[0], x[1]);
}
}
, {Op::Sub, S | U, EMIT{return s.sub(x[0], x[1]);
}
}
, {Op::Mul, F, EMIT{return s.fmul(x[0], x[1]);
}
}
, {Op::Mul, S | U, EMIT{return s.mul(x[0], x[1]);
}
}
, {Op::Div, F, EMIT{return s.fdiv(x[0], x[1]);
}
}
, {Op::FloorDiv, S, EMIT{V down = s.zext(apart(s, rem(s, x[0], x[1]), x[1]), s.width(x[0]));
return s.select(isZero(s, x[1]), s.like(x[0], 0), s.sub(truncDiv(s, x[0], x[1]), down));
}
}
, {Op::FloorDiv, U, EMIT{return s.select(isZero(s, x[1]), s.like(x[0], 0), s.udiv(x[0], safe(s, x[1], false)));
}
}
, {Op::Mod, S, EMIT{V r = rem(s, x[0], x[1]);
return s.select(isZero(s, x[1]), x[0], s.select(apart(s, r, x[1]), s.add(r, x[1]), r));
}
}
, {Op::Mod, U, EMIT{return s.select(isZero(s, x[1]), x[0], s.urem(x[0], safe(s, x[1], false)));
}
}
, {Op::TruncDiv, S, EMIT{return truncDiv(s, x[0], x[1]);
}
}
, {Op::TruncDiv, U, EMIT{return s.select(isZero(s, x[1]), s.like(x[0], 0), s.udiv(x[0], safe(s, x[1], false)));
}
}
, {Op::Rem, S, EMIT{return rem(s, x[0], x[1]);
}
}
, {Op::Rem, U, EMIT{return s.select(isZero(s, x[1]), x[0], s.urem(x[0], safe(s, x[1], false)));
}
}
, {Op::Max, F, EMIT{return s.maximum(x[0], x[1]);
}
}
, {Op::Min, F, EMIT{return s.minimum(x[0], x[1]);
}
}
, {Op::Max, S, EMIT{return s.select(s.cmp(ICmp::slt, x[0], x[1]), x[1], x[0]);
}
}
, {Op::Max, U, EMIT{return s.select(s.cmp(ICmp::ult, x[0], x[1]), x[1], x[0]);
}
}
, {Op::Min, S, EMIT{return s.select(s.cmp(ICmp::slt, x[1], x[0]), x[1], x[0]);
}
}
, {Op::Min, U, EMIT{return s.select(s.cmp(ICmp::ult, x[1], x[0]), x[1], x[0]);
}
}
, {Op::Max, B, EMIT{return s.bor(x[0], x[1]);
}
}
, {Op::Min, B, EMIT{return s.band(x[0], x[1]);
}
}
, {Op::And, S | U | B, EMIT{return s.band(x[0], x[1]);
}
}
, {Op::Or, S | U | B, EMIT{return s.bor(x[0], x[1]);
}
}
, {Op::Xor, S | U | B, EMIT{return s.bxor(x[0], x[1]);
}
}
, {Op::Shl, S | U, EMIT{unsigned w = bitWidth(t);
return s.select(s.cmp(ICmp::ult, x[1], w), s.shl(x[0], s.band(x[1], w - 1)), s.like(x[0], 0));
}
}
, {Op::Shr, U, EMIT{unsigned w = bitWidth(t);
return s.select(s.cmp(ICmp::ult, x[1], w), s.lshr(x[0], s.band(x[1], w - 1)), s.like(x[0], 0));
}
}
, {Op::Shr, S, EMIT{unsigned w = bitWidth(t);
return s.ashr(x[0], s.select(s.cmp(ICmp::ult, x[1], w), x[1], s.like(x[1], w - 1)));
}
}
, {Op::CopySign, F, EMIT{V sign = s.band(s.select(s.isNaN(x[1]), s.like(x[1], 0), s.bits(x[1])), signBit(t));
return s.asReal(s.bor(s.band(s.bits(x[0]), signBit(t) - 1), sign));
}
}
, {Op::CopySign, N, EMIT{V isNaN = s.cmp(ICmp::ugt, s.band(x[1], signBit(t) - 1), infinityOf(t));
V sign = s.band(s.select(isNaN, s.like(x[1], 0), x[1]), signBit(t));
return s.bor(s.band(x[0], signBit(t) - 1), sign);
}
}
, {Op::Fma, F, EMIT{return s.fma(x[0], x[1], x[2]);
}
}
, {Op::Dot4, S, EMIT{V sum = x[2];
for (unsigned k = 0; k < 32; k += 8) {
  V a = s.band(s.lshr(x[0], k), 255), b = s.ashr(s.shl(x[1], 24 - k), s.like(x[1], 24));
  sum = s.add(sum, s.mul(a, b));
}
return sum;
}
}
, {Op::Scale2, F, EMIT{return scale2(s, t, x[0], x[1]);
}
}
, {Op::Select, F | N | S | U | B, EMIT{return s.select(x[0], x[1], x[2]);
}
}
, {Op::Lt, F, EMIT{return s.cmp(FCmp::olt, x[0], x[1]);
}
}
, {Op::Le, F, EMIT{return s.cmp(FCmp::ole, x[0], x[1]);
}
}
, {Op::Eq, F, EMIT{return s.cmp(FCmp::oeq, x[0], x[1]);
}
}
, {Op::Ne, F, EMIT{return s.cmp(FCmp::une, x[0], x[1]);
}
}
, {Op::Lt, S, EMIT{return s.cmp(ICmp::slt, x[0], x[1]);
}
}
, {Op::Le, S, EMIT{return s.cmp(ICmp::sle, x[0], x[1]);
}
}
, {Op::Lt, U | B, EMIT{return s.cmp(ICmp::ult, x[0], x[1]);
}
}
, {Op::Le, U | B, EMIT{return s.cmp(ICmp::ule, x[0], x[1]);
}
}
, {Op::Eq, S | U | B, EMIT{return s.cmp(ICmp::eq, x[0], x[1]);
}
}
, {Op::Ne, S | U | B, EMIT{return s.cmp(ICmp::ne, x[0], x[1]);
}
}
,
}
;
#undef EMIT

} // namespace

mlir::Type Scalar::type(DType t) {
  if (t == DType::Bool) return i(1);
  if (t == DType::Index) return i(64);
  return isFloat(t) && !isNarrow(t) ? f(bitWidth(t)) : i(bitWidth(t));
}

mlir::Type Scalar::memoryType(DType t) { return t == DType::Bool ? i(8) : type(t); }

V Scalar::literal(DType t, uint64_t bits) {
  if (t == DType::Bool) return integer(1, bits & 1);
  if (isFloat(t) && !isNarrow(t)) return real(bitWidth(t), bits);
  return integer(t == DType::Index ? 64 : bitWidth(t), bits);
}

V Scalar::op(Op o, DType t, llvm::ArrayRef<V> x) {
  if (t == DType::Index) t = DType::I64;
  for (const Row &r : rows)
    if (r.op == o && (r.classes & classOf(t)) && (isArithmetic(t) || o == Op::Select)) // a choice is no arithmetic
      return r.emit(*this, t, x);
  if (!isNarrow(t)) return refuse(std::string(info(o).mnemonic) + " on " + info(t).text + " has no GPU form");
  llvm::SmallVector<V, 3> wide;
  for (V v : x) wide.push_back(o == Op::Scale2 && !wide.empty() ? v : widened(t, v));
  V r = op(o, DType::F32, wide);
  bool compares = o == Op::Lt || o == Op::Le || o == Op::Eq || o == Op::Ne;
  return !r || compares ? r : rounded(t, r, false);
}

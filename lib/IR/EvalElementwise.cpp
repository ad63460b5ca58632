//===- EvalElementwise.cpp: leaves and elementwise ops ---------------------===//
// Takes:    sources of one shape.
// Gives:    N1, N9, N10 and N11 element by element; narrow floats through f32 (N12).
#include "EvalImpl.h"
#include <bit>
#include <limits>

using namespace astra;
using namespace astra::eval;

namespace {
template <class To, class E, class F> Tensor map1(const Call &c, E, F f) {
  Tensor out = c.result();
  const uint8_t *a = c.in[0]->bytes.data();
  for (int64_t i = 0, n = out.count(); i < n; ++i) To::store(out.bytes.data(), i, f(E::load(a, i)));
  return out;
}
template <class To, class E, class F> Tensor map2(const Call &c, E, F f) {
  Tensor out = c.result();
  const uint8_t *a = c.in[0]->bytes.data(), *b = c.in[1]->bytes.data();
  for (int64_t i = 0, n = out.count(); i < n; ++i) To::store(out.bytes.data(), i, f(E::load(a, i), E::load(b, i)));
  return out;
}

template <class T> T truncDiv(T a, T b) {
  if (b == 0) return 0;
  return std::is_signed_v<T> && b == T(-1) ? wrap<T>(0 - uint64_t(a)) : T(a / b);
}
template <class T> T shiftLeft(T a, T b) {
  auto count = std::make_unsigned_t<T>(b);
  return count >= 8 * sizeof(T) ? T(0) : wrap<T>(uint64_t(a) << count);
}
template <class T> T shiftRight(T a, T b) {
  auto count = std::make_unsigned_t<T>(b);
  if (count >= 8 * sizeof(T)) return a < 0 ? T(-1) : T(0);
  return T(a >> count);
}
template <class T> T copySign(T a, T b) { return std::isnan(b) ? std::fabs(a) : std::copysign(a, b); }

Tensor select(const Call &c) {
  Tensor out = c.result();
  unsigned w = elementBytes(out.dtype);
  for (int64_t i = 0, n = out.count(); i < n; ++i)
    memcpy(&out.bytes[i * w], &c.in[c.in[0]->bytes[i] ? 1 : 2]->bytes[i * w], w);
  return out;
}

template <class E> Tensor fma(const Call &c, E) {
  Tensor out = c.result();
  const uint8_t *x = c.in[0]->bytes.data(), *y = c.in[1]->bytes.data(), *z = c.in[2]->bytes.data();
  for (int64_t i = 0, n = out.count(); i < n; ++i)
    E::store(out.bytes.data(), i, std::fma(E::load(x, i), E::load(y, i), E::load(z, i)));
  return out;
}

template <class E> std::optional<Tensor> floatOp(const Call &c, E e) {
  using T = typename E::Compute;
  switch (c.node->op) {
  case Op::Neg: return map1<E>(c, e, [](T a) { return -a; });
  case Op::Abs: return map1<E>(c, e, [](T a) { return std::fabs(a); });
  case Op::Sqrt: return map1<E>(c, e, [](T a) { return std::sqrt(a); });
  case Op::RoundEven: return map1<E>(c, e, [](T a) { return std::nearbyint(a); });
  case Op::Floor: return map1<E>(c, e, [](T a) { return std::floor(a); });
  case Op::Ceil: return map1<E>(c, e, [](T a) { return std::ceil(a); });
  case Op::Trunc: return map1<E>(c, e, [](T a) { return std::trunc(a); });
  case Op::Add: return map2<E>(c, e, [](T a, T b) { return a + b; });
  case Op::Sub: return map2<E>(c, e, [](T a, T b) { return a - b; });
  case Op::Mul: return map2<E>(c, e, [](T a, T b) { return a * b; });
  case Op::Div: return map2<E>(c, e, [](T a, T b) { return a / b; });
  case Op::CopySign: return map2<E>(c, e, [](T a, T b) { return copySign(a, b); });
  case Op::Fma: return fma(c, e);
  default: return std::nullopt;
  }
}

template <class E> std::optional<Tensor> intOp(const Call &c, E e) {
  using T = typename E::Compute;
  using U = uint64_t;
  bool logical = c.node->dtype == DType::Bool;
  switch (c.node->op) {
  case Op::Neg: return map1<E>(c, e, [](T a) { return wrap<T>(0 - U(a)); });
  case Op::Abs: return map1<E>(c, e, [](T a) { return a < 0 ? wrap<T>(0 - U(a)) : a; });
  case Op::Not: return map1<E>(c, e, [=](T a) { return logical ? T(a ^ 1) : T(~a); });
  case Op::PopCount: return map1<E>(c, e, [](T a) { return T(std::popcount(std::make_unsigned_t<T>(a))); });
  case Op::Add: return map2<E>(c, e, [](T a, T b) { return wrap<T>(U(a) + U(b)); });
  case Op::Sub: return map2<E>(c, e, [](T a, T b) { return wrap<T>(U(a) - U(b)); });
  case Op::Mul: return map2<E>(c, e, [](T a, T b) { return wrap<T>(U(a) * U(b)); });
  case Op::FloorDiv: return map2<E>(c, e, floorDiv<T>);
  case Op::TruncDiv: return map2<E>(c, e, truncDiv<T>);
  case Op::Mod: return map2<E>(c, e, [](T a, T b) { return wrap<T>(U(a) - U(floorDiv(a, b)) * U(b)); });
  case Op::Rem: return map2<E>(c, e, [](T a, T b) { return wrap<T>(U(a) - U(truncDiv(a, b)) * U(b)); });
  case Op::And: return map2<E>(c, e, [](T a, T b) { return T(a & b); });
  case Op::Or: return map2<E>(c, e, [](T a, T b) { return T(a | b); });
  case Op::Xor: return map2<E>(c, e, [](T a, T b) { return T(a ^ b); });
  case Op::Shl: return map2<E>(c, e, shiftLeft<T>);
  case Op::Shr: return map2<E>(c, e, shiftRight<T>);
  default: return std::nullopt;
  }
}

template <class E> std::optional<Tensor> orderedOp(const Call &c, E e) {
  using T = typename E::Compute;
  using Bool = Native<uint8_t>;
  switch (c.node->op) {
  case Op::Max: return map2<E>(c, e, maxOf<T>);
  case Op::Min: return map2<E>(c, e, minOf<T>);
  case Op::Lt: return map2<Bool>(c, e, [](T a, T b) { return uint8_t(a < b); });
  case Op::Le: return map2<Bool>(c, e, [](T a, T b) { return uint8_t(a <= b); });
  case Op::Eq: return map2<Bool>(c, e, [](T a, T b) { return uint8_t(a == b); });
  case Op::Ne: return map2<Bool>(c, e, [](T a, T b) { return uint8_t(!(a == b)); });
  default: return std::nullopt;
  }
}

/// v as an element of type t: integers wrap, floats round once.
void storeInteger(DType t, uint8_t *p, int64_t i, int64_t v) {
  uint64_t bits = isFloat(t) ? encode(t, exactOf(v)) : t == DType::Bool ? v != 0 : uint64_t(v);
  memcpy(p + i * elementBytes(t), &bits, elementBytes(t));
}

uint64_t loadBits(const Tensor &t, int64_t i) {
  uint64_t bits = 0;
  memcpy(&bits, &t.bytes[i * elementBytes(t.dtype)], elementBytes(t.dtype));
  return bits;
}
void storeBits(Tensor &t, int64_t i, uint64_t bits) {
  memcpy(&t.bytes[i * elementBytes(t.dtype)], &bits,
         std::min<size_t>(elementBytes(t.dtype), 8)); // complex: the real part
}

// ---- conversions. A source is a float (exact in binary64) or an integer; so is the result.
bool isReal(DType t) { return info(t).exponentBits != 0; }
bool signedInt(DType t) { return isSigned(t) || t == DType::I2 || t == DType::I4; }

int64_t integerOf(DType t, uint64_t bits) { // signed types are sign-extended
  unsigned w = bitWidth(t);
  return signedInt(t) && w < 64 ? int64_t(bits << (64 - w)) >> (64 - w) : int64_t(bits);
}
/// N11: truncates, saturates, NaN gives 0.
uint64_t toInteger(DType to, double v) {
  unsigned w = bitWidth(to) - signedInt(to);
  if (std::isnan(v)) return 0;
  double limit = std::ldexp(1.0, w); // exact; every value below it truncates into range
  uint64_t greatest = w == 64 ? ~0ull : (1ull << w) - 1, mask = bitWidth(to) == 64 ? ~0ull : (1ull << bitWidth(to)) - 1;
  if (v >= limit) return greatest;
  if (!signedInt(to)) return v < 1 ? 0 : uint64_t(v);
  if (v <= -limit) return (1ull << w) & mask;
  return uint64_t(int64_t(v)) & mask;
}
uint64_t convert(DType from, DType to, uint64_t bits, bool saturate) {
  if (isReal(from)) {
    if (to == DType::Bool) return widen(from, bits) != 0;
    return isReal(to) ? encode(to, decode(from, bits), saturate) : toInteger(to, widen(from, bits));
  }
  int64_t v = integerOf(from, bits);
  if (to == DType::Bool) return v != 0;
  if (isReal(to)) return encode(to, from == DType::U64 ? exactOf(uint64_t(v)) : exactOf(v), saturate);
  return bitWidth(to) == 64 ? uint64_t(v) : uint64_t(v) & ((1ull << bitWidth(to)) - 1);
}
} // namespace

static Result dotWords(const Call &c) {
  Tensor out = c.result();
  using E = Native<int32_t>;
  auto value = [&](unsigned i, int64_t at) { return E::load(c.in[i]->bytes.data(), at); };
  for (int64_t i = 0, n = out.count(); i < n; ++i)
    E::store(out.bytes.data(), i, eval::dot4(value(0, i), value(1, i), value(2, i)));
  return out;
}

Result eval::evalElementwise(const Call &c) {
  if (c.node->op == Op::Select) return select(c);
  if (c.node->op == Op::Dot4) return dotWords(c);
  auto out = withArithmetic(c.type(), [&](auto e) -> std::optional<Tensor> {
    if (auto r = orderedOp(c, e)) return r;
    if constexpr (std::is_floating_point_v<typename decltype(e)::Compute>)
      return floatOp(c, e);
    else
      return intOp(c, e);
  });
  if (!out) return c.fail(llvm::Twine("not defined on ") + info(c.type()).text);
  return std::move(*out);
}

Result eval::evalConversion(const Call &c) {
  Tensor out = c.result();
  DType from = c.type(), to = out.dtype;
  for (int64_t i = 0, n = out.count(); i < n; ++i) {
    uint64_t bits = loadBits(c.x(), i);
    switch (c.node->op) {
    case Op::Cast: bits = convert(from, to, bits, c.attr(0)); break;
    case Op::Bitcast: bits = isFloat(from) && isNaN(from, bits) ? canonicalNaN(from) : bits; break;
    case Op::Lookup16: bits = uint64_t(c.attr(bits & 15)); break;
    default: { // scale2; a narrow type goes through f32
      DType wide = from == DType::F64 ? DType::F64 : DType::F32;
      bits = narrow(from, scale2(wide, widen(from, bits), integerOf(DType::I32, loadBits(*c.in[1], i))));
    }
    }
    storeBits(out, i, bits);
  }
  return out;
}

Result eval::evalLeaf(const Call &c) {
  Tensor out = c.result();
  switch (c.node->op) {
  case Op::Const: storeBits(out, 0, uint64_t(c.attr(0))); break;
  case Op::FromIndex: storeInteger(out.dtype, out.bytes.data(), 0, c.indices[0]); break;
  default: { // iota
    int64_t inner = rowMajor(out.shape)[c.attr(0)], extent = out.shape[c.attr(0)];
    for (int64_t i = 0, n = out.count(); i < n; ++i) storeInteger(out.dtype, out.bytes.data(), i, i / inner % extent);
  }
  }
  return out;
}

//===- EvalComplex.cpp: arithmetic of complex numbers ----------------------===//
// Takes:    an op of which a source or the result is complex.
// Gives:    what Ops.def says of complex types: products with fma (N4), quotients by the greater part of the divisor,
//           sums part by part, products of many in their own order.
// Does not: move elements; to the ops that only do that a complex element is 8 or 16 bytes (EvalMovement.cpp).
#include "EvalImpl.h"
#include "astra/IR/Contract.h"

using namespace astra;
using namespace astra::eval;

namespace {
template <class T> struct Complex {
  T re, im;
};
template <class T> Complex<T> load(const Tensor &t, int64_t i) {
  const uint8_t *p = t.bytes.data();
  return {Native<T>::load(p, 2 * i), Native<T>::load(p, 2 * i + 1)};
}
template <class T> void store(Tensor &t, int64_t i, Complex<T> v) {
  Native<T>::store(t.bytes.data(), 2 * i, v.re);
  Native<T>::store(t.bytes.data(), 2 * i + 1, v.im);
}

template <class T> Complex<T> multiply(Complex<T> a, Complex<T> b) {
  return {std::fma(a.re, b.re, -(a.im * b.im)), std::fma(a.re, b.im, a.im * b.re)};
}
template <class T> Complex<T> divide(Complex<T> a, Complex<T> b) {
  bool zero = b.re == 0 && b.im == 0;
  if (std::fabs(b.re) < std::fabs(b.im)) {
    T t = b.re / b.im, d = std::fma(b.re, t, b.im);
    return {std::fma(a.re, t, a.im) / d, std::fma(a.im, t, -a.re) / d};
  }
  T t = zero ? T(0) : b.im / b.re, d = std::fma(b.im, t, b.re);
  return {std::fma(a.im, t, a.re) / d, std::fma(-a.re, t, a.im) / d};
}
template <class T> T magnitude(Complex<T> a) {
  T x = std::fabs(a.re), y = std::fabs(a.im), m = maxOf(x, y), t = minOf(x, y) / m;
  if (std::isinf(x) || std::isinf(y)) return std::numeric_limits<T>::infinity();
  return m == 0 ? T(0) : m * std::sqrt(std::fma(t, t, T(1)));
}

/// An op on the real and on the imaginary parts by itself.
Result partByPart(const Call &c) {
  UOp node = *c.node;
  node.dtype = partOf(node.dtype);
  Tensor out = c.result();
  unsigned w = byteSize(node.dtype);
  for (unsigned part : {0u, 1u}) {
    std::vector<Tensor> parts;
    parts.reserve(c.in.size());
    llvm::SmallVector<const Tensor *, 3> in;
    for (const Tensor *t : c.in) {
      in.push_back(t);
      if (!isComplex(t->dtype)) continue;
      parts.push_back(zeros(partOf(t->dtype), t->shape));
      for (int64_t i = 0, n = t->count(), u = byteSize(partOf(t->dtype)); i < n; ++i)
        memcpy(&parts.back().bytes[i * u], &t->bytes[(2 * i + part) * u], u);
      in.back() = &parts.back();
    }
    auto r = evalOp({&node, in, c.indices, c.shape});
    if (!r) return r;
    for (int64_t i = 0, n = out.count(); i < n; ++i) memcpy(&out.bytes[(2 * i + part) * w], &r->bytes[i * w], w);
  }
  return out;
}

/// Neighbours multiplied until one is left.
template <class T> Complex<T> productInPairs(std::vector<Complex<T>> v) {
  if (v.empty()) return {1, 0};
  while (v.size() > 1) {
    size_t pairs = v.size() / 2;
    for (size_t i = 0; i < pairs; ++i) v[i] = multiply(v[2 * i], v[2 * i + 1]);
    if (v.size() % 2) v[pairs] = v.back();
    v.resize(pairs + v.size() % 2);
  }
  return v[0];
}
template <class T> Result product(const Call &c) {
  auto spec = decodeReduce(c.node->ints);
  if (!spec) return spec.takeError();
  Tensor x = c.x();
  for (int64_t axis : llvm::reverse(spec->axes)) {
    int64_t n = x.shape[axis], inner = rowMajor(x.shape)[axis];
    x.shape.erase(x.shape.begin() + axis);
    Tensor y = zeros(x.dtype, x.shape);
    for (int64_t i = 0, count = y.count(); i < count; ++i) {
      std::vector<Complex<T>> row;
      for (int64_t k = 0; k < n; ++k) row.push_back(load<T>(x, (i / inner * n + k) * inner + i % inner));
      store(y, i, productInPairs(std::move(row)));
    }
    x = std::move(y);
  }
  return x;
}
template <class T> Tensor runningProduct(const Call &c) {
  Tensor out = c.x();
  int64_t axis = c.attr(1), n = out.shape[axis], stride = rowMajor(out.shape)[axis];
  for (int64_t s = 1; s < n; s *= 2)
    for (int64_t i = out.count() - 1; i >= 0; --i) // downward: all at once
      if (i / stride % n >= s) store(out, i, multiply(load<T>(out, i - s * stride), load<T>(out, i)));
  return out;
}

/// (rr - ii) + (ri + ir) i of the real contractions of the parts.
template <class T> Result contraction(const Call &c) {
  UOp node = *c.node;
  node.dtype = partOf(node.dtype);
  Tensor part[2][2], sum[2][2];
  for (unsigned operand : {0u, 1u})
    for (unsigned k : {0u, 1u}) {
      const Tensor &x = *c.in[operand];
      Tensor &p = part[operand][k] = zeros(node.dtype, x.shape);
      for (int64_t i = 0, n = x.count(); i < n; ++i)
        Native<T>::store(p.bytes.data(), i, Native<T>::load(x.bytes.data(), 2 * i + k));
    }
  for (unsigned k : {0u, 1u})
    for (unsigned l : {0u, 1u}) {
      const Tensor *in[] = {&part[0][k], &part[1][l]};
      auto r = evalContract({&node, in, c.indices, c.shape});
      if (!r) return r;
      sum[k][l] = std::move(*r);
    }
  Tensor out = c.result();
  for (int64_t i = 0, n = out.count(); i < n; ++i) {
    auto at = [&](unsigned k, unsigned l) { return Native<T>::load(sum[k][l].bytes.data(), i); };
    store<T>(out, i, {at(0, 0) - at(1, 1), at(0, 1) + at(1, 0)});
  }
  return out;
}

/// Casts: to complex, the real part is the cast to its type and the imaginary part +0; to bool, whether a part is not
/// 0.
Result convert(const Call &c) {
  DType from = c.type(), to = c.node->dtype;
  if (isComplex(from) && isComplex(to)) return partByPart(c);
  Tensor out = c.result();
  int64_t n = out.count();
  if (to == DType::Bool) {
    for (int64_t i = 0; i < n; ++i) {
      auto nonzero = [](auto v) { return uint8_t(v.re != 0 || v.im != 0); };
      out.bytes[i] = from == DType::C64 ? nonzero(load<float>(c.x(), i)) : nonzero(load<double>(c.x(), i));
    }
    return out;
  }
  UOp node = *c.node;
  node.dtype = partOf(to);
  auto re = evalOp({&node, c.in, c.indices, c.shape});
  if (!re) return re;
  unsigned w = byteSize(node.dtype);
  for (int64_t i = 0; i < n; ++i) memcpy(&out.bytes[2 * i * w], &re->bytes[i * w], w);
  return out;
}

template <class T> Result evalWith(const Call &c) {
  Tensor out = c.result();
  auto map = [&](auto f) {
    for (int64_t i = 0, n = out.count(); i < n; ++i) f(i);
    return std::move(out);
  };
  auto a = [&](int64_t i) { return load<T>(*c.in[0], i); };
  auto b = [&](int64_t i) { return load<T>(*c.in[1], i); };
  auto real = [&](int64_t i, T v) { Native<T>::store(out.bytes.data(), i, v); };
  auto equal = [](Complex<T> x, Complex<T> y) { return x.re == y.re && x.im == y.im; };
  switch (c.node->op) {
  case Op::Mul: return map([&](int64_t i) { store(out, i, multiply(a(i), b(i))); });
  case Op::Div: return map([&](int64_t i) { store(out, i, divide(a(i), b(i))); });
  case Op::Abs: return map([&](int64_t i) { real(i, magnitude(a(i))); });
  case Op::Eq: return map([&](int64_t i) { out.bytes[i] = equal(a(i), b(i)); });
  case Op::Ne: return map([&](int64_t i) { out.bytes[i] = !equal(a(i), b(i)); });
  case Op::Real: return map([&](int64_t i) { real(i, a(i).re); });
  case Op::Imag: return map([&](int64_t i) { real(i, a(i).im); });
  case Op::Complex:
    return map([&](int64_t i) {
      store<T>(out, i, {Native<T>::load(c.in[0]->bytes.data(), i), Native<T>::load(c.in[1]->bytes.data(), i)});
    });
  case Op::Reduce: return product<T>(c);
  case Op::Cumulate: return runningProduct<T>(c);
  case Op::Contract: return contraction<T>(c);
  default: return c.fail(llvm::Twine("not defined on ") + info(c.type()).text);
  }
}
} // namespace

bool eval::computesComplex(const Call &c) {
  if (c.node->op == Op::Complex) return true;
  bool complex = isComplex(c.node->dtype);
  for (const Tensor *t : c.in) complex |= isComplex(t->dtype);
  if (!complex || c.in.empty()) return false;
  switch (c.node->op) {
  case Op::Scatter: return ScatterKind(c.attr(1)) != ScatterKind::Set;
  case Op::Reduce:
  case Op::Cumulate:
  case Op::Contract:
  case Op::Real:
  case Op::Imag: return true;
  default: return has(c.node->op, Elementwise) && c.node->op != Op::Select;
  }
}

Result eval::evalComplex(const Call &c) {
  switch (c.node->op) {
  case Op::Cast: return convert(c);
  case Op::Neg:
  case Op::Add:
  case Op::Sub:
  case Op::Scatter: return partByPart(c);
  case Op::Reduce:
  case Op::Cumulate: // the kinds of sums have one number in both
    if (c.attr(0) == int64_t(ReduceKind::Sum)) return partByPart(c);
    break;
  default: break;
  }
  bool single = partOf(c.type()) == DType::F32;
  return single ? evalWith<float>(c) : evalWith<double>(c);
}

//===- GraphValue.h: the primitives of clause N1 as UOps -------------------===//
// Takes:    a Builder and UOps of f32, f64, i32, i64, u32, u64 or bool.
// Gives:    Graph<T>, with which the programs of Functions.h build graphs: one node per operation.
// Keeps:    a literal stays a literal until it meets a node, whose Builder makes it; T is the node's dtype.
// Does not: compute; two literals never meet in a program.
#pragma once

#include "astra/IR/Builder.h"

#include <bit>
#include <cassert>

namespace astra::numerics {

template <class T> constexpr DType dtypeOf = DType::Void;
template <> inline constexpr DType dtypeOf<bool> = DType::Bool;
template <> inline constexpr DType dtypeOf<int32_t> = DType::I32;
template <> inline constexpr DType dtypeOf<int64_t> = DType::I64;
template <> inline constexpr DType dtypeOf<uint32_t> = DType::U32;
template <> inline constexpr DType dtypeOf<uint64_t> = DType::U64;
template <> inline constexpr DType dtypeOf<float> = DType::F32;
template <> inline constexpr DType dtypeOf<double> = DType::F64;

/// The bits of a number as the IR's literals and tables hold them.
template <class T> uint64_t literalBits(T v) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(v);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(v);
  else
    return std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>(v);
}

template <class T> class Graph {
public:
  Graph(T literal) : builder(nullptr), uop(nullptr), literal(literal) {}
  Graph(Builder &b, UOpRef x) : builder(&b), uop(x), literal() { assert(x->dtype == dtypeOf<T>); }

  Builder *builder;
  UOpRef node(Builder &b) const { return uop ? uop : b.bits(dtypeOf<T>, literalBits(literal)); }

  friend Graph operator+(Graph a, Graph b) { return join<T>(Op::Add, a, b); }
  friend Graph operator-(Graph a, Graph b) { return join<T>(Op::Sub, a, b); }
  friend Graph operator*(Graph a, Graph b) { return join<T>(Op::Mul, a, b); }
  friend Graph operator/(Graph a, Graph b) { return join<T>(Op::Div, a, b); }
  friend Graph operator-(Graph a) { return unary(Op::Neg, a); }
  friend Graph operator&(Graph a, Graph b) { return join<T>(Op::And, a, b); }
  friend Graph operator|(Graph a, Graph b) { return join<T>(Op::Or, a, b); }
  friend Graph operator^(Graph a, Graph b) { return join<T>(Op::Xor, a, b); }
  friend Graph operator!(Graph a) { return unary(Op::Not, a); }
  friend Graph operator<<(Graph a, Graph b) { return join<T>(Op::Shl, a, b); }
  friend Graph operator>>(Graph a, Graph b) { return join<T>(Op::Shr, a, b); }
  friend Graph<bool> operator<(Graph a, Graph b) { return join<bool>(Op::Lt, a, b); }
  friend Graph<bool> operator==(Graph a, Graph b) { return join<bool>(Op::Eq, a, b); }
  friend Graph fma(Graph a, Graph b, Graph c) {
    Builder &m = maker(a, b, c);
    return Graph(m, m.fma(a.node(m), b.node(m), c.node(m)));
  }
  friend Graph sqrt(Graph a) { return unary(Op::Sqrt, a); }
  friend Graph abs(Graph a) { return unary(Op::Abs, a); }
  friend Graph trunc(Graph a) { return unary(Op::Trunc, a); }
  friend Graph copysign(Graph a, Graph b) { return join<T>(Op::CopySign, a, b); }
  friend Graph select(Graph<bool> c, Graph a, Graph b) {
    Builder &m = *c.builder;
    return Graph(m, m.select(c.node(m), a.node(m), b.node(m)));
  }

private:
  UOpRef uop;
  T literal;

  static Builder &maker(const Graph &a, const Graph &b, const Graph &c) {
    return *(a.builder ? a.builder : b.builder ? b.builder : c.builder);
  }
  template <class R> static Graph<R> join(Op op, const Graph &a, const Graph &b) {
    Builder &m = maker(a, b, b);
    return Graph<R>(m, m.bin(op, a.node(m), b.node(m)));
  }
  static Graph unary(Op op, const Graph &a) { return Graph(*a.builder, a.builder->un(op, a.node(*a.builder))); }
};

template <class T> Graph<T> select(Graph<bool> c, T a, T b) { return select(c, Graph<T>(a), Graph<T>(b)); }
template <class To, class T> Graph<To> bitcast(Graph<T> a) {
  return Graph<To>(*a.builder, a.builder->bitcast(a.node(*a.builder), dtypeOf<To>));
}
template <class To, class T> Graph<To> convert(Graph<T> a) {
  return Graph<To>(*a.builder, a.builder->cast(a.node(*a.builder), dtypeOf<To>));
}
template <class E, class T> Graph<E> lookup16(const E (&table)[16], Graph<T> index) {
  uint64_t bits[16];
  for (int i = 0; i < 16; ++i) bits[i] = literalBits(table[i]);
  return Graph<E>(*index.builder, index.builder->lookup16(index.node(*index.builder), dtypeOf<E>, bits));
}

} // namespace astra::numerics

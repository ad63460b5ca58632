//===- Rule.h: the rule language -------------------------------------------===//
// Takes:    expressions over names and literals, written as in mathematics.
// Gives:    Rule rows: constexpr data that the matcher reads, the prover proves, the docs print.
// Keeps:    a name that is not bound on the left is a compile error, and so is a term that is too long.
// Does not: match (Matcher.cpp), choose where rules run (Registry.cpp), prove (test/unit/proofs).
//
// Names: x y z w are values of the row's types, p q r are bools, a b are literals of the row's types. On the left a
// literal matches a tensor whose every element is that literal; `/` on integers and symbolic integers is floordiv.
// Guards are about mathematical integers.
#pragma once
#include "astra/IR/UOp.h"
#include <array>
#include <bit>
#include <source_location>

namespace astra {

/// What makes a rule sound (numerics clause N3).
enum class Domain : uint8_t {
  Bits, // always exact, up to the payload of a NaN
  Ring, // integers modulo 2^n, bitwise logic included
  Index // mathematical integers, ranges known, divisors positive
};

/// Sets of dtype classes.
enum Types : uint8_t {
  FloatTypes = 1,
  SignedTypes = 2,
  UnsignedTypes = 4,
  BoolType = 8,
  IndexType = 16,
  OtherTypes = 32
};
Types typesOf(DType t);

namespace rules {

enum class TermKind : uint8_t { Value, Condition, Literal, Int, Real, Ones, Apply, Call };
/// Functions of literals and bounds: on the right they give a literal, in a guard a number.
enum class Fn : uint8_t { Log2, Reciprocal, IsPow2, HasReciprocal, Lo, Hi, Width };

struct TermNode {
  TermKind kind = TermKind::Int;
  Op op = Op::Const;   // of Apply
  uint8_t number = 0;  // of a name, or the Fn
  uint8_t arity = 0;   // of Apply and Call
  uint8_t arg[3] = {}; // positions of the arguments
  int64_t value = 0;   // of Int; of Real the bits of the double
};

void termIsTooLong(); // not constexpr: reaching a call is the compile error
void nameIsNotBoundOnTheLeft();

/// An expression in postorder; the last node is the root.
struct Term {
  static constexpr unsigned capacity = 31;
  std::array<TermNode, capacity> nodes{};
  uint8_t size = 0;

  constexpr Term() = default;
  constexpr Term(int v) { add({TermKind::Int, Op::Const, 0, 0, {}, v}); }
  constexpr Term(double v) { add({TermKind::Real, Op::Const, 0, 0, {}, std::bit_cast<int64_t>(v)}); }
  constexpr explicit Term(TermKind name, uint8_t number) { add({name, Op::Const, number, 0, {}, 0}); }

  constexpr void add(TermNode n) {
    if (size == capacity) termIsTooLong();
    nodes[size++] = n;
  }
  constexpr const TermNode &root() const { return nodes[size - 1]; }
  constexpr bool binds(const TermNode &name) const {
    for (unsigned i = 0; i < size; ++i)
      if (nodes[i].kind == name.kind && nodes[i].number == name.number) return true;
    return false;
  }
};

constexpr Term compose(TermKind kind, Op op, Fn fn, std::initializer_list<Term> args) {
  Term t;
  TermNode n{kind, op, uint8_t(fn), uint8_t(args.size()), {}, 0};
  unsigned k = 0;
  for (const Term &a : args) {
    unsigned base = t.size;
    for (unsigned i = 0; i < a.size; ++i) {
      TermNode m = a.nodes[i];
      for (unsigned j = 0; j < m.arity; ++j) m.arg[j] += base;
      t.add(m);
    }
    n.arg[k++] = t.size - 1;
  }
  t.add(n);
  return t;
}
constexpr Term apply(Op op, std::initializer_list<Term> args) { return compose(TermKind::Apply, op, Fn::Log2, args); }
constexpr Term call(Fn fn, std::initializer_list<Term> args) { return compose(TermKind::Call, Op::Const, fn, args); }

constexpr Term operator+(Term l, Term r) { return apply(Op::Add, {l, r}); }
constexpr Term operator-(Term l, Term r) { return apply(Op::Sub, {l, r}); }
constexpr Term operator*(Term l, Term r) { return apply(Op::Mul, {l, r}); }
constexpr Term operator/(Term l, Term r) { return apply(Op::Div, {l, r}); }
constexpr Term operator%(Term l, Term r) { return apply(Op::Mod, {l, r}); }
constexpr Term operator&(Term l, Term r) { return apply(Op::And, {l, r}); }
constexpr Term operator|(Term l, Term r) { return apply(Op::Or, {l, r}); }
constexpr Term operator^(Term l, Term r) { return apply(Op::Xor, {l, r}); }
constexpr Term operator<<(Term l, Term r) { return apply(Op::Shl, {l, r}); }
constexpr Term operator>>(Term l, Term r) { return apply(Op::Shr, {l, r}); }
constexpr Term operator<(Term l, Term r) { return apply(Op::Lt, {l, r}); }
constexpr Term operator<=(Term l, Term r) { return apply(Op::Le, {l, r}); }
constexpr Term operator>(Term l, Term r) { return apply(Op::Lt, {r, l}); }
constexpr Term operator>=(Term l, Term r) { return apply(Op::Le, {r, l}); }
constexpr Term operator==(Term l, Term r) { return apply(Op::Eq, {l, r}); }
constexpr Term operator!=(Term l, Term r) { return apply(Op::Ne, {l, r}); }
constexpr Term operator&&(Term l, Term r) { return apply(Op::And, {l, r}); }
constexpr Term operator||(Term l, Term r) { return apply(Op::Or, {l, r}); }
constexpr Term operator-(Term l) { return apply(Op::Neg, {l}); }
constexpr Term operator~(Term l) { return apply(Op::Not, {l}); }

inline constexpr Term x{TermKind::Value, 0}, y{TermKind::Value, 1}, z{TermKind::Value, 2}, w{TermKind::Value, 3};
inline constexpr Term p{TermKind::Condition, 0}, q{TermKind::Condition, 1}, r{TermKind::Condition, 2};
inline constexpr Term a{TermKind::Literal, 0}, b{TermKind::Literal, 1};
inline constexpr Term ones{TermKind::Ones, 0}; // every bit set; true
inline constexpr unsigned numNames = 4;        // of each kind

constexpr Term abs(Term t) { return apply(Op::Abs, {t}); }
constexpr Term sqrt(Term t) { return apply(Op::Sqrt, {t}); }
constexpr Term roundeven(Term t) { return apply(Op::RoundEven, {t}); }
constexpr Term floor(Term t) { return apply(Op::Floor, {t}); }
constexpr Term ceil(Term t) { return apply(Op::Ceil, {t}); }
constexpr Term trunc(Term t) { return apply(Op::Trunc, {t}); }
constexpr Term max(Term l, Term r) { return apply(Op::Max, {l, r}); }
constexpr Term min(Term l, Term r) { return apply(Op::Min, {l, r}); }
constexpr Term truncdiv(Term l, Term r) { return apply(Op::TruncDiv, {l, r}); }
constexpr Term rem(Term l, Term r) { return apply(Op::Rem, {l, r}); }
constexpr Term copysign(Term l, Term r) { return apply(Op::CopySign, {l, r}); }
constexpr Term scale2(Term l, Term r) { return apply(Op::Scale2, {l, r}); }
constexpr Term fma(Term l, Term m, Term r) { return apply(Op::Fma, {l, m, r}); }
constexpr Term select(Term c, Term l, Term r) { return apply(Op::Select, {c, l, r}); }

constexpr Term log2(Term t) { return call(Fn::Log2, {t}); }                   // of a power of two
constexpr Term reciprocal(Term t) { return call(Fn::Reciprocal, {t}); }       // exact
constexpr Term isPow2(Term t) { return call(Fn::IsPow2, {t}); }               // 2^k in the literal's own type
constexpr Term hasReciprocal(Term t) { return call(Fn::HasReciprocal, {t}); } // a float whose reciprocal is exact
constexpr Term lo(Term t) { return call(Fn::Lo, {t}); }                       // bounds of a symbolic integer
constexpr Term hi(Term t) { return call(Fn::Hi, {t}); }
inline constexpr Term width = call(Fn::Width, {}); // bits of the row's type at hand

struct Equation {
  Term left, right;
};
constexpr Equation operator>>=(Term left, Term right) {
  for (unsigned i = 0; i < right.size; ++i)
    if (right.nodes[i].kind <= TermKind::Literal && !left.binds(right.nodes[i])) nameIsNotBoundOnTheLeft();
  return {left, right};
}

/// The column that says for which types a row holds, and why.
struct Soundness {
  Domain domain;
  unsigned types;
};
inline constexpr Soundness Floats{Domain::Bits, FloatTypes};
inline constexpr Soundness Numbers{Domain::Bits, FloatTypes | SignedTypes | UnsignedTypes};
inline constexpr Soundness Ordered{Domain::Bits, FloatTypes | SignedTypes | UnsignedTypes | BoolType};
inline constexpr Soundness Anything{Domain::Bits, FloatTypes | SignedTypes | UnsignedTypes | BoolType | OtherTypes};
inline constexpr Soundness Ring{Domain::Ring, SignedTypes | UnsignedTypes};
inline constexpr Soundness SignedRing{Domain::Ring, SignedTypes};
inline constexpr Soundness UnsignedRing{Domain::Ring, UnsignedTypes};
inline constexpr Soundness SignedNumbers{Domain::Bits, FloatTypes | SignedTypes};
inline constexpr Soundness Bitwise{Domain::Ring, SignedTypes | UnsignedTypes | BoolType};
inline constexpr Soundness Logic{Domain::Ring, BoolType};
inline constexpr Soundness Index{Domain::Index, IndexType};

} // namespace rules

/// How a row is held; every row has one, by construction. The tests visit each row and fail where the proof is missing,
/// refuted or unknown.
enum class Proof : uint8_t {
  Terms,  // guard and both sides given to z3 (and floats run exhaustively at 16 bits), for each type of the row
  Lemmas, // the function run at every point of small boxes, and argued for by lemmas of the same name, given to z3
  Points  // the function run at every shape, type and value up to a bound that the test states
};

/// Graphs hold tensors (a literal is expanded), kernels scalars and vectors (a literal is splat).
enum class Level : uint8_t { Graph, Kernel };

struct Rule;
struct RuleContext {
  Context &c;
  Level level = Level::Graph;
};
/// What a pattern cannot say: an equal node, or null where the rule does not apply. Sources are already rewritten.
using Procedure = UOpRef (*)(RuleContext, UOpRef);

struct Rule {
  const char *name;
  rules::Term left, right, guard;
  rules::Soundness soundness;
  Proof proof;
  Procedure procedure = nullptr;
  std::array<Op, 8> roots{}; // of a procedure; none: every elementwise op that is no function
  unsigned numRoots = 0;
  const char *meaning = nullptr; // of a procedure, for the docs
  std::source_location where;

  constexpr Rule(const char *name, rules::Equation e, rules::Soundness s, rules::Term guard = {},
                 std::source_location where = std::source_location::current())
      : name(name), left(resolve(e.left, s)), right(resolve(e.right, s)), guard(guard), soundness(s),
        proof(Proof::Terms), where(where) {
    roots[0] = left.root().op;
    numRoots = 1;
  }
  constexpr Rule(const char *name, std::initializer_list<Op> ops, Procedure f, rules::Soundness s, Proof proof,
                 const char *meaning, std::source_location where = std::source_location::current())
      : name(name), soundness(s), proof(proof), procedure(f), meaning(meaning), where(where) {
    for (Op o : ops) roots[numRoots++] = o;
  }

private:
  /// `/` is floordiv unless the row is about floats.
  static constexpr rules::Term resolve(rules::Term t, rules::Soundness s) {
    if (!(s.types & FloatTypes))
      for (rules::TermNode &n : t.nodes)
        if (n.kind == rules::TermKind::Apply && n.op == Op::Div) n.op = Op::FloorDiv;
    return t;
  }
};

} // namespace astra

//===- Formula.h: derivatives written as mathematics -----------------------===//
// Takes:    the terms of the rule language (Rewrite/Rule.h).
// Gives:    Formula rows: an elementwise op and its tangent, `sin(x)` and `cos(x) * dx`. A row is linear in dx, dy, dz;
//           read forwards it is a rule of forward mode, transposed it is one of reverse mode (Formula.cpp).
// Keeps:    a row that is not linear in its tangents, or names what the op does not have, is a compile error.
// Does not: hold the rows (lib/Autograd/Formulas.h).
//
// Names: x y z are the sources, p is a bool source, f is the result, dx dy dz are the tangents of x y z. Comparisons
// with numbers, and numbers, are of the type of the result.
#pragma once
#include "astra/Rewrite/Rule.h"

namespace astra {

namespace rules {
inline constexpr uint8_t resultName = numNames, firstTangent = numNames + 1; // numbers of names that rules do not use
inline constexpr Term f{TermKind::Value, resultName}, dx{TermKind::Value, firstTangent},
    dy{TermKind::Value, firstTangent + 1}, dz{TermKind::Value, firstTangent + 2};
constexpr bool isTangent(const TermNode &n) { return n.kind == TermKind::Value && n.number >= firstTangent; }

constexpr Term exp(Term t) { return apply(Op::Exp, {t}); }
constexpr Term exp2(Term t) { return apply(Op::Exp2, {t}); }
constexpr Term expm1(Term t) { return apply(Op::Expm1, {t}); }
constexpr Term log(Term t) { return apply(Op::Log, {t}); }
constexpr Term log1p(Term t) { return apply(Op::Log1p, {t}); }
constexpr Term logBase2(Term t) { return apply(Op::Log2, {t}); } // log2 is the logarithm of a literal
constexpr Term sin(Term t) { return apply(Op::Sin, {t}); }
constexpr Term cos(Term t) { return apply(Op::Cos, {t}); }
constexpr Term tan(Term t) { return apply(Op::Tan, {t}); }
constexpr Term tanh(Term t) { return apply(Op::Tanh, {t}); }
constexpr Term erf(Term t) { return apply(Op::Erf, {t}); }
constexpr Term sigmoid(Term t) { return apply(Op::Sigmoid, {t}); }
constexpr Term rsqrt(Term t) { return apply(Op::Rsqrt, {t}); }
constexpr Term asin(Term t) { return apply(Op::Asin, {t}); }
constexpr Term acos(Term t) { return apply(Op::Acos, {t}); }
constexpr Term atan(Term t) { return apply(Op::Atan, {t}); }
constexpr Term sinh(Term t) { return apply(Op::Sinh, {t}); }
constexpr Term cosh(Term t) { return apply(Op::Cosh, {t}); }
constexpr Term asinh(Term t) { return apply(Op::Asinh, {t}); }
constexpr Term acosh(Term t) { return apply(Op::Acosh, {t}); }
constexpr Term atanh(Term t) { return apply(Op::Atanh, {t}); }
constexpr Term pow(Term l, Term r) { return apply(Op::Pow, {l, r}); }

void tangentIsNotLinear(); // not constexpr: reaching a call is the compile error

/// Bit i: whether node i has a tangent in it. Sums of tangents, products and quotients by what has none, a choice
/// between them or 0, and powers of two times them are linear; everything else is refused.
constexpr uint32_t linearNodes(const Term &t) {
  uint32_t linear = 0;
  for (unsigned i = 0; i < t.size; ++i) {
    const TermNode &n = t.nodes[i];
    auto has = [&](unsigned k) { return k < n.arity && (linear >> n.arg[k] & 1); };
    auto zero = [&](unsigned k) { return t.nodes[n.arg[k]].kind == TermKind::Int && t.nodes[n.arg[k]].value == 0; };
    if (isTangent(n)) linear |= 1u << i;
    if (!has(0) && !has(1) && !has(2)) continue;
    bool ok = false;
    if (n.kind == TermKind::Apply) switch (n.op) {
      case Op::Neg: ok = true; break;
      case Op::Add:
      case Op::Sub: ok = has(0) && has(1); break;
      case Op::Mul: ok = has(0) != has(1); break;
      case Op::Div:
      case Op::Scale2: ok = has(0) && !has(1); break;
      case Op::Select: ok = !has(0) && (has(1) || zero(1)) && (has(2) || zero(2)); break;
      default: break;
      }
    if (!ok) tangentIsNotLinear();
    linear |= 1u << i;
  }
  return linear;
}
} // namespace rules

/// One row: f = value, df = tangent.
struct Formula {
  rules::Term value, tangent;
  uint32_t linear; // of the tangent's nodes
  const char *note;

  constexpr Formula(rules::Term value, rules::Term tangent, const char *note = "")
      : value(value), tangent(tangent), linear(rules::linearNodes(tangent)), note(note) {
    if (!(linear >> (tangent.size - 1) & 1)) rules::tangentIsNotLinear();
    for (unsigned i = 0; i < tangent.size; ++i) {
      rules::TermNode n = tangent.nodes[i];
      if (rules::isTangent(n)) n.number -= rules::firstTangent;
      bool isResult = n.kind == rules::TermKind::Value && n.number == rules::resultName;
      if (n.kind <= rules::TermKind::Literal && !isResult && !value.binds(n)) rules::nameIsNotBoundOnTheLeft();
    }
  }
  constexpr Op op() const { return value.root().op; }
};

} // namespace astra

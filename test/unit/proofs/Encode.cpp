//===- Encode.cpp: a rule's terms as z3 expressions ------------------------===//
#include "Encode.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using namespace astra::proofs;
using namespace astra::rules;
using std::optional;
using z3::expr;

static expr check(z3::context &c, Z3_ast a) {
  expr e(c, a);
  c.check_error();
  return e;
}

z3::sort Encoder::valueSort() {
  switch (values) {
  case Values::Uninterpreted: return c.uninterpreted_sort("Value");
  case Values::Integers:
  case Values::Index: return c.int_sort();
  case Values::Bits: return c.bv_sort(width);
  case Values::Bools: return c.bool_sort();
  case Values::Half: return c.fpa_sort(5, 11);
  }
  return c.bool_sort();
}

expr Encoder::name(const TermNode &n) {
  static constexpr const char *names[] = {"xyzw", "pqr", "ab"};
  std::string s(1, names[unsigned(n.kind)][n.number]);
  if (n.kind == TermKind::Condition) return c.bool_const(s.c_str());
  if (n.kind == TermKind::Literal && literals.count(n.number))
    return values == Values::Bits ? c.bv_val(literals[n.number], width) : c.int_val(literals[n.number]);
  return c.constant(s.c_str(), valueSort());
}

optional<expr> Encoder::number(const TermNode &n, bool truth) {
  if (truth || values == Values::Bools)
    return n.kind == TermKind::Real ? optional<expr>() : c.bool_val(n.kind == TermKind::Ones || n.value & 1);
  switch (values) {
  case Values::Uninterpreted:
    return c.constant(("number" + std::to_string(int(n.kind)) + "_" + std::to_string(n.value)).c_str(), valueSort());
  case Values::Integers:
  case Values::Index:
    if (n.kind == TermKind::Real) return {};
    return c.int_val(n.kind == TermKind::Ones ? int64_t(-1) : n.value);
  case Values::Bits:
    if (n.kind == TermKind::Real) return {};
    return c.bv_val(n.kind == TermKind::Ones ? int64_t(-1) : n.value, width);
  case Values::Half: {
    if (n.kind == TermKind::Ones) return {};
    double v = n.kind == TermKind::Real ? std::bit_cast<double>(n.value) : double(n.value);
    return check(c, Z3_mk_fpa_numeral_double(c, v, valueSort()));
  }
  default: return {};
  }
}

optional<expr> Encoder::logic(Op op, const std::vector<expr> &a) {
  switch (op) {
  case Op::Not: return !a[0];
  case Op::And:
  case Op::Min: return a[0] && a[1];
  case Op::Or:
  case Op::Max: return a[0] || a[1];
  case Op::Ne:
  case Op::Xor: return a[0] != a[1];
  case Op::Eq: return a[0] == a[1];
  case Op::Lt: return !a[0] && a[1];
  case Op::Le: return !a[0] || a[1];
  default: return {};
  }
}

/// The quotient and remainder of x by a > 0: the only q and m with x = q*a + m and 0 <= m < a, in a width where nothing
/// wraps. The same operands have the same ones.
const Encoder::Division &Encoder::euclid(const expr &x, const expr &a) {
  for (const Division &d : divisions)
    if (z3::eq(d.x, x) && z3::eq(d.a, a)) return d;
  std::string n = std::to_string(divisions.size());
  expr q = c.constant(("quotient" + n).c_str(), x.get_sort()), m = c.constant(("remainder" + n).c_str(), x.get_sort());
  auto wide = [&](const expr &e) {
    return values != Values::Bits ? e : isSigned ? z3::sext(e, width + 1) : z3::zext(e, width + 1);
  };
  definitions = definitions &&
                z3::implies(wide(a) > 0, wide(x) == wide(q) * wide(a) + wide(m) && wide(m) >= 0 && wide(m) < wide(a));
  divisions.push_back({x, a, q, m});
  return divisions.back();
}

expr Encoder::takeDefined() { return std::exchange(defined, c.bool_val(true)); }

optional<expr> Encoder::bits(Op op, const std::vector<expr> &a) {
  expr zero = c.bv_val(0, width);
  auto less = [&](const expr &l, const expr &r) { return isSigned ? l < r : z3::ult(l, r); };
  auto quotient = [&] { return z3::ite(a[1] == zero, zero, isSigned ? a[0] / a[1] : z3::udiv(a[0], a[1])); };
  auto floored = [&] {
    if (!isSigned) return quotient();
    expr inexact = byDefinition ? quotient() * a[1] != a[0] : z3::srem(a[0], a[1]) != zero;
    expr down = a[1] != zero && inexact && (a[0] < zero) != (a[1] < zero);
    return z3::ite(down, quotient() - c.bv_val(1, width), quotient());
  };
  switch (op) {
  case Op::Neg: return -a[0];
  case Op::Abs: return isSigned ? z3::ite(a[0] < zero, -a[0], a[0]) : a[0];
  case Op::Not: return ~a[0];
  case Op::Add: return a[0] + a[1];
  case Op::Sub: return a[0] - a[1];
  case Op::Mul: return a[0] * a[1];
  case Op::And: return a[0] & a[1];
  case Op::Or: return a[0] | a[1];
  case Op::Xor: return a[0] ^ a[1];
  case Op::Shl: return z3::shl(a[0], a[1]);
  case Op::Shr: return isSigned ? z3::ashr(a[0], a[1]) : z3::lshr(a[0], a[1]);
  case Op::TruncDiv: return quotient();
  case Op::FloorDiv: return literals.empty() ? floored() : euclid(a[0], a[1]).quotient;
  case Op::Rem:
    if (byDefinition) return a[0] - quotient() * a[1];
    return isSigned ? z3::srem(a[0], a[1]) : z3::urem(a[0], a[1]);
  case Op::Mod:
    if (!literals.empty()) return euclid(a[0], a[1]).remainder;
    if (byDefinition) return a[0] - floored() * a[1];
    return isSigned ? z3::smod(a[0], a[1]) : z3::urem(a[0], a[1]);
  case Op::Max: return z3::ite(less(a[0], a[1]), a[1], a[0]);
  case Op::Min: return z3::ite(less(a[0], a[1]), a[0], a[1]);
  case Op::Lt: return less(a[0], a[1]);
  case Op::Le: return !less(a[1], a[0]);
  case Op::Eq: return a[0] == a[1];
  case Op::Ne: return a[0] != a[1];
  default: return {};
  }
}

optional<expr> Encoder::index(Op op, const std::vector<expr> &a) {
  switch (op) {
  case Op::Neg: return -a[0];
  case Op::Add: return a[0] + a[1];
  case Op::Sub: return a[0] - a[1];
  case Op::Mul: return a[0] * a[1];
  default: break;
  }
  if (values == Values::Integers) return {}; // only polynomials survive wrapping
  switch (op) {
  case Op::Div: // of a fact
  case Op::FloorDiv: defined = defined && a[1] > 0; return euclid(a[0], a[1]).quotient;
  case Op::Mod: defined = defined && a[1] > 0; return euclid(a[0], a[1]).remainder;
  case Op::Max: return z3::ite(a[0] < a[1], a[1], a[0]);
  case Op::Min: return z3::ite(a[0] < a[1], a[0], a[1]);
  case Op::Lt: return a[0] < a[1];
  case Op::Le: return a[0] <= a[1];
  case Op::Eq: return a[0] == a[1];
  case Op::Ne: return a[0] != a[1];
  default: return {};
  }
}

optional<expr> Encoder::half(Op op, const std::vector<expr> &a) {
  auto mode = [&](Z3_ast (*f)(Z3_context)) { return check(c, f(c)); };
  expr even = mode(Z3_mk_fpa_rne);
  auto un = [&](Z3_ast (*f)(Z3_context, Z3_ast), const expr &x) { return check(c, f(c, x)); };
  auto bin = [&](Z3_ast (*f)(Z3_context, Z3_ast, Z3_ast), const expr &x, const expr &y) {
    return check(c, f(c, x, y));
  };
  auto round = [&](Z3_ast (*f)(Z3_context, Z3_ast, Z3_ast, Z3_ast)) { return check(c, f(c, even, a[0], a[1])); };
  auto negative = [&](const expr &x) { return un(Z3_mk_fpa_is_negative, x); };
  auto isNaN = [&](const expr &x) { return un(Z3_mk_fpa_is_nan, x); };
  auto less = [&](const expr &x, const expr &y) { return bin(Z3_mk_fpa_lt, x, y); };
  switch (op) {
  case Op::Neg: return un(Z3_mk_fpa_neg, a[0]);
  case Op::Abs: return un(Z3_mk_fpa_abs, a[0]);
  case Op::Sqrt: return bin(Z3_mk_fpa_sqrt, even, a[0]);
  case Op::RoundEven: return bin(Z3_mk_fpa_round_to_integral, even, a[0]);
  case Op::Floor: return bin(Z3_mk_fpa_round_to_integral, mode(Z3_mk_fpa_rtn), a[0]);
  case Op::Ceil: return bin(Z3_mk_fpa_round_to_integral, mode(Z3_mk_fpa_rtp), a[0]);
  case Op::Trunc: return bin(Z3_mk_fpa_round_to_integral, mode(Z3_mk_fpa_rtz), a[0]);
  case Op::Add: return round(Z3_mk_fpa_add);
  case Op::Sub: return round(Z3_mk_fpa_sub);
  case Op::Mul: return round(Z3_mk_fpa_mul);
  case Op::Div: return round(Z3_mk_fpa_div);
  case Op::Fma: return check(c, Z3_mk_fpa_fma(c, even, a[0], a[1], a[2]));
  case Op::Lt: return less(a[0], a[1]);
  case Op::Le: return bin(Z3_mk_fpa_leq, a[0], a[1]);
  case Op::Eq: return bin(Z3_mk_fpa_eq, a[0], a[1]);
  case Op::Ne: return !bin(Z3_mk_fpa_eq, a[0], a[1]);
  case Op::Max:
  case Op::Min: { // N9: a NaN wins, -0 < +0
    expr below = less(a[0], a[1]) || (bin(Z3_mk_fpa_eq, a[0], a[1]) && negative(a[0]) && !negative(a[1]));
    expr chosen = op == Op::Max ? z3::ite(below, a[1], a[0]) : z3::ite(below, a[0], a[1]);
    return z3::ite(isNaN(a[0]), a[0], z3::ite(isNaN(a[1]), a[1], chosen));
  }
  case Op::CopySign: { // the sign of a NaN is that of the canonical one: positive
    expr size = un(Z3_mk_fpa_abs, a[0]);
    return z3::ite(negative(a[1]) && !isNaN(a[1]), un(Z3_mk_fpa_neg, size), size);
  }
  default: return {};
  }
}

optional<expr> Encoder::apply(Op op, const std::vector<expr> &a) {
  if (op == Op::Select) return z3::ite(a[0], a[1], a[2]);
  bool truths = true;
  for (const expr &e : a) truths &= e.is_bool();
  if (truths) return logic(op, a);
  switch (values) {
  case Values::Uninterpreted: {
    bool compares = op == Op::Lt || op == Op::Le || op == Op::Eq || op == Op::Ne;
    z3::sort_vector domain(c);
    z3::expr_vector args(c);
    for (const expr &e : a) domain.push_back(e.get_sort()), args.push_back(e);
    return c.function(info(op).mnemonic, domain, compares ? c.bool_sort() : valueSort())(args);
  }
  case Values::Integers:
  case Values::Index: return index(op, a);
  case Values::Bits: return bits(op, a);
  case Values::Half: return half(op, a);
  default: return {};
  }
}

optional<expr> Encoder::term(const Term &t, optional<z3::sort> root) {
  std::vector<expr> made;
  for (unsigned i = 0; i < t.size; ++i) {
    const TermNode &n = t.nodes[i];
    bool truth = i + 1 == t.size && root && root->is_bool();
    for (unsigned k = i + 1; k < t.size; ++k)
      if (t.nodes[k].kind == TermKind::Apply) {
        truth |= t.nodes[k].op == Op::Select && t.nodes[k].arg[0] == i;
      }
    optional<expr> e;
    switch (n.kind) {
    case TermKind::Value:
    case TermKind::Condition:
    case TermKind::Literal: e = name(n); break;
    case TermKind::Int:
    case TermKind::Real:
    case TermKind::Ones: e = number(n, truth); break;
    case TermKind::Call:
      if (Fn(n.number) == Fn::Width && values == Values::Bits) e = c.bv_val(int(width), width);
      if (Fn(n.number) == Fn::Log2 && values == Values::Bits) {
        auto it = literals.find(t.nodes[n.arg[0]].number);
        if (it == literals.end()) return {};
        e = c.bv_val(int64_t(llvm::Log2_64(uint64_t(it->second))), width);
      }
      break;
    case TermKind::Apply: {
      std::vector<expr> args;
      for (unsigned k = 0; k < n.arity; ++k) args.push_back(made[n.arg[k]]);
      bool noScaling = n.op == Op::Scale2 && t.nodes[n.arg[1]].kind == TermKind::Int && t.nodes[n.arg[1]].value == 0;
      e = noScaling && values == Values::Half ? args[0] : apply(n.op, args); // x * 2^0
      break;
    }
    }
    if (!e) return {};
    made.push_back(*e);
  }
  return made.back();
}

optional<expr> Encoder::guard(const Term &t) {
  if (t.size == 0) return c.bool_val(true);
  unsigned wide = width + 8; // holds sums
  bool bitwise = values == Values::Bits;
  if (!bitwise && values != Values::Index) return {};
  auto constant = [&](int64_t v) { return bitwise ? c.bv_val(v, wide) : c.int_val(v); };
  std::vector<expr> made;
  expr possible = c.bool_val(true);
  for (unsigned i = 0; i < t.size; ++i) {
    const TermNode &n = t.nodes[i];
    auto arg = [&](unsigned k) { return made[n.arg[k]]; };
    optional<expr> e;
    if (n.kind == TermKind::Int) e = constant(n.value);
    if (n.kind == TermKind::Literal)
      e = !bitwise ? name(n) : isSigned ? z3::sext(name(n), wide - width) : z3::zext(name(n), wide - width);
    if (n.kind == TermKind::Call && Fn(n.number) == Fn::Width) e = constant(width);
    if (n.kind == TermKind::Call && Fn(n.number) == Fn::IsPow2 && bitwise)
      e = arg(0) > 0 && (arg(0) & (arg(0) - 1)) == 0;
    if (n.kind == TermKind::Apply) switch (n.op) {
      case Op::Add: e = arg(0) + arg(1); break;
      case Op::Sub: e = arg(0) - arg(1); break;
      case Op::Mul:
        if (!bitwise) e = arg(0) * arg(1);
        break;
      case Op::Mod:
        if (bitwise) break;
        possible = possible && arg(1) > 0;
        e = euclid(arg(0), arg(1)).remainder;
        break;
      case Op::Lt: e = arg(0) < arg(1); break;
      case Op::Le: e = arg(0) <= arg(1); break;
      case Op::Eq: e = arg(0) == arg(1); break;
      case Op::Ne: e = arg(0) != arg(1); break;
      case Op::And: e = arg(0) && arg(1); break;
      case Op::Or: e = arg(0) || arg(1); break;
      default: break;
      }
    if (!e) return {};
    made.push_back(*e);
  }
  return possible && made.back();
}

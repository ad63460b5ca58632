//===- Matcher.cpp: match a left side, test the guard, build the right side ===//
// Takes:    a rule and a node whose sources are rewritten.
// Gives:    the node that the right side stands for, or null.
// Keeps:    both orders of a commuting op are tried, as the op table says; a name that occurs twice must be one node.
// Does not: go deeper than a term (31 nodes); recursion is over terms alone.
#include "Matcher.h"
#include "Fold.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;
using namespace astra::rules;
using llvm::SmallVector;

Types astra::typesOf(DType t) {
  switch (info(t).cls) {
  case DTypeClass::Index: return IndexType;
  case DTypeClass::Bool: return BoolType;
  case DTypeClass::Signed: return SignedTypes;
  case DTypeClass::Unsigned: return UnsignedTypes;
  case DTypeClass::Float: return FloatTypes;
  default: return OtherTypes;
  }
}

namespace {
const llvm::fltSemantics &semantics(DType t) {
  switch (t) {
  case DType::F16: return llvm::APFloat::IEEEhalf();
  case DType::BF16: return llvm::APFloat::BFloat();
  case DType::F32: return llvm::APFloat::IEEEsingle();
  default: return llvm::APFloat::IEEEdouble();
  }
}
llvm::APFloat floatOf(UOpRef literal) {
  return llvm::APFloat(semantics(literal->dtype), llvm::APInt(bitWidth(literal->dtype), uint64_t(literal->ints[0])));
}
uint64_t ones(DType t) {
  return t == DType::Bool ? 1 : bitWidth(t) < 64 ? (uint64_t(1) << bitWidth(t)) - 1 : ~uint64_t(0);
}

/// The bits of a number written in a rule, as a literal of t; nothing where t has no such value.
std::optional<uint64_t> bitsOf(const TermNode &n, DType t) {
  if (n.kind == TermKind::Ones) return isFloat(t) ? std::nullopt : std::optional(ones(t));
  if (n.kind == TermKind::Real && !isFloat(t)) return std::nullopt;
  if (isInt(t) || t == DType::Bool) return uint64_t(n.value) & ones(t);
  if (t == DType::Index) return uint64_t(n.value);
  if (!isFloat(t)) return n.value == 0 && bitWidth(t) <= 64 ? std::optional<uint64_t>(0) : std::nullopt;
  llvm::APFloat f(n.kind == TermKind::Real ? std::bit_cast<double>(n.value) : double(n.value));
  bool inexact;
  f.convert(semantics(t), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return f.bitcastToAPInt().getZExtValue();
}

/// The mathematical integer that a literal stands for.
__int128 numberOf(UOpRef literal) {
  uint64_t v = literal->ints[0];
  if (literal->isIndex()) return literal->ints[0];
  unsigned unused = 64 - std::min(64u, bitWidth(literal->dtype));
  return isSigned(literal->dtype) ? __int128(int64_t(v << unused) >> unused) : __int128(v);
}

class Match {
public:
  Match(const Rule &rule, RuleContext r, UOpRef root) : rule(rule), r(r), root(root) {}

  UOpRef run() {
    unsigned commuting = 0;
    for (unsigned i = 0; i < rule.left.size; ++i)
      commuting += rule.left.nodes[i].kind == TermKind::Apply && has(rule.left.nodes[i].op, Commutes);
    for (swaps = 0; swaps < 1u << commuting; ++swaps) {
      bound = {};
      if (match(rule.left.size - 1, root, nullptr) &&
          (rule.guard.size == 0 || number(rule.guard.size - 1).value_or(0) != 0))
        if (UOpRef n = build()) return n;
    }
    return nullptr;
  }

private:
  const Rule &rule;
  RuleContext r;
  UOpRef root;
  std::array<UOpRef, 3 * numNames> bound{};
  unsigned swaps = 0; // bit i: commuting node number i of the left side is read in the other order

  UOpRef &slot(const TermNode &n) { return bound[unsigned(n.kind) * numNames + n.number]; }
  bool typed(DType t) const { return typesOf(t) & rule.soundness.types; }
  static UOpRef literal(UOpRef u) { return u->isIndex() ? (u->isConst() ? u : nullptr) : uniformLiteral(u); }

  bool bind(const TermNode &n, UOpRef u) {
    UOpRef &s = slot(n);
    if (s) return s == u;
    s = u;
    return true;
  }

  bool match(unsigned at, UOpRef u, const TermNode *parent) {
    const TermNode &n = rule.left.nodes[at];
    switch (n.kind) {
    case TermKind::Value: return typed(u->dtype) && bind(n, u);
    case TermKind::Condition: return u->dtype == DType::Bool && bind(n, u);
    case TermKind::Literal: {
      UOpRef k = typed(u->dtype) ? literal(u) : nullptr;
      return k && bind(n, k);
    }
    case TermKind::Int:
    case TermKind::Real:
    case TermKind::Ones: {
      bool exponent = parent && parent->op == Op::Scale2; // its second source has a type of its own
      UOpRef k = typed(u->dtype) || exponent ? literal(u) : nullptr;
      auto bits = k ? bitsOf(n, k->dtype) : std::nullopt;
      return bits && *bits == uint64_t(k->ints[0]);
    }
    case TermKind::Apply: {
      if (u->op != n.op || u->src.size() != n.arity) return false;
      bool swap = false;
      if (has(n.op, Commutes)) {
        unsigned number = 0;
        for (unsigned i = 0; i < at; ++i)
          number += rule.left.nodes[i].kind == TermKind::Apply && has(rule.left.nodes[i].op, Commutes);
        swap = swaps >> number & 1;
      }
      for (unsigned i = 0; i < n.arity; ++i)
        if (!match(n.arg[i], u->src[swap ? 1 - i : i], &n)) return false;
      return true;
    }
    case TermKind::Call: return false;
    }
    return false;
  }

  /// The dtype of the row's values at hand.
  DType operand() const {
    for (TermKind k : {TermKind::Value, TermKind::Literal})
      for (unsigned i = 0; i < numNames; ++i)
        if (UOpRef b = bound[unsigned(k) * numNames + i]) return b->dtype;
    return root->dtype;
  }

  /// A guard's value.
  std::optional<__int128> number(unsigned at) {
    const TermNode &n = rule.guard.nodes[at];
    auto arg = [&](unsigned i) { return number(n.arg[i]); };
    if (n.kind == TermKind::Int) return n.value;
    if (n.kind == TermKind::Literal) return numberOf(slot(n));
    if (n.kind == TermKind::Call) {
      UOpRef u = n.arity ? slot(rule.guard.nodes[n.arg[0]]) : nullptr;
      switch (Fn(n.number)) {
      case Fn::IsPow2: return numberOf(u) > 0 && (numberOf(u) & (numberOf(u) - 1)) == 0;
      case Fn::HasReciprocal: {
        llvm::APFloat inverse(0.0);
        return floatOf(u).getExactInverse(&inverse);
      }
      case Fn::Lo: return u->lo;
      case Fn::Hi: return u->hi;
      case Fn::Width: return bitWidth(operand());
      default: return std::nullopt;
      }
    }
    auto l = arg(0), rr = arg(1);
    if (!l || !rr) return std::nullopt;
    switch (n.op) {
    case Op::Add: return *l + *rr;
    case Op::Sub: return *l - *rr;
    case Op::Mul: return *l * *rr;
    case Op::Mod: return *rr > 0 ? std::optional((*l % *rr + *rr) % *rr) : std::nullopt;
    case Op::Lt: return *l < *rr;
    case Op::Le: return *l <= *rr;
    case Op::Eq: return *l == *rr;
    case Op::Ne: return *l != *rr;
    case Op::And: return *l && *rr;
    case Op::Or: return *l || *rr;
    default: return std::nullopt;
    }
  }

  UOpRef literalOf(DType t, uint64_t bits) {
    return t == DType::Index ? r.c.index(int64_t(bits)) : r.c.literal(t, bits);
  }

  UOpRef callOf(const TermNode &n, DType t) {
    Fn fn = Fn(n.number);
    if (fn == Fn::Width) return literalOf(t, bitWidth(t));
    UOpRef u = slot(rule.right.nodes[n.arg[0]]);
    if (fn == Fn::Log2) return numberOf(u) > 0 ? literalOf(t, llvm::Log2_64(uint64_t(numberOf(u)))) : nullptr;
    llvm::APFloat inverse(0.0);
    if (fn != Fn::Reciprocal || !floatOf(u).getExactInverse(&inverse)) return nullptr;
    return literalOf(t, inverse.bitcastToAPInt().getZExtValue());
  }

  /// The right side, in postorder; a scalar literal is spread where it meets a tensor. Null where literals do not fold.
  UOpRef build() {
    SmallVector<UOpRef, Term::capacity> made;
    for (unsigned i = 0; i < rule.right.size; ++i) {
      const TermNode &n = rule.right.nodes[i];
      bool last = i + 1 == rule.right.size;
      UOpRef u = nullptr;
      switch (n.kind) {
      case TermKind::Value:
      case TermKind::Condition:
      case TermKind::Literal: u = slot(n); break;
      case TermKind::Int:
      case TermKind::Real:
      case TermKind::Ones: {
        DType t = last ? root->dtype : operand();
        if (auto bits = bitsOf(n, t)) u = literalOf(t, *bits);
        break;
      }
      case TermKind::Call: u = callOf(n, last ? root->dtype : operand()); break;
      case TermKind::Apply: {
        SmallVector<UOpRef, 3> src;
        for (unsigned k = 0; k < n.arity; ++k) src.push_back(made[n.arg[k]]);
        u = applied(n.op, src);
        break;
      }
      }
      if (!u) return nullptr;
      made.push_back(u);
    }
    UOpRef out = made.back();
    return out->isConst() && !out->isIndex() ? spread(r, out, root->shape) : out;
  }

  UOpRef applied(Op op, llvm::MutableArrayRef<UOpRef> src) {
    bool literals = llvm::all_of(src, [](UOpRef s) { return s->isConst() && !s->isIndex(); });
    if (literals) {
      bool compares = op == Op::Lt || op == Op::Le || op == Op::Eq || op == Op::Ne;
      return foldScalar(r.c, op, {}, compares ? DType::Bool : src.back()->dtype, src);
    }
    for (UOpRef &s : src)
      if (s->isConst() && !s->isIndex()) s = spread(r, s, root->shape);
    auto n = r.c.tryMake(op, src);
    if (n) return *n;
    llvm::consumeError(n.takeError()); // a symbolic integer would leave its range
    return nullptr;
  }
};
} // namespace

UOpRef astra::applyRule(const Rule &rule, RuleContext r, UOpRef n) {
  if (!rule.procedure) return Match(rule, r, n).run();
  bool onIndices = !n->src.empty() && n->src[0]->isIndex();
  return rule.soundness.domain == Domain::Index && !onIndices ? nullptr : rule.procedure(r, n);
}

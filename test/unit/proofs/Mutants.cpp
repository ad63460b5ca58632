//===- Mutants.cpp: rows changed by one step -------------------------------===//
// Keeps:    the left side, the types and the name; the order of the mutants.
#include "Mutants.h"

using namespace astra;
using namespace astra::proofs;
using namespace astra::rules;

namespace {
/// The part of t that ends at a position. Terms are in postorder, so it is one piece.
Term part(const Term &t, unsigned at) {
  unsigned first = at;
  while (t.nodes[first].arity) first = t.nodes[first].arg[0];
  Term out;
  for (unsigned i = first; i <= at; ++i) {
    TermNode n = t.nodes[i];
    for (unsigned k = 0; k < n.arity; ++k) n.arg[k] -= first;
    out.nodes[out.size++] = n;
  }
  return out;
}

/// Whether a node is a bool whatever the row's types are.
bool isTruth(const Term &t, TermNode n) {
  while (n.kind == TermKind::Apply && (n.op == Op::Not || n.op == Op::And || n.op == Op::Or || n.op == Op::Xor))
    n = t.nodes[n.arg[0]];
  bool compares = n.op == Op::Lt || n.op == Op::Le || n.op == Op::Eq || n.op == Op::Ne;
  return n.kind == TermKind::Condition || (n.kind == TermKind::Apply && compares);
}

/// An op of the same types.
std::optional<Op> neighbour(const Term &t, const TermNode &n) {
  static constexpr std::pair<Op, Op> pairs[] = {
      {Op::Add, Op::Sub}, {Op::FloorDiv, Op::Mod}, {Op::TruncDiv, Op::Rem}, {Op::Max, Op::Min}, {Op::Lt, Op::Le},
      {Op::Eq, Op::Ne},   {Op::And, Op::Or},       {Op::Shl, Op::Shr},      {Op::Neg, Op::Not}, {Op::Abs, Op::Neg}};
  if (n.op == Op::Not && isTruth(t, n)) return std::nullopt;
  for (auto [l, r] : pairs)
    if (n.op == l || n.op == r) return n.op == l ? r : l;
  return std::nullopt;
}

bool boundBy(const Term &t, const Term &names) {
  for (unsigned i = 0; i < t.size; ++i)
    if (t.nodes[i].kind <= TermKind::Literal && !names.binds(t.nodes[i])) return false;
  return true;
}

/// Calls f with every term that differs from t in one step; names are taken from another one.
template <class F> void edits(const Term &t, const Term &names, F f) {
  for (unsigned i = 0; i < t.size; ++i) {
    const TermNode &n = t.nodes[i];
    Term edited = t;
    TermNode &m = edited.nodes[i];
    if (n.kind == TermKind::Int)
      for (int step : {-1, 1}) {
        m.value = n.value + step;
        f(edited);
      }
    if (n.kind <= TermKind::Literal)
      for (m.number = 0; m.number < numNames; ++m.number)
        if (m.number != n.number && names.binds(m)) f(edited);
    if (n.kind != TermKind::Apply) continue;
    if (auto op = neighbour(t, n)) {
      m.op = *op;
      f(edited);
      m.op = n.op;
    }
    if (n.arity == 2 && !has(n.op, Commutes)) {
      std::swap(m.arg[0], m.arg[1]);
      f(edited);
    }
  }
}

/// Calls f with every term that joins one condition less: the other one stands in its place.
template <class F> void weakened(const Term &t, F f) {
  for (unsigned i = 0; i < t.size; ++i)
    for (unsigned k = 0; k < 2 && t.nodes[i].op == Op::And; ++k) {
      Term edited = t;
      edited.nodes[i].arg[k] = t.nodes[i].arg[1 - k];
      f(edited);
    }
}
} // namespace

std::vector<Mutant> proofs::mutantsOf(const Rule &r) {
  std::vector<Mutant> all;
  auto mutant = [&](const char *what, Term Rule::*side, const Term &t) {
    all.push_back({std::string(what) + (t.size ? termText(t) : ""), r});
    all.back().row.*side = t;
  };
  if (r.guard.size) {
    mutant("no guard", &Rule::guard, {});
    weakened(r.guard, [&](const Term &t) { mutant("guard ", &Rule::guard, t); });
    edits(r.guard, r.guard, [&](const Term &t) { mutant("guard ", &Rule::guard, t); });
  }
  edits(r.right, r.left, [&](const Term &t) { mutant("right side ", &Rule::right, t); });
  for (unsigned k = 0; k < r.right.root().arity; ++k)
    mutant("right side ", &Rule::right, part(r.right, r.right.root().arg[k]));
  static constexpr Term zero(0);
  if (r.right.root().kind != TermKind::Int) mutant("right side ", &Rule::right, zero);
  edits(r.left, r.left, [&](const Term &t) {
    if (boundBy(r.right, t) && boundBy(r.guard, t)) mutant("left side ", &Rule::left, t);
  });
  return all;
}

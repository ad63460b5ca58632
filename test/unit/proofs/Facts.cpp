//===- Facts.cpp: what z3 is told of products ------------------------------===//
// See Note [Rows of symbolic integers] in Prove.cpp.
#include "Facts.h"

using namespace astra;
using namespace astra::proofs;
using namespace astra::rules;
using z3::expr;

namespace {
/// With u > 0, t*u is at least u, 0, or at most 0, -u, as t is at least 1, 0, or at most 0, -1.
expr bounded(const expr &u, const expr &t) {
  auto sign = [&](const expr &s) { return z3::implies(u > 0 && s >= 0, u * s >= 0); };
  return sign(t) && sign(-t) && sign(t - 1) && sign(-t - 1);
}
/// Equals by equals.
expr scaled(const expr &l, const expr &r, const expr &s) { return z3::implies(l == r, l * s == r * s); }

/// Terms of a row; `/` and `%` of the same operands are the same quotient and remainder as in the row.
struct Hints {
  std::string rule;
  std::vector<std::array<Term, 2>> bounds;
  std::vector<std::array<Term, 3>> scalings;
};
const Hints table[] = {
    // b = a*(b/a), so x = a*((b/a)*(x/b) + (x%b)/a) + (x%b)%a: that is x's form by a
    {"mod-of-mod", {{a, x / a - (b / a) * (x / b) - (x % b) / a}}, {{b, a * (b / a), x / b}}},
    // as above; moreover 0 <= (x%b)/a < b/a: that is the remainder of x/a by b/a
    {"div-of-mod",
     {{a, x / a - (b / a) * (x / b) - (x % b) / a},
      {a, b / a},
      {a, (x % b) / a},
      {a, (x % b) / a - b / a},
      {b / a, (x / a) / (b / a) - x / b}},
     {{b, a * (b / a), x / b}}},
};
} // namespace

std::vector<expr> proofs::factsFor(const Rule &r, Encoder &e) {
  static const std::string wrong = proveFacts();
  std::vector<expr> facts;
  if (!wrong.empty()) return facts;
  for (const Hints &h : table) {
    if (h.rule != r.name) continue;
    for (const auto &[u, t] : h.bounds)
      if (auto first = e.term(u), second = e.term(t); first && second) facts.push_back(bounded(*first, *second));
    for (const auto &[l, m, s] : h.scalings)
      if (auto first = e.term(l), second = e.term(m), third = e.term(s); first && second && third)
        facts.push_back(scaled(*first, *second, *third));
  }
  return facts;
}

std::string proofs::proveFacts() {
  z3::context c;
  expr u = c.int_const("u"), t = c.int_const("t"), s = c.int_const("s");
  auto holds = [&](const expr &lemma) {
    z3::solver solver(c);
    z3::params p(c);
    p.set("rlimit", 30'000'000u);
    solver.set(p);
    solver.add(!lemma);
    return solver.check() == z3::unsat;
  };
  if (!holds(z3::implies(u > 0 && s >= 0, u * s >= 0))) return "the sign of a product";
  if (!holds(bounded(u, t))) return "the bounds of a product";
  return holds(scaled(u, t, s)) ? "" : "equals by equals";
}

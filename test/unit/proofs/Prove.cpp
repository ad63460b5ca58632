//===- Prove.cpp: both sides of a row given to z3 --------------------------===//
// Takes:    a row of terms.
// Gives:    a proof for each of its types, or the reason why there is none. `unknown` is a failure.
// Keeps:    the order of attempts: any values at all; polynomials; bit vectors of each width; symbolic integers; f16.
//           A proof is of the row's own terms: nothing is looked up by its name but facts, which hold by themselves.
//
// Note [Rows of symbolic integers]
// Each division n / d of a row has a quotient and a remainder, unknown integers with n = d*q + m and 0 <= m < d where
// d > 0. The question to z3 is then one of polynomials, over unbounded integers: the guard holds, the left side's
// divisors are positive, and yet a divisor of the right side is not, or the sides differ. z3 finds no products by
// itself, so Facts.cpp tells it some in the row's own terms. A fact is an instance of a lemma without premises about
// the row; a row changed so that it is false stays refuted, however many facts there are (MutantTest.cpp). That some
// literals pass the guard is asked first.
#include "Prove.h"
#include "Encode.h"
#include "Facts.h"

using namespace astra;
using namespace astra::proofs;
using namespace astra::rules;
using z3::expr;

namespace {
constexpr unsigned quick = 3'000'000, thorough = 30'000'000, floats = 12'000'000;
enum class Answer { Proved, Refuted, Unknown, Inapplicable, Empty };

const char *text(Answer a) {
  static constexpr const char *texts[] = {"proved", "refuted", "unknown", "no encoding", "no point passes the guard"};
  return texts[unsigned(a)];
}

/// Whether the right side has a value, equal to the left's, wherever the guard holds and the left has one. All three
/// are the row's own data.
Answer ask(Encoder &e, z3::context &c, const Rule &r, unsigned effort) {
  auto left = e.term(r.left);
  if (!left) return Answer::Inapplicable;
  expr leftDefined = e.takeDefined();
  auto right = e.term(r.right, left->get_sort());
  expr rightDefined = e.takeDefined();
  auto guard = e.guard(r.guard);
  if (!right || !guard || !z3::eq(left->get_sort(), right->get_sort())) return Answer::Inapplicable;
  z3::solver s(c);
  z3::params p(c);
  p.set("rlimit", effort); // z3's own count of steps: the same on a busy machine
  s.set(p);
  if (e.values == Values::Index)
    for (const expr &fact : factsFor(r, e)) s.add(fact);
  s.add(e.defining() && leftDefined && *guard);
  if (e.values == Values::Index && s.check() == z3::unsat) return Answer::Empty;
  s.add(!(rightDefined && expr(c, Z3_mk_eq(c, *left, *right))));
  switch (s.check()) {
  case z3::unsat: return Answer::Proved;
  case z3::sat: return Answer::Refuted;
  default: return Answer::Unknown;
  }
}

bool calls(const Term &t, Fn fn) {
  for (unsigned i = 0; i < t.size; ++i)
    if (t.nodes[i].kind == TermKind::Call && Fn(t.nodes[i].number) == fn) return true;
  return false;
}

bool uses(const Term &t, unsigned literal) {
  return t.binds({TermKind::Literal, Op::Const, uint8_t(literal), 0, {}, 0});
}

/// Whether the guard lets any literals pass, a being none of these.
bool passesGuard(const Rule &r, unsigned width, bool isSigned, const std::vector<int64_t> &except) {
  z3::context c;
  Encoder e(c, Values::Bits);
  e.width = width;
  e.isSigned = isSigned;
  auto guard = e.guard(r.guard);
  if (!guard) return true;
  expr a = c.bv_const("a", width);
  z3::solver s(c);
  s.add(*guard);
  for (int64_t v : except) s.add(a != c.bv_val(v, width));
  return s.check() != z3::unsat;
}

std::string integers(const Rule &r, bool isSigned) {
  if (r.guard.size == 0) {
    z3::context c;
    Encoder e(c, Values::Integers);
    if (ask(e, c, r, thorough) == Answer::Proved) return "";
  }
  for (unsigned width : {8u, 16u, 32u, 64u}) {
    std::vector<int64_t> every; // value that the guard lets a take, where z3 needs it fixed
    if (calls(r.guard, Fn::IsPow2))
      for (unsigned k = 0; k < width - isSigned; ++k) every.push_back(int64_t(uint64_t(1) << k));
    else if (calls(r.guard, Fn::Width) && uses(r.left, 1))
      for (unsigned k = 0; k < width; ++k) every.push_back(k);
    if (!passesGuard(r, width, isSigned, {})) return text(Answer::Empty);
    bool fix = !every.empty() && !passesGuard(r, width, isSigned, every);
    if (!fix) every = {0};
    z3::context c;
    for (int64_t value : every) {
      Answer answer = Answer::Unknown;
      for (bool byDefinition : {true, false}) {
        Encoder e(c, Values::Bits);
        e.width = width;
        e.isSigned = isSigned;
        e.byDefinition = byDefinition;
        if (fix) e.literals[0] = value;
        answer = ask(e, c, r, byDefinition ? quick : thorough);
        if (answer != Answer::Unknown) break;
      }
      if (answer != Answer::Proved)
        return std::string(isSigned ? "signed" : "unsigned") + " integers of " + std::to_string(width) +
               " bits: " + text(answer);
    }
  }
  return "";
}
} // namespace

Verdict proofs::proveTerms(const Rule &r) {
  Verdict v;
  if (r.guard.size == 0 && r.soundness.domain != Domain::Index) {
    z3::context c;
    Encoder e(c, Values::Uninterpreted);
    if (ask(e, c, r, quick) == Answer::Proved) return v;
  }
  unsigned left = r.soundness.types;
  auto single = [&](unsigned type, Values values, const char *what, unsigned effort) {
    if (!(left & type) || !v.failure.empty()) return;
    z3::context c;
    Encoder e(c, values);
    Answer a = ask(e, c, r, effort);
    if (values == Values::Half && a != Answer::Proved && a != Answer::Refuted) {
      v.runAllHalves = true; // then the evaluator must see every value
      return;
    }
    if (a != Answer::Proved) v.failure = std::string(what) + ": " + text(a);
  };
  if (left & OtherTypes) v.failure = "not proved for any type at all";
  for (auto [type, isSigned] : {std::pair(SignedTypes, true), std::pair(UnsignedTypes, false)})
    if ((left & type) && v.failure.empty()) v.failure = integers(r, isSigned);
  single(BoolType, Values::Bools, "bool", quick);
  single(FloatTypes, Values::Half, "f16", floats);
  single(IndexType, Values::Index, "index", thorough);
  return v;
}

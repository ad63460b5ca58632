//===- Prove.cpp: both sides of a row given to z3 --------------------------===//
// Takes:    a row of terms.
// Gives:    a proof for each of its types, or the reason why there is none. `unknown` is a failure.
// Keeps:    the order of attempts: any values at all; polynomials; bit vectors of each width; symbolic integers; f16.
#include "Prove.h"
#include "Encode.h"

using namespace astra;
using namespace astra::proofs;
using namespace astra::rules;

namespace {
constexpr unsigned quick = 3'000'000, thorough = 30'000'000, floats = 12'000'000;
enum class Answer { Proved, Refuted, Unknown, Inapplicable };

Answer ask(Encoder &e, z3::context &c, const Rule &r, unsigned effort) {
  auto left = e.term(r.left);
  if (!left) return Answer::Inapplicable;
  auto right = e.term(r.right, left->get_sort());
  auto guard = e.guard(r.guard);
  if (!right || !guard || !z3::eq(left->get_sort(), right->get_sort())) return Answer::Inapplicable;
  z3::solver s(c);
  z3::params p(c);
  p.set("rlimit", effort); // z3's own count of steps: the same on a busy machine
  s.set(p);
  s.add(e.assumed() && *guard);
  s.add(!z3::expr(c, Z3_mk_eq(c, *left, *right)));
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

/// Whether the guard lets only 0 <= a < width pass.
bool countsAreSmall(const Rule &r, unsigned width, bool isSigned) {
  z3::context c;
  Encoder e(c, Values::Bits);
  e.width = width;
  e.isSigned = isSigned;
  static constexpr Term small = a >= 0 && a < rules::width;
  auto given = e.guard(r.guard), then = e.guard(small);
  z3::solver s(c);
  s.add(*given && !*then);
  return s.check() == z3::unsat;
}

std::string integers(const Rule &r, bool isSigned) {
  if (r.guard.size == 0) {
    z3::context c;
    Encoder e(c, Values::Integers);
    if (ask(e, c, r, thorough) == Answer::Proved) return "";
  }
  for (unsigned width : {8u, 16u, 32u, 64u}) {
    std::vector<int64_t> fixed{0}; // every value that the guard lets a take, where z3 needs it fixed
    bool everyPower = calls(r.guard, Fn::IsPow2),
         everyCount = calls(r.guard, Fn::Width) && uses(r.left, 1) && countsAreSmall(r, width, isSigned);
    if (everyPower || everyCount) fixed.clear();
    for (unsigned k = 0; everyPower && k < width - isSigned; ++k) fixed.push_back(int64_t(uint64_t(1) << k));
    for (unsigned k = 0; everyCount && k < width; ++k) fixed.push_back(k);
    for (int64_t value : fixed) {
      Answer answer = Answer::Unknown;
      for (bool byDefinition : {false, true}) {
        z3::context c;
        Encoder e(c, Values::Bits);
        e.width = width;
        e.isSigned = isSigned;
        e.byDefinition = byDefinition;
        if (everyPower || everyCount) e.literals[0] = value;
        answer = ask(e, c, r, byDefinition ? thorough : quick);
        if (answer != Answer::Unknown) break;
      }
      if (answer != Answer::Proved)
        return std::string(isSigned ? "signed" : "unsigned") + " integers of " + std::to_string(width) + " bits: " +
               (answer == Answer::Refuted   ? "refuted"
                : answer == Answer::Unknown ? "unknown"
                                            : "no encoding");
    }
  }
  return "";
}
} // namespace

Verdict proofs::proveTerms(const Rule &r) {
  Verdict v;
  if (r.guard.size == 0) {
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
    if (a != Answer::Proved)
      v.failure = std::string(what) + (a == Answer::Refuted   ? ": refuted"
                                       : a == Answer::Unknown ? ": unknown"
                                                              : ": no encoding");
  };
  if (left & OtherTypes) v.failure = "not proved for any type at all";
  for (auto [type, isSigned] : {std::pair(SignedTypes, true), std::pair(UnsignedTypes, false)})
    if ((left & type) && v.failure.empty()) v.failure = integers(r, isSigned);
  single(BoolType, Values::Bools, "bool", quick);
  single(FloatTypes, Values::Half, "f16", floats);
  if ((left & IndexType) && v.failure.empty() && !proveLemmas(r.name).empty())
    single(IndexType, Values::Index, "index", thorough);
  return v;
}

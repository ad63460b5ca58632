//===- RunIntegers.cpp: rows of symbolic integers at every point of a box --===//
// Takes:    a row.
// Gives:    whether its terms, read as arithmetic, are equal wherever its guard holds, at every point of a box; and
//           whether the node that the matcher makes has that value too.
// Keeps:    arithmetic of its own: it shares nothing with the prover, the matcher or the evaluator.
#include "Boxes.h"
#include "Matcher.h"
#include "Prove.h"
#include "astra/IR/Builder.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::proofs;
using namespace astra::rules;

namespace {
struct Point {
  int64_t value[numNames] = {}, literal[numNames] = {};
};
struct Number {
  bool known = false, truth = false;
  int64_t v = 0;
};

Number apply(Op op, const Number &l, const Number &r) {
  if (l.truth || r.truth) {
    if (l.truth != r.truth) return {};
    if (op == Op::And) return {true, true, l.v && r.v};
    if (op == Op::Or) return {true, true, l.v || r.v};
    if (op == Op::Xor || op == Op::Ne) return {true, true, l.v != r.v};
    if (op == Op::Eq) return {true, true, l.v == r.v};
    return {};
  }
  int64_t rest = r.v > 0 ? (l.v % r.v + r.v) % r.v : 0;
  switch (op) {
  case Op::Add: return {true, false, l.v + r.v};
  case Op::Sub: return {true, false, l.v - r.v};
  case Op::Mul: return {true, false, l.v * r.v};
  case Op::FloorDiv: return {r.v > 0, false, r.v > 0 ? (l.v - rest) / r.v : 0};
  case Op::Mod: return {r.v > 0, false, rest};
  case Op::Max: return {true, false, l.v > r.v ? l.v : r.v};
  case Op::Min: return {true, false, l.v < r.v ? l.v : r.v};
  case Op::Lt: return {true, true, l.v < r.v};
  case Op::Le: return {true, true, l.v <= r.v};
  case Op::Eq: return {true, true, l.v == r.v};
  case Op::Ne: return {true, true, l.v != r.v};
  default: return {};
  }
}

/// What a term stands for; unknown where it divides by what is not positive, or is no arithmetic.
Number evaluate(const Term &t, const Point &at) {
  Number made[Term::capacity];
  for (unsigned i = 0; i < t.size; ++i) {
    const TermNode &n = t.nodes[i];
    Number &m = made[i];
    if (n.kind == TermKind::Value) m = {true, false, at.value[n.number]};
    if (n.kind == TermKind::Literal) m = {true, false, at.literal[n.number]};
    if (n.kind == TermKind::Int) m = {true, false, n.value};
    if (n.kind != TermKind::Apply) continue;
    const Number &l = made[n.arg[0]], &r = made[n.arg[n.arity - 1]];
    if (!l.known || !r.known) continue;
    if (n.arity == 2) m = apply(n.op, l, r);
    if (n.op == Op::Not && l.truth) m = {true, true, !l.v};
    if (n.op == Op::Neg && !l.truth) m = {true, false, -l.v};
  }
  return made[t.size - 1];
}

bool names(const Rule &r, TermKind kind, unsigned number) {
  return r.left.binds({kind, Op::Const, uint8_t(number), 0, {}, 0});
}

constexpr int64_t least = -4, most = 16, start = -30, end = 60; // of literals; of values
std::string text(const Point &p) {
  return "x, y = " + std::to_string(p.value[0]) + ", " + std::to_string(p.value[1]) +
         "; a, b = " + std::to_string(p.literal[0]) + ", " + std::to_string(p.literal[1]);
}

/// Calls f with every choice of the literals that the row names.
template <class F> void literals(const Rule &r, F f) {
  Point p;
  int64_t lastA = names(r, TermKind::Literal, 0) ? most : least, lastB = names(r, TermKind::Literal, 1) ? most : least;
  for (p.literal[0] = least; p.literal[0] <= lastA; ++p.literal[0])
    for (p.literal[1] = least; p.literal[1] <= lastB; ++p.literal[1]) f(p);
}
/// Calls f with every choice of the values that the row names.
template <class F> void values(const Rule &r, Point p, F f) {
  int64_t lastX = names(r, TermKind::Value, 0) ? end : start, lastY = names(r, TermKind::Value, 1) ? end : start;
  for (p.value[0] = start; p.value[0] <= lastX; ++p.value[0])
    for (p.value[1] = start; p.value[1] <= lastY; ++p.value[1]) f(p);
}
bool passes(const Rule &r, const Point &p) {
  if (r.guard.size == 0) return true;
  Number g = evaluate(r.guard, p);
  return g.known && g.v;
}
} // namespace

std::string proofs::runIntegers(const Rule &r) {
  for (unsigned k = 2; k < numNames; ++k)
    if (names(r, TermKind::Value, k) || names(r, TermKind::Literal, k)) return "the box has no such name";
  uint64_t points = 0;
  std::string wrong;
  literals(r, [&](const Point &given) {
    if (!wrong.empty() || !passes(r, given)) return;
    values(r, given, [&](const Point &p) {
      Number l = evaluate(r.left, p);
      if (!l.known || !wrong.empty()) return;
      Number made = evaluate(r.right, p);
      ++points;
      bool truth = l.truth && r.right.size == 1 && r.right.root().kind == TermKind::Int; // 0 and 1 are truths there
      if (!made.known || made.v != l.v || (made.truth != l.truth && !truth))
        wrong = text(p) + ": " + std::to_string(l.v) + " became " + (made.known ? std::to_string(made.v) : "nothing");
    });
  });
  return !wrong.empty() ? wrong : points ? "" : "the row applies nowhere in its box";
}

std::string proofs::runMatched(const Rule &r) {
  uint64_t fired = 0;
  std::string wrong;
  literals(r, [&](const Point &given) {
    if (!wrong.empty()) return;
    Context c;
    Builder b(c);
    UOpRef dims[] = {b.dim("x", 0, end - start), b.dim("y", 0, end - start)};
    std::vector<UOpRef> made;
    for (unsigned i = 0; i < r.left.size; ++i) {
      const TermNode &n = r.left.nodes[i];
      llvm::SmallVector<UOpRef, 3> src;
      for (unsigned k = 0; k < n.arity; ++k) src.push_back(made[n.arg[k]]);
      if (n.kind == TermKind::Value) made.push_back(idxAdd(c, dims[n.number], b.idx(start)));
      if (n.kind == TermKind::Literal) made.push_back(b.idx(given.literal[n.number]));
      if (n.kind == TermKind::Int) made.push_back(b.idx(n.value));
      if (n.kind != TermKind::Apply) continue;
      auto node = c.tryMake(n.op, src);
      if (!node) {
        llvm::consumeError(node.takeError());
        return;
      }
      made.push_back(*node);
    }
    UOpRef right = applyRule(r, {c}, made.back()); // null where building the left side has folded it
    if (!right) return;
    ++fired;
    if (!passes(r, given)) wrong = text(given) + ": the matcher fires, the guard fails";
    values(r, given, [&](const Point &p) {
      Number l = evaluate(r.left, p);
      if (!l.known || !wrong.empty()) return;
      auto v = valueOf(right, [&](UOpRef u) -> std::optional<int64_t> {
        for (unsigned k = 0; k < 2; ++k)
          if (u == dims[k]) return p.value[k] - start;
        return std::nullopt;
      });
      if (v != l.v) wrong = text(p) + ": the node made by the matcher differs";
    });
  });
  return !wrong.empty() ? wrong : fired ? "" : "the matcher fires nowhere in the box";
}

//===- Gates.cpp: what is true where a gate is --------------------------------===//
// Takes:    comparisons of symbolic integers, joined by and, or, not; vectors of them.
// Gives:    see Gates.h.
// Keeps:    few alternatives: where there would be many nothing is said.
#include "Gates.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseSet.h"

using namespace astra;
using Poly = Inequalities::Poly;
using Facts = Inequalities::Facts;

static Alternatives both(const Alternatives &a, const Alternatives &b) {
  Alternatives out;
  for (const Facts &x : a)
    for (const Facts &y : b) {
      out.push_back(x);
      out.back().insert(out.back().end(), y.begin(), y.end());
    }
  return out.size() > 4 ? Alternatives{{}} : out;
}

Alternatives Gates::of(UOpRef g, std::optional<int64_t> lane, const Poly *any) {
  Alternatives yes{{}}; // one alternative without facts
  switch (g->op) {
  case Op::Const: return g->ints[0] ? yes : Alternatives{};
  case Op::Splat: return of(g->src[0], std::nullopt, nullptr);
  case Op::Stack: {
    if (!lane) return yes;
    int64_t l = *lane;
    for (UOpRef part : g->src) {
      int64_t n = lanesOf(part);
      if (l < n) return of(part, part->rank() ? std::optional<int64_t>(l) : std::nullopt, nullptr);
      l -= n;
    }
    return yes;
  }
  case Op::Lanes:
    if (!g->rank()) return of(g->src[0], g->ints[0], nullptr);
    return lane ? of(g->src[0], *lane + g->ints[0], nullptr) : yes;
  case Op::And:
  case Op::Min: return both(of(g->src[0], lane, any), of(g->src[1], lane, any));
  case Op::Or:
  case Op::Max: {
    Alternatives a = of(g->src[0], lane, any), b = of(g->src[1], lane, any);
    a.append(b.begin(), b.end());
    return a.size() > 4 ? yes : a;
  }
  case Op::Not: return negated(g->src[0], lane, any);
  case Op::Lt:
  case Op::Le:
  case Op::Eq: return compare(g->op, g->src[0], g->src[1], lane, any);
  default: return yes;
  }
}

Alternatives Gates::negated(UOpRef g, std::optional<int64_t> lane, const Poly *any) {
  if (g->op == Op::Lt) return compare(Op::Le, g->src[1], g->src[0], lane, any);
  if (g->op == Op::Le) return compare(Op::Lt, g->src[1], g->src[0], lane, any);
  return {{}};
}

Alternatives Gates::compare(Op op, UOpRef a, UOpRef b, std::optional<int64_t> lane, const Poly *any) {
  auto x = integer(a, lane, any), y = integer(b, lane, any);
  if (!x || !y) return {{}};
  Poly d = in.sum(*y, *x, -1);
  if (in.takeOverflow()) return {{}};
  if (op == Op::Lt) return {{in.sum(d, Inequalities::constant(-1))}};
  if (op == Op::Le) return {{d}};
  return {{d, in.sum({}, d, -1)}};
}

std::optional<Poly> Gates::integer(UOpRef x, std::optional<int64_t> lane, const Poly *any) {
  if (x->isIndex()) return in.of(x);
  bool narrow = x->dtype == DType::I32;
  if (!narrow && x->dtype != DType::I64) return std::nullopt;
  auto fits = [&](Poly p) -> std::optional<Poly> {
    auto [lo, hi] = in.interval(p);
    int64_t most = narrow ? int64_t(INT32_MAX) : int64_t(1) << 61;
    Poly end = Inequalities::constant(most);
    if ((hi <= most || in.proves(in.sum(end, p, -1), facts)) && (lo >= -most || in.proves(in.sum(end, p), facts)))
      return p;
    return std::nullopt;
  };
  switch (x->op) {
  case Op::Const: return Inequalities::constant(narrow ? int64_t(int32_t(x->ints[0])) : x->ints[0]);
  case Op::FromIndex: return narrow ? fits(in.of(x->src[0])) : in.of(x->src[0]);
  case Op::Splat: return integer(x->src[0], std::nullopt, nullptr);
  case Op::Lanes:
    if (!x->rank()) return integer(x->src[0], x->ints[0], nullptr);
    return lane ? integer(x->src[0], *lane + x->ints[0], nullptr) : std::nullopt;
  case Op::Stack: {
    if (lane) {
      int64_t l = *lane;
      for (UOpRef part : x->src) {
        int64_t n = lanesOf(part);
        if (l < n) return integer(part, part->rank() ? std::optional<int64_t>(l) : std::nullopt, nullptr);
        l -= n;
      }
      return std::nullopt;
    }
    if (!any || !llvm::all_of(x->src, [](UOpRef s) { return s->isConst(); })) return std::nullopt;
    auto at = [&](size_t i) { return narrow ? int64_t(int32_t(x->src[i]->ints[0])) : x->src[i]->ints[0]; };
    int64_t step = x->src.size() > 1 ? at(1) - at(0) : 0; // lanes that are apart by one step: first + step * lane
    for (size_t i = 0; i < x->src.size(); ++i)
      if (at(i) != at(0) + step * int64_t(i)) return std::nullopt;
    return in.sum(Inequalities::constant(at(0)), *any, step);
  }
  case Op::Add:
  case Op::Sub: {
    auto a = integer(x->src[0], lane, any), b = integer(x->src[1], lane, any);
    return a && b ? fits(in.sum(*a, *b, x->op == Op::Add ? 1 : -1)) : std::nullopt;
  }
  default:
    if (narrow || (x->rank() && !lane)) return std::nullopt;
    return in.inMemory(x->op == Op::Cast ? x->src[0] : x, lane.value_or(0), x->dtype);
  }
}

GateProgram::GateProgram(UOpRef gate) : gate(gate) {
  llvm::SmallVector<UOpRef, 8> todo{gate};
  llvm::DenseSet<UOpRef> seen;
  while (!todo.empty()) {
    UOpRef n = todo.pop_back_val();
    if (!seen.insert(n).second) continue;
    if (n->isIndex())
      numbers.try_emplace(n, IndexProgram(n));
    else
      todo.append(n->src.begin(), n->src.end());
  }
}

std::optional<int64_t> GateProgram::number(UOpRef from, int64_t lane, Value value) const {
  UOpRef x = elementOf(from, lane);
  if (x->isIndex()) return numbers.find(x)->second.at(value);
  switch (x->op) {
  case Op::Const: return x->dtype == DType::I32 ? int64_t(int32_t(x->ints[0])) : x->ints[0];
  case Op::FromIndex: return number(x->src[0], 0, value);
  case Op::Add:
  case Op::Sub: {
    auto a = number(x->src[0], lane, value), b = number(x->src[1], lane, value);
    if (!a || !b) return std::nullopt;
    return x->op == Op::Add ? *a + *b : *a - *b;
  }
  default: return std::nullopt;
  }
}

bool GateProgram::holds(UOpRef from, int64_t lane, Value value) const {
  UOpRef g = elementOf(from, lane);
  switch (g->op) {
  case Op::Const: return g->ints[0];
  case Op::And: return holds(g->src[0], lane, value) && holds(g->src[1], lane, value);
  case Op::Or: return holds(g->src[0], lane, value) || holds(g->src[1], lane, value);
  case Op::Lt:
  case Op::Le:
  case Op::Eq: {
    auto a = number(g->src[0], lane, value), b = number(g->src[1], lane, value);
    if (!a || !b) return true;
    return g->op == Op::Lt ? *a < *b : g->op == Op::Le ? *a <= *b : *a == *b;
  }
  default: return true;
  }
}

std::string astra::gateText(UOpRef g) {
  std::string s;
  for (UOpRef n : topoSort(g)) {
    if (n->isIndex() || n->is(Op::Const)) continue;
    if (n->op == Op::FromIndex)
      s += (s.empty() ? "" : " ") + ("[" + indexText(n->src[0]) + "]");
    else if (has(n->op, Elementwise)) {
      s += (s.empty() ? "" : " ") + std::string(info(n->op).mnemonic);
      for (UOpRef i : n->src)
        if (i->isIndex()) s += " [" + indexText(i) + "]";
    }
  }
  return s;
}

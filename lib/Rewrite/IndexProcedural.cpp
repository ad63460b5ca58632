//===- IndexProcedural.cpp: div, mod, min, max and comparisons by bounds ---===//
// Takes:    symbolic integers whose sources are rewritten. Divisors are positive by the meaning of index div and mod.
// Gives:    equal ones. Each function is run at every point of small boxes and argued for by a chain of lemmas of its
//           rule's name (test/unit/proofs).
#include "Procedures.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace astra;
using llvm::SmallVector;
using Terms = SmallVector<IndexTerm, 4>;

static int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// x = d*q + rest, with every term that the monomial d divides in q, and a constant rest in 0 ... d-1 for a constant d.
static bool split(Context &c, UOpRef x, UOpRef d, UOpRef &q, UOpRef &rest) {
  auto ds = terms(d);
  if (ds.size() != 1 || ds[0].coefficient <= 0) return false;
  Terms qs, rs;
  for (const IndexTerm &t : terms(x)) {
    if (auto k = divideTerm(t, ds[0])) {
      qs.push_back(*k);
    } else if (t.atoms.empty() && ds[0].atoms.empty() && floorDiv(t.coefficient, ds[0].coefficient) != 0) {
      int64_t whole = floorDiv(t.coefficient, ds[0].coefficient);
      qs.push_back({whole, {}});
      rs.push_back({t.coefficient - whole * ds[0].coefficient, {}});
    } else {
      rs.push_back(t);
    }
  }
  q = fromTerms(c, qs);
  rest = fromTerms(c, rs);
  return !qs.empty();
}

static bool within(Context &c, UOpRef y, UOpRef end) { return lowerBound(c, y) >= 0 && provablyLess(c, y, end); }

/// q with q*d <= x < q*d + d, if bounds prove one: a constant, or 0 for a symbolic divisor.
static UOpRef quotientByBounds(Context &c, UOpRef x, UOpRef d) {
  if (auto k = d->constIndex(); k && *k > 0) {
    int64_t q = floorDiv(lowerBound(c, x), *k);
    return q == floorDiv(upperBound(c, x), *k) ? c.index(q) : nullptr;
  }
  return within(c, x, d) ? c.index(0) : nullptr;
}
UOpRef rules::divByBounds(RuleContext r, UOpRef n) { return quotientByBounds(r.c, n->src[0], n->src[1]); }
UOpRef rules::modByBounds(RuleContext r, UOpRef n) {
  UOpRef q = quotientByBounds(r.c, n->src[0], n->src[1]);
  return q ? idxSub(r.c, n->src[0], idxMul(r.c, q, n->src[1])) : nullptr;
}

UOpRef rules::divOfSum(RuleContext r, UOpRef n) {
  UOpRef q, rest;
  if (!split(r.c, n->src[0], n->src[1], q, rest)) return nullptr;
  return idxAdd(r.c, q, idxDiv(r.c, rest, n->src[1]));
}

UOpRef rules::modOfSum(RuleContext r, UOpRef n) {
  UOpRef x = n->src[0], d = n->src[1], q, rest;
  auto ds = terms(d);
  if (ds.size() != 1 || ds[0].coefficient <= 0) return nullptr;
  if (split(r.c, x, d, q, rest)) return idxMod(r.c, rest, d);
  Terms ts; // y % (k*d) counts as y
  bool changed = false;
  for (const IndexTerm &t : terms(x)) {
    if (t.atoms.size() == 1 && t.atoms[0]->op == Op::Mod) {
      auto es = terms(t.atoms[0]->src[1]);
      if (es.size() == 1 && divideTerm(es[0], ds[0])) {
        for (IndexTerm y : terms(t.atoms[0]->src[0])) {
          if (__builtin_mul_overflow(y.coefficient, t.coefficient, &y.coefficient)) return nullptr;
          ts.push_back(y);
        }
        changed = true;
        continue;
      }
    }
    ts.push_back(t);
  }
  return changed ? idxMod(r.c, fromTerms(r.c, ts), d) : nullptr;
}

/// x = g*s + y with 0 <= y < g and g > 1 dividing the monomial d: tries g, built from the greatest common parts of d
/// and each term.
static bool factor(Context &c, UOpRef x, const IndexTerm &d, UOpRef &g, UOpRef &s, UOpRef &y) {
  auto ts = terms(x);
  SmallVector<IndexTerm, 4> candidates;
  for (const IndexTerm &t : ts) {
    if (t.atoms.empty()) continue;
    IndexTerm k{std::gcd(t.coefficient, d.coefficient), {}};
    auto left = d.atoms;
    for (UOpRef a : t.atoms)
      if (auto it = llvm::find(left, a); it != left.end()) {
        k.atoms.push_back(a);
        left.erase(it);
      }
    if (k.coefficient == 1 && k.atoms.empty()) continue;
    if (llvm::none_of(candidates,
                      [&](const IndexTerm &o) { return o.coefficient == k.coefficient && o.atoms == k.atoms; }))
      candidates.push_back(k);
  }
  llvm::sort(candidates, [&](const IndexTerm &a, const IndexTerm &b) {
    if (a.atoms.size() != b.atoms.size()) return a.atoms.size() > b.atoms.size();
    if (a.coefficient != b.coefficient) return a.coefficient > b.coefficient;
    return fromTerms(c, {a})->hash < fromTerms(c, {b})->hash;
  });
  for (const IndexTerm &k : candidates) {
    g = fromTerms(c, {k});
    if (split(c, x, g, s, y) && within(c, y, g)) return true;
  }
  return false;
}

UOpRef rules::divOfFactor(RuleContext r, UOpRef n) {
  auto ds = terms(n->src[1]);
  UOpRef g, s, y;
  if (ds.size() != 1 || ds[0].coefficient <= 0 || !factor(r.c, n->src[0], ds[0], g, s, y)) return nullptr;
  return idxDiv(r.c, s, fromTerms(r.c, {*divideTerm(ds[0], terms(g)[0])}));
}
UOpRef rules::modOfFactor(RuleContext r, UOpRef n) {
  auto ds = terms(n->src[1]);
  UOpRef g, s, y;
  if (ds.size() != 1 || ds[0].coefficient <= 0 || !factor(r.c, n->src[0], ds[0], g, s, y)) return nullptr;
  UOpRef m = idxMod(r.c, s, fromTerms(r.c, {*divideTerm(ds[0], terms(g)[0])}));
  return idxAdd(r.c, idxMul(r.c, g, m), y);
}

UOpRef rules::divOfDiv(RuleContext r, UOpRef n) {
  if (n->src[0]->op != Op::FloorDiv) return nullptr;
  UOpRef inner = n->src[0]->src[1];
  if (__int128(inner->hi) * n->src[1]->hi >= (int64_t(1) << 62)) return nullptr;
  return idxDiv(r.c, n->src[0]->src[0], idxMul(r.c, inner, n->src[1]));
}

/// In a sum: k*d*(x / d) + k*(x % d) is k*x, and k*d*((x / d) % e) + k*(x % d) is k*(x % (d*e)).
UOpRef rules::sumOfDivMod(RuleContext r, UOpRef n) {
  Context &c = r.c;
  auto ts = terms(n);
  for (size_t i = 0; i < ts.size(); ++i)
    for (size_t a = 0; a < ts[i].atoms.size(); ++a) {
      UOpRef mod = ts[i].atoms[a];
      if (mod->op != Op::Mod) continue;
      IndexTerm k = ts[i];
      k.atoms.erase(k.atoms.begin() + a);
      UOpRef x = mod->src[0], d = mod->src[1], scale = fromTerms(c, {k}), high = idxMul(c, scale, d);
      for (size_t j = 0; j < ts.size(); ++j) {
        if (j == i) continue;
        for (UOpRef q : ts[j].atoms) {
          UOpRef whole;
          UOpRef div = q->op == Op::Mod ? q->src[0] : q;
          if (q != mod && div->op == Op::FloorDiv && div->src[0] == x && div->src[1] == d)
            whole = q->op == Op::Mod ? idxMod(c, x, idxMul(c, d, q->src[1])) : x;
          else
            continue;
          if (fromTerms(c, {ts[j]}) != idxMul(c, high, q)) continue;
          SmallVector<IndexTerm, 4> rest;
          for (size_t l = 0; l < ts.size(); ++l)
            if (l != i && l != j) rest.push_back(ts[l]);
          return idxAdd(c, fromTerms(c, rest), idxMul(c, scale, whole));
        }
      }
    }
  return nullptr;
}

UOpRef rules::minByBounds(RuleContext r, UOpRef n) {
  if (upperBound(r.c, idxSub(r.c, n->src[0], n->src[1])) <= 0) return n->src[0];
  if (upperBound(r.c, idxSub(r.c, n->src[1], n->src[0])) <= 0) return n->src[1];
  return nullptr;
}
UOpRef rules::maxByBounds(RuleContext r, UOpRef n) {
  if (upperBound(r.c, idxSub(r.c, n->src[0], n->src[1])) <= 0) return n->src[1];
  if (upperBound(r.c, idxSub(r.c, n->src[1], n->src[0])) <= 0) return n->src[0];
  return nullptr;
}

UOpRef rules::compareByBounds(RuleContext r, UOpRef n) {
  if (!n->src[0]->isIndex()) return nullptr;
  UOpRef difference = idxSub(r.c, n->src[0], n->src[1]);
  int64_t hi = upperBound(r.c, difference), lo = lowerBound(r.c, difference);
  std::optional<bool> known;
  if (n->op == Op::Lt)
    known = hi < 0 ? std::optional(true) : lo >= 0 ? std::optional(false) : std::nullopt;
  else if (hi < 0 || lo > 0)
    known = n->op == Op::Ne;
  else if (hi == 0 && lo == 0)
    known = n->op == Op::Eq;
  return known ? r.c.literal(DType::Bool, *known) : nullptr;
}

/// Both sides as one difference g*s + y < 0, 0 <= y < g: then s < 0. The negative terms go to the right.
UOpRef rules::ltOfFactor(RuleContext r, UOpRef n) {
  if (!n->src[0]->isIndex()) return nullptr;
  UOpRef difference = idxSub(r.c, n->src[0], n->src[1]);
  for (const IndexTerm &t : terms(difference)) {
    int64_t k = std::abs(t.coefficient);
    UOpRef g = r.c.index(k), s, y;
    if (t.atoms.empty() || k < 2 || !split(r.c, difference, g, s, y) || !within(r.c, y, g)) continue;
    Terms left, right;
    for (IndexTerm u : terms(s)) {
      if (u.coefficient < 0) {
        u.coefficient = -u.coefficient;
        right.push_back(u);
      } else {
        left.push_back(u);
      }
    }
    return r.c.make(Op::Lt, {fromTerms(r.c, left), fromTerms(r.c, right)});
  }
  return nullptr;
}

//===- Bounds.cpp: what a symbolic integer can be at most ------------------===//
// Takes:    symbolic integers in polynomial normal form.
// Gives:    constant bounds, sharper than the interval that every node carries, because ranges are replaced by their
//           symbolic ends and quotients by their dividends before intervals are taken: n*i + j - n*m < 0 for i < m,
//           j < n.
// Keeps:    soundness: each step replaces an atom by something at least as large where its coefficient cannot be
//           negative (at least as small where it cannot be positive). A bound of an empty range does not matter:
//           nothing runs there.
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

static constexpr unsigned maxSteps = 24;

/// The polynomial that multiplies `atom` in x; null where a term has a higher power of it.
static UOpRef coefficientOf(Context &c, llvm::ArrayRef<IndexTerm> ts, UOpRef atom, UOpRef &rest) {
  llvm::SmallVector<IndexTerm, 4> with, without;
  for (const IndexTerm &t : ts) {
    auto n = llvm::count(t.atoms, atom);
    if (n > 1) return nullptr;
    if (n == 0) {
      without.push_back(t);
      continue;
    }
    IndexTerm q = t;
    q.atoms.erase(llvm::find(q.atoms, atom));
    with.push_back(std::move(q));
  }
  rest = fromTerms(c, without);
  return fromTerms(c, with);
}

/// The greatest (or least) value of an atom, as a symbolic integer; null if it has no symbolic end.
static UOpRef endOf(Context &c, UOpRef atom, bool greatest) {
  switch (atom->op) {
  case Op::Range: return greatest ? idxSub(c, atom->src[0], c.index(1)) : c.index(0);
  case Op::Mod: return greatest ? idxSub(c, atom->src[1], c.index(1)) : c.index(0);
  default: return nullptr;
  }
}

int64_t astra::upperBound(Context &c, UOpRef x) {
  int64_t best = x->hi;
  llvm::SmallVector<UOpRef, 4> open{x}; // alternatives: min(a, b) is at most a and at most b
  for (unsigned steps = 0; !open.empty() && steps < maxSteps; ++steps) {
    UOpRef p = open.pop_back_val();
    best = std::min(best, p->hi);
    auto ts = terms(p);
    llvm::SmallVector<UOpRef, 8> atoms;
    for (const IndexTerm &t : ts)
      for (UOpRef a : t.atoms)
        if (!llvm::is_contained(atoms, a)) atoms.push_back(a);
    for (UOpRef a : atoms) {
      if (a->op != Op::Range && a->op != Op::Mod && a->op != Op::FloorDiv && a->op != Op::Min && a->op != Op::Max)
        continue;
      UOpRef rest = nullptr, k = coefficientOf(c, ts, a, rest);
      if (!k || (k->lo < 0 && k->hi > 0)) continue;
      bool positive = k->lo >= 0;
      auto with = [&](UOpRef end) { return idxAdd(c, rest, idxMul(c, k, end)); };
      if (UOpRef end = endOf(c, a, positive)) {
        open.push_back(with(end));
        break; // one atom a step; the others follow in the next
      }
      if (a->op == (positive ? Op::Min : Op::Max)) {
        open.push_back(with(a->src[0]));
        open.push_back(with(a->src[1]));
        break;
      }
      if (a->op == Op::FloorDiv) { // m*d*(y / d) <= m*y, and >= m*(y - d + 1)
        auto ks = terms(k), ds = terms(a->src[1]);
        if (ks.size() != ds.size() || ds[0].coefficient == 0 || ks[0].coefficient % ds[0].coefficient) continue;
        UOpRef m = c.index(ks[0].coefficient / ds[0].coefficient);
        if (idxMul(c, m, a->src[1]) != k) continue;
        UOpRef y = positive ? a->src[0] : idxAdd(c, idxSub(c, a->src[0], a->src[1]), c.index(1));
        open.push_back(idxAdd(c, rest, idxMul(c, m, y)));
        break;
      }
    }
  }
  return best;
}

int64_t astra::lowerBound(Context &c, UOpRef x) { return -upperBound(c, idxMul(c, x, c.index(-1))); }

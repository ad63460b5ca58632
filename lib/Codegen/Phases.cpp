//===- Phases.cpp: a contraction with holes as several without -------------===//
#include "Phases.h"
#include "astra/Schedule/Holes.h"
#include "astra/Schedule/Outside.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace astra;
using llvm::SmallVector;

static int64_t modulo(int64_t a, int64_t d) { return (a % d + d) % d; }

/// The labels of a form, kept ones or reduced ones.
static SmallVector<std::pair<int64_t, int64_t>, 2> termsOf(const AffineForm &f, int64_t kept, bool wantKept) {
  return llvm::to_vector<2>(llvm::make_filter_range(f.terms, [&](auto &t) { return (t.first < kept) == wantKept; }));
}

/// What a form with a divisor says of the labels that are summed over when the kept ones have their remainders.
static void narrow(Phase &p, const ContractSpec &s, const AffineForm &f, llvm::ArrayRef<UOpRef> extents) {
  int64_t base = f.constant;
  for (auto [label, k] : termsOf(f, s.kept, true)) {
    if (p.labels[label].step % f.divisor) return; // its remainder is open
    base += k * p.labels[label].first;
  }
  auto reduced = termsOf(f, s.kept, false);
  if (reduced.empty()) p.isEmpty |= modulo(base, f.divisor) != 0;
  if (reduced.size() != 1) return;
  auto [label, k] = reduced[0];
  auto length = extents[label]->constIndex();
  if (!length || p.labels[label].step != 1) return;
  int64_t step = f.divisor / std::gcd(f.divisor, k), first = 0;
  while (first < step && modulo(base + k * first, f.divisor)) ++first;
  if (first >= std::min(step, *length))
    p.isEmpty = true;
  else
    p.labels[label] = {first, step};
}

/// A phase for each combination of the parts of windows.
static SmallVector<Phase, 4> partsOf(Context &c, UOpRef contract, const ContractSpec &s, const Phase &whole) {
  auto windows = windowsOf(s, contract->indices(), contract->src[0], contract->src[1]);
  int64_t count = 1;
  for (const Window &w : windows) count = llvm::SaturatingMultiply<uint64_t>(count, w.parts.size());
  SmallVector<Phase, 4> phases{whole};
  if (count > mostParts) return phases;
  for (UOpRef e : contract->indices().slice(s.kept, s.reduced - 1)) phases[0].taps.push_back({0, *e->constIndex()});
  for (const Window &w : windows) {
    SmallVector<Phase, 4> next;
    for (const Phase &p : phases)
      for (const Reach &part : w.parts) {
        next.push_back(p);
        next.back().begins[w.kept] = c.index(part.begin);
        next.back().counts[w.kept] = c.index(part.count);
        next.back().taps[w.tap - s.kept] = {part.first, part.taps};
        next.back().inside.push_back({w.operand, w.axis});
      }
    phases = std::move(next);
  }
  return phases;
}

SmallVector<Phase, 4> astra::phasesOf(Context &c, UOpRef contract, int64_t lanes) {
  ContractSpec s = llvm::cantFail(decodeContract(contract->ints));
  Phase whole;
  whole.labels.resize(s.kept + s.reduced);
  whole.begins.resize(s.kept), whole.counts.resize(s.kept);
  if (!s.outside.empty()) return partsOf(c, contract, s, whole);
  Remainders remainders = remaindersOf(s, lanes);
  int64_t count = 1;
  for (auto [label, step] : llvm::enumerate(remainders.steps)) count *= whole.labels[label].step = step;
  SmallVector<Phase, 4> phases;
  for (int64_t number = 0; number < count; ++number) {
    Phase p = whole;
    int64_t rest = number;
    for (int64_t l = 0; l < s.kept; ++l) {
      p.labels[l].first = rest % p.labels[l].step;
      rest /= p.labels[l].step;
    }
    for (const AffineForm *f : remainders.quotients) narrow(p, s, *f, contract->indices());
    phases.push_back(p);
  }
  return phases;
}

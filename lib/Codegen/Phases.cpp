//===- Phases.cpp: a contraction with holes as several without -------------===//
#include "Phases.h"
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

SmallVector<Phase, 4> astra::phasesOf(UOpRef contract, int64_t lanes) {
  constexpr int64_t most = 16, largest = 1 << 20;
  ContractSpec s = llvm::cantFail(decodeContract(contract->ints));
  llvm::ArrayRef<UOpRef> extents = contract->indices();
  SmallVector<const AffineForm *, 4> quotients;
  for (const auto *forms : {&s.a, &s.b})
    for (const AffineForm &f : *forms)
      if (f.divisor > 1 && f.divisor <= most && std::abs(f.constant) < largest &&
          llvm::all_of(f.terms, [](auto &t) { return std::abs(t.second) < largest; }))
        quotients.push_back(&f);

  Phase whole;
  whole.labels.resize(s.kept + s.reduced);
  int64_t count = 1;
  for (const AffineForm *f : quotients) {
    auto kept = termsOf(*f, s.kept, true);
    if (kept.size() != 1 || kept[0].first == lanes || whole.labels[kept[0].first].step != 1) continue;
    if (count * f->divisor > most) continue;
    count *= whole.labels[kept[0].first].step = f->divisor;
  }
  SmallVector<Phase, 4> phases;
  for (int64_t number = 0; number < count; ++number) {
    Phase p = whole;
    int64_t rest = number;
    for (int64_t l = 0; l < s.kept; ++l) {
      p.labels[l].first = rest % p.labels[l].step;
      rest /= p.labels[l].step;
    }
    for (const AffineForm *f : quotients) narrow(p, s, *f, extents);
    phases.push_back(p);
  }
  return phases;
}

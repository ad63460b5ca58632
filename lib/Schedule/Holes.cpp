//===- Holes.cpp: which holes a kernel leaves out by itself -----------------===//
#include "astra/Schedule/Holes.h"
#include "Thresholds.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

bool astra::hasHoles(const ContractSpec &s) {
  auto isDivided = [](const AffineForm &f) { return f.divisor != 1; };
  return llvm::any_of(s.a, isDivided) || llvm::any_of(s.b, isDivided);
}

Remainders astra::remaindersOf(const ContractSpec &s, int64_t lanes) {
  constexpr int64_t most = threshold::kernelParts, largest = 1 << 20; // of what is multiplied by extents
  Remainders out;
  out.steps.assign(s.kept, 1);
  for (const auto *forms : {&s.a, &s.b})
    for (const AffineForm &f : *forms)
      if (f.divisor > 1 && f.divisor <= most && std::abs(f.constant) < largest &&
          llvm::all_of(f.terms, [](auto &t) { return std::abs(t.second) < largest; }))
        out.quotients.push_back(&f);
  int64_t parts = 1;
  for (const AffineForm *f : out.quotients) {
    auto isKept = [&](auto &t) { return t.first < s.kept; };
    if (llvm::count_if(f->terms, isKept) != 1) continue;
    int64_t label = llvm::find_if(f->terms, isKept)->first;
    if (label == lanes || out.steps[label] != 1 || parts * f->divisor > most) continue;
    parts *= out.steps[label] = f->divisor;
  }
  return out;
}

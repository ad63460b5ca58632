//===- Ranking.cpp: the cheapest of a plan and those beside it --------------===//
// Takes:    a plan that rules chose.
// Gives:    the plan itself, or the candidate whose cost (Cost.h) is least where that is worth it.
// Keeps:    determinism: costs are numbers of a table, dims are at the geometric middle of their bounds.
#include "Choosing.h"
#include "astra/Codegen/Candidates.h"
#include <cmath>

using namespace astra;

const PlanException *astra::exceptionOf(const Plan &p) {
#define EXCEPTION(name, holds, why)                                                                                    \
  if (holds) {                                                                                                         \
    static constexpr PlanException found{#name, why};                                                                  \
    return &found;                                                                                                     \
  }
#include "Exceptions.def"
  return nullptr;
}

/// A dim at the geometric middle of its bounds.
static std::optional<int64_t> middle(UOpRef dim) {
  if (dim->op != Op::Dim) return std::nullopt;
  double least = double(std::max<int64_t>(dim->lo, 1)), most = double(std::max<int64_t>(dim->hi, 1));
  return std::clamp<int64_t>(std::llround(std::sqrt(least * most)), dim->lo, dim->hi);
}

Plan astra::cheapest(KernelFacts &f, const Target &target, const Plan &p) {
  std::optional<PlanCost> own = f.cost(p, target, middle);
  if (!own || own->nodes > threshold::muchCode || own->cost.least() >= threshold::worthCost * own->cost.total())
    return p;
  int64_t items = std::min<int64_t>(own->cost.items, target.cores);
  Plan best = p;
  double least = threshold::worthCost * own->cost.total();
  for (const Plan &other : candidates(f.spec, p, target, CandidatesFor::Ranking)) {
    std::optional<PlanCost> cost = f.cost(other, target, middle);
    if (!cost || cost->cost.items < items || cost->nodes > threshold::longerCode * own->nodes ||
        cost->cost.total() >= least)
      continue;
    least = cost->cost.total(), best = other;
  }
  return best;
}

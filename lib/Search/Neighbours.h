//===- Neighbours.h: the plans beside a plan -------------------------------===//
// Takes:    a kernel, a plan of it, a CPU target.
// Gives:    plans that differ in one respect, the more promising first.
// Keeps:    every one can be lowered (checkPlan) and differs from the plan.
// Does not: know which were tried.
#pragma once
#include "astra/Codegen/Kernel.h"
#include "astra/Codegen/Plan.h"

namespace astra {

std::vector<Plan> neighbours(const KernelSpec &spec, const Plan &plan, const Target &target);

/// What two plans of one kernel have in common that are lowered to the same code.
inline std::pair<UOpRef, uint64_t> identity(const Kernel &k) {
  return {k.sink, 4 * uint64_t(k.ahead) + 2 * k.past + !k.hints.empty()};
}

} // namespace astra

//===- Neighbours.h: the plans beside a plan -------------------------------===//
// Takes:    a kernel, a plan of it, a CPU target.
// Gives:    plans that differ in one respect, the more promising first.
// Keeps:    every one can be lowered (checkPlan) and differs from the plan.
// Does not: know which were tried.
#pragma once
#include "astra/Codegen/Plan.h"

namespace astra {

std::vector<Plan> neighbours(const KernelSpec &spec, const Plan &plan, const Target &target);

} // namespace astra

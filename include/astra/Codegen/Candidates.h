//===- Candidates.h: the plans beside a plan -------------------------------===//
// Takes:    a kernel, a plan of it, a CPU target.
// Gives:    plans that differ in one respect, the more promising first: those that a search measures, or the ones among
//           them that the planner ranks by their cost.
// Keeps:    every one can be lowered (checkPlan) and differs from the plan.
// Does not: know which were tried.
#pragma once
#include "astra/Codegen/Plan.h"

namespace astra {

/// Measuring: all. Ranking: those that differ in what a cost tells: vectors, lines, tails; no prefetch, no non-temporal
/// stores, no place of operands.
enum class CandidatesFor : uint8_t { Measuring, Ranking };

std::vector<Plan> candidates(const KernelSpec &spec, const Plan &plan, const Target &target, CandidatesFor use);

} // namespace astra

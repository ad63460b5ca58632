//===- ContractPlan.h: what Plan.cpp and ContractPlan.cpp share ------------===//
#pragma once
#include "astra/Codegen/Plan.h"
#include "astra/IR/Contract.h"

namespace astra {

/// The heuristic plan of a kernel whose lanes can run along a label of its contract; false, and `p` is not to be used,
/// where there is none.
bool contractPlan(Context &c, const KernelSpec &spec, const Target &target, Plan &p);

/// Why the operand of the lanes cannot lie in fast memory under this plan, or "".
std::string unstageable(const KernelSpec &spec, const ContractSpec &s, bool laneInB, const Plan &p);

/// Bytes of all that a kernel reads, at the extents' bounds.
uint64_t readBytes(const KernelSpec &spec);

/// What a lowering costs beside its arithmetic: loads that are not of neighbouring lanes, and divisions in addresses.
unsigned slowness(Context &c, const KernelSpec &spec, const Plan &plan);

} // namespace astra

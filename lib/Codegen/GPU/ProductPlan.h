//===- ProductPlan.h: plans of contractions for GPUs ------------------------===//
#pragma once
#include "astra/Codegen/GPU.h"

namespace astra {

/// An extent as a planner takes it: of what may be anything not more than so much.
int64_t likely(UOpRef extent);
/// Whether the block of a contract is worth sharing its operands, and how large it is.
bool shareOperands(Context &c, const KernelSpec &spec, const GpuTarget &target, Plan &p);

} // namespace astra

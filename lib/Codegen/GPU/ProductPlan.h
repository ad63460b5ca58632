//===- ProductPlan.h: plans of contractions for GPUs ------------------------===//
#pragma once
#include "astra/Codegen/GPU.h"

namespace astra {

/// An extent as a planner takes it: of what may be anything not more than so much.
int64_t likely(UOpRef extent);
/// Units of a chip, each of which a launch should have a block for. The large ones have 104 to 304 (MachineTable.def).
/// One number for all of them, near to those on which plans were measured: with each chip's own, plans would change on
/// chips where nothing was.
inline constexpr int64_t units = 128;
/// Whether the block of a contract is worth sharing its operands, and how large it is.
bool shareOperands(Context &c, const KernelSpec &spec, const GpuTarget &target, Plan &p);

} // namespace astra

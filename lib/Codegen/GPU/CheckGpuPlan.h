//===- CheckGpuPlan.h: which plans a GPU can have ----------------------------===//
#pragma once
#include "astra/Codegen/GPU.h"

namespace astra {

/// Why threads cannot share the operands of this contract under this plan's labels, or "".
std::string unsharable(const KernelSpec &spec, const Plan &plan, const GpuTarget &target);
/// Why warp groups cannot multiply this contract under this plan's labels, or "".
std::string unfitForGroups(const KernelSpec &spec, const Plan &plan, const GpuTarget &target);

} // namespace astra

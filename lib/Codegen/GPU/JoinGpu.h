//===- JoinGpu.h: a kernel and its followers as one kernel of a GPU ---------===//
#pragma once
#include "astra/Codegen/GPU.h"

namespace astra {

/// Plans of a kernel with followers, then of these, under which a block computes all of them for a tile of rows; none
/// where they are launched one by one.
std::vector<Plan> planJoined(const KernelSpec &spec, const GpuTarget &target);
/// The kernel under such plans; `storage` gets the form that says which buffers it has.
llvm::Expected<GpuKernel> joinedGpuKernel(Context &c, const KernelSpec &spec, llvm::ArrayRef<Plan> plans,
                                          llvm::ArrayRef<UOpRef> dims, Kernel &storage);

} // namespace astra

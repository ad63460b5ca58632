//===- Lower.h: from a kernel's graph to kernel UOps -----------------------===//
#pragma once
#include "astra/Codegen/Kernel.h"
#include "astra/Codegen/Plan.h"

namespace astra {

/// The kernel of `spec` under `plan`, with vector and unroll ranges still in place. Launch buffers are the inputs, then
/// the outputs (one buffer for both when in place).
Kernel lowerKernel(Context &c, const KernelSpec &spec, const Plan &plan);

/// Replaces vector ranges by vectors and unroll ranges by copies (Kernel.h).
Kernel expandKernel(Context &c, const Kernel &k);

} // namespace astra

//===- Lower.h: from a kernel's graph to kernel UOps -----------------------===//
#pragma once
#include "astra/Codegen/Kernel.h"
#include "astra/Codegen/Plan.h"
#include "astra/IR/Contract.h"

namespace astra {

/// The value at whose points a kernel stores: the output, or what an in-place one writes into it.
UOpRef storedPoints(const KernelSpec &spec);
/// The axis of it along which one point comes after the other: of a running sum, of a scatter. -1: none.
int64_t serialAxis(const KernelSpec &spec);
/// The kernel of `spec` under `plan`, with vector and unroll ranges still in place. Launch buffers are the inputs, then
/// the outputs (one buffer for both when in place).
Kernel lowerKernel(Context &c, const KernelSpec &spec, const Plan &plan);

/// Replaces vector ranges by vectors and unroll ranges by copies (Kernel.h).
Kernel expandKernel(Context &c, const Kernel &k);

/// The kept labels that only the lanes' operand of a contract mentions, but for the lanes' own, as the taps of a
/// convolution's weight gradient: what the other operand has at a step serves them all, so that tiles whose sums rest
/// go through them within an item.
llvm::SmallVector<int64_t, 2> innerLabels(const ContractSpec &s, int64_t nLabel);

} // namespace astra

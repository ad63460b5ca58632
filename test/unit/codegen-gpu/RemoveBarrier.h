//===- RemoveBarrier.h: kernels that wait too little ------------------------===//
#pragma once
#include "RunGraph.h"

namespace astra::test {

/// Runs the graph's kernels with each of their barriers removed in turn; the emulator must object to every one. Gives
/// how many there are.
unsigned eachBarrierRemoved(GraphOnGpu &g, llvm::ArrayRef<int64_t> dims);
/// The same with each barrier, each wait for asynchronous copies and each end of a group removed, each wait for one
/// group fewer, and each behind the barrier that follows it.
unsigned eachFenceSpoiled(GraphOnGpu &g, llvm::ArrayRef<int64_t> dims);

} // namespace astra::test

//===- Executed.h: how many kernels the emulator has executed ------------------===//
// Gives:    lines at the end of the program, as test/e2e/executed.py gives them: "executed: SUITE on GPU: N kernels, N
//           launches, N threads", which scripts/test adds up.
#pragma once
#include "astra/Codegen/GPU.h"

namespace astra::test {

/// Of the test that runs: so many different kernels were built, launched and run by threads.
void noteExecuted(const GpuTarget &target, uint64_t kernels, uint64_t launches, uint64_t threads);

} // namespace astra::test

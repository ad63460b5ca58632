//===- RunGpu.h: jobs in the emulator --------------------------------------===//
#pragma once
#include "Run.h"
#include "astra/Emulator/HostBuild.h"

namespace astra::test {

/// Both flavours, a warp of 32 and one of 64.
inline std::vector<const GpuTarget *> flavours() {
  return {gpuTargetNamed("cuda:sm_90"), gpuTargetNamed("hip:gfx942")};
}

/// Lowers all kernels as one module, builds its host form and launches each job once; the buffers have the results.
/// Empty when it worked, else why not.
std::string emulate(Context &c, std::vector<Job> &jobs, const GpuTarget &target, llvm::ArrayRef<UOpRef> dims,
                    EmulatedRun &run);

} // namespace astra::test

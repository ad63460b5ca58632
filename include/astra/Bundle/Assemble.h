//===- Assemble.h: from a schedule and its code to the parts of a bundle ----===//
// Takes:    a module, its schedule, and for each target the code of every kernel of the schedule.
// Gives:    what the writer writes.
// Keeps:    order: dims, params, kernels, entries stay in the schedule's order, expressions in order of first use.
// Does not: optimize anything; a thing the format cannot say is an error that names it.
#pragma once
#include "astra/Bundle/Writer.h"
#include "astra/Codegen/Compile.h"
#include "astra/Codegen/GPU.h"
#include "astra/Emulator/HostBuild.h"

namespace astra {

/// A GPU's code, perhaps with a host build of the same kernels, which is a target of its own.
struct GpuPart {
  CompiledGpu gpu;
  const Target *cpu = nullptr; // of the host build; null: there is none
  HostBuild host = {};
};

/// What a bundle says of how it came to be. Nothing of it depends on the machine or the folder.
struct Provenance {
  std::string commit;               // of the compiler's source; "": not known
  std::vector<uint8_t> modelSha256; // of the model's file; empty: not known
  std::vector<std::string> options; // that the bytes depend on
  std::string numerics = "strict";  // or "device:" and the matrix units that add
};

/// code[t].kernels[i] and gpus[t].gpu.kernels[i] are the code of schedule kernel i. The targets of the bundle are those
/// of `code`, then the GPUs, then the host builds. `jobs` threads arrange and hash weights.
llvm::Expected<BundleParts> assemble(const Module &module, const Schedule &schedule, std::vector<CompiledTarget> code,
                                     std::vector<GpuPart> gpus = {}, unsigned jobs = 1, Provenance provenance = {});

/// What made the bundle: name, version, licence of the compiler and of what it was built from, in alphabetical order.
/// ptxas: its version, or "" where it had no part.
std::vector<std::unique_ptr<fmt::ComponentT>> toolchain(const std::string &ptxas = "");

} // namespace astra

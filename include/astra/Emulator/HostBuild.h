//===- HostBuild.h: GPU kernels built for the host -------------------------===//
// Takes:    a module of kernels as it was lowered for a GPU (astra/Codegen/GPU.h).
// Gives:    the same module built for a CPU, its thread numbers, barriers and exchanges between lanes replaced: an
//           image that the emulator runs.
// Keeps:    all arithmetic; bytes are a function of the module, the CPU and the toolchain.
#pragma once
#include "astra/Codegen/EmitC.h"
#include "astra/Codegen/GPU.h"
#include "astra/Emulator/Emulator.h"
#include <memory>

namespace astra {

struct HostBuild {
  Image image;                  // offsets in the order of the module's kernels
  std::vector<uint64_t> shared; // bytes of a block, in the same order
};
/// Fails with LLVM's or the linker's sentence. quickly: code that runs slower and is there sooner.
llvm::Expected<HostBuild> buildHost(const GpuModule &m, const Target &cpu, bool quickly = false);

/// A module built quickly for this machine and mapped, for tests.
class Emulator {
public:
  static llvm::Expected<Emulator> build(const GpuModule &m);
  Emulator(Emulator &&);
  ~Emulator();

  /// Launches kernel number `kernel`. dims: the values of the whole dim vector.
  llvm::Error launch(size_t kernel, llvm::ArrayRef<EmulatedBuffer> buffers, llvm::ArrayRef<int64_t> dims, int64_t items,
                     EmulatedRun &run) const;

private:
  struct Parts;
  explicit Emulator(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts;
};

} // namespace astra

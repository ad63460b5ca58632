//===- Emulator.h: GPU kernels executed on the host ------------------------===//
// Takes:    a module of kernels as it was lowered for a GPU (astra/Codegen/GPU.h).
// Gives:    the same module built for the host, its thread numbers, barriers and exchanges between lanes replaced, and
//           launches in which every thread is executed.
// Keeps:    threads that wait at a barrier or an exchange are suspended there; the order of blocks, warps and lanes
//           follows from a seed.
// Detects:  accesses to global memory outside of the buffers of the launch; writes to buffers that were given as
//           read-only; two threads of which one writes what the other reads or wrote in global memory, barriers or not;
//           reads of shared memory that no thread of the block wrote; shared memory that two threads access between two
//           barriers, one of them writing; barriers and exchanges that not all threads reach together.
// Does not: detect reads of global memory that was never written, nor of a thread's own arrays; model caches, atomics
// or
//           the weak order of memory; say anything of a GPU's back end: the code it runs is the host's, built from what
//           was lowered for the GPU, before LLVM's optimizations for that GPU.
#pragma once
#include "astra/Codegen/GPU.h"
#include <memory>

namespace astra {

struct EmulatedBuffer {
  llvm::MutableArrayRef<uint8_t> bytes;
  bool write;
};

struct EmulatedRun {
  uint64_t seed = 0;
  uint64_t threads = 0; // executed; added to by each launch
};

class Emulator {
public:
  /// Builds the host's form. Fails with LLVM's or the linker's sentence.
  static llvm::Expected<Emulator> build(const GpuModule &m);
  Emulator(Emulator &&);
  ~Emulator();

  /// Launches kernel number `kernel` for so many items. dims: the values of the whole dim vector. Fails with a sentence
  /// that names the kernel, the thread and what it did.
  llvm::Error launch(size_t kernel, llvm::ArrayRef<EmulatedBuffer> buffers, llvm::ArrayRef<int64_t> dims, int64_t items,
                     EmulatedRun &run) const;

private:
  struct Parts;
  explicit Emulator(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts;
};

} // namespace astra

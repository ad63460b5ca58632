//===- Emulator.h: GPU kernels executed on the host ------------------------===//
// Takes:    the host build of a kernel (HostBuild.h), which is code with no imports, and what a launch is given.
// Gives:    launches in which every thread is executed.
// Keeps:    threads that wait at a barrier or an exchange are suspended there; the order of blocks, warps and lanes
//           follows from a seed. The standard library only: no LLVM.
// Detects:  accesses to global memory outside of the buffers of the launch; writes to buffers that were given as
//           read-only; two threads of which one writes what the other reads or wrote in global memory, barriers or not;
//           reads of shared memory that no thread of the block wrote; shared memory that two threads access between two
//           barriers, one of them writing; shared memory that is touched while an asynchronous copy to it is on its
//           way: until the thread that began it has waited for it, which is when it arrives; copies of which one is on
//           its way when its thread ends; barriers and exchanges that not all threads reach together; of warp groups
//           what WarpGroups.cpp says.
// Does not: detect reads of global memory that was never written, nor of a thread's own arrays; model caches, atomics
//           or the weak order of memory; say anything of a GPU's back end: the code it runs is the host's, built from
//           what was lowered for the GPU, before LLVM's optimizations for that GPU.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace astra {

struct EmulatedBuffer {
  std::span<uint8_t> bytes;
  bool write;
};

/// A buffer as lines of so many words of 32 bits, of which boxes of 32 words of `box` lines are read: a tensor map.
struct EmulatedMap {
  uint32_t buffer, box;
  uint64_t words, lines;
};

/// A kernel as it is launched. A block has `threads` threads, each `group` of them work on one item.
struct EmulatedKernel {
  std::string name;
  const void *code;
  unsigned threads, group, warp;
  uint64_t shared; // bytes of a block
};

struct EmulatedRun {
  uint64_t seed = 0;
  uint64_t threads = 0; // executed; added to by each launch
};

/// Launches a kernel for so many items. numbers: its arguments behind the buffers. Empty, or a sentence that names the
/// kernel, the thread and what it did. maps: its arguments behind those.
std::string emulate(const EmulatedKernel &kernel, std::span<const EmulatedBuffer> buffers,
                    std::span<const int64_t> numbers, int64_t items, EmulatedRun &run,
                    std::span<const EmulatedMap> maps = {});

} // namespace astra

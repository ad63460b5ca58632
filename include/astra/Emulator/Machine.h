//===- Machine.h: the emulator as a device of the runtime -------------------===//
// Takes:    launches of the targets "emu:..." of a bundle, from the runtime (astra_emulator in astra.h).
// Gives:    their effect; what was executed. A fault is ASTRA_KERNEL_FAULT with the emulator's sentence.
// Keeps:    a launch that begins anywhere: buffers that do not begin at a multiple of 16 bytes, as a kernel demands it
//           of a GPU's memory, are copied there and back.
// Does not: know bundles. It is no part of libastra_rt.
#pragma once
#include "astra/astra.h"
#include <atomic>
#include <mutex>
#include <set>

namespace astra {

class EmulatedMachine {
public:
  explicit EmulatedMachine(uint64_t seed) : seed(seed) {}
  /// For astra_device_options.emulator; it must outlive the device.
  astra_emulator hooks();

  const uint64_t seed; // of the order of blocks, warps and lanes
  std::atomic<uint64_t> launches{0}, threads{0};
  /// Different kernels that were launched.
  uint64_t kernels();
  /// A launch of this code, by so many threads.
  void note(const void *code, uint64_t ran);

private:
  std::mutex lock;
  std::set<const void *> codes;
};

} // namespace astra

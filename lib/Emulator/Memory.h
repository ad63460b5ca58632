//===- Memory.h: what threads may touch, and who touched it ----------------===//
// Gives:    the memory of one launch: its buffers, a block's shared memory, and who accessed which byte when.
// Keeps:    the first fault, as a sentence; after it accesses go where they do no harm.
#pragma once
#include "Thread.h"
#include "astra/Emulator/Emulator.h"
#include <vector>

namespace astra::emulator {

class Launch {
public:
  Launch(const std::string &kernel, std::span<const EmulatedBuffer> buffers, uint64_t sharedBytes);

  /// Where a buffer begins; of an empty one a place that is in no buffer.
  void *placeOf(const EmulatedBuffer &b) { return b.bytes.empty() ? nowhere : b.bytes.data(); }
  void attach(Thread &t);
  void beginBlock();
  void passBarrier() { ++phase; }
  /// Notes a fault; false.
  bool fault(const Thread &t, const std::string &what);
  bool failed() const { return !first.empty(); }
  const std::string &sentence() const { return first; }

  void *block = nullptr; // the one that runs

private:
  // Of a byte: who wrote it last and who read it, counted from 1 over the whole grid (global memory) or over the block
  // (shared memory); several readers are `many`.
  static constexpr uint32_t nobody = 0, many = ~0u;
  struct Byte {
    uint32_t writer = nobody, reader = nobody;
    uint32_t writtenIn = 0, readIn = 0; // shared memory: between which barriers
  };
  struct Range {
    EmulatedBuffer buffer;
    std::vector<Byte> bytes; // of those that are written
  };
  uint8_t *access(const Thread &t, uint8_t *place, uint64_t bytes, Access kind);
  bool global(const Thread &t, uint8_t *place, uint64_t bytes, bool write);
  bool sharedMemory(const Thread &t, uint8_t *place, uint64_t bytes, bool write);

  std::string kernel, first;
  std::vector<Range> ranges;
  std::vector<uint8_t> shared;
  std::vector<Byte> sharedBytes;
  uint32_t phase = 0; // barriers passed, over all blocks
  alignas(64) uint8_t nowhere[64] = {};
};

} // namespace astra::emulator

//===- Memory.h: what threads may touch, and who touched it ----------------===//
// Gives:    the memory of one launch: its buffers, a block's shared memory, and who accessed which byte when.
// Keeps:    the first fault, as a sentence; after it accesses go where they do no harm.
#pragma once
#include "Thread.h"
#include "astra/Emulator/Emulator.h"
#include <deque>
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
  /// Whether a thread may end: every copy that it began has arrived.
  bool mayEnd(const Thread &t);
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
    uint32_t copier = nobody;           // whose asynchronous copy to it is on its way
  };
  struct Range {
    EmulatedBuffer buffer;
    std::vector<Byte> bytes; // of those that are written
  };
  /// An asynchronous copy. It arrives when its thread waits for it, not before.
  struct Copy {
    uint8_t *to;
    const uint8_t *from;
    uint32_t bytes, taken;
  };
  /// Of a thread: groups, the last of which is open.
  using Groups = std::deque<std::vector<Copy>>;
  void beginCopy(const Thread &t, uint8_t *to, uint8_t *from, uint32_t bytes, uint32_t taken);
  void awaitCopies(const Thread &t, uint32_t left);
  uint8_t *access(const Thread &t, uint8_t *place, uint64_t bytes, Access kind);
  bool global(const Thread &t, uint8_t *place, uint64_t bytes, bool write);
  bool sharedMemory(const Thread &t, uint8_t *place, uint64_t bytes, bool write);

  std::string kernel, first;
  std::vector<Range> ranges;
  std::vector<uint8_t> shared;
  std::vector<Byte> sharedBytes;
  std::vector<Groups> copies; // by thread
  uint32_t phase = 0;         // barriers passed, over all blocks
  alignas(64) uint8_t nowhere[64] = {};
};

} // namespace astra::emulator

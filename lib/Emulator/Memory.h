//===- Memory.h: what threads may touch, and who touched it ----------------===//
// Gives:    the memory of one launch: its buffers, a block's shared memory, and who accessed which byte when.
// Keeps:    the first fault, as a sentence; after it accesses go where they do no harm.
#pragma once
#include "Thread.h"
#include "astra/Emulator/Emulator.h"
#include <deque>
#include <map>
#include <memory>
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
  // Of warp groups (WarpGroups.cpp).
  void setMaps(std::span<const EmulatedMap> all) { maps = all; }
  /// Whether the phase is over that a thread waits for; it knows then what came before the phase's end.
  bool isOver(const Thread &t);
  /// One of the boxes arrives that are on their way, chosen by a number; false where there is none.
  bool deliver(uint32_t number);
  /// Whether the block may end: no box is on its way.
  bool mayEndBlock(const Thread &some);
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
  struct SharedByte : Byte {
    uint32_t box = 0;          // which box brought it, counted from 1
    uint32_t groupReaders = 0; // threads whose warp group reads it, and nobody who may write knows of the end
    uint32_t fences = 0;       // of its writer, before it wrote
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

  // Warp groups.
  using Reads = std::vector<uint32_t>; // places of 16 bytes in shared memory
  struct PhaseBarrier {
    uint32_t count, pending;
    int64_t bytes = 0; // that are still to come in this phase
    uint32_t over = 0; // phases
    uint32_t maker = 0, madeIn = 0;
    bool fenced = false;         // copies see it
    Reads arrived;               // reads that are over, of who arrived in this phase
    std::vector<Reads> released; // by phase that is over
  };
  struct Box {
    uint32_t thread;
    uint64_t to;
    EmulatedMap map;
    int64_t word, line;
    uint64_t barrier; // place in shared memory
  };
  struct Arrival {
    uint64_t barrier;
    uint32_t phase;
  };
  struct Sums { // that a group is making
    uint32_t group;
    std::vector<uint32_t> values;
  };
  struct GroupState { // of a thread
    bool fenced = false;
    uint32_t groups = 0, next = 0, proxyFences = 0; // groups that are closed; the number of the next sums
    std::map<uint32_t, Sums> sums;                  // by number
    std::vector<std::pair<uint32_t, Reads>> reads;  // by group
    Reads done;                                     // reads that are over, and nobody was told
    std::map<uint64_t, uint32_t> seen;              // by barrier: phases whose end it knows
  };
  GroupState &stateOf(const Thread &t) {
    auto &state = group[t.number];
    if (!state) state = std::make_unique<GroupState>();
    return *state;
  }
  void attachGroups(Thread &t);
  PhaseBarrier *barrierAt(const Thread &t, const uint8_t *place);
  void barrierInit(const Thread &t, uint8_t *place, uint32_t count);
  void barrierArrive(const Thread &t, uint8_t *place, uint32_t bytes);
  void endPhase(PhaseBarrier &b);
  void copyBox(const Thread &t, uint8_t *to, const void *map, int32_t word, int32_t line, uint8_t *barrier);
  bool readWords(const Thread &t, uint64_t descriptor, uint32_t line, uint32_t *words, Reads &reads);
  void multiply(Thread &t, uint32_t count, uint64_t rows, uint64_t columns, Step step);
  void awaitGroups(Thread &t, uint32_t count, uint32_t left);

  std::span<const EmulatedMap> maps;
  std::map<uint64_t, PhaseBarrier> barriers; // by place in shared memory
  std::vector<Box> boxes;
  std::vector<Arrival> arrivals;
  std::vector<std::unique_ptr<GroupState>> group; // by thread, of those that use it

  std::string kernel, first;
  std::vector<Range> ranges;
  std::vector<uint8_t> shared;
  std::vector<SharedByte> sharedBytes;
  std::vector<Groups> copies; // by thread
  uint32_t phase = 0;         // barriers passed, over all blocks
  alignas(64) uint8_t nowhere[64] = {};
};

} // namespace astra::emulator

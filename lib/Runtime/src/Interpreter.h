//===- Interpreter.h: runs programs ---------------------------------------===//
// Takes:    a checked routine, dims, memory.
// Gives:    the effect of its first program.
// Keeps:    allocates nothing while it runs, but for what functions of the host are given of a GPU; nesting is bounded
//           by the checks.
// Does not: check what checkManifest has checked.
#pragma once

#include "Device.h"
#include "Lane.h"

namespace astra::rt {

/// Sizes of a routine's buffers, slots and scratch for one vector of dims; kept while the vector stays the same.
struct RoutineMemory {
  Array<int64_t> key; ///< the dims it was evaluated for
  bool valid;
  Array<uint64_t> bufferBytes; ///< per buffer
  Array<uint64_t> slotOffsets; ///< per slot, in the arena; then the size of the arena
  uint64_t scratchStride;      ///< per worker
  int64_t cost;                ///< of its launches together, in operations or bytes; -1: not known

  bool init(Heap &heap, const fmt::Manifest &m, const fmt::Routine &r);
  /// On failure it is not valid and nothing else has changed.
  Status evaluate(const fmt::Manifest &m, const fmt::Routine &r, uint32_t target, const int64_t *dims,
                  astra_diag *diag);
  /// Less than a worker takes to come to it.
  bool isSmall() const;
  uint64_t arenaBytes() const { return slotOffsets[slotOffsets.size() - 1]; }
};

struct Frame {
  const astra_loaded &loaded;
  const fmt::Routine &routine;
  const RoutineMemory &memory;
  int64_t *dims;
  void **buffers; ///< per buffer of the routine; swapped by programs
  uint8_t *scratch;
  void *queue; ///< of the device; null: everything runs here and now
  astra_trace_fn trace;
  void *traceSelf;
  astra_diag *diag;
  Lane *lane = nullptr;         ///< for functions of the host that run beside; null: they run where they stand
  DeviceMemory *room = nullptr; ///< of functions on a GPU's memory
  bool launched = false;        ///< something may have been written
  astra_gpu_settle_fn settling = nullptr; ///< of functions whose work may still be in the queue
  void *settlingSelf = nullptr;

  Status run(uint32_t program);
  /// The first program; whatever comes of it, no call runs on.
  Status runAll();
  /// Waits for what functions have put into the queue; what is behind it there has not ended.
  Status quiet();
  /// Waits for all of the queue.
  Status settle();

private:
  Status launch(const fmt::Launch &launch);
  Status copy(const fmt::Copy &copy);
  [[gnu::cold]] Status external(const fmt::External &call); // External.cpp; small rather than fast
  /// What the function is given.
  [[gnu::cold]] Status give(const fmt::External &x, HostCall &call);
  /// Until so many calls at most run beside.
  Status wait(uint32_t left);
  Status readDim(const fmt::ReadDim &read);
  Status flag(uint32_t buffer, bool &out);
  /// What a program decides by; waits for what computes it.
  Status fetch(void *to, uint32_t buffer, uint64_t bytes);
  Status step(fmt::Instr type, const void *instruction);
};

} // namespace astra::rt

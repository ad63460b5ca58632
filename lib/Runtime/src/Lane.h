//===- Lane.h: functions of the host beside a program ----------------------===//
// Takes:    calls of functions of the host, with their tensors.
// Gives:    a thread that makes them one after another, in their order; a wait for the oldest.
// Keeps:    allocates when it is made and never again; tensors are the caller's until the call has been waited for.
//           After a call that failed none of those that fly is made.
// Does not: know programs.
#pragma once

#include "Handles.h"

namespace astra::rt {

/// A function of the host with what it is given.
struct HostCall {
  const HostFunction *function;
  const char *name;
  uint32_t inputs, count;
  uint64_t bytes; ///< of all tensors
  astra_tensor tensors[fmt::kMaxHostTensors];
  int64_t shapes[fmt::kMaxHostTensors][fmt::kMaxRank];

  /// In the floating point environment of kernels; a failure is a sentence with the function's name. Traced if `trace`
  /// is not null.
  Status run(astra_trace_fn trace, void *traceSelf, astra_diag *diag);
  /// To the trace: it has run since then.
  void report(uint64_t begin, astra_trace_fn trace, void *traceSelf) const;
};

/// What a function said, as the status of the call that it is part of.
Status functionFailed(const char *name, Status status, astra_diag &said, astra_diag *diag);

/// Used by one thread at a time.
class Lane {
public:
  explicit Lane(Heap &heap) : heap(heap) {}
  ~Lane();
  Status init(astra_diag *diag);

  /// So many calls were started and not waited for.
  uint32_t flying() const { return started - landed; }
  /// Where the next call goes, which `start` starts. There must be room: fewer than kMost are flying.
  HostCall &next() { return calls[started % kMost]; }
  void start(astra_trace_fn trace, void *traceSelf);
  /// Waits for the oldest call, which flies.
  Status land(astra_diag *diag);

  static constexpr uint32_t kMost = 8;

private:
  void run();

  Heap &heap;
  Array<HostCall> calls; ///< a ring
  struct Outcome {
    Status status;
    astra_diag diag;
  };
  Array<Outcome> outcomes;
  uint32_t started = 0, landed = 0; ///< by the caller
  uint32_t posted = 0, ended = 0;   ///< with the mutex locked
  astra_trace_fn trace = nullptr;
  void *traceSelf = nullptr;
  Mutex mutex;
  Condition changed;
  bool stop = false, isRunning = false, hasFailed = false;
  pthread_t thread{};
};

} // namespace astra::rt

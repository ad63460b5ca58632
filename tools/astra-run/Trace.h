//===- Trace.h: what ran when, as Chrome's trace JSON -----------------------===//
// Takes:    the runtime's trace events, from any thread.
// Gives:    a file that chrome://tracing and ui.perfetto.dev open: one slice per kernel, with its work items, GB/s,
//           GFLOP/s and the nodes of the model that it computes. The bytes of a transfer are those that the rank sends.
// Does not: cost anything when no trace was asked for.
#pragma once
#include "Ranks.h"
#include "astra/astra.h"
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace astra::tool {

class Trace {
public:
  /// `ranks`: whose counter says what each transfer sends.
  explicit Trace(const Ranks &ranks) : ranks(ranks) {}
  /// Before the call that is traced.
  void start() { sent = ranks.sent(); }
  /// For astra_session_set_trace; self is the Trace.
  static void record(void *self, const astra_trace_event *event);
  /// When the first event began; UINT64_MAX if there was none.
  uint64_t begin() const;
  /// The events, times from `start`, as those of process `rank` + 1 of `ranks`.
  std::string text(uint64_t start, int rank, int ranks) const;
  /// The events of all ranks, each as `text` gives them, as a file.
  static bool write(const std::string &path, const std::vector<std::string> &ranks, std::string &error);

private:
  struct Slice {
    std::string name;
    uint64_t begin, end;
    int64_t items, bytes, flops;
    size_t thread;
    std::vector<std::string> nodes; // of the user's model, some
    uint32_t moreNodes;
  };
  const Ranks &ranks;
  uint64_t sent = 0; // before the next transfer
  std::mutex mutex;
  std::vector<std::thread::id> threads;
  std::vector<Slice> slices;
};

} // namespace astra::tool

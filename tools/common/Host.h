//===- Host.h: what a tool needs to use the runtime -------------------------===//
// Takes:    statuses of the C ABI.
// Gives:    handles that are freed in the right order, refusals with their sentence and exit code.
// Keeps:    exceptions stay inside a tool: its main turns a Refusal into an exit code.
// Does not: call the runtime for a tool that does not use this header.
#pragma once
#include "Options.h"
#include "astra/astra.h"

namespace astra::tool {

/// One sentence, and the exit code that goes with it.
struct Refusal {
  int code;
  std::string text;
};

/// Throws what the diag says.
struct Checked {
  astra_diag diag = ASTRA_INIT(astra_diag);
  std::string file;         // the file that is being judged, or ""
  bool takesValues = false; // whether --dim and --param are options of this tool
  operator astra_diag *() { return &diag; }
  void operator()(astra_status s);
};

/// Everything that is freed, in the order of making; freed in reverse.
struct Handles {
  astra_runtime *runtime = nullptr;
  astra_device *device = nullptr;
  astra_device *host = nullptr; // whose memory the pool's is, where the device has one of its own
  astra_pool *pool = nullptr;
  astra_bundle *bundle = nullptr;
  astra_loaded *loaded = nullptr;
  astra_session *session = nullptr;
  astra_stream *stream = nullptr;
  std::vector<astra_buffer *> buffers;
  Handles() = default;
  Handles(const Handles &) = delete;
  Handles &operator=(const Handles &) = delete;
  ~Handles();
};

} // namespace astra::tool

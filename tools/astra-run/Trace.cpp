//===- Trace.cpp: what ran when, as Chrome's trace JSON ---------------------===//
// Takes:    events.
// Gives:    {"traceEvents": [...]}, times in microseconds from the first event of all ranks.
// Keeps:    names escaped; a process per rank, a track per thread, numbered in order of first appearance.
// Does not: stream: events are held until write.
#include "Trace.h"
#include "JsonText.h"
#include "OutputFile.h"
#include <algorithm>
#include <cstdio>

using namespace astra::tool;

void Trace::record(void *self, const astra_trace_event *e) {
  auto &t = *static_cast<Trace *>(self);
  std::lock_guard lock(t.mutex);
  auto me = std::this_thread::get_id();
  size_t thread = std::find(t.threads.begin(), t.threads.end(), me) - t.threads.begin();
  if (thread == t.threads.size()) t.threads.push_back(me);
  int64_t bytes = e->bytes;
  // Transfers are one after another, and each is reported where it ran, before the next one begins.
  if (std::string_view(e->name).starts_with("astra.mesh.")) {
    uint64_t now = t.ranks.sent();
    bytes = int64_t(now - t.sent), t.sent = now;
  }
  std::vector<std::string> nodes(e->origins, e->origins + e->num_origins);
  t.slices.push_back(
      {e->name, e->begin_ns, e->end_ns, e->items, bytes, e->flops, thread, std::move(nodes), e->more_origins});
}

uint64_t Trace::begin() const {
  uint64_t start = UINT64_MAX;
  for (const Slice &s : slices) start = std::min(start, s.begin);
  return start;
}

std::string Trace::text(uint64_t start, int rank, int ranks) const {
  std::string out;
  char line[512];
  if (ranks > 1) {
    std::snprintf(line, sizeof line,
                  "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, \"args\": {\"name\": \"rank %d\"}}",
                  rank + 1, rank);
    out += line;
  }
  for (const Slice &s : slices) {
    double ns = double(std::max<uint64_t>(1, s.end - s.begin));
    out += out.empty() ? "{\"name\": " : ",\n{\"name\": ";
    out += quoted(s.name);
    std::snprintf(line, sizeof line,
                  ", \"ph\": \"X\", \"pid\": %d, \"tid\": %zu, \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"items\": %lld",
                  rank + 1, s.thread, double(s.begin - start) / 1e3, ns / 1e3, static_cast<long long>(s.items));
    out += line;
    for (auto [key, rate, amount] : {std::tuple{"bytes", "GB/s", s.bytes}, std::tuple{"flops", "GFLOP/s", s.flops}})
      if (amount >= 0) {
        std::snprintf(line, sizeof line, ", \"%s\": %lld, \"%s\": %.3f", key, static_cast<long long>(amount), rate,
                      double(amount) / ns);
        out += line;
      }
    if (!s.nodes.empty()) {
      out += ", \"nodes\": [";
      for (const std::string &node : s.nodes) out += (&node == s.nodes.data() ? "" : ", ") + quoted(node);
      out += "]";
    }
    if (s.moreNodes) out += ", \"more_nodes\": " + std::to_string(s.moreNodes);
    out += "}}";
  }
  return out;
}

bool Trace::write(const std::string &path, const std::vector<std::string> &ranks, std::string &error) {
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  bool first = true;
  for (const std::string &events : ranks)
    if (!events.empty()) out += (first ? "\n" : ",\n") + events, first = false;
  out += "\n]}\n";
  return writeWhole(path, out.data(), out.size(), error);
}

//===- LoopTrips.h: how often a loop with counters runs --------------------===//
// Takes:    a Loop node whose condition is not known: Keras and tf2onnx write "counter < length and i < limit".
// Gives:    the number of trips as a symbolic integer, and what the counters are in trip number i.
// Keeps:    the graph of the body: of it the nodes alone are lowered that the condition follows from, and only where
//           they are arithmetic on counters and extents.
// Does not: know the shapes that the body gives; decide how the loop is lowered (OpsLoop.cpp).
#pragma once
#include "Node.h"

namespace astra::onnx {

struct Counter {
  size_t value; // which carried value
  UOpRef begin;
  int64_t step;
};

struct TripCount {
  UOpRef trips; // 0 or more
  std::vector<Counter> counters;
};

/// Nothing where the condition depends on anything else. `limit` is the node's limit, or null for none; `start` its
/// first condition as a bool scalar, or null for true.
std::optional<TripCount> tripCount(Node &n, const proto::Graph &body, llvm::ArrayRef<UOpRef> initial, UOpRef limit,
                                   UOpRef start);

} // namespace astra::onnx

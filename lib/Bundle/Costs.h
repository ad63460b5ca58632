//===- Costs.h: what a launch costs ----------------------------------------===//
#pragma once
#include "astra/Schedule/Program.h"

namespace astra {

/// Expressions of the dims.
struct LaunchCosts {
  UOpRef bytes = nullptr; // that it reads and writes
  UOpRef flops = nullptr; // of its contracts and reductions, a multiplication and an addition each; null: it has none
  UOpRef steps = nullptr; // operations of every kind
};
/// `joins`: followers are part of their kernel, and what passes between them is in no buffer.
LaunchCosts costsOf(Context &c, const KernelSpec &spec, bool joins);

} // namespace astra

//===- Numa.h: nodes of memory --------------------------------------------===//
// Takes:    the folder in which the system describes its nodes (sysfs).
// Gives:    which nodes there are, and their CPUs; memory that is bound to one.
// Keeps:    nothing of what it read: a call asks the system anew.
// Does not: choose a node, or move memory that is there.
#pragma once

#include "Base.h"

#include <sched.h>

namespace astra::rt {

/// A set of numbers of CPUs or nodes.
struct NumberSet {
  static constexpr uint32_t kMost = 1024;
  uint64_t words[kMost / 64] = {};
  void add(uint32_t n) { words[n / 64] |= uint64_t(1) << n % 64; }
  bool has(uint32_t n) const { return n < kMost && words[n / 64] >> n % 64 & 1; }
};

/// The CPUs of a node that are online and that this process may use; refuses a node without.
Status cpusOfNode(const char *sysfs, uint32_t node, cpu_set_t &out, astra_diag *diag);
/// Refuses a node that is not there, or has no memory.
Status checkNode(const char *sysfs, uint32_t node, astra_diag *diag);
/// Memory whose pages are of the node, zeroed; it goes back by unmapNode.
Status mapOnNode(uint32_t node, uint64_t bytes, void *&out, astra_diag *diag);
void unmapNode(void *memory, uint64_t bytes);

} // namespace astra::rt

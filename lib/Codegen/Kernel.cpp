//===- Kernel.cpp: the work items of a kernel ------------------------------===//
// Takes:    a sink of stores.
// Gives:    its parallel ranges in the order of their axis numbers and the number of work items.
#include "astra/Codegen/Kernel.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

std::vector<UOpRef> astra::parallelRanges(UOpRef sink) {
  std::vector<UOpRef> ranges;
  for (UOpRef x : topoSort({sink}))
    if (x->op == Op::Range && RangeKind(x->ints[1]) == RangeKind::Parallel) ranges.push_back(x);
  llvm::sort(ranges, [](UOpRef a, UOpRef b) { return a->ints[0] < b->ints[0]; });
  return ranges;
}

/// Whether some store depends on no parallel range.
static bool hasLoneStore(UOpRef sink) {
  std::vector<UOpRef> order = topoSort({sink});
  llvm::DenseSet<UOpRef> parallel; // nodes that depend on a parallel range
  for (UOpRef x : order) {
    bool p = x->op == Op::Range && RangeKind(x->ints[1]) == RangeKind::Parallel;
    for (UOpRef s : x->src) p |= parallel.contains(s);
    if (p) parallel.insert(x);
  }
  return llvm::any_of(sink->src, [&](UOpRef store) { return !parallel.contains(store); });
}

UOpRef astra::loneRange(Context &c, UOpRef sink) {
  if (!hasLoneStore(sink)) return nullptr;
  int64_t axis = 0;
  for (UOpRef x : topoSort({sink}))
    if (x->op == Op::Range) axis = std::max(axis, x->ints[0] + 1);
  return c.make(Op::Range, {c.index(1)}, {axis, int64_t(RangeKind::Parallel)});
}

UOpRef astra::itemCount(Context &c, UOpRef sink) {
  UOpRef n = c.index(hasLoneStore(sink) ? 1 : 0);
  for (UOpRef r : parallelRanges(sink)) n = idxAdd(c, n, r->src[0]);
  return n;
}

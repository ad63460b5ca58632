//===- Overwrite.cpp: states that are replaced where they lie ---------------===//
// Takes:    kernels in the order of their launches, and which of their values become states.
// Gives:    those that need no memory beside the state: every other reader of it comes before, and the kernel itself
//           reads at most the element that it writes.
// Does not: look into loops and branches: an entry that has some keeps its states until its end.
#include "Overwrite.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::ArrayRef;

namespace {
/// Visits what the kernel of a realized value reads: `leaf` for each stored or realized value.
template <class Leaf> void visitReads(UOpRef kernel, const Fusion &f, Leaf leaf) {
  std::vector<UOpRef> stack(kernel->src.begin(), kernel->src.end());
  llvm::DenseSet<UOpRef> seen;
  while (!stack.empty()) {
    UOpRef n = stack.back();
    stack.pop_back();
    if (!seen.insert(n).second) continue;
    if (n->op == Op::After)
      stack.push_back(n->src[0]);
    else if (isStored(n) || f.realized.count(n))
      leaf(n);
    else
      stack.insert(stack.end(), n->src.begin(), n->src.end());
  }
}

/// Whether the kernel of v reads `state` at the element at hand alone: through elementwise nodes only.
bool readsInPlace(UOpRef v, UOpRef state, const Fusion &f) {
  std::vector<UOpRef> stack{v};
  llvm::DenseSet<UOpRef> seen;
  bool apart = false;
  while (!stack.empty()) {
    UOpRef n = stack.back();
    stack.pop_back();
    if (n->op == Op::After) visitReads(n, f, [&](UOpRef leaf) { apart |= leaf == state; });
    if (n == state || !seen.insert(n).second || (n != v && f.realized.count(n)) || isStored(n)) continue;
    if (has(n->op, Elementwise))
      stack.insert(stack.end(), n->src.begin(), n->src.end());
    else
      visitReads(n, f, [&](UOpRef leaf) { apart |= leaf == state; });
  }
  return !apart;
}
} // namespace

llvm::DenseMap<UOpRef, Overwrite> astra::overwrites(ArrayRef<UOpRef> order, const Fusion &f, ArrayRef<UOpRef> roots,
                                                    ArrayRef<std::pair<UOpRef, UOpRef>> updates) {
  llvm::DenseMap<UOpRef, Overwrite> out;
  if (llvm::any_of(order, isControl)) return out;
  llvm::DenseMap<UOpRef, size_t> at, lastRead; // from 1; 0: not at all
  for (auto [i, n] : llvm::enumerate(order)) {
    at[n] = i + 1;
    if (f.realized.count(n))
      visitReads(n, f, [&](UOpRef leaf) { lastRead[leaf] = i + 1; });
    else if (n->isIndex())
      for (UOpRef s : n->src) lastRead[s] = order.size() + 1;
  }
  for (UOpRef r : roots) lastRead[r] = order.size() + 1;
  for (auto [v, state] : updates) {
    if (!f.realized.count(v) || v->dtype != state->dtype || v->shape != state->shape || out.count(v)) continue;
    size_t last = lastRead.lookup(state);
    bool reads = last == at[v];
    if (last < at[v] || (reads && has(v->op, Elementwise) && !f.rootOp.count(v) && readsInPlace(v, state, f)))
      out.insert({v, {state, reads}});
  }
  return out;
}

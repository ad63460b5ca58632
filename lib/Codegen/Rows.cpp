//===- Rows.cpp: kernels that go by rows ------------------------------------===//
// Takes:    a kernel whose reductions all run along the last axis of one shape (Note [Rows] in Fusion.cpp).
// Gives:    that shape, and which values are computed once for each element of a row although several passes read them.
// Keeps:    bits: a value that is kept is the value that would be computed again.
#include "Rows.h"
#include "astra/IR/Contract.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

static bool alongRows(UOpRef n, Shape rows) {
  if (n->op != Op::Reduce || n->src[0]->shape != rows) return false;
  ReduceSpec s = llvm::cantFail(decodeReduce(n->ints));
  return s.axes.size() == 1 && s.axes[0] + 1 == int64_t(rows.size()) && s.order != ReduceOrder::Chain;
}

Shape astra::rowsOf(const KernelSpec &spec) {
  UOpRef r = spec.rootOp;
  return r && r->op == Op::Reduce && alongRows(r, r->src[0]->shape) ? r->src[0]->shape : Shape();
}

bool astra::writesRows(const KernelSpec &spec) {
  Shape rows = rowsOf(spec);
  return !rows.empty() && !spec.inPlace && spec.outputs[0].value->shape == rows;
}

llvm::DenseSet<UOpRef> astra::cachedInRow(const KernelSpec &spec) {
  constexpr unsigned dear = 8; // more than storing and loading it costs
  llvm::DenseSet<UOpRef> cached;
  Shape rows = rowsOf(spec);
  if (rows.empty()) return cached;
  std::vector<UOpRef> order = topoSort(spec.outputs[0].value);
  llvm::DenseMap<UOpRef, unsigned> cost;
  for (UOpRef n : order) {
    if (!has(n->op, Elementwise))
      continue; // arguments are loaded, other values computed once a row or by other kernels
    unsigned k = n->op == Op::Div || n->op == Op::Sqrt ? 8 : 1;
    for (UOpRef s : n->tensors()) k += cost.lookup(s);
    cost[n] = std::min(k, 1000u);
  }
  // Which passes read a node: one number, or `several`.
  constexpr unsigned none = 0, several = ~0u;
  unsigned passes = 0;
  llvm::DenseMap<UOpRef, unsigned> readBy;
  auto read = [&](UOpRef s, unsigned pass) {
    unsigned &by = readBy[s];
    by = by == none || by == pass ? pass : several;
  };
  if (writesRows(spec)) read(spec.outputs[0].value, ++passes);
  for (UOpRef n : llvm::reverse(order)) {
    if (alongRows(n, rows)) read(n->src[0], ++passes);
    if (!has(n->op, Elementwise) || n->shape != rows) continue;
    unsigned by = readBy.lookup(n);
    if (by == several && cost[n] > dear) cached.insert(n), by = ++passes;
    if (by != none)
      for (UOpRef s : n->tensors()) read(s, by);
  }
  return cached;
}

uint64_t astra::rowBytes(const Placed &p) {
  return uint64_t(std::max<int64_t>(p.allocated.back()->hi, 1)) * std::max(1u, byteSize(p.value->dtype));
}

uint64_t astra::cachedBytes(const KernelSpec &spec, int64_t together) {
  Shape row = rowsOf(spec);
  if (row.empty()) return 0;
  constexpr int64_t many = int64_t(1) << 40;
  uint64_t bytes = 0, n = llvm::alignTo(uint64_t(std::clamp<int64_t>(row.back()->hi, 1, many)), uint64_t(together));
  for (UOpRef x : cachedInRow(spec)) bytes += n * std::max(1u, byteSize(x->dtype));
  return bytes;
}

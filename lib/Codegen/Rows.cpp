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

namespace {
/// How an element of a row is read: by one pass, whose number this is, or by several; whether a sum is among them whose
/// order says which elements a thread adds up.
struct Readers {
  static constexpr unsigned none = 0, several = ~0u;
  unsigned pass = none;
  bool summed = false;
};
} // namespace

/// Goes from a kernel's output to its arguments; keeps(value, readers) says whether an element of a row is computed
/// once for all its readers, and is then one by itself.
static void passesOver(const KernelSpec &spec, llvm::function_ref<bool(UOpRef, const Readers &)> keeps) {
  Shape rows = rowsOf(spec);
  if (rows.empty()) return;
  unsigned passes = 0;
  llvm::DenseMap<UOpRef, Readers> readBy;
  auto read = [&](UOpRef s, Readers by) {
    Readers &all = readBy[s];
    all.pass = all.pass == Readers::none || all.pass == by.pass ? by.pass : Readers::several;
    all.summed |= by.summed;
  };
  if (writesRows(spec)) read(spec.outputs[0].value, {++passes});
  std::vector<UOpRef> order = topoSort(spec.outputs[0].value);
  for (UOpRef n : llvm::reverse(order)) {
    if (alongRows(n, rows))
      read(n->src[0], {++passes, llvm::cantFail(decodeReduce(n->ints)).order == ReduceOrder::Lane64});
    if (n->shape != rows) continue;
    Readers by = readBy.lookup(n);
    if (by.pass != Readers::none && keeps(n, by)) by = {++passes};
    if (by.pass == Readers::none || !has(n->op, Elementwise)) continue;
    for (UOpRef s : n->tensors()) read(s, by);
  }
}

static constexpr unsigned dear = 8; // more than storing and loading an element costs

/// Operations for an element of each value; arguments are loaded, other values computed once a row or by other kernels.
static llvm::DenseMap<UOpRef, unsigned> costs(const KernelSpec &spec) {
  llvm::DenseMap<UOpRef, unsigned> cost;
  for (UOpRef n : topoSort(spec.outputs[0].value)) {
    if (!has(n->op, Elementwise)) continue;
    unsigned k = n->op == Op::Div || n->op == Op::Sqrt ? 8 : 1;
    for (UOpRef s : n->tensors()) k += cost.lookup(s);
    cost[n] = std::min(k, 1000u);
  }
  return cost;
}

llvm::DenseSet<UOpRef> astra::cachedInRow(const KernelSpec &spec) {
  llvm::DenseMap<UOpRef, unsigned> cost = costs(spec);
  llvm::DenseSet<UOpRef> cached;
  passesOver(spec, [&](UOpRef n, const Readers &by) {
    return by.pass == Readers::several && cost.lookup(n) > dear && cached.insert(n).second;
  });
  return cached;
}

/// Whether a value is the same for all elements of a row, one argument's elements each its own, or neither.
static std::pair<bool, bool> ofRowOrArgument(UOpRef n, const llvm::DenseSet<UOpRef> &arguments) {
  bool own = true;
  for (; !arguments.contains(n); n = n->src[0]) {
    bool moves = n->op == Op::Reshape || n->op == Op::Permute || n->op == Op::Shrink || n->op == Op::Flip ||
                 n->op == Op::Detach || n->op == Op::Tap;
    if (n->op == Op::Expand) {
      own = false;
      if (n->src[0]->shape.empty() || n->src[0]->shape.back()->constIndex() == 1) return {true, false};
    } else if (!moves)
      return {n->op == Op::Const, false};
  }
  return {false, own};
}

KeptRow astra::keptInRow(const KernelSpec &spec, bool byBlock) {
  KeptRow kept;
  Shape rows = rowsOf(spec);
  if (rows.empty()) return kept;
  llvm::DenseSet<UOpRef> arguments;
  for (const Placed &p : spec.inputs) arguments.insert(p.value);
  llvm::DenseMap<UOpRef, unsigned> cost = costs(spec);
  llvm::DenseMap<UOpRef, llvm::DenseSet<UOpRef>>
      loads; // what an element of a value is read from, one for each of a row
  for (UOpRef n : topoSort(spec.outputs[0].value)) {
    if (n->shape != rows) continue;
    if (arguments.contains(n) || !has(n->op, Elementwise)) {
      if (!ofRowOrArgument(n, arguments).first) loads[n].insert(n);
      continue;
    }
    llvm::DenseSet<UOpRef> all;
    for (UOpRef s : n->tensors())
      if (auto it = loads.find(s); it != loads.end()) all.insert(it->second.begin(), it->second.end());
    loads[n] = std::move(all);
  }
  passesOver(spec, [&](UOpRef n, const Readers &by) {
    bool several = by.pass == Readers::several, computed = has(n->op, Elementwise) && !arguments.contains(n);
    bool keeps = computed ? (several && (cost.lookup(n) > dear || loads.lookup(n).size() > 1)) ||
                                (byBlock && by.summed && cost.lookup(n) > dear)
                          : several && ofRowOrArgument(n, arguments).second;
    if (keeps) (byBlock && by.summed ? kept.shared : kept.own).insert(n);
    return keeps;
  });
  return kept;
}

llvm::DenseSet<UOpRef> KeptRow::all() const {
  llvm::DenseSet<UOpRef> both = own;
  both.insert(shared.begin(), shared.end());
  return both;
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

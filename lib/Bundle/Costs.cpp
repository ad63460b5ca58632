//===- Costs.cpp: what a launch costs --------------------------------------===//
// Takes:    a kernel's graph.
// Gives:    see Costs.h.
// Does not: say what is computed: costs say how a launch is split and where a call runs.
#include "Costs.h"
#include "astra/IR/Contract.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::ArrayRef;

/// Operations of a contract or reduce; 0 of anything else, or null.
static UOpRef operations(Context &c, UOpRef n) {
  if (n && n->is(Op::Contract)) {
    ContractSpec s = llvm::cantFail(decodeContract(n->ints));
    return idxMul(c, idxProduct(c, n->indices().take_front(s.kept + s.reduced)), c.index(2));
  }
  return n && n->is(Op::Reduce) ? idxProduct(c, n->src[0]->shape) : c.index(0);
}

/// Operations of every kind, as if each node's elements were computed once: a division counts as some, one of integers
/// as many. What a contract computes of its operands again for each tile is not counted again.
static UOpRef stepsOf(Context &c, const KernelSpec &spec) {
  UOpRef all = c.index(0);
  for (UOpRef n : topoSort(spec.outputs[0].value)) {
    if (n->isIndex() || has(n->op, Leaf) || has(n->op, Movement)) continue;
    UOpRef points = n->is(Op::Contract) ? operations(c, n) : idxProduct(c, n->shape);
    if (!n->is(Op::Contract) && !n->tensors().empty() && !has(n->op, Elementwise))
      points = idxAdd(c, points, idxProduct(c, n->tensors()[0]->shape));
    bool slow = n->is(Op::Div) || n->is(Op::FloorDiv) || n->is(Op::TruncDiv) || n->is(Op::Mod) || n->is(Op::Rem) ||
                n->is(Op::Sqrt);
    int64_t each = !slow ? 1 : isFloat(n->dtype) ? 4 : 64;
    all = idxAdd(c, all, idxMul(c, points, c.index(each)));
  }
  return all;
}

/// Of each input of a kernel that is only looked up in, how many elements are.
static llvm::DenseMap<UOpRef, UOpRef> lookUps(Context &c, const KernelSpec &spec) {
  llvm::DenseMap<UOpRef, UOpRef> found;
  llvm::DenseSet<UOpRef> whole;
  for (UOpRef n : topoSort(spec.outputs[0].value)) {
    if (has(n->op, Movement)) continue;
    bool looksUp = n->is(Op::Gather) || n->is(Op::Pick) || n->is(Op::SliceAt);
    for (auto [i, s] : llvm::enumerate(n->tensors())) {
      UOpRef table = s;
      while (has(table->op, Movement)) table = table->src[0];
      if (!looksUp || i) {
        whole.insert(table);
        continue;
      }
      UOpRef &elements = found.try_emplace(table, c.index(0)).first->second;
      elements = idxAdd(c, elements, idxProduct(c, n->shape));
    }
  }
  for (UOpRef w : whole) found.erase(w);
  return found;
}

/// Every buffer once; of one that is written in part, or a table that is looked up in, what is used of it.
static UOpRef bytesOf(Context &c, const KernelSpec &spec, bool joins) {
  UOpRef bytes = c.index(0);
  auto count = [&](UOpRef elements, DType t) { bytes = idxAdd(c, bytes, idxMul(c, elements, c.index(byteSize(t)))); };
  auto found = lookUps(c, spec);
  for (const Placed &p : ArrayRef(spec.inputs).drop_front(spec.inPlace ? 1 : 0)) {
    UOpRef all = elementCount(c, p.layout, p.allocated), some = found.lookup(p.value);
    count(some ? idxMin(c, all, some) : all, p.value->dtype);
  }
  for (const Placed &p : joins ? ArrayRef(spec.outputs).take_back() : ArrayRef(spec.outputs).take_front())
    if (!p.begin.empty())
      count(idxProduct(c, p.value->shape), p.value->dtype);
    else if (spec.inPlace && (p.value->is(Op::UpdateAt) || p.value->is(Op::Scatter)))
      count(idxProduct(c, p.value->src[p.value->is(Op::UpdateAt) ? 1 : 2]->shape), p.value->dtype);
    else
      count(elementCount(c, p.layout, p.allocated), p.value->dtype);
  return bytes;
}

LaunchCosts astra::costsOf(Context &c, const KernelSpec &spec, bool joins) {
  joins &= !spec.followers.empty();
  LaunchCosts out{bytesOf(c, spec, joins), operations(c, spec.rootOp), stepsOf(c, spec)};
  if (joins)
    for (const Follower &f : spec.followers) {
      out.flops = idxAdd(c, out.flops, operations(c, f.spec.rootOp));
      out.steps = idxAdd(c, out.steps, stepsOf(c, f.spec));
    }
  if (!spec.rootOp) out.flops = nullptr;
  return out;
}

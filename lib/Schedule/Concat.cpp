//===- Concat.cpp: values that lie one behind another -----------------------===//
// Takes:    a legalized graph.
// Gives:    which of its values are concatenations, and of what, so that their parts are computed where the whole lies
//           (decision 0076).
// Does not: see concatenations whose parts overlap or leave holes: those are selects like others.
#include "Concat.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Index.h"

using namespace astra;
using llvm::SmallVector;

/// Of a value that is the same everywhere, that scalar; else null.
static UOpRef splatOf(UOpRef x) {
  while ((x->op == Op::Expand || x->op == Op::Reshape) && x->rank()) x = x->src[0];
  return x->rank() ? nullptr : x;
}

/// Puts what a pad moves behind the parts, if it begins at `begin` along their axis and is whole along the others.
/// Says where it ends; null: it does not fit.
static UOpRef addPart(Context &c, UOpRef pad, UOpRef begin, Concat &to) {
  if (pad->op != Op::Pad) return nullptr;
  UOpRef part = pad->src[0];
  auto amounts = pad->indices();
  for (unsigned axis = 0; axis < part->rank(); ++axis)
    if (int64_t(axis) != to.axis &&
        (amounts[axis]->constIndex() != 0 || amounts[part->rank() + axis]->constIndex() != 0))
      return nullptr;
  if (amounts[to.axis] != begin) return nullptr;
  to.parts.push_back(part);
  to.begins.push_back(begin);
  to.pads.push_back(pad);
  return idxAdd(c, begin, part->shape[to.axis]);
}

std::optional<Concat> astra::concatOf(Context &c, UOpRef x) {
  Concat r;
  UOpRef end = c.index(0);
  for (bool first = true; x->op == Op::Select; x = x->src[2], first = false) {
    UOpRef test = x->src[0];
    if (test->op != Op::Lt || test->src[0]->op != Op::Iota || test->src[0]->dtype != DType::I64) return std::nullopt;
    UOpRef stop = splatOf(test->src[1]);
    if (first) r.axis = test->src[0]->ints[0];
    if (!stop || stop->op != Op::FromIndex || stop->dtype != DType::I64 || test->src[0]->ints[0] != r.axis)
      return std::nullopt;
    if (!first) r.inner.push_back(x);
    end = addPart(c, x->src[1], end, r);
    if (!end || end != stop->src[0]) return std::nullopt;
  }
  if (r.parts.empty() || addPart(c, x, end, r) != x->shape[r.axis]) return std::nullopt;
  return r;
}

bool astra::isEpilogue(UOpRef x) {
  constexpr size_t most = 64;
  SmallVector<UOpRef, 16> stack{x};
  llvm::DenseSet<UOpRef> seen;
  while (!stack.empty() && seen.size() < most) {
    UOpRef n = stack.pop_back_val();
    if (!seen.insert(n).second) continue;
    if ((n->op == Op::Contract && n->shape == x->shape) || n->op == Op::Reduce) return true;
    if (has(n->op, Elementwise) || n->op == Op::Expand || n->op == Op::Reshape)
      for (UOpRef s : n->tensors()) stack.push_back(s);
  }
  return false;
}

std::vector<UOpRef> astra::canonicalParts(Context &c, llvm::ArrayRef<UOpRef> roots) {
  llvm::DenseMap<UOpRef, unsigned> readers;
  for (UOpRef n : topoSort(roots))
    for (UOpRef s : n->src) ++readers[s];
  for (UOpRef r : roots) ++readers[r];
  Builder b(c);
  std::vector<UOpRef> out(roots);
  for (UOpRef &r : out) {
    if (r->op != Op::Select) continue;
    UOpRef test = r->src[0], x = r->src[1], nan = splatOf(r->src[2]);
    if (!nan || test->op != Op::Eq || test->src[0] != x || test->src[1] != x || readers[test] != 1 || readers[x] != 3)
      continue;
    auto concat = concatOf(c, x);
    if (!concat || llvm::none_of(concat->parts, isEpilogue)) continue;
    SmallVector<UOpRef, 4> parts;
    for (UOpRef p : concat->parts) parts.push_back(b.select(b.eq(p, p), p, b.splat(nan, p->shape)));
    r = b.concat(parts, concat->axis);
  }
  return out;
}

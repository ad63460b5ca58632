//===- LegalizeGroups.cpp: arithmetic on results of grouped convolutions ---===//
// Takes:    an elementwise op that reads the result of a grouped convolution, [n, groups * channels, ...]: a reshape of
//           a contract's [n, group, channel, ...] or of arithmetic on that.
// Gives:    the same arithmetic before the reshape, where it is the contract's epilogue.
#include "Legalize.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

/// The axis of `from` that a reshape merges with the next one, if that is all it does; else -1.
static int64_t mergedAxis(Shape from, Shape to) {
  if (from.size() != to.size() + 1) return -1;
  auto axis = size_t(std::mismatch(to.begin(), to.end(), from.begin()).first - to.begin());
  return axis < to.size() && from.drop_front(axis + 2) == to.drop_front(axis + 1) ? int64_t(axis) : -1;
}

/// Whether x is a contract whose label `axis` is a group, or some arithmetic on one.
static bool isOfGroups(UOpRef x, int64_t axis) {
  constexpr size_t most = 64;
  SmallVector<UOpRef, 16> stack{x};
  llvm::SmallDenseSet<UOpRef, 16> seen;
  while (!stack.empty() && seen.size() < most) {
    UOpRef n = stack.pop_back_val();
    if (!seen.insert(n).second) continue;
    if (n->op == Op::Contract && isGroup(llvm::cantFail(decodeContract(n->ints)), axis)) return true;
    if (has(n->op, Elementwise)) stack.append(n->tensors().begin(), n->tensors().end());
  }
  return false;
}

UOpRef astra::splitAxis(Builder &b, UOpRef y, int64_t axis, Shape shape) {
  if (y->op == Op::Reshape && y->src[0]->shape == shape) return y->src[0];
  if (y->op != Op::Expand) return b.reshape(y, shape);
  UOpRef x = y->src[0], one = b.idx(1);
  SmallVector<UOpRef, 6> kept(x->shape);
  bool repeated = x->shape[axis] != y->shape[axis];
  kept[axis] = repeated ? one : shape[axis];
  kept.insert(kept.begin() + axis + 1, repeated ? one : shape[axis + 1]);
  return b.expand(b.reshape(x, kept), shape);
}

UOpRef astra::legalizeElementwise(Builder &b, UOpRef n) {
  for (UOpRef s : n->tensors()) {
    if (s->op != Op::Reshape) continue;
    Shape shape = s->src[0]->shape;
    int64_t axis = mergedAxis(shape, s->shape);
    if (axis < 0 || !isOfGroups(s->src[0], axis)) continue;
    SmallVector<UOpRef, 4> src(n->src);
    for (unsigned i = 0; i < n->ntensors; ++i) src[i] = splitAxis(b, src[i], axis, shape);
    return b.reshape(b.c.withSources(n, src), n->shape);
  }
  return n;
}

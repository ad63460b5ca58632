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

/// Whether the label `axis` of a contract is a group: both operands have it, one of them in a channel's number, and the
/// next label is the channel of the result.
static bool hasGroups(UOpRef contract, int64_t axis) {
  ContractSpec s = llvm::cantFail(decodeContract(contract->ints));
  auto isNumber = [&](const AffineForm &f) { return f.terms.size() == 2 && hasLabel(f, axis); };
  return hasLabel(s.a, axis) && hasLabel(s.b, axis) && hasLabel(s.a, axis + 1) != hasLabel(s.b, axis + 1) &&
         (llvm::any_of(s.a, isNumber) || llvm::any_of(s.b, isNumber));
}

/// Whether x is such a contract, or some arithmetic on one.
static bool isOfGroups(UOpRef x, int64_t axis) {
  constexpr size_t most = 64;
  SmallVector<UOpRef, 16> stack{x};
  llvm::SmallDenseSet<UOpRef, 16> seen;
  while (!stack.empty() && seen.size() < most) {
    UOpRef n = stack.pop_back_val();
    if (!seen.insert(n).second) continue;
    if (n->op == Op::Contract && hasGroups(n, axis)) return true;
    if (has(n->op, Elementwise)) stack.append(n->tensors().begin(), n->tensors().end());
  }
  return false;
}

/// y with `axis` split as in `shape`.
static UOpRef split(Builder &b, UOpRef y, int64_t axis, Shape shape) {
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
    for (unsigned i = 0; i < n->ntensors; ++i) src[i] = split(b, src[i], axis, shape);
    return b.reshape(b.c.withSources(n, src), n->shape);
  }
  return n;
}

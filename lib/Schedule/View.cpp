//===- View.cpp: movement as arithmetic on indices -------------------------===//
#include "astra/Schedule/View.h"
#include "astra/IR/Index.h"
#include "astra/Rewrite/Rewrite.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

/// The axis of a reshape's source that an axis of it is, where they differ in extents of 1 alone.
static int axisOfReshape(UOpRef reshape, unsigned axis) {
  SmallVector<unsigned, 6> to, from; // axes of other extents
  for (auto [x, axes] : {std::pair(reshape, &to), {reshape->src[0], &from}})
    for (unsigned a = 0; a < x->rank(); ++a)
      if (x->shape[a]->constIndex() != 1) axes->push_back(a);
  if (reshape->shape[axis]->constIndex() == 1) return AxisOfView::repeated;
  size_t k = llvm::find(to, axis) - to.begin();
  bool same = to.size() == from.size();
  for (size_t i = 0; same && i < to.size(); ++i) same = reshape->shape[to[i]] == reshape->src[0]->shape[from[i]];
  if (same) return int(from[k]);
  bool last = k + 1 == to.size() && !from.empty() && reshape->shape[axis] == reshape->src[0]->shape[from.back()];
  return last ? int(from.back()) : AxisOfView::unknown;
}

AxisOfView astra::axisBehind(UOpRef x, unsigned axis) {
  for (;; x = x->src[0]) switch (x->op) {
    case Op::Permute: axis = unsigned(x->ints[axis]); break;
    case Op::Expand:
      if (x->src[0]->shape[axis]->constIndex() == 1) return {x, AxisOfView::repeated};
      break;
    case Op::Reshape:
      if (int a = axisOfReshape(x, axis); a < 0)
        return {x, a};
      else
        axis = unsigned(a);
      break;
    case Op::Flip:
    case Op::Shrink:
    case Op::SliceAt:
    case Op::Pad:
    case Op::Detach:
    case Op::Tap: break;
    default: return {x, int(axis)};
    }
}

SmallVector<UOpRef, 4> astra::unflatten(Context &c, UOpRef flat, ArrayRef<UOpRef> extents) {
  SmallVector<UOpRef, 4> index(extents.size());
  UOpRef stride = c.index(1);
  for (size_t i = extents.size(); i-- > 0;) {
    UOpRef q = simplifyIndex(c, idxDiv(c, flat, stride));
    index[i] = i == 0 ? q : simplifyIndex(c, idxMod(c, q, extents[i]));
    stride = idxMul(c, stride, extents[i]);
  }
  return index;
}

/// Dims are matched in groups of equal product, so that untouched axes pass as they are.
static SmallVector<UOpRef, 4> reshapeIndex(Context &c, Shape from, Shape to, ArrayRef<UOpRef> index) {
  SmallVector<UOpRef, 4> out;
  size_t i = 0, j = 0;
  UOpRef one = c.index(1);
  while (i < from.size() || j < to.size()) {
    size_t i0 = i, j0 = j;
    UOpRef a = one, b = one;
    if (i < from.size()) a = from[i++];
    if (j < to.size()) b = to[j++];
    while (a != b &&
           (i < from.size() || j < to.size())) // grow the lesser side; the totals are equal, so this ends with a == b
      if (j == to.size() || (i < from.size() && a->hi <= b->hi))
        a = idxMul(c, a, from[i++]);
      else
        b = idxMul(c, b, to[j++]);
    UOpRef flat = c.index(0);
    for (size_t k = j0; k < j; ++k) flat = idxAdd(c, idxMul(c, flat, to[k]), index[k]);
    auto part = unflatten(c, simplifyIndex(c, flat), from.slice(i0, i - i0));
    out.append(part.begin(), part.end());
  }
  return out;
}

SmallVector<UOpRef, 4> astra::throughMovement(Context &c, UOpRef v, ArrayRef<UOpRef> index) {
  SmallVector<UOpRef, 4> in(index.begin(), index.end());
  switch (v->op) {
  case Op::Reshape: return reshapeIndex(c, v->src[0]->shape, v->shape, index);
  case Op::Permute:
    for (size_t i = 0; i < index.size(); ++i) in[v->ints[i]] = index[i];
    return in;
  case Op::Expand:
    for (size_t i = 0; i < in.size(); ++i)
      if (v->src[0]->shape[i] != v->shape[i]) in[i] = c.index(0);
    return in;
  case Op::Flip:
    for (int64_t a : v->ints) in[a] = idxSub(c, idxSub(c, v->shape[a], c.index(1)), in[a]);
    return in;
  case Op::Shrink:
    for (size_t i = 0; i < in.size(); ++i) in[i] = idxAdd(c, in[i], v->indices()[i]);
    return in;
  case Op::Window: {
    UOpRef k = in.pop_back_val();
    UOpRef &o = in[v->ints[0]];
    o = idxAdd(c, idxMul(c, o, c.index(v->ints[2])), idxMul(c, k, c.index(v->ints[3])));
    return in;
  }
  default: llvm::report_fatal_error(llvm::Twine("internal error: not a movement: ") + info(v->op).mnemonic);
  }
}

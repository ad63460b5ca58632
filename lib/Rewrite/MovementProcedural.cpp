//===- MovementProcedural.cpp: chains of movement ops ----------------------===//
// Takes:    a movement op whose sources are rewritten.
// Gives:    an equal node with fewer movement ops under it. Extents keep their expressions.
#include "Procedures.h"
#include "astra/IR/Builder.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

static bool isZero(UOpRef x) { return x->constIndex() == 0; }
static bool isOne(UOpRef x) { return x->constIndex() == 1; }
static llvm::ArrayRef<UOpRef> half(UOpRef n, unsigned which) {
  size_t rank = n->indices().size() / 2;
  return n->indices().slice(which * rank, rank);
}

UOpRef rules::reshapeOfReshape(RuleContext r, UOpRef n) {
  UOpRef in = n->src[0];
  return in->op == Op::Reshape ? Builder(r.c).reshape(in->src[0], n->shape) : nullptr;
}

UOpRef rules::permuteOfPermute(RuleContext r, UOpRef n) {
  UOpRef in = n->src[0];
  if (in->op != Op::Permute) return nullptr;
  SmallVector<int64_t, 6> perm;
  for (int64_t a : n->ints) perm.push_back(in->ints[a]);
  return Builder(r.c).permute(in->src[0], perm);
}

UOpRef rules::expandOfExpand(RuleContext r, UOpRef n) {
  UOpRef in = n->src[0];
  return in->op == Op::Expand ? Builder(r.c).expand(in->src[0], n->shape) : nullptr;
}

UOpRef rules::padOfPad(RuleContext r, UOpRef n) {
  UOpRef in = n->src[0];
  if (in->op != Op::Pad || in->ints != n->ints) return nullptr;
  SmallVector<UOpRef, 6> lo, hi;
  for (unsigned i = 0; i < n->rank(); ++i) {
    lo.push_back(idxAdd(r.c, half(n, 0)[i], half(in, 0)[i]));
    hi.push_back(idxAdd(r.c, half(n, 1)[i], half(in, 1)[i]));
  }
  return Builder(r.c).pad(in->src[0], lo, hi, n->ints[0]);
}

UOpRef rules::shrinkOfShrink(RuleContext r, UOpRef n) {
  UOpRef in = n->src[0];
  if (in->op != Op::Shrink) return nullptr;
  SmallVector<UOpRef, 12> src{in->src[0]};
  for (unsigned i = 0; i < n->rank(); ++i) src.push_back(idxAdd(r.c, half(n, 0)[i], half(in, 0)[i]));
  llvm::append_range(src, half(n, 1));
  auto merged = r.c.tryMake(Op::Shrink, src); // the type rule must see by bounds that the window stays inside
  if (merged) return *merged;
  llvm::consumeError(merged.takeError());
  return nullptr;
}

UOpRef rules::flipOfFlip(RuleContext r, UOpRef n) {
  UOpRef in = n->src[0];
  if (in->op != Op::Flip) return nullptr;
  SmallVector<int64_t, 6> axes;
  for (int64_t a = 0; a < int64_t(n->rank()); ++a)
    if ((llvm::count(n->ints, a) + llvm::count(in->ints, a)) % 2) axes.push_back(a);
  return Builder(r.c).flip(in->src[0], axes);
}

UOpRef rules::movementOfNothing(RuleContext, UOpRef n) {
  UOpRef x = n->src[0];
  bool nothing = false;
  switch (n->op) {
  case Op::Reshape:
  case Op::Expand: nothing = n->shape == x->shape; break;
  case Op::Permute:
    nothing = llvm::all_of(llvm::enumerate(n->ints), [](auto e) { return e.value() == int64_t(e.index()); });
    break;
  case Op::Pad: nothing = llvm::all_of(n->indices(), isZero); break;
  case Op::Shrink: nothing = n->shape == x->shape && llvm::all_of(half(n, 0), isZero); break;
  default: nothing = n->ints.empty(); break; // flip
  }
  return nothing ? x : nullptr;
}

UOpRef rules::shrinkOfPad(RuleContext r, UOpRef n) {
  UOpRef in = n->src[0];
  if (in->op != Op::Pad) return nullptr;
  UOpRef x = in->src[0];
  SmallVector<UOpRef, 6> begin;
  for (unsigned i = 0; i < n->rank(); ++i) {
    UOpRef b = idxSub(r.c, half(n, 0)[i], half(in, 0)[i]);
    if (b->lo < 0 || idxSub(r.c, x->shape[i], idxAdd(r.c, b, half(n, 1)[i]))->lo < 0) return nullptr;
    begin.push_back(b);
  }
  return Builder(r.c).shrink(x, begin, half(n, 1));
}

UOpRef rules::flipOfOnes(RuleContext r, UOpRef n) {
  SmallVector<int64_t, 6> axes;
  for (int64_t a : n->ints)
    if (!isOne(n->shape[a])) axes.push_back(a);
  return axes.size() == n->ints.size() ? nullptr : Builder(r.c).flip(n->src[0], axes);
}

UOpRef rules::expandOutward(RuleContext r, UOpRef n) {
  UOpRef in = n->src[0];
  if (in->op != Op::Expand) return nullptr;
  UOpRef x = in->src[0];
  Builder b(r.c);
  auto repeated = [&](int64_t axis) { return x->shape[axis] != in->shape[axis]; };
  if (n->op == Op::Permute) return b.expand(b.permute(x, n->ints), n->shape);
  if (n->op == Op::Flip) {
    SmallVector<int64_t, 6> axes;
    for (int64_t a : n->ints)
      if (!repeated(a)) axes.push_back(a);
    return b.expand(b.flip(x, axes), n->shape);
  }
  SmallVector<UOpRef, 6> begin(half(n, 0)), size(half(n, 1));
  for (unsigned i = 0; i < n->rank(); ++i)
    if (repeated(i)) begin[i] = r.c.index(0), size[i] = r.c.index(1);
  return b.expand(b.shrink(x, begin, size), n->shape);
}

UOpRef rules::movementOfSplat(RuleContext r, UOpRef n) {
  if (r.level == Level::Kernel || n->src[0]->isConst()) return nullptr; // reshape(literal) is the splat's own foot
  UOpRef literal = uniformLiteral(n->src[0]);
  if (!literal || (n->op == Op::Pad && literal->ints[0] != n->ints[0])) return nullptr;
  UOpRef splat = Builder(r.c).splat(literal, n->shape);
  return splat == n ? nullptr : splat;
}

UOpRef rules::foldOfOne(RuleContext r, UOpRef n) {
  UOpRef x = n->src[0];
  if (n->op == Op::Cumulate) return isOne(x->shape[n->ints[1]]) ? x : nullptr;
  auto spec = decodeReduce(n->ints);
  if (!spec) {
    llvm::consumeError(spec.takeError());
    return nullptr;
  }
  bool ones = spec->domain.empty() && llvm::all_of(spec->axes, [&](int64_t a) { return isOne(x->shape[a]); });
  return ones ? Builder(r.c).reshape(x, n->shape) : nullptr;
}

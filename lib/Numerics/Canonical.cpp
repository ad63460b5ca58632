//===- Canonical.cpp: canonical NaNs (clause N6) ---------------------------===//
#include "Canonical.h"
#include "Lower.h"
#include "astra/IR/Eval.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace astra;
using namespace astra::numerics;

/// The bits, of a NaN the canonical ones.
static uint64_t madeCanonical(DType t, uint64_t bits) {
  Tensor one{t, {}, std::vector<uint8_t>(byteSize(t))};
  memcpy(one.bytes.data(), &bits, byteSize(t));
  canonicalizeNaN(one);
  memcpy(&bits, one.bytes.data(), byteSize(t));
  return bits;
}
static bool bitsAreCanonical(DType t, uint64_t bits) { return madeCanonical(t, bits) == bits; }

/// Whether there are several NaNs of that type. The other formats of 8 bits have one.
static bool holdsNaNs(DType t) { return isFloat(partOf(t)) || t == DType::F8E4M3FN || t == DType::F8E5M2; }

UOpRef numerics::selectCanonical(Builder &b, UOpRef x) {
  if (isComplex(x->dtype) || !holdsNaNs(x->dtype)) return x;
  auto ordered = [&](UOpRef v) {
    UOpRef wide = byteSize(v->dtype) < 4 ? b.cast(v, DType::F32) : v;
    return b.eq(wide, wide);
  };
  uint64_t aNaN = (uint64_t(1) << (bitWidth(x->dtype) - 1)) - 1; // of every such type
  UOpRef nan = b.bits(x->dtype, madeCanonical(x->dtype, aNaN));
  if (x->is(Op::Select) && x == b.select(ordered(x->src[1]), x->src[1], nan)) return x;
  return b.select(ordered(x), x, nan);
}

namespace {
/// An op whose result holds elements of its `data` sources and literals of its own, nothing else. `Push`: its elements
/// are about as many as theirs, or some of theirs are in place, so they are made canonical rather than the result.
struct Carrier {
  Op op;
  bool push;
  llvm::SmallVector<unsigned, 2> data;
};
} // namespace
static const Carrier *carrier(UOpRef n) {
  static const Carrier rows[] = {
      {Op::Reshape, true, {0}},    {Op::Permute, true, {0}},    {Op::Flip, true, {0}},
      {Op::Detach, true, {0}},     {Op::Tap, true, {0}},        {Op::UpdateAt, true, {0, 1}},
      {Op::Scatter, true, {0, 2}}, {Op::Select, false, {1, 2}}, {Op::Expand, false, {0}},
      {Op::Pad, false, {0}},       {Op::Shrink, false, {0}},    {Op::Window, false, {0}},
      {Op::Complex, true, {0, 1}}, {Op::Gather, false, {0}},    {Op::Pick, false, {0}},
      {Op::SliceAt, false, {0}},   {Op::Compact, false, {0}},   {Op::After, true, {0}},
  };
  if (n->is(Op::Scatter) && ScatterKind(n->ints[1]) != ScatterKind::Set) return nullptr;
  if (n->is(Op::Pad) && !bitsAreCanonical(n->dtype, uint64_t(n->ints[0]))) return nullptr;
  for (const Carrier &c : rows)
    if (c.op == n->op) return &c;
  return nullptr;
}

/// Whether it is what programs of a kernel store by places: what they store is canonical (Numerics.cpp).
static bool isPlaced(UOpRef n) {
  if (!n->is(Op::Proj) || !n->src[0]->is(Op::Custom)) return false;
  UOpRef r = n->src[0]->fns[0]->src[n->ints[0]];
  return r->is(Op::Place) && bitsAreCanonical(r->dtype, uint64_t(r->ints[0]));
}

/// The canonical value of a node whose carried sources are done.
UOpRef Canonical::fromSources(UOpRef n) {
  bool rounds = n->is(Op::Cast) && !isFloat(n->dtype); // to 8 bits: it gives the canonical NaN
  if (rounds || n->is(Op::State) || isPlaced(n) || ((n->is(Op::Real) || n->is(Op::Imag)) && n->src[0]->is(Op::State)) ||
      (n->isConst() && bitsAreCanonical(n->dtype, uint64_t(n->ints[0]))))
    return n;
  if (const Carrier *c = carrier(n)) {
    llvm::SmallVector<UOpRef, 8> src(n->src);
    for (unsigned i : c->data) src[i] = done.lookup(src[i]);
    if (c->push || llvm::ArrayRef<UOpRef>(src) == n->src) return b.c.withSources(n, src);
  }
  return selectCanonical(b, n);
}

UOpRef Canonical::of(UOpRef x) {
  llvm::SmallVector<UOpRef, 16> stack{x};
  while (!stack.empty()) {
    UOpRef n = stack.back();
    size_t height = stack.size();
    if (!done.contains(n) && holdsNaNs(n->dtype))
      if (const Carrier *c = carrier(n))
        for (unsigned i : c->data)
          if (!done.contains(n->src[i])) stack.push_back(n->src[i]);
    if (stack.size() != height) continue;
    stack.pop_back();
    if (!done.contains(n)) done[n] = holdsNaNs(n->dtype) ? fromSources(n) : n;
  }
  return done.lookup(x);
}

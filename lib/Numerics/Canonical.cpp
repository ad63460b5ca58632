//===- Canonical.cpp: canonical NaNs (clause N6) ---------------------------===//
#include "Canonical.h"
#include "Lower.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace astra;
using namespace astra::numerics;

/// Sign 0, all exponent bits and the highest mantissa bit 1.
static uint64_t canonicalBits(DType t) {
  const DTypeInfo &d = info(t);
  return ((uint64_t(2) << d.exponentBits) - 1) << (d.mantissaBits - 1);
}

/// False for the bits of a NaN that is not the canonical one.
static bool bitsAreCanonical(DType t, uint64_t bits) {
  const DTypeInfo &d = info(t);
  uint64_t magnitude = bits & ((uint64_t(1) << (d.bits - 1)) - 1);
  uint64_t infinity = ((uint64_t(1) << d.exponentBits) - 1) << d.mantissaBits;
  return magnitude <= infinity || bits == canonicalBits(t);
}

static bool holdsNaNs(DType t) { return isFloat(partOf(t)); }

UOpRef numerics::selectCanonical(Builder &b, UOpRef x) {
  if (!isFloat(x->dtype)) return x;
  auto ordered = [&](UOpRef v) {
    UOpRef wide = isNarrow(v->dtype) ? b.cast(v, DType::F32) : v;
    return b.eq(wide, wide);
  };
  UOpRef nan = b.bits(x->dtype, canonicalBits(x->dtype));
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

/// The canonical value of a node whose carried sources are done.
UOpRef Canonical::fromSources(UOpRef n) {
  if (n->is(Op::State) || ((n->is(Op::Real) || n->is(Op::Imag)) && n->src[0]->is(Op::State)) ||
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

//===- Movement.cpp: derivatives of movement, casts, parts and marks -------===//
// Takes:    a node that moves elements of one source.
// Gives:    its tangent, the same movement; its transpose, which brings each element back and adds up those that went
//           to several places.
#include "Rows.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::autograd;
using llvm::SmallVector;

static UOpRef same(Builder &b, UOpRef n, UOpRef d) { // the op on the tangent
  SmallVector<UOpRef, 8> src{d};
  llvm::append_range(src, n->src.drop_front());
  return b.c.withSources(n, src);
}

UOpRef autograd::tangentReshape(Builder &b, UOpRef n, Tangents d) { return same(b, n, d[0]); }
UOpRef autograd::transposeReshape(Builder &b, UOpRef n, UOpRef g, unsigned) { return b.reshape(g, n->src[0]->shape); }

UOpRef autograd::tangentPermute(Builder &b, UOpRef n, Tangents d) { return same(b, n, d[0]); }
UOpRef autograd::transposePermute(Builder &b, UOpRef n, UOpRef g, unsigned) {
  SmallVector<int64_t, 6> inverse(n->ints.size());
  for (size_t i = 0; i < n->ints.size(); ++i) inverse[n->ints[i]] = i;
  return b.permute(g, inverse);
}

UOpRef autograd::tangentExpand(Builder &b, UOpRef n, Tangents d) { return same(b, n, d[0]); }
UOpRef autograd::transposeExpand(Builder &b, UOpRef n, UOpRef g, unsigned) {
  SmallVector<int64_t, 6> axes;
  for (unsigned i = 0; i < n->rank(); ++i)
    if (n->shape[i] != n->src[0]->shape[i]) axes.push_back(i);
  return b.reshape(b.reduce(ReduceKind::Sum, g, axes), n->src[0]->shape);
}

static llvm::ArrayRef<UOpRef> group(UOpRef n, unsigned g) {
  size_t each = n->indices().size() / 2;
  return n->indices().slice(g * each, each);
}
UOpRef autograd::tangentPad(Builder &b, UOpRef n, Tangents d) { return b.pad(d[0], group(n, 0), group(n, 1)); }
UOpRef autograd::transposePad(Builder &b, UOpRef n, UOpRef g, unsigned) {
  return b.shrink(g, group(n, 0), n->src[0]->shape);
}

UOpRef autograd::tangentShrink(Builder &b, UOpRef n, Tangents d) { return same(b, n, d[0]); }
UOpRef autograd::transposeShrink(Builder &b, UOpRef n, UOpRef g, unsigned) {
  SmallVector<UOpRef, 6> after;
  for (auto [extent, begin, size] : llvm::zip(n->src[0]->shape, group(n, 0), group(n, 1)))
    after.push_back(idxSub(b.c, extent, idxAdd(b.c, begin, size)));
  return b.pad(g, group(n, 0), after);
}

UOpRef autograd::tangentFlip(Builder &b, UOpRef n, Tangents d) { return same(b, n, d[0]); }
UOpRef autograd::transposeFlip(Builder &b, UOpRef n, UOpRef g, unsigned) { return b.flip(g, n->ints); }

// Overlap-add, a plain chain over the window (N4): x[.., i, ..] gets g[.., o, .., k] where o*stride + k*dilation = i.
// As a contract with 1 it is that chain up to 512 elements, since fma(g, 1, c) is c + g; what the window does not reach
// is outside of the domain. A longer window is laid out first and folded by a chain.
UOpRef autograd::tangentWindow(Builder &b, UOpRef n, Tangents d) { return same(b, n, d[0]); }
UOpRef autograd::transposeWindow(Builder &b, UOpRef n, UOpRef g, unsigned) {
  int64_t axis = n->ints[0], size = n->ints[1], stride = n->ints[2], dilation = n->ints[3], rank = n->src[0]->rank();
  ContractSpec s;
  bool folds = size <= 512;
  s.kept = rank + !folds, s.reduced = folds;
  for (int64_t i = 0; i < rank; ++i) s.a.push_back({{{i, 1}}, 0, 1});
  s.a.push_back({{{rank, 1}}, 0, 1});
  s.a[axis] = {{{axis, 1}, {rank, -dilation}}, 0, stride};
  s.domain = {{{{axis, 1}, {rank, -dilation}}, 0, 1}, {{{axis, -1}, {rank, dilation}}, 0, 1}};
  UOpRef last = idxMul(b.c, idxSub(b.c, n->shape[axis], b.idx(1)), b.idx(stride));
  SmallVector<UOpRef, 6> extents(n->src[0]->shape);
  extents.push_back(b.idx(size));
  UOpRef y = b.contract(s, g, b.litInt(g->dtype, 1), extents, {b.idx(0), last});
  return folds ? y : b.reduce(ReduceKind::Sum, y, {rank}, /*chain=*/true);
}

UOpRef autograd::tangentCast(Builder &b, UOpRef n, Tangents d) { return b.cast(d[0], n->dtype); }
UOpRef autograd::transposeCast(Builder &b, UOpRef n, UOpRef g, unsigned) {
  DType to = n->src[0]->dtype; // a real value became a complex one: its imaginary part is constant
  return b.cast(isComplex(g->dtype) && !isComplex(to) ? b.real(g) : g, to);
}

UOpRef autograd::tangentComplex(Builder &b, UOpRef n, Tangents d) {
  return b.complex(orZeros(b, d[0], n->src[0]), orZeros(b, d[1], n->src[1]));
}
UOpRef autograd::transposeComplex(Builder &b, UOpRef, UOpRef g, unsigned i) { return i ? b.imag(g) : b.real(g); }
UOpRef autograd::tangentReal(Builder &b, UOpRef, Tangents d) { return b.real(d[0]); }
UOpRef autograd::transposeReal(Builder &b, UOpRef, UOpRef g, unsigned) { return b.complex(g, zerosLike(b, g)); }
UOpRef autograd::tangentImag(Builder &b, UOpRef, Tangents d) { return b.imag(d[0]); }
UOpRef autograd::transposeImag(Builder &b, UOpRef, UOpRef g, unsigned) { return b.complex(zerosLike(b, g), g); }

UOpRef autograd::tangentTap(Builder &, UOpRef, Tangents d) { return d[0]; }
UOpRef autograd::transposeTap(Builder &, UOpRef, UOpRef g, unsigned) { return g; }
UOpRef autograd::tangentAfter(Builder &, UOpRef, Tangents d) { return d[0]; }
UOpRef autograd::transposeAfter(Builder &, UOpRef, UOpRef g, unsigned i) { return i ? nullptr : g; }

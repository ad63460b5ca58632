//===- Reduce.cpp: derivatives of reduce and cumulate ----------------------===//
// Takes:    a reduce or cumulate node of a float type.
// Gives:    its tangent; the transposes of sums. Tangents of products, maxima and minima are graphs that the sweep
//           transposes.
// Keeps:    nothing is divided by an element: products of all others are running products from both sides, and those
//           are differentiated by their recurrence, so zeros are right in every derivative. Elements that share an
//           extreme share its gradient in equal parts (PyTorch's amax); of a running extreme the last of equal elements
//           has it (cummax).
#include "Rows.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::autograd;
using llvm::ArrayRef;
using llvm::SmallVector;

UOpRef autograd::spread(Builder &b, UOpRef x, ArrayRef<int64_t> axes, Shape shape) {
  SmallVector<UOpRef, 6> ones(shape);
  for (int64_t a : axes) ones[a] = b.idx(1);
  return b.expand(b.reshape(x, ones), shape);
}

UOpRef autograd::domainMask(Builder &b, Shape shape, ArrayRef<AffineForm> domain, ArrayRef<UOpRef> bounds) {
  UOpRef mask = nullptr;
  for (auto [form, bound] : llvm::zip(domain, bounds)) {
    UOpRef sum = b.splat(b.fromIndex(bound, DType::I64), shape);
    for (auto [axis, k] : form.terms) sum = b.add(sum, b.mul(b.iota(DType::I64, shape, axis), b.litInt(DType::I64, k)));
    UOpRef inside = b.bin(Op::Le, b.litInt(DType::I64, 0), sum);
    mask = mask ? b.bin(Op::And, mask, inside) : inside;
  }
  return mask;
}

/// The reduced axes as one, the last; elements outside the domain are `fill`.
static UOpRef asRows(Builder &b, UOpRef x, const ReduceSpec &s, ArrayRef<UOpRef> bounds, double fill) {
  if (UOpRef mask = domainMask(b, x->shape, s.domain, bounds)) x = b.select(mask, x, b.lit(x->dtype, fill));
  SmallVector<int64_t, 6> perm;
  SmallVector<UOpRef, 6> shape, reduced;
  for (unsigned i = 0; i < x->rank(); ++i)
    if (!llvm::is_contained(s.axes, int64_t(i))) perm.push_back(i), shape.push_back(x->shape[i]);
  for (int64_t a : s.axes) perm.push_back(a), reduced.push_back(x->shape[a]);
  shape.push_back(idxProduct(b.c, reduced));
  return b.reshape(b.permute(x, perm), shape);
}

/// The running product along an axis, of the elements before each one: 1 for the first.
static UOpRef productBefore(Builder &b, UOpRef running, int64_t axis) {
  SmallVector<UOpRef, 6> none(running->rank(), b.idx(0)), one = none;
  one[axis] = b.idx(1);
  UOpRef shifted = b.pad(running, one, none, uint64_t(b.lit(running->dtype, 1)->ints[0]));
  return b.shrink(shifted, none, running->shape);
}

static UOpRef tangentProd(Builder &b, UOpRef n, const ReduceSpec &s, UOpRef d) {
  UOpRef x = asRows(b, n->src[0], s, n->indices(), 1), dx = asRows(b, d, s, n->indices(), 0);
  int64_t last = x->rank() - 1;
  UOpRef before = productBefore(b, b.cumulate(CumulateKind::Prod, x, last), last);
  UOpRef after = productBefore(b, b.cumulate(CumulateKind::Prod, b.flip(x, {last}), last), last);
  UOpRef others = b.mul(before, b.flip(after, {last}));
  return b.reduce(ReduceKind::Sum, b.mul(others, dx), {last});
}

static UOpRef tangentExtreme(Builder &b, UOpRef n, const ReduceSpec &s, UOpRef d) {
  UOpRef x = n->src[0], one = b.lit(x->dtype, 1), zero = b.lit(x->dtype, 0);
  UOpRef extreme = b.eq(x, spread(b, n, s.axes, x->shape));
  if (UOpRef mask = domainMask(b, x->shape, s.domain, n->indices())) extreme = b.bin(Op::And, extreme, mask);
  UOpRef count = b.reduce(ReduceKind::Sum, b.tern(Op::Select, extreme, b.splat(one, x->shape), zero), s.axes);
  return b.div(b.reduce(ReduceKind::Sum, b.select(extreme, d, zero), s.axes), count);
}

UOpRef autograd::tangentReduce(Builder &b, UOpRef n, Tangents d) {
  ReduceSpec s = llvm::cantFail(decodeReduce(n->ints));
  if (s.kind == ReduceKind::Sum) return b.reduce(s, d[0], n->indices());
  return s.kind == ReduceKind::Prod ? tangentProd(b, n, s, d[0]) : tangentExtreme(b, n, s, d[0]);
}
UOpRef autograd::transposeReduce(Builder &b, UOpRef n, UOpRef g, unsigned) {
  ReduceSpec s = llvm::cantFail(decodeReduce(n->ints));
  Shape shape = n->src[0]->shape;
  UOpRef all = spread(b, g, s.axes, shape), mask = domainMask(b, shape, s.domain, n->indices());
  return mask ? b.select(mask, all, b.lit(g->dtype, 0)) : all;
}

/// dy[i] = dy[i-1] * x[i] + y[i-1] * dx[i]: a scan along the axis.
static UOpRef tangentRunningProd(Builder &b, UOpRef n, int64_t axis, UOpRef d) {
  SmallVector<int64_t, 6> perm{axis}, inverse(n->rank());
  for (unsigned i = 0; i < n->rank(); ++i)
    if (int64_t(i) != axis) perm.push_back(i);
  for (size_t p = 0; p < perm.size(); ++p) inverse[perm[p]] = p;
  UOpRef rows[] = {n->src[0], productBefore(b, n, axis), d};
  for (UOpRef &r : rows) r = b.permute(r, perm);
  Shape shape = rows[0]->shape, row = shape.drop_front();
  auto arg = [&](int64_t i) { return b.arg(i, n->dtype, row); };
  UOpRef next = b.add(b.mul(arg(0), arg(1)), b.mul(arg(2), arg(3)));
  UOpRef body = b.c.make(Op::Func, {next, next}, {4});
  UOpRef scan =
      b.c.make(Op::Scan, {zeros(b, n->dtype, row), rows[0], rows[1], rows[2], shape[0]}, {1, 3}, {}, DType::Void, body);
  SmallVector<UOpRef, 6> stacked{scan};
  llvm::append_range(stacked, shape);
  return b.permute(b.c.make(Op::Proj, stacked, {1}, {}, n->dtype), inverse);
}

static UOpRef tangentRunningExtreme(Builder &b, UOpRef n, CumulateKind kind, int64_t axis, UOpRef d) {
  UOpRef x = n->src[0], at = b.iota(DType::I64, x->shape, axis);
  UOpRef less = kind == CumulateKind::Max ? b.lt(x, n) : b.lt(n, x);
  UOpRef leads = b.select(less, b.litInt(DType::I64, 0), at); // where x is the extreme so far
  return b.pick(d, b.cumulate(CumulateKind::Max, leads, axis), axis);
}

UOpRef autograd::tangentCumulate(Builder &b, UOpRef n, Tangents d) {
  auto kind = CumulateKind(n->ints[0]);
  if (kind == CumulateKind::Sum) return b.cumulate(kind, d[0], n->ints[1]);
  return kind == CumulateKind::Prod ? tangentRunningProd(b, n, n->ints[1], d[0])
                                    : tangentRunningExtreme(b, n, kind, n->ints[1], d[0]);
}
UOpRef autograd::transposeCumulate(Builder &b, UOpRef n, UOpRef g, unsigned) {
  int64_t axis = n->ints[1];
  return b.flip(b.cumulate(CumulateKind::Sum, b.flip(g, {axis}), axis), {axis});
}

//===- Builder.cpp: making graphs from C++ ---------------------------------===//
#include "astra/IR/Builder.h"
#include "UsualOrder.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

UOpRef Builder::lit(DType t, double v) {
  DType part = partOf(t);
  if (!isFloat(part)) return litInt(t, int64_t(v));
  llvm::APFloat f(v);
  bool inexact;
  f.convert(semanticsOf(part), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return c.literal(t, f.bitcastToAPInt().getZExtValue());
}
UOpRef Builder::litInt(DType t, int64_t v) {
  if (isFloat(partOf(t))) return lit(t, double(v));
  unsigned w = bitWidth(t);
  uint64_t bits = t == DType::Bool ? v != 0 : w < 64 ? uint64_t(v) & ((1ull << w) - 1) : uint64_t(v);
  return t == DType::Index ? c.index(v) : c.literal(t, bits);
}
UOpRef Builder::dim(llvm::StringRef name, int64_t lo, int64_t hi) { return c.make(Op::Dim, {}, {lo, hi}, name); }
UOpRef Builder::arg(int64_t index, DType t, Shape shape) { return c.make(Op::Arg, shape, {index}, {}, t); }
UOpRef Builder::param(llvm::StringRef name, DType t, Shape shape) { return c.make(Op::Param, shape, {}, name, t); }
UOpRef Builder::state(llvm::StringRef name, DType t, Shape shape) { return c.make(Op::State, shape, {}, name, t); }
UOpRef Builder::iota(DType t, Shape shape, int64_t axis) { return c.make(Op::Iota, shape, {axis}, {}, t); }
UOpRef Builder::fromIndex(UOpRef index, DType t) { return c.make(Op::FromIndex, {index}, {}, {}, t); }
UOpRef Builder::extent(UOpRef x, int64_t lo, int64_t hi) { return c.make(Op::Extent, {x}, {lo, hi}); }

UOpRef Builder::un(Op op, UOpRef x) { return c.make(op, {x}); }
UOpRef Builder::bin(Op op, UOpRef x, UOpRef y) {
  if (x->rank() == 0 && y->rank() != 0) x = splat(x, y->shape);
  if (y->rank() == 0 && x->rank() != 0) y = splat(y, x->shape);
  return c.make(op, {x, y});
}
UOpRef Builder::tern(Op op, UOpRef x, UOpRef y, UOpRef z) {
  Shape s = x->rank() ? x->shape : y->rank() ? y->shape : z->shape;
  UOpRef v[] = {x, y, z};
  if (!s.empty())
    for (UOpRef &e : v)
      if (e->rank() == 0) e = splat(e, s);
  return c.make(op, v);
}
UOpRef Builder::lookup16(UOpRef i, DType t, ArrayRef<uint64_t> table) {
  SmallVector<int64_t, 16> ints(table.begin(), table.end());
  return c.make(Op::Lookup16, {i}, ints, {}, t);
}
UOpRef Builder::cast(UOpRef x, DType to, bool saturate) {
  return x->dtype == to ? x : c.make(Op::Cast, {x}, {saturate}, {}, to);
}
UOpRef Builder::bitcast(UOpRef x, DType to) { return x->dtype == to ? x : c.make(Op::Bitcast, {x}, {}, {}, to); }

static SmallVector<UOpRef, 8> join(std::initializer_list<ArrayRef<UOpRef>> lists) {
  SmallVector<UOpRef, 8> all;
  for (ArrayRef<UOpRef> l : lists) all.append(l.begin(), l.end());
  return all;
}
UOpRef Builder::reshape(UOpRef x, Shape shape) {
  return x->shape == shape ? x : c.make(Op::Reshape, join({{x}, shape}));
}
UOpRef Builder::permute(UOpRef x, ArrayRef<int64_t> perm) {
  bool identity = true;
  for (size_t i = 0; i < perm.size(); ++i) identity &= perm[i] == int64_t(i);
  return identity ? x : c.make(Op::Permute, {x}, perm);
}
UOpRef Builder::expand(UOpRef x, Shape shape) { return x->shape == shape ? x : c.make(Op::Expand, join({{x}, shape})); }
UOpRef Builder::pad(UOpRef x, ArrayRef<UOpRef> lo, ArrayRef<UOpRef> hi, uint64_t value) {
  return c.make(Op::Pad, join({{x}, lo, hi}), {int64_t(value)});
}
UOpRef Builder::shrink(UOpRef x, ArrayRef<UOpRef> begin, ArrayRef<UOpRef> size) {
  return c.make(Op::Shrink, join({{x}, begin, size}));
}
UOpRef Builder::flip(UOpRef x, ArrayRef<int64_t> axes) { return axes.empty() ? x : c.make(Op::Flip, {x}, axes); }
UOpRef Builder::window(UOpRef x, int64_t axis, int64_t size, int64_t stride, int64_t dilation) {
  return c.make(Op::Window, {x}, {axis, size, stride, dilation});
}
UOpRef Builder::broadcastTo(UOpRef x, Shape shape) {
  SmallVector<UOpRef, 6> padded(shape.size() - x->rank(), c.index(1));
  padded.append(x->shape.begin(), x->shape.end());
  return expand(reshape(x, padded), shape);
}
UOpRef Builder::splat(UOpRef scalar, Shape shape) { return broadcastTo(scalar, shape); }
UOpRef Builder::concat(ArrayRef<UOpRef> xs, int64_t axis) {
  SmallVector<UOpRef, 6> total(xs[0]->shape);
  UOpRef zero = c.index(0), end = zero;
  for (UOpRef x : xs) end = idxAdd(c, end, x->shape[axis]);
  total[axis] = end;
  UOpRef at = iota(DType::I64, total, axis), result = nullptr, begin = end;
  for (UOpRef x : llvm::reverse(xs)) { // the last part first, so that each select tests one bound
    UOpRef stop = begin;
    begin = idxSub(c, begin, x->shape[axis]);
    SmallVector<UOpRef, 6> lo(x->rank(), zero), hi(x->rank(), zero);
    lo[axis] = begin;
    hi[axis] = idxSub(c, end, stop);
    UOpRef p = pad(x, lo, hi);
    result = result ? select(lt(at, fromIndex(stop, DType::I64)), p, result) : p;
  }
  return result;
}

UOpRef Builder::reduce(ReduceKind kind, UOpRef x, ArrayRef<int64_t> axes, bool chain) {
  if (axes.empty()) return x;
  ReduceOrder order = usualOrder(kind, x->dtype);
  if (chain && order == ReduceOrder::Lane64) order = ReduceOrder::Chain;
  ReduceSpec s{kind, order, {axes.begin(), axes.end()}, {}};
  return reduce(s, x, {});
}
UOpRef Builder::reduce(const ReduceSpec &spec, UOpRef x, ArrayRef<UOpRef> domainIndices) {
  return c.make(Op::Reduce, join({{x}, domainIndices}), encode(spec));
}
UOpRef Builder::contract(const ContractSpec &spec, UOpRef a, UOpRef b, ArrayRef<UOpRef> extents,
                         ArrayRef<UOpRef> domainIndices) {
  return c.make(Op::Contract, join({{a}, {b}, extents, domainIndices}), encode(spec));
}
UOpRef Builder::contract(const ContractSpec &spec, UOpRef a, UOpRef b, UOpRef outside, ArrayRef<UOpRef> extents) {
  return c.make(Op::Contract, join({{a}, {b}, {outside}, extents}), encode(spec));
}
UOpRef Builder::matmul(UOpRef a, UOpRef b) {
  int64_t batch = a->rank() - 2;
  auto label = [](int64_t l) { return AffineForm{{{l, 1}}, 0, 1}; };
  ContractSpec s;
  s.kept = batch + 2;
  s.reduced = 1;
  for (int64_t i = 0; i < batch; ++i) s.a.push_back(label(i)), s.b.push_back(label(i));
  s.a.push_back(label(batch)), s.a.push_back(label(batch + 2));
  s.b.push_back(label(batch + 2)), s.b.push_back(label(batch + 1));
  SmallVector<UOpRef, 6> extents(a->shape.begin(), a->shape.begin() + batch + 1);
  extents.push_back(b->shape[batch + 1]);
  extents.push_back(a->shape[batch + 1]);
  return contract(s, a, b, extents);
}
UOpRef Builder::argReduce(bool max, UOpRef x, int64_t axis) { return c.make(Op::ArgReduce, {x}, {max ? 0 : 1, axis}); }
UOpRef Builder::cumulate(CumulateKind kind, UOpRef x, int64_t axis) {
  return c.make(Op::Cumulate, {x}, {int64_t(kind), axis});
}
UOpRef Builder::gather(UOpRef x, UOpRef index, int64_t axis) { return c.make(Op::Gather, {x, index}, {axis}); }
UOpRef Builder::pick(UOpRef x, UOpRef index, int64_t axis) { return c.make(Op::Pick, {x, index}, {axis}); }
UOpRef Builder::scatter(ScatterKind kind, UOpRef x, UOpRef index, UOpRef update, int64_t axis) {
  return c.make(Op::Scatter, {x, index, update}, {axis, int64_t(kind)});
}
UOpRef Builder::sliceAt(UOpRef x, ArrayRef<UOpRef> start, ArrayRef<UOpRef> size) {
  return c.make(Op::SliceAt, join({{x}, start, size}));
}
UOpRef Builder::updateAt(UOpRef x, UOpRef value, ArrayRef<UOpRef> start) {
  return c.make(Op::UpdateAt, join({{x}, {value}, start}));
}
UOpRef Builder::compact(UOpRef x, UOpRef mask) {
  UOpRef count = reduce(ReduceKind::Sum, cast(mask, DType::I64), {0});
  return c.make(Op::Compact, {x, mask, extent(count, 0, mask->shape[0]->hi)});
}
UOpRef Builder::argSort(UOpRef x, int64_t axis, bool descending) {
  return c.make(Op::ArgSort, {x}, {axis, descending});
}
UOpRef Builder::random(UOpRef seed, UOpRef stream, Shape shape) {
  return c.make(Op::Random, join({{seed}, {stream}, shape}));
}

//===- BatchedOps.cpp: an op over one axis more, row by row ----------------===//
// Takes:    a node with a batched source.
// Gives:    its image, by the row of its op. An axis is one further, a list of extents has one more, an operand that is
//           shared is repeated where the op needs it whole; `random`, whose sources are scalars, goes into a `scan`
//           over the batch.
#include "Batching.h"

using namespace astra;
using namespace astra::vmapping;

UOpRef Batching::front(UOpRef x, unsigned axis) {
  Ints perm{int64_t(axis)};
  for (unsigned i = 0; i < x->rank(); ++i)
    if (i != axis) perm.push_back(i);
  return b.permute(x, perm);
}

UOpRef Batching::second(UOpRef x) { return front(x, 1); }

UOpRef Batching::reduce(const Node &at) {
  ReduceSpec spec = llvm::cantFail(decodeReduce(at.n->ints));
  for (int64_t &a : spec.axes) ++a;
  for (AffineForm &form : spec.domain) shift(form);
  return b.reduce(spec, whole(at, 0), at.indices);
}

/// One kept label more, the first; an operand that is shared is not indexed by it.
UOpRef Batching::contract(const Node &at) {
  ContractSpec spec = llvm::cantFail(decodeContract(at.n->ints));
  ++spec.kept;
  for (auto *forms : {&spec.a, &spec.b, &spec.outside})
    for (AffineForm &form : *forms) shift(form);
  for (AffineForm &form : spec.domain) shift(form);
  const AffineForm batch{{{0, 1}}, 0, 1};
  if (at.batched(0)) spec.a.insert(spec.a.begin(), batch);
  if (at.batched(1)) spec.b.insert(spec.b.begin(), batch);
  ArrayRef<UOpRef> indices = at.indices;
  size_t labels = indices.size() - spec.domain.size();
  if (!spec.outside.empty()) { // its kept axes are behind those of taps
    UOpRef outside = at.source(2);
    if (at.batched(2)) {
      Ints perm;
      for (unsigned i = 1; i < outside->rank(); ++i) perm.push_back(i);
      perm.push_back(0);
      outside = b.permute(outside, perm), spec.outside.push_back(batch);
    }
    return b.contract(spec, at.source(0), at.source(1), outside, withSize(indices));
  }
  return b.contract(spec, at.source(0), at.source(1), withSize(indices.take_front(labels)), indices.drop_front(labels));
}

/// A shared tensor is gathered by all indices at once; shared indices gather from all tensors; where both are batched
/// each element of the batch picks along the axis.
UOpRef Batching::gather(const Node &at) {
  UOpRef x = at.source(0), index = at.source(1);
  int64_t axis = at.n->ints[0];
  if (!at.batched(0)) return front(b.gather(x, index, axis), axis);
  if (!at.batched(1)) return b.gather(x, index, axis + 1);
  List one(x->rank(), c.index(1)), all(x->shape.begin(), x->shape.end());
  one[0] = size;
  one[axis + 1] = all[axis + 1] = idxProduct(c, index->shape.drop_front());
  return b.reshape(b.pick(x, b.expand(b.reshape(index, one), all), axis + 1), withSize(at.shape));
}

/// What a group exchanges has the axis of its members in front.
UOpRef Batching::reduceScatter(const Node &at) {
  return c.make(at.n->op, {second(whole(at, 0))}, at.n->ints, at.n->str);
}
UOpRef Batching::allGather(const Node &at) { return second(same(at)); }
UOpRef Batching::allToAll(const Node &at) { return second(c.make(at.n->op, {second(whole(at, 0))}, {}, at.n->str)); }

/// Elements of the batch are not cut.
UOpRef Batching::reshard(const Node &at) {
  llvm::StringRef inside = llvm::StringRef(at.n->str).trim();
  inside.consume_front("(");
  return c.make(Op::Reshard, {whole(at, 0)}, {}, ((inside.starts_with(")") ? "(-" : "(-, ") + inside).str());
}

/// The place of a window of `size` along an axis of x, for each element: [size of the batch, 1, ...], clamped so that
/// the window stays inside.
UOpRef Batching::place(const Node &at, unsigned source, UOpRef extent, UOpRef size, unsigned rank) {
  UOpRef last = b.fromIndex(idxSub(c, extent, size), DType::I64), start = whole(at, source);
  start = b.max(b.min(start, last), b.litInt(DType::I64, 0));
  List one(rank, c.index(1));
  one[0] = this->size;
  return b.reshape(start, one);
}

/// Axis by axis.
UOpRef Batching::sliceAt(const Node &at) {
  UOpRef x = whole(at, 0);
  unsigned rank = x->rank();
  for (unsigned axis = 1; axis < rank; ++axis) {
    List shape(x->shape.begin(), x->shape.end());
    UOpRef extent = shape[axis], window = shape[axis] = at.indices[axis - 1];
    UOpRef start = b.expand(place(at, axis, extent, window, rank), shape);
    x = b.pick(x, b.add(start, b.iota(DType::I64, shape, axis)), axis);
  }
  return x;
}

/// The new values, brought to where they belong, where that is inside of their window.
UOpRef Batching::updateAt(const Node &at) {
  UOpRef x = whole(at, 0), value = whole(at, 1), inside = nullptr, zero = b.litInt(DType::I64, 0);
  unsigned rank = x->rank();
  for (unsigned axis = 1; axis < rank; ++axis) {
    UOpRef window = value->shape[axis], start = place(at, axis + 1, x->shape[axis], window, rank);
    auto along = [&](Shape shape) { // from the start of the window
      return b.sub(b.iota(DType::I64, shape, axis), b.expand(start, shape));
    };
    UOpRef here = along(x->shape);
    UOpRef holds = b.bin(Op::And, b.bin(Op::Le, zero, here), b.lt(here, b.fromIndex(window, DType::I64)));
    inside = inside ? b.bin(Op::And, inside, holds) : holds;
    List shape(value->shape.begin(), value->shape.end());
    shape[axis] = x->shape[axis];
    value = b.pick(value, along(shape), axis);
  }
  return inside ? c.make(Op::Select, {inside, value, x}) : value;
}

/// Element by element: batched sources are sliced, the others are the same in every step.
UOpRef Batching::loop(const Node &at) {
  unsigned slices = 0, next = 0, count = at.n->ntensors;
  List src, args(count);
  for (bool batched : {true, false}) {
    for (unsigned i = 0; i < count; ++i) {
      if (at.batched(i) != batched) continue;
      UOpRef x = at.source(i);
      src.push_back(x);
      args[i] = b.arg(next++, x->dtype, x->shape.drop_front(batched));
    }
    if (batched) slices = next;
  }
  args.append(at.indices.begin(), at.indices.end());
  UOpRef function = c.make(Op::Func, {c.withSources(at.n, args)}, {int64_t(count)});
  src.push_back(size);
  List proj{c.make(Op::Scan, src, {0, int64_t(slices)}, {}, DType::Void, {function})};
  proj.append(withSize(at.shape));
  return c.make(Op::Proj, proj, {0}, {}, at.n->dtype);
}

Batching::Row Batching::rowOf(Op op) {
  static constexpr struct {
    Op op;
    Row row;
  } rows[] = {
      {Op::Complex, &Batching::same},
      {Op::Real, &Batching::same},
      {Op::Imag, &Batching::same},
      {Op::Detach, &Batching::same},
      {Op::Tap, &Batching::same},
      {Op::After, &Batching::same},
      {Op::Reshape, &Batching::shape},
      {Op::Expand, &Batching::shape},
      {Op::Permute, &Batching::permute},
      {Op::Pad, &Batching::pad},
      {Op::Shrink, &Batching::shrink},
      {Op::Flip, &Batching::axes},
      {Op::Words, &Batching::same},
      {Op::Window, &Batching::axis<0>},
      {Op::Reduce, &Batching::reduce},
      {Op::ArgReduce, &Batching::axis<1>},
      {Op::Contract, &Batching::contract},
      {Op::Cumulate, &Batching::axis<1>},
      {Op::Gather, &Batching::gather},
      {Op::Pick, &Batching::axis<0>},
      {Op::Scatter, &Batching::axis<0>},
      {Op::ArgSort, &Batching::axis<0>},
      {Op::SliceAt, &Batching::sliceAt},
      {Op::UpdateAt, &Batching::updateAt},
      {Op::Random, &Batching::loop},
      {Op::AllReduce, &Batching::same},
      {Op::Shift, &Batching::same},
      {Op::ReduceScatter, &Batching::reduceScatter},
      {Op::AllGather, &Batching::allGather},
      {Op::AllToAll, &Batching::allToAll},
      {Op::Reshard, &Batching::reshard},
  };
  if (has(op, Elementwise)) return &Batching::same;
  for (const auto &r : rows)
    if (r.op == op) return r.row;
  return nullptr;
}

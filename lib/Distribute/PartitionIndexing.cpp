//===- PartitionIndexing.cpp: ops on parts: rows by number ------------------===//
// Takes:    an op that reads or writes elements by their number along an axis.
// Gives:    how its result is cut, and the op on parts.
// Keeps:    an index that another shard has reads 0 and is dropped by writes: where rows are cut each shard sees to its
//           own, and what it reads are parts of a sum.
#include "Partition.h"

using namespace astra;
using namespace astra::distribute;

/// Indices among all rows as indices among a shard's own.
UOpRef Partition::offset(UOpRef index, UOpRef rows, MeshAxes by) {
  UOpRef first = b.mul(rankIndex(by), b.fromIndex(rows, DType::I64));
  return b.sub(b.cast(index, DType::I64), b.splat(first, index->shape));
}

static ReduceKind kindOfParts(DType t) { return t == DType::Bool ? ReduceKind::Or : ReduceKind::Sum; }

bool Partition::gather(UOpRef n) {
  UOpRef x = n->src[0], index = n->src[1];
  unsigned axis = n->ints[0];
  Axes axes(axesOf(x).begin(), axesOf(x).begin() + axis);
  llvm::append_range(axes, axesOf(index));
  axes.append(axesOf(x).begin() + axis + 1, axesOf(x).end());
  for (unsigned i = 0; i < axes.size(); ++i)
    for (unsigned k = 0; k < i; ++k)
      if (axes[i] & axes[k]) return disagree(n, x, index);
  MeshAxes over = axesOf(x)[axis];
  if (over & used(axes)) return disagree(n, x, index);
  UOpRef rows = natural(x), at = natural(index);
  if (!rows || !at) return false;
  if (over) at = offset(at, rows->shape[axis], over);
  return setPart(n, axes, remade(n, {rows, at}, {}), over, kindOfParts(n->dtype));
}

bool Partition::pick(UOpRef n) {
  UOpRef x = n->src[0], index = n->src[1];
  unsigned axis = n->ints[0];
  auto axes = merged(n, {x, index}, [&](unsigned i) { return i == axis; });
  if (!axes) return false;
  MeshAxes over = axesOf(x)[axis];
  (*axes)[axis] = axesOf(index)[axis];
  if ((over | (*axes)[axis]) && ((over & used(*axes)) || llvm::any_of(llvm::enumerate(*axes), [&](auto a) {
                                   return a.index() != axis && (a.value() & (*axes)[axis]);
                                 })))
    return disagree(n, x, index);
  Axes ofRows = *axes;
  ofRows[axis] = over;
  UOpRef rows = as(x, ofRows), at = as(index, *axes);
  if (!rows || !at) return false;
  if (over) at = offset(at, rows->shape[axis], over);
  return setPart(n, *axes, remade(n, {rows, at}, {}), over, kindOfParts(n->dtype));
}

/// Whether all elements are +0, so that adding them changes no sum's parts.
static bool isZeros(UOpRef x) {
  while (x->is(Op::Expand) || x->is(Op::Reshape)) x = x->src[0];
  return x->isConst() && x->ints[0] == 0;
}

/// Updates that are cut along the axis of their numbers are added by each shard into zeros, and summed.
bool Partition::scatter(UOpRef n) {
  UOpRef x = n->src[0], index = n->src[1], update = n->src[2];
  unsigned axis = n->ints[0];
  auto kind = ScatterKind(n->ints[1]);
  auto axes = merged(n, {x, index, update}, [&](unsigned i) { return i == axis; });
  auto ofUpdates = merged(n, {index, update});
  if (!axes || !ofUpdates) return false;
  MeshAxes own = axesOf(x)[axis], over = (*ofUpdates)[axis];
  if (((own | over) & used(*axes)) || (own & over)) return disagree(n, x, update);
  Axes ofRows = *axes;
  ofRows[axis] = own;
  (*ofUpdates) = *axes;
  (*ofUpdates)[axis] = over;
  UOpRef rows = as(x, ofRows), at = as(index, *ofUpdates), now = as(update, *ofUpdates);
  if (!rows || !at || !now) return false;
  if (own) at = offset(at, rows->shape[axis], own);
  if (!over) return set(n, ofRows, remade(n, {rows, at, now}, {}));
  if (kind != ScatterKind::Add || !isZeros(x))
    return isCutThere(n, update, axis,
                      kind == ScatterKind::Add ? "adding into what is not zeros" : "a scatter that does not add");
  return setPart(n, ofRows, remade(n, {rows, at, now}, {}), over, ReduceKind::Sum);
}

bool Partition::sliceAt(UOpRef n) {
  UOpRef x = n->src[0];
  List src{natural(x)}, sizes = now(n->indices());
  for (unsigned i = 0; i < n->rank(); ++i) {
    src.push_back(whole(n->src[i + 1]));
    if (!axesOf(x)[i]) continue;
    if (n->shape[i] != x->shape[i]) return isCutThere(n, x, i, "a window");
    sizes[i] = divided(c, sizes[i], mesh.count(axesOf(x)[i]));
  }
  return !llvm::is_contained(src, nullptr) && set(n, axesOf(x), remade(n, src, sizes));
}

bool Partition::updateAt(UOpRef n) {
  UOpRef x = n->src[0], value = n->src[1];
  for (UOpRef s : {x, value})
    for (unsigned i = 0; i < n->rank(); ++i)
      if (axesOf(s)[i] && value->shape[i] != x->shape[i]) return isCutThere(n, s, i, "a window");
  auto axes = merged(n, {x, value});
  if (!axes) return false;
  List src{as(x, *axes), as(value, *axes)};
  for (UOpRef start : n->tensors().drop_front(2)) src.push_back(whole(start));
  return !llvm::is_contained(src, nullptr) && set(n, *axes, remade(n, src, {}));
}

//===- LegalizeCustom.cpp: what programs of a kernel scatter -----------------===//
// Takes:    a result of a custom op that is a scatter.
// Gives:    a scatter behind a kernel whose programs store indices and updates, side by side in the order in which
//           programs run. Of integers that all programs scatter to the same places they store what they add up alone.
// Keeps:    the order of updates: programs in row-major order of the grid, within each its own along the axis. A tile
//           that is smaller in some programs is filled up with indices that are outside, which write nothing.
#include "KernelGrid.h"
#include "Legalize.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace astra;
using llvm::SmallVector;

KernelGrid::KernelGrid(Builder &b, UOpRef custom) : extents(custom->indices().begin(), custom->indices().end()) {
  SmallVector<llvm::StringRef, 4> names;
  custom->str.split(names, ',');
  for (auto [name, extent] : llvm::zip(names, extents))
    dims.push_back(b.dim(name, 0, std::max<int64_t>(0, extent->hi - 1)));
}

bool KernelGrid::varies(UOpRef index) const {
  return llvm::any_of(topoSort(index), [&](UOpRef x) { return llvm::is_contained(dims, x) || !x->isIndex(); });
}
UOpRef KernelGrid::most(Builder &b, UOpRef extent) const {
  return varies(extent) ? b.idx(std::max<int64_t>(extent->hi, 0)) : extent;
}

UOpRef KernelGrid::place(Builder &b, UOpRef tile, uint64_t value) const {
  SmallVector<UOpRef, 8> most, missing, none(tile->rank(), b.idx(0));
  for (UOpRef d : tile->shape) {
    most.push_back(this->most(b, d));
    missing.push_back(idxSub(b.c, most.back(), d));
  }
  if (llvm::any_of(missing, [](UOpRef d) { return d->constIndex() != 0; })) tile = b.pad(tile, none, missing, value);
  SmallVector<UOpRef, 12> shape(extents.size(), b.idx(1)), zeros(extents.size() + tile->rank(), b.idx(0)), size, src;
  shape.append(most.begin(), most.end());
  for (auto [extent, dim] : llvm::zip_equal(extents, dims)) {
    IndexBlock one = idxBlock(b.c, extent, dim, 1);
    src.push_back(one.begin);
    size.push_back(one.size);
  }
  size.append(most.begin(), most.end());
  src.insert(src.begin(), b.shrink(b.reshape(tile, shape), zeros, size));
  src.append(none.begin(), none.end());
  src.append(extents.begin(), extents.end());
  src.append(most.begin(), most.end());
  return b.c.make(Op::Place, src, {int64_t(value)});
}

UOpRef KernelGrid::tile(Builder &b, UOpRef all, Shape shape) const {
  SmallVector<UOpRef, 12> begin(all->rank(), b.idx(0)), size(all->shape.begin(), all->shape.end()),
      none = begin, missing = begin, most(all->shape.drop_front(extents.size()));
  for (auto [axis, extent, dim] : llvm::enumerate(extents, dims)) {
    IndexBlock one = idxBlock(b.c, extent, dim, 1);
    begin[axis] = one.begin, size[axis] = one.size, missing[axis] = idxSub(b.c, b.idx(1), one.size);
  }
  UOpRef own = b.shrink(all, begin, size);
  if (llvm::any_of(missing, [](UOpRef d) { return d->constIndex() != 0; })) own = b.pad(own, none, missing);
  own = b.reshape(own, most);
  SmallVector<UOpRef, 6> zeros(shape.size(), b.idx(0));
  return Shape(most) == shape ? own : b.shrink(own, zeros, shape);
}

UOpRef astra::customWith(Builder &b, UOpRef kernel, llvm::ArrayRef<UOpRef> stores, llvm::ArrayRef<UOpRef> more) {
  SmallVector<UOpRef, 12> src(kernel->tensors().begin(), kernel->tensors().end());
  src.append(more.begin(), more.end());
  UOpRef function = b.c.make(Op::Func, stores, {int64_t(src.size())});
  src.append(kernel->indices().begin(), kernel->indices().end());
  return b.c.make(Op::Custom, src, {}, kernel->str, DType::Void, {function});
}

UOpRef astra::resultOf(Builder &b, UOpRef custom, size_t number) {
  UOpRef store = custom->fns[0]->src[number];
  SmallVector<UOpRef, 12> src{custom};
  src.append(store->shape.begin(), store->shape.end());
  return b.c.make(Op::Proj, src, {int64_t(number)}, {}, store->dtype);
}

/// Of [grid.., tile..] the tiles of all programs one behind another along `axis`.
static UOpRef alongAxis(Builder &b, UOpRef x, size_t programs, int64_t axis) {
  SmallVector<int64_t, 12> order;
  SmallVector<UOpRef, 8> shape;
  for (size_t a = programs; a < programs + axis; ++a) order.push_back(a), shape.push_back(x->shape[a]);
  UOpRef all = x->shape[programs + axis];
  for (size_t a = 0; a < programs; ++a) order.push_back(a), all = idxMul(b.c, all, x->shape[a]);
  shape.push_back(all);
  for (size_t a = programs + axis; a < x->rank(); ++a) {
    order.push_back(a);
    if (a > programs + axis) shape.push_back(x->shape[a]);
  }
  return b.reshape(b.permute(x, order), shape);
}

/// Whether all programs scatter to the same places what may be combined in any order: an integer of each place is then
/// that of all programs first.
static bool sharesPlaces(const KernelGrid &grid, UOpRef scatter) {
  auto isOfProgram = [&](UOpRef n) { return llvm::is_contained(grid.dims, n) || has(n->op, Control); };
  return isInt(scatter->dtype) && ScatterKind(scatter->ints[1]) != ScatterKind::Set &&
         llvm::none_of(topoSort(scatter->src[1]), isOfProgram);
}

UOpRef astra::legalizeProj(Builder &b, UOpRef r) {
  auto scatters = [](UOpRef x) { return x->op == Op::Scatter; };
  if (r->src[0]->op != Op::Custom) return r;
  UOpRef kernel = withoutLoops(b, r->src[0]);
  if (llvm::none_of(kernel->fns[0]->src, scatters))
    return kernel == r->src[0] ? r : resultOf(b, kernel, size_t(r->ints[0]));
  KernelGrid grid(b, kernel);
  SmallVector<UOpRef, 4> stores;
  SmallVector<size_t, 4> first; // of each result, the first store that stands for it
  for (UOpRef s : kernel->fns[0]->src) {
    first.push_back(stores.size());
    if (!scatters(s)) {
      stores.push_back(s);
      continue;
    }
    if (!sharesPlaces(grid, s))
      stores.push_back(grid.place(b, s->src[1], s->src[1]->dtype == DType::I32 ? uint32_t(-1) : uint64_t(-1)));
    stores.push_back(grid.place(b, s->src[2], 0));
  }
  UOpRef now = customWith(b, kernel, stores, {}), mine = kernel->fns[0]->src[r->ints[0]];
  size_t k = first[r->ints[0]];
  if (!scatters(mine)) return resultOf(b, now, k);
  llvm::DenseMap<UOpRef, UOpRef> outside; // of the function, what all programs have in common, here
  auto here = [&](UOpRef x) {
    for (UOpRef n : topoSort(x)) {
      SmallVector<UOpRef, 6> src;
      for (UOpRef s : n->src) src.push_back(outside.lookup(s));
      outside[n] = n->op == Op::Arg ? kernel->src[n->ints[0]] : b.c.withSources(n, src);
    }
    return outside.lookup(x);
  };
  int64_t axis = mine->ints[0];
  UOpRef into = here(mine->src[0]), index, update;
  if (sharesPlaces(grid, mine)) {
    static constexpr ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max,
                                           ReduceKind::Min};
    index = here(mine->src[1]);
    update = b.reduce(kinds[mine->ints[1]], resultOf(b, now, k),
                      llvm::to_vector<4>(llvm::seq<int64_t>(0, int64_t(grid.dims.size()))));
  } else {
    index = alongAxis(b, resultOf(b, now, k), grid.dims.size(), axis);
    update = alongAxis(b, resultOf(b, now, k + 1), grid.dims.size(), axis);
  }
  return legalizeScatter(b, b.c.make(Op::Scatter, {into, index, update}, mine->ints));
}

//===- LegalizeCustom.cpp: what programs of a kernel scatter -----------------===//
// Takes:    a result of a custom op that is a scatter.
// Gives:    a scatter behind a kernel whose programs store indices and updates, side by side in the order in which
//           programs run.
// Keeps:    the order of updates: programs in row-major order of the grid, within each its own along the axis. A tile
//           that is smaller in some programs is filled up with indices that are outside, which write nothing.
#include "Legalize.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

/// A tile as the part that a program stores of a tensor that has a tile for each.
static UOpRef ofProgram(Builder &b, UOpRef tile, llvm::ArrayRef<UOpRef> dims, llvm::ArrayRef<UOpRef> grid,
                        uint64_t outside) {
  SmallVector<UOpRef, 8> most, missing, none(tile->rank(), b.idx(0));
  for (UOpRef d : tile->shape) {
    bool varies = llvm::any_of(topoSort(d), [&](UOpRef x) { return llvm::is_contained(dims, x) || !x->isIndex(); });
    most.push_back(varies ? b.idx(std::max<int64_t>(d->hi, 0)) : d);
    missing.push_back(idxSub(b.c, most.back(), d));
  }
  if (llvm::any_of(missing, [](UOpRef d) { return d->constIndex() != 0; })) tile = b.pad(tile, none, missing, outside);
  SmallVector<UOpRef, 12> shape(grid.size(), b.idx(1)), zeros(grid.size() + tile->rank(), b.idx(0)), size, src;
  shape.append(most.begin(), most.end());
  for (auto [extent, dim] : llvm::zip_equal(grid, dims)) {
    IndexBlock one = idxBlock(b.c, extent, dim, 1);
    src.push_back(one.begin);
    size.push_back(one.size);
  }
  size.append(most.begin(), most.end());
  src.insert(src.begin(), b.shrink(b.reshape(tile, shape), zeros, size));
  src.append(none.begin(), none.end());
  src.append(grid.begin(), grid.end());
  src.append(most.begin(), most.end());
  return b.c.make(Op::Place, src, {int64_t(outside)});
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

UOpRef astra::legalizeProj(Builder &b, UOpRef r) {
  UOpRef kernel = r->src[0];
  auto scatters = [](UOpRef x) { return x->op == Op::Scatter; };
  if (kernel->op != Op::Custom || llvm::none_of(kernel->fns[0]->src, scatters)) return r;
  SmallVector<llvm::StringRef, 4> names;
  kernel->str.split(names, ',');
  SmallVector<UOpRef, 4> dims, grid(kernel->indices().begin(), kernel->indices().end());
  for (auto [name, extent] : llvm::zip_equal(names, grid))
    dims.push_back(b.dim(name, 0, std::max<int64_t>(0, extent->hi - 1)));
  SmallVector<UOpRef, 4> stores;
  SmallVector<size_t, 4> first; // of each result, the first store that stands for it
  for (UOpRef s : kernel->fns[0]->src) {
    first.push_back(stores.size());
    if (!scatters(s)) {
      stores.push_back(s);
      continue;
    }
    uint64_t outside = s->src[1]->dtype == DType::I32 ? uint32_t(-1) : uint64_t(-1);
    stores.push_back(ofProgram(b, s->src[1], dims, grid, outside));
    stores.push_back(ofProgram(b, s->src[2], dims, grid, 0));
  }
  UOpRef function = b.c.make(Op::Func, stores, kernel->fns[0]->ints),
         now = b.c.make(Op::Custom, kernel->src, {}, kernel->str, DType::Void, {function});
  auto result = [&](size_t k) {
    SmallVector<UOpRef, 12> src{now};
    src.append(stores[k]->shape.begin(), stores[k]->shape.end());
    return b.c.make(Op::Proj, src, {int64_t(k)}, {}, stores[k]->dtype);
  };
  UOpRef mine = kernel->fns[0]->src[r->ints[0]];
  size_t k = first[r->ints[0]];
  if (!scatters(mine)) return result(k);
  llvm::DenseMap<UOpRef, UOpRef> outside; // of the function, what all programs scatter into, here
  for (UOpRef n : topoSort(mine->src[0])) {
    SmallVector<UOpRef, 6> src;
    for (UOpRef s : n->src) src.push_back(outside.lookup(s));
    outside[n] = n->op == Op::Arg ? kernel->src[n->ints[0]] : b.c.withSources(n, src);
  }
  int64_t axis = mine->ints[0];
  return legalizeScatter(b, b.c.make(Op::Scatter,
                                     {outside[mine->src[0]], alongAxis(b, result(k), grid.size(), axis),
                                      alongAxis(b, result(k + 1), grid.size(), axis)},
                                     mine->ints));
}

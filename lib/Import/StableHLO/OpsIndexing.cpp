//===- OpsIndexing.cpp: gather, scatter, sort ------------------------------===//
// Takes:    places that are data, comparators.
// Gives:    gather, scatter and argsort UOps.
#include "Folds.h"
#include "astra/Compose/Order.h"
#include "astra/Compose/Slices.h"
#include "astra/Compose/Special.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::stablehlo {

namespace {

using compose::SliceAxes;

Ints listOf(const Fields &f, llvm::StringRef key) {
  const std::vector<int64_t> *list = f.find(key);
  return list ? Ints(list->begin(), list->end()) : Ints();
}

SliceAxes axesOf(const Fields &f, const char *slice, const char *dropped, const char *operandBatch,
                 const char *startsBatch, const char *indexed) {
  SliceAxes axes;
  axes.slice = listOf(f, slice);
  axes.dropped = listOf(f, dropped);
  axes.operandBatch = listOf(f, operandBatch);
  axes.startsBatch = listOf(f, startsBatch);
  axes.indexed = listOf(f, indexed);
  Ints vector = listOf(f, "index_vector_dim");
  axes.vector = vector.empty() ? 0 : vector[0];
  return axes;
}

void gatherWith(Statement &s, llvm::ArrayRef<UOpRef> sizes) {
  SliceAxes axes = axesOf(s.fields("dimension_numbers"), "offset_dims", "collapsed_slice_dims", "operand_batching_dims",
                          "start_indices_batching_dims", "start_index_map");
  UOpRef x = s.in(0), starts = s.in(1);
  if (!s.b.failed()) s.give(gatherSlices(s.b, x, starts, axes, sizes));
}
void gather(Statement &s) {
  Dims sizes;
  for (int64_t size : s.intsAttr("slice_sizes")) sizes.push_back(s.b.idx(std::max<int64_t>(size, 0)));
  gatherWith(s, sizes);
}
void dynamicGather(Statement &s) { gatherWith(s, s.knownDims(2, "the sizes of slices")); }

std::optional<ScatterKind> scatterKind(Fold f) {
  switch (f) {
  case Fold::Second: return ScatterKind::Set;
  case Fold::Sum:
  case Fold::Difference: return ScatterKind::Add;
  case Fold::Prod: return ScatterKind::Mul;
  case Fold::Max: return ScatterKind::Max;
  case Fold::Min: return ScatterKind::Min;
  default: return std::nullopt;
  }
}

void scatter(Statement &s) {
  if (s.numInputs() % 2 == 0) {
    s.fail("the op has an even number of operands");
    return;
  }
  unsigned n = s.numInputs() / 2;
  SliceAxes axes = axesOf(s.fields("scatter_dimension_numbers"), "update_window_dims", "inserted_window_dims",
                          "input_batching_dims", "scatter_indices_batching_dims", "scatter_dims_to_operand_dims");
  std::vector<Fold> folds = foldsOf(s, 0, n);
  for (unsigned i = 0; i < n && !s.b.failed(); ++i) {
    UOpRef x = s.in(i), starts = s.in(n), updates = s.in(n + 1 + i);
    Fold fold = folds[i];
    if (fold == Fold::First) {
      s.give(i, x);
      continue;
    }
    if (x->dtype == DType::Bool && (fold == Fold::And || fold == Fold::Or))
      fold = fold == Fold::And ? Fold::Min : Fold::Max;
    std::optional<ScatterKind> kind = scatterKind(fold);
    if (!kind) {
      s.unsupported("the region is not supported: it may add, subtract, multiply, take the greater or the lesser, or "
                    "give the update");
      return;
    }
    if (fold == Fold::Difference) updates = s.b.un(Op::Neg, updates);
    s.give(i, scatterSlices(s.b, *kind, x, starts, updates, axes));
  }
}

void dynamicSlice(Statement &s) {
  UOpRef x = s.in(0);
  Dims sizes;
  for (int64_t size : s.intsAttr("slice_sizes")) sizes.push_back(s.b.idx(std::max<int64_t>(size, 0)));
  if (x && (sizes.size() != x->rank() || s.numInputs() != 1 + x->rank()))
    s.fail("starts and sizes do not fit rank " + llvm::Twine(x->rank()));
  if (s.b.failed()) return;
  s.give(readAt(s.b, x, s.inputs(1, x->rank()), sizes));
}

void dynamicUpdateSlice(Statement &s) {
  UOpRef x = s.in(0), part = s.in(1);
  if (x && s.numInputs() != 2 + x->rank()) s.fail("starts do not fit rank " + llvm::Twine(x->rank()));
  if (s.b.failed()) return;
  s.give(x->rank() ? writeAt(s.b, x, part, s.inputs(2, x->rank())) : part);
}

/// Slices along one axis, as torch.index_select; batch axes are common.
void indexSelect(Statement &s) {
  UOpRef x = s.in(0), index = s.in(1);
  int64_t axis = s.intAttr("dim"), batch = s.intAttr("batch_dims");
  if (!s.b.failed()) s.give(selectSlices(s.b, x, index, axis, batch));
}

/// The floats whose total order a key is: a sort's own. Null for any other key.
UOpRef inTotalOrder(Statement &s, UOpRef key) {
  bool may = key->is(Op::Select) && key->src[2]->is(Op::Bitcast) && isFloat(key->src[2]->src[0]->dtype);
  UOpRef floats = may ? key->src[2]->src[0] : nullptr;
  return floats && orderKey(s.b, floats) == key ? floats : nullptr;
}

/// Every operand in the order that the keys give.
void sort(Statement &s) {
  unsigned n = s.numInputs();
  std::vector<UOpRef> xs = s.inputs(0, n);
  int64_t axis = s.intAttr("dimension", -1);
  if (s.b.failed()) return;
  axis = s.b.axis(axis, xs[0]->rank());
  for (UOpRef x : xs)
    if (x->shape != xs[0]->shape) s.fail("the operands must be of one shape");
  std::optional<std::vector<Key>> keys = keysOf(s, 0, n);
  if (s.b.failed()) return;
  llvm::SmallVector<std::pair<UOpRef, UOpRef>, 4> leaves;
  for (unsigned i = 0; i < n; ++i) leaves.push_back({s.b.probe(2 * i, xs[i]->dtype), xs[i]});
  llvm::SmallVector<compose::SortKey, 4> by;
  for (const Key &key : *keys) {
    UOpRef floats = inTotalOrder(s, key.of), value = substituted(s.b, floats ? floats : key.of, leaves);
    value = s.b.broadcastTo(value, xs[0]->shape);
    if (!value) return;
    if (isFloat(value->dtype) && !floats) value = s.b.bin(Op::Add, value, 0.0); // LT of floats: -0 equals +0
    by.push_back({value, key.descending});
  }
  UOpRef order = orderBy(s.b, by, axis);
  for (unsigned i = 0; i < n && !s.b.failed(); ++i) {
    bool ramp = xs[i]->is(Op::Iota) && xs[i]->ints.back() == axis; // the order itself
    s.give(i, ramp ? s.b.cast(order, xs[i]->dtype) : s.b.make(Op::Pick, {xs[i], order}, {axis}));
  }
}

void topK(Statement &s) {
  UOpRef x = s.in(0);
  int64_t k = s.intAttr("k");
  if (s.b.failed()) return;
  if (s.outputs.size() != 2 || k < 0) {
    s.fail("the op has two results, and k is 0 or more");
    return;
  }
  compose::FirstOfAxis first = topK(s.b, x, s.b.idx(k), -1);
  if (s.b.failed()) return;
  s.give({first.values, s.b.cast(first.indices, s.resultDType(1))});
}

const Row rows[] = {
    {"chlo.top_k", topK, "a NaN is the greatest", 1, 1},
    {"stablehlo.dynamic_gather", dynamicGather, "sizes must follow from extents", 3, 3},
    {"stablehlo.dynamic_slice", dynamicSlice, "starts are moved so that the slice stays inside", 1},
    {"stablehlo.dynamic_update_slice", dynamicUpdateSlice, "starts are moved so that the update stays inside", 2},
    {"stablehlo.gather", gather, "starts are moved so that the slice stays inside", 2, 2},
    {"stablehlo.scatter", scatter,
     "add, subtract, multiply, greater, lesser, replace; in row-major order; a slice that leaves the operand is "
     "dropped",
     3},
    {"stablehlo.sort", sort,
     "keys, elementwise functions of one side, by LT or GT one after another; stable; a NaN is greatest", 1},
    {"stablehlo.torch_index_select", indexSelect, "an index outside is moved inside", 2, 2},
};

} // namespace

llvm::ArrayRef<Row> indexingRows() { return rows; }

} // namespace astra::stablehlo

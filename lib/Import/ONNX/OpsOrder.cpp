//===- OpsOrder.cpp: sorting and running folds -----------------------------===//
// Takes:    nodes that order an axis, or fold along it.
// Gives:    argsort and cumulate UOps. A sort is stable, NaN greatest (N9).
#include "OpTable.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

/// The first k along an axis in the order asked for. `within`: k is no more than the axis has, whatever bounds show.
void firstOf(Node &n, UOpRef x, UOpRef k, bool largest, bool within = false) {
  if (!n.requireRank(x, 1)) return;
  int64_t axis = n.axis(n.intAttr("axis", -1), x->rank());
  UOpRef order = n.make(Op::ArgSort, {x}, {axis, largest});
  if (!order || !k || n.failed()) return;
  UOpRef extent = x->shape[axis], slack = idxSub(n.c, extent, k);
  if (slack->hi < 0) return void(n.fail("k is " + dimsText(k) + ", the axis has " + dimsText(extent) + " elements"));
  if (slack->lo < 0 && !within)
    return void(n.unsupported("k is " + dimsText(k) + ", and the axis may have fewer elements: " + dimsText(extent) +
                              boundHint(n.c, slack, 0)));
  Dims size(x->shape.begin(), x->shape.end());
  size[axis] = k;
  UOpRef first = n.shrink(n.withRoom(order, axis, k), Dims(x->rank(), n.c.index(0)), size);
  n.give(0, n.make(Op::Pick, {x, first}, {axis}));
  n.give(1, first);
}

void topKAttr(Node &n) {
  int64_t k = n.intAttr("k", -1);
  if (k < 0 || k > int64_t(1) << 40) n.fail("attribute 'k' is " + llvm::Twine(k) + ", expected 0..2^40");
  firstOf(n, n.in(0), n.failed() ? nullptr : n.c.index(k), true);
}

/// A k that is data gives a data dim: within the axis, else the nearest number that is.
void topK(Node &n) {
  UOpRef x = n.in(0), given = n.in(1);
  bool largest = n.intAttr("largest", 1) != 0;
  n.ignoreAttr("sorted"); // sorted is one of the orders that are allowed when it is 0
  if (!n.requireRank(x, 1) || !given) return;
  int64_t axis = n.axis(n.intAttr("axis", -1), x->rank());
  if (n.failed()) return;
  if (const std::vector<UOpRef> *known = n.elements(given)) {
    if (known->size() != 1 || (*known)[0]->lo < 0)
      return void(n.fail("k is " + dimsText(*known) + ", expected one number that is not negative"));
    return firstOf(n, x, (*known)[0], largest);
  }
  UOpRef extent = x->shape[axis];
  UOpRef k = n.bin(Op::Max, n.reshape(n.cast(given, DType::I64), {}), 0.0);
  k = n.bin(Op::Min, k, n.fromIndex(extent, DType::I64));
  firstOf(n, x, n.make(Op::Extent, {k}, {0, extent->hi}), largest, /*within=*/true);
}

/// Running sums or products. Exclusive: those of the elements before each, which begin with what changes nothing.
template <CumulateKind kind> void cumulate(Node &n) {
  UOpRef x = n.in(0), beginning = n.literal(x, kind == CumulateKind::Prod ? 1 : 0);
  Ints at = n.knownInts(1, "the axis");
  bool exclusive = n.intAttr("exclusive", 0), reverse = n.intAttr("reverse", 0);
  if (n.failed() || !n.requireRank(x, 1)) return;
  if (at.size() != 1) return void(n.fail("the axis must be one number"));
  int64_t axis = n.axis(at[0], x->rank());
  auto turned = [&](UOpRef v) { return reverse && v ? n.make(Op::Flip, {v}, {axis}) : v; };
  UOpRef folded = n.make(Op::Cumulate, {turned(x)}, {int64_t(kind), axis});
  if (exclusive && folded) {
    Dims one(x->rank(), n.c.index(0)), none = one, size(x->shape.begin(), x->shape.end());
    one[axis] = n.c.index(1);
    folded = n.shrink(n.pad(folded, one, none, uint64_t(beginning->ints[0])), none, size);
  }
  n.give(turned(folded));
}

constexpr Row rows[] = {
    {"TopK", 1, 9, 1, 1, topKAttr, floatTypes, "-0 is below +0 (N9)"},
    {"TopK", 10, latest, 2, 2, topK, realTypes,
     "a k that depends on data gives a dim whose value the run reports, and is brought within the axis; -0 is below +0 "
     "(N9)"},
    {"CumSum", 11, latest, 2, 2, cumulate<CumulateKind::Sum>, realTypes},
    {"CumProd", 26, latest, 2, 2, cumulate<CumulateKind::Prod>, realTypes},
};

} // namespace

llvm::ArrayRef<Row> orderRows() { return rows; }

} // namespace astra::onnx

//===- OpsOrder.cpp: sorting and running folds ---------------------------===//
// Takes:    nodes that order an axis, or fold along it.
// Gives:    the composites of Order.h.
#include "OpTable.h"
#include "astra/Compose/Order.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

void give(Node &n, const compose::FirstOfAxis &first) {
  n.give(0, first.values);
  n.give(1, first.indices);
}

void topKAttr(Node &n) {
  int64_t k = n.intAttr("k", -1);
  if (k < 0 || k > int64_t(1) << 40) n.fail("attribute 'k' is " + llvm::Twine(k) + ", expected 0..2^40");
  give(n, topK(n, n.in(0), n.failed() ? nullptr : n.idx(k), n.intAttr("axis", -1)));
}

/// A k that is data gives a data dim: within the axis, else the nearest number that is.
void topK(Node &n) {
  UOpRef x = n.in(0), given = n.in(1);
  bool largest = n.intAttr("largest", 1) != 0;
  n.ignoreAttr("sorted"); // sorted is one of the orders that are allowed when it is 0
  int64_t axis = n.intAttr("axis", -1);
  if (n.failed()) return;
  const std::vector<UOpRef> *known = n.elements(given);
  if (!known) return give(n, topKOfData(n, x, given, axis, largest));
  if (known->size() != 1 || (*known)[0]->lo < 0)
    return void(n.fail("k is " + dimsText(*known) + ", expected one number that is not negative"));
  give(n, compose::topK(n, x, (*known)[0], axis, largest));
}

template <CumulateKind kind> void cumulate(Node &n) {
  Ints at = n.knownInts(1, "the axis");
  compose::CumulateOptions options{n.intAttr("exclusive", 0) != 0, n.intAttr("reverse", 0) != 0};
  if (n.failed()) return;
  if (at.size() != 1) return void(n.fail("the axis must be one number"));
  n.give(compose::cumulate(n, kind, n.in(0), at[0], options));
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

//===- OpsReduction.cpp: reductions and softmax ----------------------------===//
// Takes:    nodes that fold axes.
// Gives:    the composites of Reduction.h.
#include "OpTable.h"
#include "astra/Compose/Reduction.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

using compose::Folding;
using compose::plainFold;

// ---- Reduce*: up to some opset the axes are an attribute, from then on an input

enum class AxesAre { Attribute, Input };

template <Folding fold, AxesAre where> void reduction(Node &n) {
  UOpRef x = n.in(0);
  if (!x) return;
  Ints given;
  if (where == AxesAre::Attribute)
    given = n.intsAttr("axes");
  else if (n.has(1))
    given = n.knownInts(1, "the axes");
  bool keep = n.intAttr("keepdims", 1) != 0, noneIfEmpty = n.intAttr("noop_with_empty_axes", 0) != 0;
  Ints axes = n.axes(given, x->rank());
  if (given.empty() && !noneIfEmpty) axes = compose::axesBetween(0, x->rank());
  n.give(compose::reduction(n, fold, x, axes, keep));
}

template <bool max> void argReduce(Node &n) {
  UOpRef x = n.in(0);
  bool last = n.intAttr("select_last_index", 0) != 0;
  bool keep = n.intAttr("keepdims", 1) != 0;
  int64_t axis = n.axis(n.intAttr("axis", 0), x ? x->rank() : 0);
  UOpRef index = compose::argReduce(n, x, axis, max, last);
  n.give(keep ? index : n.squeeze(index, {axis}));
}

// ---- softmax

/// The axes of a row: before opset 13 those from `axis` on.
template <bool row> Ints rowAxes(Node &n, UOpRef x) {
  int64_t axis = n.axis(n.intAttr("axis", row ? 1 : -1), x->rank());
  return row ? compose::axesBetween(axis, x->rank()) : Ints{axis};
}

template <Folding f, bool row> void softmaxNode(Node &n) {
  UOpRef x = n.in(0);
  if (!n.requireFloat(x)) return;
  Ints axes = rowAxes<row>(n, x);
  if (!n.failed()) n.give(compose::reduction(n, f, x, axes, /*keep=*/true));
}

template <bool row> void hardmax(Node &n) {
  UOpRef x = n.in(0);
  if (!n.requireFloat(x)) return;
  Ints axes = rowAxes<row>(n, x);
  if (!n.failed()) n.give(compose::hardmax(n, x, axes));
}

#define REDUCTION(name, until, fold, types)                                                                            \
  {name, 1, until, 1, 1, reduction<fold, AxesAre::Attribute>, types}, {                                                \
    name, until + 1, latest, 1, 2, reduction<fold, AxesAre::Input>, types                                              \
  }

constexpr Row rows[] = {
    REDUCTION("ReduceSum", 12, plainFold<ReduceKind::Sum>, numberTypes),
    REDUCTION("ReduceProd", 17, plainFold<ReduceKind::Prod>, numberTypes),
    REDUCTION("ReduceMax", 17, plainFold<ReduceKind::Max>, anyType),
    REDUCTION("ReduceMin", 17, plainFold<ReduceKind::Min>, anyType),
    REDUCTION("ReduceMean", 17, compose::mean, numberTypes),
    REDUCTION("ReduceL1", 17, compose::sumOfMagnitudes, numberTypes),
    REDUCTION("ReduceL2", 17, compose::euclideanNorm, realTypes),
    REDUCTION("ReduceSumSquare", 17, compose::sumOfSquares, numberTypes),
    REDUCTION("ReduceLogSum", 17, compose::logOfSum, realTypes),
    REDUCTION("ReduceLogSumExp", 17, compose::logOfSumOfExp, realTypes),
    {"ArgMax", 1, latest, 1, 1, argReduce<true>},
    {"ArgMin", 1, latest, 1, 1, argReduce<false>},
    {"Softmax", 1, 12, 1, 1, softmaxNode<compose::softmax, true>, floatTypes},
    {"Softmax", 13, latest, 1, 1, softmaxNode<compose::softmax, false>, floatTypes},
    {"LogSoftmax", 1, 12, 1, 1, softmaxNode<compose::logSoftmax, true>, floatTypes},
    {"LogSoftmax", 13, latest, 1, 1, softmaxNode<compose::logSoftmax, false>, floatTypes},
    {"Hardmax", 1, 12, 1, 1, hardmax<true>, floatTypes},
    {"Hardmax", 13, latest, 1, 1, hardmax<false>, floatTypes},
};
#undef REDUCTION

} // namespace

llvm::ArrayRef<Row> reductionRows() { return rows; }

} // namespace astra::onnx

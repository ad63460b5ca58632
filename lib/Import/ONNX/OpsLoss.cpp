//===- OpsLoss.cpp: losses of a classifier -------------------------------===//
// Takes:    scores or log-probabilities, classes, a weight per class.
// Gives:    the composites of Loss.h; a class outside [0, C), which ONNX leaves undefined, reads 0.
#include "OpTable.h"
#include "astra/Compose/Loss.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

compose::ClassLossOptions lossAttributes(Node &n) {
  using Reduction = compose::ClassLossOptions::Reduction;
  compose::ClassLossOptions options;
  std::string reduction = n.stringAttr("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    n.fail("attribute 'reduction' is '" + reduction + "', expected none, sum or mean");
  options.reduction = reduction == "none" ? Reduction::None : reduction == "sum" ? Reduction::Sum : Reduction::Mean;
  if (n.hasAttr("ignore_index")) options.ignored = n.intAttr("ignore_index", 0);
  return options;
}

UOpRef weights(Node &n) { return n.has(2) ? n.in(2) : nullptr; }

void negativeLogLikelihoodLoss(Node &n) {
  n.give(negativeLogLikelihood(n, n.in(0), n.in(1), weights(n), lossAttributes(n)));
}

void softmaxCrossEntropyLoss(Node &n) {
  compose::CrossEntropy r = crossEntropy(n, n.in(0), n.in(1), weights(n), lossAttributes(n));
  n.give(r.loss);
  if (n.wants(1)) n.give(1, r.logs);
}

constexpr Row rows[] = {
    {"NegativeLogLikelihoodLoss", 12, latest, 2, 3, negativeLogLikelihoodLoss, floatTypes,
     "a class outside [0, C) reads 0"},
    {"SoftmaxCrossEntropyLoss", 12, latest, 2, 3, softmaxCrossEntropyLoss, floatTypes,
     "a class outside [0, C) reads 0"},
};

} // namespace

llvm::ArrayRef<Row> lossRows() { return rows; }

} // namespace astra::onnx

//===- OpsLoss.cpp: losses of a classifier ---------------------------------===//
// Takes:    scores or log-probabilities [N, C, ...], the class of each element [N, ...], a weight per class.
// Gives:    the loss per element, their sum, or their weighted mean; f16 and bf16 compute in f32 and round once.
// Keeps:    an ignored element takes no part, whatever class it names and whatever value stands there; a class outside
//           [0, C), which ONNX leaves undefined, reads 0.
#include "OpTable.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"

namespace astra::onnx {

namespace {

/// -logs[n, target, ...] * weight[target], reduced as the attribute asks. logs is widened.
UOpRef negativeLogLikelihood(Node &n, UOpRef logs, UOpRef target, UOpRef weights) {
  std::string reduction = n.stringAttr("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    n.fail("attribute 'reduction' is '" + reduction + "', expected none, sum or mean");
  std::optional<int64_t> ignored;
  if (n.hasAttr("ignore_index")) ignored = n.intAttr("ignore_index", 0);
  if (!n.requireFloat(logs) || !n.requireRank(logs, 2) || !n.requireRank(target, logs->rank() - 1, logs->rank() - 1))
    return nullptr;
  if (target->dtype != DType::I32 && target->dtype != DType::I64)
    return n.fail(llvm::Twine("the classes are of type ") + info(target->dtype).text + ", expected i32 or i64");
  if (weights && (weights->rank() != 1 || weights->shape[0] != logs->shape[1]))
    return n.fail("the weights are " + dimsText(weights->shape) + ", expected one for each class of " +
                  dimsText(logs->shape));
  target = n.cast(target, DType::I64);
  UOpRef picked = n.make(Op::Pick, {logs, n.unsqueeze(target, {1})}, {1});
  UOpRef loss = n.un(Op::Neg, n.squeeze(picked, {1})), zero = n.literal(logs, 0);
  UOpRef share = weights ? n.make(Op::Gather, {weights, target}, {0}) : nullptr; // of each element in the mean
  if (share) loss = n.bin(Op::Mul, loss, share);
  if (ignored) {
    UOpRef takesPart = n.bin(Op::Ne, target, n.b.litInt(DType::I64, *ignored));
    loss = n.select(takesPart, loss, zero);
    share = n.select(takesPart, share ? share : n.literal(logs, 1), zero);
  }
  if (reduction == "none" || n.failed()) return loss;
  Ints axes;
  for (unsigned axis = 0; axis < target->rank(); ++axis) axes.push_back(axis);
  UOpRef total = n.squeeze(n.reduce(ReduceKind::Sum, loss, axes), axes);
  if (reduction == "sum") return total;
  UOpRef count = share ? n.squeeze(n.reduce(ReduceKind::Sum, share, axes), axes)
                       : n.fromIndex(idxProduct(n.c, target->shape), logs->dtype);
  return n.bin(Op::Div, total, count);
}

UOpRef weights(Node &n) { return n.has(2) ? n.widen(n.in(2)) : nullptr; }

void negativeLogLikelihoodLoss(Node &n) {
  UOpRef loss = negativeLogLikelihood(n, n.widen(n.in(0)), n.in(1), weights(n));
  if (loss) n.give(n.cast(loss, n.in(0)->dtype));
}

void softmaxCrossEntropyLoss(Node &n) {
  UOpRef scores = n.widen(n.in(0));
  if (!n.requireFloat(scores) || !n.requireRank(scores, 2)) return;
  UOpRef logs = logSoftmax(n, scores, {1});
  UOpRef loss = negativeLogLikelihood(n, logs, n.in(1), weights(n));
  if (loss) n.give(n.cast(loss, n.in(0)->dtype));
  if (n.wants(1)) n.give(1, n.cast(logs, n.in(0)->dtype));
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

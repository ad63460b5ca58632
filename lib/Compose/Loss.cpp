//===- Loss.cpp: losses of a classifier ----------------------------------===//
// Takes:    operands that may not fit.
// Gives:    what Loss.h says.
#include "astra/Compose/Loss.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Index.h"

namespace astra::compose {

/// Of widened logarithms.
static UOpRef lossOf(Composer &b, UOpRef logs, UOpRef target, UOpRef weights, const ClassLossOptions &options) {
  using Reduction = ClassLossOptions::Reduction;
  if (!b.requireFloat(logs) || !b.requireRank(logs, 2) || !b.requireRank(target, logs->rank() - 1, logs->rank() - 1))
    return nullptr;
  if (target->dtype != DType::I32 && target->dtype != DType::I64)
    return b.fail(llvm::Twine("the classes are of type ") + info(target->dtype).text + ", expected i32 or i64");
  if (weights && (weights->rank() != 1 || weights->shape[0] != logs->shape[1]))
    return b.fail("the weights are " + dimsText(weights->shape) + ", expected one for each class of " +
                  dimsText(logs->shape));
  target = b.cast(target, DType::I64);
  UOpRef picked = b.make(Op::Pick, {logs, b.unsqueeze(target, {1})}, {1});
  UOpRef loss = b.un(Op::Neg, b.squeeze(picked, {1})), zero = b.literal(logs, 0);
  UOpRef share = weights ? b.make(Op::Gather, {weights, target}, {0}) : nullptr; // of each element in the mean
  if (share) loss = b.bin(Op::Mul, loss, share);
  if (options.ignored) {
    UOpRef takesPart = b.bin(Op::Ne, target, b.b.litInt(DType::I64, *options.ignored));
    loss = b.select(takesPart, loss, zero);
    share = b.select(takesPart, share ? share : b.literal(logs, 1), zero);
  }
  if (options.reduction == Reduction::None || b.failed()) return loss;
  Ints axes = axesBetween(0, target->rank());
  UOpRef total = b.squeeze(b.reduce(ReduceKind::Sum, loss, axes), axes);
  if (options.reduction == Reduction::Sum) return total;
  UOpRef count = share ? b.squeeze(b.reduce(ReduceKind::Sum, share, axes), axes)
                       : b.fromIndex(idxProduct(b.c, target->shape), logs->dtype);
  return b.bin(Op::Div, total, count);
}

UOpRef negativeLogLikelihood(Composer &b, UOpRef logs, UOpRef target, UOpRef weights, const ClassLossOptions &options) {
  UOpRef loss = lossOf(b, b.widen(logs), target, b.widen(weights), options);
  return loss ? b.cast(loss, logs->dtype) : nullptr;
}

CrossEntropy crossEntropy(Composer &b, UOpRef given, UOpRef target, UOpRef weights, const ClassLossOptions &options) {
  UOpRef scores = b.widen(given);
  if (!b.requireFloat(scores) || !b.requireRank(scores, 2)) return {};
  UOpRef logs = logSoftmax(b, scores, {1});
  UOpRef loss = lossOf(b, logs, target, b.widen(weights), options);
  return {loss ? b.cast(loss, given->dtype) : nullptr, b.cast(logs, given->dtype)};
}

} // namespace astra::compose

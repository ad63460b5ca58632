//===- Loss.cpp: losses of a classifier ----------------------------------===//
// Takes:    operands that may not fit.
// Gives:    what Loss.h says.
#include "astra/Compose/Loss.h"
#include "astra/Compose/ElementLoss.h"
#include "astra/Compose/Elementary.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Index.h"
#include <limits>

namespace astra::compose {

/// -log p averaged over all classes, each by its weight, times `part`.
static UOpRef spread(Composer &b, UOpRef logs, UOpRef weights, double part) {
  UOpRef each = weights ? b.bin(Op::Mul, logs, b.perChannel(weights, logs->rank())) : logs;
  UOpRef every = b.squeeze(b.un(Op::Neg, b.reduce(ReduceKind::Sum, each, {1})), {1});
  return b.bin(Op::Div, b.bin(Op::Mul, every, part), b.fromIndex(logs->shape[1], logs->dtype));
}

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
  if (double s = options.smoothing; s != 0)
    loss = b.bin(Op::Add, b.bin(Op::Mul, loss, 1 - s), spread(b, logs, weights, s));
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

UOpRef negativeLogLikelihood(Composer &b, UOpRef logs, UOpRef target, UOpRef weights, const ClassLossOptions &given) {
  ClassLossOptions options = given;
  options.smoothing = 0;
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

/// Whether scores are f32 or f64 and of this rank.
static bool requireScores(Composer &b, UOpRef x, unsigned least, unsigned most) {
  if (!b.requireRank(x, least, most)) return false;
  if (x->dtype == DType::F32 || x->dtype == DType::F64) return true;
  return b.fail(llvm::Twine("scores of type ") + info(x->dtype).text + ", expected f32 or f64"), false;
}

UOpRef multiMargin(Composer &b, UOpRef x, UOpRef target, double margin) {
  if (!requireScores(b, x, 2, 64) || !b.requireRank(target, x->rank() - 1, x->rank() - 1)) return nullptr;
  UOpRef index = b.unsqueeze(b.cast(target, DType::I64), {1}), zero = b.literal(x, 0);
  UOpRef own = b.make(Op::Pick, {x, index}, {1});
  UOpRef over = hinge(b, b.bin(Op::Add, b.bin(Op::Sub, b.literal(x, margin), own), x));
  UOpRef isTarget = b.bin(Op::Eq, index, b.iota(DType::I64, x->shape, 1));
  UOpRef sum = b.squeeze(b.reduce(ReduceKind::Sum, b.select(isTarget, zero, over), {1}), {1});
  return b.bin(Op::Div, sum, b.fromIndex(x->shape[1], x->dtype));
}

/// The forward variables over blanks and labels, in logarithms, one step of a scan each.
TemporalLoss temporalLoss(Composer &composer, UOpRef x, UOpRef target, int64_t blank) {
  if (!requireScores(composer, x, 3, 3) || !composer.requireRank(target, 2, 2)) return {};
  if (!isInt(target->dtype))
    composer.fail(llvm::Twine("the targets are of type ") + info(target->dtype).text + ", expected an integer type");
  composer.requireEqual(x->shape[1], target->shape[0], "the rows of the scores and of the targets");
  if (blank < 0 || blank >= x->shape[2]->hi)
    composer.fail(composer.hints.option("blank") + " is " + llvm::Twine(blank) + ", expected the number of a class");
  if (composer.failed()) return {};
  Builder &b = composer.b;
  Context &c = composer.c;
  DType t = x->dtype;
  UOpRef rows = x->shape[1], labels = target->shape[1], zero = b.idx(0), one = b.idx(1), two = b.idx(2);
  UOpRef states = idxAdd(c, idxMul(c, labels, two), one);
  UOpRef least = b.lit(t, -std::numeric_limits<double>::infinity());
  UOpRef index = b.cast(target, DType::I64), blanks = b.splat(b.litInt(DType::I64, blank), {rows, labels, one});
  // blank, label, blank, label ... blank
  UOpRef pairs = b.concat({blanks, b.reshape(index, {rows, labels, one})}, 2);
  UOpRef path = b.pad(b.reshape(pairs, {rows, idxMul(c, labels, two)}), {zero, zero}, {zero, one}, uint64_t(blank));
  UOpRef isLabel = b.bin(Op::Ne, index, b.litInt(DType::I64, blank));
  UOpRef length =
      b.reduce(ReduceKind::Sum, b.cast(b.cumulate(CumulateKind::Min, b.cast(isLabel, DType::I32), 1), DType::I64), {1});
  auto shifted = [&](UOpRef v, int64_t by, UOpRef fill) { // along the path
    UOpRef n = b.idx(by);
    return b.shrink(b.pad(v, {zero, n}, {zero, zero}, uint64_t(fill->ints[0])), {zero, zero}, v->shape);
  };
  UOpRef before = shifted(path, 2, b.litInt(DType::I64, blank));
  UOpRef skips = b.bin(Op::And, b.bin(Op::Ne, path, b.litInt(DType::I64, blank)), b.bin(Op::Ne, path, before));
  // One step: alpha, the logarithms of the classes now, path, skips.
  UOpRef alpha = b.arg(0, t, {rows, states}), now = b.arg(1, t, x->shape.drop_front()),
         pathIn = b.arg(2, DType::I64, {rows, states}), skipsIn = b.arg(3, DType::Bool, {rows, states});
  UOpRef from = logAddExp(composer, alpha, shifted(alpha, 1, least));
  from = logAddExp(composer, from, b.select(skipsIn, shifted(alpha, 2, least), least));
  UOpRef next = b.add(from, b.pick(now, pathIn, 1));
  UOpRef step = c.make(Op::Func, {next}, {4});
  // Before the first step all is in a state in front of the path, from which the first blank and label are reached.
  UOpRef place = b.iota(DType::I64, {rows, states}, 1);
  UOpRef start = b.select(b.eq(place, b.litInt(DType::I64, 0)), b.lit(t, 0), least);
  UOpRef scan = c.make(Op::Scan, {start, x, path, skips, x->shape[0]}, {1, 1}, {}, DType::Void, {step});
  UOpRef last = c.make(Op::Proj, {scan, rows, states}, {0}, {}, t);
  auto at = [&](UOpRef state) { // [N]
    return b.reshape(b.pick(last, b.reshape(state, {rows, one}), 1), {rows});
  };
  UOpRef end = b.mul(length, b.litInt(DType::I64, 2)), label = b.sub(end, b.litInt(DType::I64, 1));
  UOpRef hasLabel = b.lt(b.litInt(DType::I64, 0), length);
  UOpRef losses = b.un(Op::Neg, logAddExp(composer, at(end), b.select(hasLabel, at(label), least)));
  return {losses, length};
}

} // namespace astra::compose

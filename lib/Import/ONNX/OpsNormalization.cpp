//===- OpsNormalization.cpp: normalizations --------------------------------===//
// Takes:    nodes that scale by statistics of their operand.
// Gives:    the composites of Normalization.h; for a training, what becomes of running statistics.
#include "OpTable.h"
#include "astra/Compose/Normalization.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

namespace {

/// Whether the statistics are those of this batch. Before opset 14 outputs of training say so, before opset 7 an
/// attribute too.
bool inTraining(Node &n) {
  bool more = false;
  for (unsigned i = 1; i < n.numOutputs(); ++i) more |= n.wants(i);
  if (n.opset >= 14) {
    bool training = n.intAttr("training_mode", 0) != 0;
    if (more && !training) n.fail("outputs of training are of training_mode 1");
    return training;
  }
  if (n.opset >= 7) return more;
  if (n.opset < 6) n.ignoreAttr("consumed_inputs");
  bool training = !n.intAttr("is_test", 0);
  if (more && !training) n.fail("outputs of training are of is_test 0");
  return training;
}

/// In the entry for training parameters move toward the statistics of the batch.
void moveParameters(Node &n, Shared::Training &t, const compose::BatchNormalized &r, double momentum) {
  t.counts.push_back(r.count);
  for (unsigned i = 0; i < 2; ++i) {
    UOpRef running = n.in(3 + i);
    if (!running || !running->is(Op::Param) || n.failed()) continue;
    UOpRef now = i ? unbiased(n, r.variance, r.count) : r.mean;
    UOpRef next = movingAverage(n, n.cast(running, r.mean->dtype), now, momentum);
    t.running.push_back({running, n.cast(next, running->dtype)});
  }
}

void batchNormalization(Node &n) {
  compose::BatchNormalizationOptions options;
  options.epsilon = n.floatAttr("epsilon", 1e-5f);
  double momentum = n.floatAttr("momentum", 0.9f);
  Shared::Training *t = n.training();
  options.ofBatch = inTraining(n) || t;
  options.perElement = n.opset < 9 && n.intAttr("spatial", 1) == 0;
  compose::BatchNormalized r = batchNormalization(n, n.in(0), n.in(1), n.in(2), n.in(3), n.in(4), options);
  n.give(r.value);
  if (!options.ofBatch || n.failed()) return;
  if (t) moveParameters(n, *t, r, momentum);
  for (unsigned i = 0; i < 2; ++i) {
    UOpRef now = i ? r.variance : r.mean, old = n.in(3 + i);
    if (n.wants(1 + i)) n.give(1 + i, n.cast(movingAverage(n, n.cast(old, now->dtype), now, momentum), old->dtype));
    if (n.wants(3 + i)) n.give(3 + i, n.cast(now, old->dtype));
  }
}

DType stashType(Node &n) {
  constexpr std::pair<int64_t, DType> codes[] = {
      {1, DType::F32}, {10, DType::F16}, {11, DType::F64}, {16, DType::BF16}};
  int64_t given = n.intAttr("stash_type", 1);
  const auto *found = llvm::find_if(codes, [&](auto code) { return code.first == given; });
  if (found != std::end(codes)) return found->second;
  n.fail("attribute 'stash_type' is " + llvm::Twine(given) +
         ", expected 1 (float), 10 (float16), 11 (double) or 16 (bfloat16)");
  return DType::F32;
}

compose::LayerNormalizationOptions layerAttributes(Node &n) {
  return {n.intAttr("axis", -1), n.floatAttr("epsilon", 1e-5f), stashType(n)};
}

void layerNormalization(Node &n) {
  compose::LayerNormalized r =
      layerNormalization(n, n.in(0), n.in(1), n.has(2) ? n.in(2) : nullptr, layerAttributes(n));
  n.give(r.value);
  if (n.wants(1)) n.give(1, r.mean);
  if (n.wants(2)) n.give(2, r.inverse);
}

/// The result is of the scale's type, which may differ from the operand's.
void rmsNormalization(Node &n) { n.give(rmsNormalization(n, n.in(0), n.in(1), layerAttributes(n)).value); }

void instanceNormalization(Node &n) {
  n.give(instanceNormalization(n, n.in(0), n.in(1), n.in(2), n.floatAttr("epsilon", 1e-5f)));
}

/// From opset 21 on scale and bias are per channel and the first stage has a type; in 18 to 20 they were per group.
template <bool perGroup> void groupNormalization(Node &n) {
  compose::GroupNormalizationOptions options{n.intAttr("num_groups", 0), n.floatAttr("epsilon", 1e-5f), std::nullopt,
                                             perGroup};
  if (!perGroup) options.stage = stashType(n);
  n.give(compose::groupNormalization(n, n.in(0), n.in(1), n.in(2), options).value);
}

void localResponse(Node &n) {
  n.give(localResponseNormalization(
      n, n.in(0),
      {n.intAttr("size", 0), n.floatAttr("alpha", 0.0001f), n.floatAttr("beta", 0.75), n.floatAttr("bias", 1)}));
}

void lpNormalization(Node &n) { n.give(lpNormalization(n, n.in(0), n.intAttr("axis", -1), n.intAttr("p", 2))); }

void meanVariance(Node &n) { n.give(meanVarianceNormalization(n, n.in(0), n.intsAttr("axes", {0, 2, 3}))); }

constexpr Row rows[] = {
    {"BatchNormalization", 1, latest, 5, 5, batchNormalization, floatTypes,
     "outputs saved_mean and saved_var (before opset 14) are the mean and the variance of the batch"},
    {"LayerNormalization", 17, latest, 2, 3, layerNormalization, floatTypes},
    {"RMSNormalization", 23, latest, 2, 2, rmsNormalization, floatTypes},
    {"InstanceNormalization", 6, latest, 3, 3, instanceNormalization, floatTypes},
    {"GroupNormalization", 18, 20, 3, 3, groupNormalization<true>, floatTypes},
    {"GroupNormalization", 21, latest, 3, 3, groupNormalization<false>, floatTypes},
    {"LRN", 1, latest, 1, 1, localResponse, floatTypes},
    {"LpNormalization", 1, latest, 1, 1, lpNormalization, floatTypes},
    {"MeanVarianceNormalization", 9, latest, 1, 1, meanVariance, floatTypes},
};

} // namespace

llvm::ArrayRef<Row> normalizationRows() { return rows; }

} // namespace astra::onnx

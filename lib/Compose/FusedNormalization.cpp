//===- FusedNormalization.cpp: what exporters fuse with a layer norm -------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    what FusedNormalization.h says.
#include "astra/Compose/FusedNormalization.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Normalization.h"
#include "astra/Compose/Reduction.h"

namespace astra::compose {

namespace {

/// x + y, of x's shape.
UOpRef added(Composer &b, UOpRef x, UOpRef y) {
  return x && y ? b.bin(Op::Add, x, b.broadcastTo(b.cast(y, x->dtype), x->shape)) : nullptr;
}

/// The norm of a sum in f32 or f64, rounded to `type`.
SumNormalized normalized(Composer &b, UOpRef sum, UOpRef scale, UOpRef shift, DType type,
                         const SumNormalizationOptions &options) {
  if (!b.requireFloat(sum) || !b.requireRank(sum, 1) || !b.requireRank(scale, 1, 1)) return {};
  if (!b.requireEqual(sum->shape.back(), scale->shape[0], "the normalized axis and the scale")) return {};
  SumNormalized result;
  result.sum = b.cast(sum, type);
  LayerNormalizationOptions layer{-1, options.epsilon, sum->dtype};
  if (options.rootMeanSquare) {
    UOpRef y = rmsNormalization(b, sum, b.cast(scale, sum->dtype), layer).value;
    if (shift) y = added(b, y, shift);
    result.value = b.cast(y, type);
    return result;
  }
  LayerNormalized y = layerNormalization(b, sum, b.cast(scale, sum->dtype), b.cast(shift, sum->dtype), layer);
  result.value = b.cast(y.value, type);
  result.mean = b.cast(y.mean, DType::F32);
  result.inverse = b.cast(y.inverse, DType::F32);
  return result;
}

} // namespace

SumNormalized sumNormalization(Composer &b, UOpRef x, UOpRef skip, UOpRef bias, UOpRef scale, UOpRef shift,
                               const SumNormalizationOptions &options) {
  if (!b.requireFloat(x) || !b.requireRank(x, 1)) return {};
  UOpRef sum = b.widen(x);
  if (skip) sum = added(b, sum, skip);
  if (bias) sum = added(b, sum, bias);
  return normalized(b, sum, scale, shift, x->dtype, options);
}

SumNormalized embeddingNormalization(Composer &b, const EmbeddingOperands &given, UOpRef scale, UOpRef shift,
                                     double epsilon) {
  UOpRef words = given.words, places = given.positions;
  if (!b.requireRank(words, 2, 2) || !b.requireRank(given.wordTable, 2, 2) || !b.requireRank(given.placeTable, 2, 2) ||
      !b.requireFloat(given.wordTable))
    return {};
  if (!given.segments != !given.segmentTable) b.fail("segment ids and the segment embedding are used together");
  if (!places) places = b.iota(DType::I64, {b.idx(1), words->shape[1]}, 1);
  if (!b.requireRank(places, 2, 2)) return {};
  UOpRef sum = b.widen(gather(b, given.wordTable, words, 0));
  sum = added(b, sum, gather(b, given.placeTable, places, 0));
  if (given.segments && b.requireRank(given.segmentTable, 2, 2))
    sum = added(b, sum, gather(b, given.segmentTable, given.segments, 0));
  return sum ? normalized(b, sum, scale, shift, given.wordTable->dtype, {epsilon, false}) : SumNormalized();
}

UOpRef onesOfRows(Composer &b, UOpRef mask) {
  if (!b.requireRank(mask, 2, 2)) return nullptr;
  UOpRef ones = b.cast(b.bin(Op::Eq, mask, 1.0), mask->dtype);
  return b.squeeze(b.reduce(ReduceKind::Sum, ones, {1}), {1});
}

UOpRef zeroOfRows(Composer &b, UOpRef like) {
  return b.requireRank(like, 2, 2) ? b.broadcastTo(b.literal(like, 0), like->shape.take_front(1)) : nullptr;
}

SumNormalized sumGroupNormalization(Composer &b, UOpRef x, UOpRef skip, UOpRef bias, UOpRef scale, UOpRef shift,
                                    const FusedGroupNormalizationOptions &options) {
  if (!b.requireFloat(x) || !b.requireRank(x, 2)) return {};
  int64_t last = int64_t(x->rank()) - 1;
  UOpRef sum = b.widen(x);
  auto perChannel = [&](UOpRef v, unsigned leading) -> UOpRef { // [C] or [N, C] against x
    if (!b.requireRank(v, leading + 1, leading + 1)) return nullptr;
    Dims dims(x->rank(), b.idx(1));
    if (leading) dims[0] = v->shape[0];
    dims[options.channelsLast ? last : 1] = v->shape[leading];
    return b.reshape(v, dims);
  };
  if (skip) sum = added(b, sum, skip->rank() == 2 && x->rank() > 2 ? perChannel(skip, 1) : skip);
  if (bias) sum = added(b, sum, perChannel(bias, 0));
  if (!sum) return {};
  SumNormalized result;
  result.sum = b.cast(sum, x->dtype);
  Ints first = {0, last}, back = {0};
  for (int64_t axis = 1; axis < last; ++axis) first.push_back(axis);
  for (int64_t axis = 2; axis <= last; ++axis) back.push_back(axis);
  back.push_back(1);
  if (options.channelsLast) sum = b.permute(sum, first);
  GroupNormalizationOptions group{options.groups, options.epsilon, std::nullopt, false};
  UOpRef y = groupNormalization(b, sum, b.cast(scale, sum ? sum->dtype : DType::F32),
                                b.cast(shift, sum ? sum->dtype : DType::F32), group)
                 .value;
  if (options.channelsLast && y) y = b.permute(y, back);
  if (options.swish && y) y = swish(b, y);
  result.value = b.cast(y, x->dtype);
  return result;
}

} // namespace astra::compose

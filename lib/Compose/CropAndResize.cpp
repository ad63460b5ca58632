//===- CropAndResize.cpp: crops of images, brought to one size -------------===//
// Takes:    images and regions that may not fit.
// Gives:    cropAndResize: a grid over each region, sampled from its image.
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Sampling.h"

namespace astra::compose {

namespace {

/// The places of a crop along one axis, [R, size]: from the region's begin to its end, or its middle.
UOpRef places(Composer &b, UOpRef begin, UOpRef end, UOpRef size) {
  UOpRef length = b.bin(Op::Sub, end, begin), one = b.literal(begin, 1);
  UOpRef middle = b.bin(Op::Mul, b.bin(Op::Add, begin, end), 0.5), count = b.fromIndex(size, begin->dtype);
  UOpRef step = b.bin(Op::Div, length, b.bin(Op::Max, b.bin(Op::Sub, count, one), one));
  UOpRef ramp = b.iota(begin->dtype, {b.idx(1), size}, 1);
  UOpRef at = b.bin(Op::Add, b.unsqueeze(begin, {1}), b.bin(Op::Mul, ramp, b.unsqueeze(step, {1})));
  at = b.select(b.bin(Op::Eq, ramp, b.bin(Op::Sub, count, one)), b.unsqueeze(end, {1}), at);
  return b.select(b.bin(Op::Eq, count, one), b.unsqueeze(middle, {1}), at);
}

} // namespace

UOpRef cropAndResize(Composer &b, UOpRef given, UOpRef givenRegions, UOpRef images, llvm::ArrayRef<UOpRef> size,
                     const CropOptions &options) {
  UOpRef x = b.widen(given), regions = b.widen(givenRegions);
  if (!b.requireFloat(x) || !b.requireRank(x, 4, 4) || !b.requireRank(regions, 2, 2) || !b.requireRank(images, 1, 1))
    return nullptr;
  if (size.size() != 2) b.fail("found " + llvm::Twine(size.size()) + " extents of the crops, expected 2");
  if (b.failed() || !b.requireEqual(regions->shape[1], b.idx(4), "the regions and their corners") ||
      !b.requireEqual(regions->shape[0], images->shape[0], "the regions and their images"))
    return nullptr;
  for (UOpRef extent : size)
    if (!b.requireLeast(extent, 0, "an extent of the crops,", "negative")) return nullptr;
  auto corner = [&](int64_t i) { return b.element(regions, 1, i); };
  UOpRef rows = places(b, corner(0), corner(2), size[0]), columns = places(b, corner(1), corner(3), size[1]);
  if (!rows || !columns) return nullptr;
  Dims whole = {regions->shape[0], size[0], size[1]};
  rows = b.broadcastTo(b.unsqueeze(rows, {2}), whole);
  columns = b.broadcastTo(b.unsqueeze(columns, {1}), whole);
  auto within = [&](UOpRef v) {
    return b.bin(Op::And, b.bin(Op::Le, b.literal(v, 0), v), b.bin(Op::Le, v, b.literal(v, 1)));
  };
  auto coordinate = [&](UOpRef v) { return b.unsqueeze(b.bin(Op::Sub, b.bin(Op::Mul, v, 2), 1), {3}); };
  GridSampleOptions sampling{options.nearest ? ResizeMode::Nearest : ResizeMode::Linear, Outside::Clamp, true};
  UOpRef grid = b.concat({coordinate(columns), coordinate(rows)}, 3);
  UOpRef y = gridSample(b, gather(b, x, images, 0), grid, sampling);
  UOpRef inside = b.unsqueeze(b.bin(Op::And, within(rows), within(columns)), {1});
  return y ? b.cast(b.select(inside, y, b.literal(y, options.outside)), given->dtype) : nullptr;
}

} // namespace astra::compose

//===- Regions.cpp: pools over regions of images -------------------------===//
// Takes:    images and regions that may not fit.
// Gives:    roiAlign and maxRoiPool.
#include "Neighbours.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Settled.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace astra::compose {

namespace {

/// What RoiAlign and MaxRoiPool share.
struct Regions {
  UOpRef x = nullptr;
  int64_t bins[2] = {0, 0};
  double scale = 1;
};

bool readBins(Composer &b, Regions &r, const RegionOptions &options) {
  llvm::ArrayRef<int64_t> bins = options.bins;
  r.scale = options.scale;
  for (unsigned i = 0; i < 2; ++i) {
    r.bins[i] = i < bins.size() ? bins[i] : 0;
    if (bins.size() != 2 || r.bins[i] < 1 || r.bins[i] > (1 << 16))
      b.fail("the pooled extents must be two numbers in 1..2^16");
  }
  return b.requireFloat(r.x) && b.requireRank(r.x, 4, 4) && !b.failed();
}

/// The samples of RoiAlign along one axis (0: rows): places [R, bins, samples], whether each counts (null: all do), and
/// how many there are, a float scalar or [R].
struct Samples {
  UOpRef at = nullptr, counts = nullptr, number = nullptr;
};

Samples samplesAlong(Composer &b, const Regions &r, UOpRef rois, unsigned axis, bool halfPixel, int64_t ratio) {
  DType t = rois->dtype;
  auto edge = [&](unsigned which) {
    UOpRef v = b.bin(Op::Mul, b.element(rois, 1, which), r.scale);
    return halfPixel ? b.bin(Op::Sub, v, 0.5) : v;
  };
  UOpRef begin = edge(1 - axis), length = b.bin(Op::Sub, edge(3 - axis), begin);
  if (!halfPixel) length = b.bin(Op::Max, length, 1);
  UOpRef bin = b.bin(Op::Div, length, double(r.bins[axis]));
  Samples s;
  UOpRef extent = b.idx(ratio);
  if (ratio > 0) {
    s.number = b.b.lit(t, double(ratio));
  } else { // as many as the largest region needs
    s.number = b.un(Op::Ceil, bin);
    UOpRef most = b.squeeze(b.reduce(ReduceKind::Max, s.number, {0}), {0});
    constexpr int64_t limit = 4096;
    extent = b.make(Op::Extent, {b.cast(clampBetween(b, most, b.literal(most, 0), b.literal(most, limit)), DType::I64)},
                    {0, limit});
  }
  if (!extent || b.failed()) return {};
  UOpRef step = b.bin(Op::Div, bin, s.number); // [R]
  auto spread = [&](UOpRef v) { return b.unsqueeze(v, {1, 2}); };
  UOpRef number = b.iota(t, {extent}, 0), first = b.unsqueeze(b.iota(t, {b.idx(r.bins[axis])}, 0), {1});
  s.at = b.bin(Op::Add, spread(begin), b.bin(Op::Mul, first, spread(bin)));
  s.at = b.bin(Op::Add, s.at, b.bin(Op::Mul, b.bin(Op::Add, number, 0.5), spread(step)));
  if (ratio <= 0) s.counts = b.bin(Op::Lt, number, spread(s.number));
  return s;
}

/// The two neighbours of each sample, behind it; one that lies more than an element outside weighs nothing.
Neighbours aligned(Composer &b, const Samples &s, UOpRef extent) {
  if (!s.at) return {};
  DType t = s.at->dtype;
  UOpRef length = b.scalar(extent, t), zero = b.literal(s.at, 0);
  UOpRef seen = b.bin(Op::And, b.bin(Op::Le, b.literal(s.at, -1), s.at), b.bin(Op::Le, s.at, length));
  Neighbours two = around(b, clampBetween(b, s.at, zero, lastElement(b, extent, t)), false, extent, Outside::Clamp, {});
  if (two.weight) two.weight = b.select(b.unsqueeze(seen, {0}), two.weight, zero);
  for (UOpRef *v : {&two.position, &two.weight})
    if (*v) *v = b.permute(*v, {1, 2, 3, 0});
  return two;
}

/// [R, bins, samples, 2] as [R, 1, bins, 1, samples, 1, 2] less the axes of the other direction: rows first.
UOpRef crossed(Composer &b, UOpRef v, unsigned axis) {
  if (!v) return nullptr;
  Dims dims(v->rank() == 4 ? 7 : 5, b.idx(1));
  dims[0] = v->shape[0];
  for (unsigned i = 1; i < v->rank(); ++i) dims[2 * i - 1 + axis] = v->shape[i];
  return b.reshape(v, dims);
}

} // namespace

UOpRef roiAlign(Composer &b, UOpRef given, UOpRef givenRegions, UOpRef image, const RoiAlignOptions &options) {
  Regions r;
  r.x = b.widen(given);
  UOpRef rois = b.widen(givenRegions);
  int64_t ratio = options.samplingRatio;
  bool mean = !options.greatest;
  if (ratio < 0 || ratio > 4096)
    b.fail(b.hints.option("sampling_ratio") + " is " + llvm::Twine(ratio) + ", expected 0..4096");
  if (!readBins(b, r, options) || !b.requireRank(rois, 2, 2) || !b.requireRank(image, 1, 1)) return nullptr;
  if (rois->dtype != r.x->dtype) b.fail("the regions are not of the type of the input");
  if (Dims wanted = {image->shape[0], b.idx(4)}; rois->shape != llvm::ArrayRef<UOpRef>(wanted))
    b.failExtents("the regions are " + dimsText(rois->shape) + ", expected 4 numbers for each of " +
                      dimsText(image->shape) + " images",
                  rois->shape, wanted);
  DType indexType = indexTypeFor(b, r.x);
  llvm::SmallVector<Neighbours, 2> axes;
  UOpRef counts = nullptr, number = nullptr;
  for (unsigned axis = 0; axis < 2 && !b.failed(); ++axis) {
    Samples s = samplesAlong(b, r, rois, axis, options.halfPixel, ratio);
    Neighbours two = aligned(b, s, r.x->shape[2 + axis]);
    axes.push_back({crossed(b, two.position, axis), crossed(b, two.weight, axis), nullptr, two.extent});
    number = number ? b.bin(Op::Mul, number, s.number) : s.number;
    if (UOpRef own = crossed(b, s.counts, axis)) counts = counts ? b.bin(Op::And, counts, own) : own;
  }
  if (b.failed()) return nullptr;
  // [R, bins, bins, samples, samples, 2, 2]: the axes of both directions beside each other
  UOpRef index =
      b.bin(Op::Add, b.bin(Op::Mul, b.cast(axes[0].position, indexType), b.scalar(axes[1].extent, indexType)),
            b.cast(axes[1].position, indexType));
  UOpRef weight = b.bin(Op::Mul, axes[0].weight, axes[1].weight);
  Dims regions(7, b.idx(1));
  regions[0] = image->shape[0];
  UOpRef value = readImages(b, r.x, index, b.reshape(b.cast(image, indexType), regions));
  value = b.bin(Op::Mul, value, weight);
  if (!value) return nullptr;
  Ints folded = {4, 5, 6, 7}; // of [C, R, bins, bins, samples, samples, 2, 2]
  if (counts) {
    UOpRef none = b.literal(value, mean ? -0.0 : -std::numeric_limits<double>::infinity());
    value = b.select(b.unsqueeze(counts, {5, 6}), value, none);
  }
  UOpRef y = b.squeeze(b.reduce(mean ? ReduceKind::Sum : ReduceKind::Max, value, folded, /*chain=*/true), folded);
  if (mean) {
    number = b.bin(Op::Max, number, 1);
    y = b.bin(Op::Div, y, ratio > 0 ? number : b.unsqueeze(number, {1, 2}));
  } else if (counts) { // no sample at all
    y = b.select(b.bin(Op::Lt, b.literal(number, 0), b.unsqueeze(number, {1, 2})), y, b.literal(y, 0));
  }
  return b.cast(imagesFirst(b, y), given->dtype);
}

UOpRef maxRoiPool(Composer &b, UOpRef given, UOpRef givenRegions, const RegionOptions &options) {
  Regions r;
  r.x = b.widen(given);
  UOpRef rois = b.widen(givenRegions);
  if (!readBins(b, r, options) || !b.requireRank(rois, 2, 2)) return nullptr;
  if (rois->shape[1]->constIndex() != 5 || rois->dtype != r.x->dtype)
    b.fail("the regions are " + dimsText(rois->shape) + ", expected 5 numbers for each, of the type of the input");
  if (b.failed()) return nullptr;
  UOpRef least = b.literal(r.x, -std::numeric_limits<double>::infinity()), empty = nullptr;
  UOpRef y = b.make(Op::Gather, {r.x, b.cast(b.element(rois, 1, 0), DType::I64)}, {0}); // [R, C, H, W]
  auto rounded = [&](unsigned which) {                                                  // half away from zero
    UOpRef v = b.bin(Op::Mul, b.element(rois, 1, which), r.scale);
    return b.make(Op::CopySign, {b.un(Op::Floor, b.bin(Op::Add, b.un(Op::Abs, v), 0.5)), v});
  };
  for (unsigned axis : {1u, 0u}) { // columns of every row, then rows
    if (b.failed()) return nullptr;
    DType t = rois->dtype;
    UOpRef extent = r.x->shape[2 + axis], length = b.scalar(extent, t), zero = b.b.lit(t, 0);
    UOpRef begin = b.unsqueeze(rounded(2 - axis), {1}), end = b.unsqueeze(rounded(4 - axis), {1});
    UOpRef size = b.bin(Op::Max, b.bin(Op::Add, b.bin(Op::Sub, end, begin), 1), 1);
    UOpRef bin = b.bin(Op::Div, size, double(r.bins[axis])), number = b.iota(t, {b.idx(r.bins[axis])}, 0);
    UOpRef from = b.un(Op::Floor, b.bin(Op::Mul, number, bin)),
           to = b.un(Op::Ceil, b.bin(Op::Mul, b.bin(Op::Add, number, 1), bin));
    from = clampBetween(b, b.bin(Op::Add, from, begin), zero, length); // [R, bins]
    to = clampBetween(b, b.bin(Op::Add, to, begin), zero, length);
    UOpRef at = b.iota(t, {extent}, 0);
    UOpRef inside = b.bin(Op::And, b.bin(Op::Le, b.unsqueeze(from, {2}), at), b.bin(Op::Lt, at, b.unsqueeze(to, {2})));
    UOpRef none = b.bin(Op::Le, to, from);
    if (!inside || !none || !y) return nullptr;
    Dims dims = {inside->shape[0], b.idx(1), b.idx(1), inside->shape[1], extent};
    if (axis == 0) dims = {inside->shape[0], b.idx(1), inside->shape[1], extent, b.idx(1)};
    // [R, C, H, 1, W] to [R, C, H, bins]; then [R, C, 1, H, bins] to [R, C, bins, bins]
    int64_t fold = axis ? 4 : 3;
    y = b.select(b.reshape(inside, dims), b.unsqueeze(y, {axis ? 3 : 2}), least);
    y = b.squeeze(b.reduce(ReduceKind::Max, y, {fold}), {fold});
    none = b.unsqueeze(none, axis ? Ints{1, 2} : Ints{1, 3});
    empty = empty ? b.bin(Op::Or, empty, none) : none;
  }
  return b.cast(b.select(empty, b.literal(y, 0), y), given->dtype);
}

} // namespace astra::compose

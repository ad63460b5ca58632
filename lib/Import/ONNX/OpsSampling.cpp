//===- OpsSampling.cpp: ops that read a tensor at places that are data -----===//
// Takes:    GridSample, AffineGrid, RoiAlign, MaxRoiPool, DeformConv.
// Gives:    places as float tensors, the elements around each with their weights, one gather from the tensor seen as
//           [channels, batch * elements], and a sum over the neighbours in a plain chain, row-major.
// Keeps:    f16 and bf16 compute in f32 and round once. NaN and infinite places of GridSample give what PyTorch's CPU
//           kernels give: where a place is clipped or reflected as a whole it is in the image then, elsewhere the
//           weights are NaN, and mode nearest reads zero.
#include "OpTable.h"
#include "Sampling.h"
#include "WindowAttributes.h"
#include "astra/Compose/Settled.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace astra::onnx {

namespace {

enum class Outside { Zero, Clamp, Reflect };

/// The elements that a place reads along one axis: tensors of the places' shape behind one more axis, the neighbours,
/// so that places beside each other are read together.
struct Neighbours {
  UOpRef position = nullptr; // whole numbers of a float type, within the extent unless `inside` is false
  UOpRef weight = nullptr;   // null: 1
  UOpRef inside = nullptr;   // null: all are
  UOpRef extent = nullptr;   // of the axis that is read
};

struct Border {
  UOpRef least, most; // scalars: the places at which a reflection turns back
};

UOpRef lastElement(Node &n, UOpRef extent, DType t) { return scalar(n, idxSub(n.c, extent, n.c.index(1)), t); }

/// v folded at both borders until it lies between them, by PyTorch's formula: of whole numbers that are not huge it is
/// exact.
UOpRef reflected(Node &n, UOpRef v, Border border) {
  UOpRef range = n.bin(Op::Sub, border.most, border.least), period = n.bin(Op::Mul, range, 2);
  UOpRef distance = n.un(Op::Abs, n.bin(Op::Sub, v, border.least));
  UOpRef turns = n.un(Op::Trunc, n.bin(Op::Div, distance, period));
  UOpRef rest = n.bin(Op::Sub, distance, n.bin(Op::Mul, turns, period));
  UOpRef folded = n.bin(Op::Add, n.bin(Op::Min, rest, n.bin(Op::Sub, period, rest)), border.least);
  return n.select(n.bin(Op::Eq, range, 0.0), border.least, folded); // one element has nowhere to turn
}

/// Neighbours at whole positions.
Neighbours placed(Node &n, UOpRef position, UOpRef weight, UOpRef extent, Outside outside, Border border) {
  if (!position) return {};
  UOpRef zero = n.literal(position, 0), last = lastElement(n, extent, position->dtype);
  Neighbours result{position, weight, nullptr, extent};
  if (outside == Outside::Zero)
    result.inside = n.bin(Op::And, n.bin(Op::Le, zero, position), n.bin(Op::Le, position, last));
  if (outside == Outside::Reflect) result.position = reflected(n, position, border);
  if (outside != Outside::Zero) result.position = clampBetween(n, result.position, zero, last);
  return result;
}

/// The two elements around each place and their linear weights, or the four of a cubic.
Neighbours around(Node &n, UOpRef at, bool cubic, UOpRef extent, Outside outside, Border border) {
  if (!at) return {};
  Dims taps(at->rank() + 1, n.c.index(1));
  taps[0] = n.c.index(cubic ? 4 : 2);
  UOpRef base = n.un(Op::Floor, at);
  UOpRef offset = n.reshape(n.iota(at->dtype, {taps[0]}, 0), taps);
  if (cubic) offset = n.bin(Op::Sub, offset, 1);
  // A reflected coordinate that runs backward: its gradient to the right is this one's to the left.
  if (!cubic && outside == Outside::Reflect && n.training()) {
    UOpRef before = n.bin(Op::Sub, base, 1);
    UOpRef backward = n.bin(Op::Lt, reflected(n, base, border), reflected(n, before, border));
    base = n.select(n.bin(Op::And, backward, n.bin(Op::Eq, base, at)), before, base);
  }
  UOpRef part = n.unsqueeze(n.bin(Op::Sub, at, base), {0});
  UOpRef away = n.bin(Op::Sub, offset, part), distance = n.un(Op::Abs, away);
  // The same number without a kink at 0: at a whole coordinate the gradient is the one to the right, PyTorch's.
  if (!cubic && n.training()) distance = n.select(n.bin(Op::Eq, offset, 0.0), part, away);
  UOpRef weight = cubic ? cubicKernel(n, distance, -0.75) : n.bin(Op::Sub, n.literal(at, 1), distance);
  if (cubic) weight = n.select(n.bin(Op::Eq, distance, distance), weight, distance); // the kernel's ranges lose a NaN
  return placed(n, n.bin(Op::Add, n.unsqueeze(base, {0}), offset), weight, extent, outside, border);
}

/// The products of the neighbours along all axes: [all, places...].
struct Reads {
  UOpRef index = nullptr, weight = nullptr; // row-major in the axes; -1 where there is nothing
};

Reads together(Node &n, llvm::ArrayRef<Neighbours> axes, DType indexType) {
  Reads reads;
  UOpRef inside = nullptr;
  for (auto [i, a] : llvm::enumerate(axes)) {
    if (!a.position || n.failed()) return {};
    auto spread = [&, i = i](UOpRef v) { // its neighbours on axis i
      if (!v) return v;
      Dims dims(axes.size(), n.c.index(1));
      dims[i] = v->shape[0];
      dims.append(v->shape.begin() + 1, v->shape.end());
      return n.reshape(v, dims);
    };
    auto both = [&](Op op, UOpRef x, UOpRef y) { return !x ? y : !y ? x : n.bin(op, x, y); };
    UOpRef at = spread(n.cast(a.position, indexType));
    reads.index = reads.index ? n.bin(Op::Add, n.bin(Op::Mul, reads.index, scalar(n, a.extent, indexType)), at) : at;
    reads.weight = both(Op::Mul, reads.weight, spread(a.weight));
    inside = both(Op::And, inside, spread(a.inside));
  }
  if (inside) reads.index = n.select(inside, reads.index, n.b.litInt(indexType, -1));
  if (!reads.index) return {};
  Dims dims{idxProduct(n.c, reads.index->shape.take_front(axes.size()))};
  dims.append(reads.index->shape.begin() + axes.size(), reads.index->shape.end());
  reads.index = n.reshape(reads.index, dims);
  if (reads.weight) reads.weight = n.reshape(reads.weight, dims);
  return reads;
}

/// The type of an index into all of x: the narrower one where it suffices.
DType indexTypeFor(Node &n, UOpRef x) {
  return idxProduct(n.c, x->shape)->hi < std::numeric_limits<int32_t>::max() ? DType::I32 : DType::I64;
}

/// x [N, C, spatial...] read at index [places...], an element of the image `image` [places... or what broadcasts to
/// them] of N: gives [C, places...].
UOpRef readImages(Node &n, UOpRef x, UOpRef index, UOpRef image) {
  if (!x || !index || !image || n.failed()) return nullptr;
  UOpRef size = idxProduct(n.c, x->shape.drop_front(2));
  UOpRef flat = n.bin(Op::Add, n.bin(Op::Mul, image, scalar(n, size, index->dtype)), index);
  flat = n.select(n.bin(Op::Lt, index, n.b.litInt(index->dtype, 0)), n.b.litInt(index->dtype, -1), flat);
  UOpRef table = n.permute(n.reshape(x, {x->shape[0], x->shape[1], size}), {1, 0, 2});
  table = n.reshape(table, {x->shape[1], idxMul(n.c, x->shape[0], size)});
  return n.make(Op::Gather, {table, flat}, {1});
}

/// The number of each image, [1, N, 1, ...] of the rank given.
UOpRef imageNumbers(Node &n, UOpRef count, unsigned rank, DType t) {
  Dims dims(rank, n.c.index(1));
  dims[1] = count;
  return n.reshape(n.iota(t, {count}, 0), dims);
}

/// sum(value * weight) over the neighbours of [C, neighbours, places...].
UOpRef weighed(Node &n, UOpRef value, UOpRef weight) {
  if (!value || !weight) return nullptr;
  value = n.bin(Op::Mul, value, n.cast(weight, value->dtype));
  return n.squeeze(n.reduce(ReduceKind::Sum, value, {1}, /*chain=*/true), {1});
}

/// x widened to a type in which weights make sense.
UOpRef weighable(Node &n, UOpRef x) {
  return x && isInt(x->dtype) ? n.cast(x, bitWidth(x->dtype) < 32 ? DType::F32 : DType::F64) : n.widen(x);
}

/// [C, N, places...] as [N, C, places...].
UOpRef imagesFirst(Node &n, UOpRef y) {
  if (!y) return nullptr;
  Ints perm;
  for (unsigned i = 0; i < y->rank(); ++i) perm.push_back(i < 2 ? 1 - i : i);
  return n.permute(y, perm);
}

/// What is beyond every extent, and whole in every float type.
constexpr double farAway = 0x1p62;

/// Finite, and beyond the borders where v is: an infinite place has no neighbours with weights.
UOpRef withinReach(Node &n, UOpRef v) { return clampBetween(n, v, n.literal(v, -farAway), n.literal(v, farAway)); }

/// v for a read of which the place is clipped or reflected as a whole: a NaN is 0, and so is what is reflected from
/// infinity.
UOpRef numberedPlace(Node &n, UOpRef v, Outside outside) {
  UOpRef zero = n.literal(v, 0);
  if (outside == Outside::Clamp) return withinReach(n, n.select(n.bin(Op::Eq, v, v), v, zero));
  UOpRef infinity = n.literal(v, std::numeric_limits<double>::infinity());
  return n.select(n.bin(Op::Lt, n.un(Op::Abs, v), infinity), v, zero);
}

// ---- GridSample

UOpRef element(Node &n, UOpRef x, unsigned axis, int64_t at) {
  if (!x) return nullptr;
  Dims begin(x->rank(), n.c.index(0)), size(x->shape.begin(), x->shape.end());
  begin[axis] = n.c.index(at);
  size[axis] = n.c.index(1);
  return n.squeeze(n.shrink(x, begin, size), {int64_t(axis)});
}

/// The coordinate, through which no gradient goes where it stands at a border or beyond, reflected or not: PyTorch's
/// gradient of the linear modes, which brings the coordinate itself within the image.
UOpRef flatAtBorders(Node &n, UOpRef at, UOpRef last, Outside outside, Border border) {
  if (!at || outside == Outside::Zero || !n.training()) return at;
  UOpRef seen = outside == Outside::Reflect ? reflected(n, at, border) : at;
  UOpRef flat = n.bin(Op::Or, n.bin(Op::Le, seen, 0.0), n.bin(Op::Le, last, seen));
  return n.select(flat, n.un(Op::Detach, at), at);
}

/// What lies beyond a border is decided for each neighbour, as PyTorch does: a cubic beside a border sees the
/// difference. Names of the modes changed with opset 20, which also allows any number of spatial axes.
void gridSample(Node &n) {
  bool old = n.opset < 20;
  std::string mode = n.stringAttr("mode", old ? "bilinear" : "linear"), padding = n.stringAttr("padding_mode", "zeros");
  bool align = n.intAttr("align_corners", 0) != 0;
  bool cubic = mode == (old ? "bicubic" : "cubic"), nearest = mode == "nearest";
  if (!cubic && !nearest && mode != (old ? "bilinear" : "linear"))
    n.fail("attribute 'mode' is '" + mode + "', which is not one of ONNX's");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    n.fail("attribute 'padding_mode' is '" + padding + "', which is not one of ONNX's");
  Outside outside = padding == "zeros" ? Outside::Zero : padding == "border" ? Outside::Clamp : Outside::Reflect;
  UOpRef x = n.in(0), grid = n.widen(n.in(1));
  if (!n.requireRank(x, old ? 4 : 3, old ? 4 : 64) || !n.requireRank(grid, x->rank(), x->rank()) ||
      !n.requireFloat(grid))
    return;
  unsigned spatial = x->rank() - 2;
  if (UOpRef last = n.c.index(spatial); grid->shape.back() != last || grid->shape[0] != x->shape[0])
    n.failExtents("the grid is " + dimsText(grid->shape) + ", expected " + llvm::Twine(spatial) +
                      " coordinates for each place in each image of " + dimsText(x->shape),
                  {grid->shape[0], grid->shape.back()}, {x->shape[0], last});
  DType t = x->dtype;
  if (!nearest && !isFloat(t) && !isInt(t))
    n.unsupported(llvm::Twine("interpolation of type ") + info(t).text + " is not supported: use mode nearest");
  if (n.failed()) return;
  llvm::SmallVector<Neighbours, 3> axes;
  for (unsigned i = 0; i < spatial && !n.failed(); ++i) {
    UOpRef extent = x->shape[2 + i], at = element(n, grid, grid->rank() - 1, spatial - 1 - i); // x comes first
    if (!n.requireLeast(extent, 1, "the sampled extent", "0")) return;
    UOpRef length = scalar(n, extent, grid->dtype), last = lastElement(n, extent, grid->dtype);
    at = n.bin(Op::Add, at, 1);
    at = align ? n.bin(Op::Mul, n.bin(Op::Mul, at, 0.5), last)
               : n.bin(Op::Mul, n.bin(Op::Sub, n.bin(Op::Mul, at, length), 1), 0.5);
    if (nearest) at = n.un(Op::RoundEven, at);
    if (!cubic && outside != Outside::Zero) at = numberedPlace(n, at, outside);
    Border border{n.literal(last, align ? 0 : -0.5), align ? last : n.bin(Op::Sub, length, 0.5)};
    if (!nearest && !cubic) at = flatAtBorders(n, at, last, outside, border);
    axes.push_back(
        nearest ? placed(n, at ? n.unsqueeze(n.un(Op::Trunc, at), {0}) : nullptr, nullptr, extent, outside, border)
                : around(n, at, cubic, extent, outside, border));
  }
  DType indexType = indexTypeFor(n, x);
  Reads reads = together(n, axes, indexType);
  if (!reads.index) return;
  UOpRef image = imageNumbers(n, x->shape[0], reads.index->rank(), indexType);
  if (nearest) {
    UOpRef y = readImages(n, x, reads.index, image);
    if (y) n.give(imagesFirst(n, n.squeeze(y, {1})));
    return;
  }
  n.give(n.cast(imagesFirst(n, weighed(n, readImages(n, weighable(n, x), reads.index, image), reads.weight)), t));
}

// ---- AffineGrid

/// Places spread evenly over [-1, 1], each brought through the matrix [r | t] of its image.
void affineGrid(Node &n) {
  bool align = n.intAttr("align_corners", 0) != 0;
  UOpRef theta = n.widen(n.in(0));
  Dims size = n.knownDims(1, "the size");
  if (!n.requireFloat(theta) || !n.requireRank(theta, 3, 3) || n.failed()) return;
  unsigned spatial = size.size() < 2 ? 0 : size.size() - 2;
  if (spatial != 2 && spatial != 3) n.fail("the size " + dimsText(size) + " must have 4 or 5 extents");
  if (theta->shape[1]->constIndex() != int64_t(spatial) || theta->shape[2]->constIndex() != int64_t(spatial) + 1)
    n.fail("the matrices are " + dimsText(theta->shape) + ", expected " + llvm::Twine(spatial) + " rows of " +
           llvm::Twine(spatial + 1));
  if (n.failed()) return;
  if (size[0] != theta->shape[0])
    n.fail("found " + dimsText(theta->shape[0]) + " matrices for " + dimsText(size[0]) + " images");
  DType t = theta->dtype;
  UOpRef y = nullptr;
  auto column = [&](unsigned k) { // [N, 1, ..., spatial]
    Dims dims(spatial + 2, n.c.index(1));
    dims[0] = theta->shape[0];
    dims.back() = n.c.index(spatial);
    return n.reshape(element(n, theta, 2, k), dims);
  };
  for (unsigned k = 0; k < spatial && !n.failed(); ++k) { // the last axis is x, the first coordinate
    unsigned axis = spatial - 1 - k;
    UOpRef extent = size[2 + axis], at = n.iota(t, {extent}, 0), length = scalar(n, extent, t);
    if (align) {
      UOpRef spread = n.bin(Op::Div, n.bin(Op::Mul, at, 2), n.bin(Op::Sub, length, 1));
      at = n.select(n.bin(Op::Eq, length, 1), n.literal(length, 0), n.bin(Op::Sub, spread, 1));
    } else {
      at = n.bin(Op::Sub, n.bin(Op::Div, n.bin(Op::Add, n.bin(Op::Mul, at, 2), 1), length), 1);
    }
    Dims dims(spatial + 2, n.c.index(1));
    dims[1 + axis] = extent;
    UOpRef term = n.bin(Op::Mul, column(k), n.reshape(settled(n, at), dims));
    y = y ? n.bin(Op::Add, y, term) : term;
  }
  n.give(n.cast(n.bin(Op::Add, y, column(spatial)), n.in(0)->dtype));
}

// ---- regions of interest

/// What RoiAlign and MaxRoiPool share.
struct Regions {
  UOpRef x = nullptr;
  int64_t bins[2] = {0, 0};
  double scale = 1;
};

bool readBins(Node &n, Regions &r, llvm::ArrayRef<int64_t> bins) {
  r.scale = n.floatAttr("spatial_scale", 1);
  for (unsigned i = 0; i < 2; ++i) {
    r.bins[i] = i < bins.size() ? bins[i] : 0;
    if (bins.size() != 2 || r.bins[i] < 1 || r.bins[i] > (1 << 16))
      n.fail("the pooled extents must be two numbers in 1..2^16");
  }
  return n.requireFloat(r.x) && n.requireRank(r.x, 4, 4) && !n.failed();
}

/// The samples of RoiAlign along one axis (0: rows): places [R, bins, samples], whether each counts (null: all do), and
/// how many there are, a float scalar or [R].
struct Samples {
  UOpRef at = nullptr, counts = nullptr, number = nullptr;
};

Samples samplesAlong(Node &n, const Regions &r, UOpRef rois, unsigned axis, bool halfPixel, int64_t ratio) {
  DType t = rois->dtype;
  auto edge = [&](unsigned which) {
    UOpRef v = n.bin(Op::Mul, element(n, rois, 1, which), r.scale);
    return halfPixel ? n.bin(Op::Sub, v, 0.5) : v;
  };
  UOpRef begin = edge(1 - axis), length = n.bin(Op::Sub, edge(3 - axis), begin);
  if (!halfPixel) length = n.bin(Op::Max, length, 1);
  UOpRef bin = n.bin(Op::Div, length, double(r.bins[axis]));
  Samples s;
  UOpRef extent = n.c.index(ratio);
  if (ratio > 0) {
    s.number = n.b.lit(t, double(ratio));
  } else { // as many as the largest region needs
    s.number = n.un(Op::Ceil, bin);
    UOpRef most = n.squeeze(n.reduce(ReduceKind::Max, s.number, {0}), {0});
    constexpr int64_t limit = 4096;
    extent = n.make(Op::Extent, {n.cast(clampBetween(n, most, n.literal(most, 0), n.literal(most, limit)), DType::I64)},
                    {0, limit});
  }
  if (!extent || n.failed()) return {};
  UOpRef step = n.bin(Op::Div, bin, s.number); // [R]
  auto spread = [&](UOpRef v) { return n.unsqueeze(v, {1, 2}); };
  UOpRef number = n.iota(t, {extent}, 0), first = n.unsqueeze(n.iota(t, {n.c.index(r.bins[axis])}, 0), {1});
  s.at = n.bin(Op::Add, spread(begin), n.bin(Op::Mul, first, spread(bin)));
  s.at = n.bin(Op::Add, s.at, n.bin(Op::Mul, n.bin(Op::Add, number, 0.5), spread(step)));
  if (ratio <= 0) s.counts = n.bin(Op::Lt, number, spread(s.number));
  return s;
}

/// The two neighbours of each sample, behind it; one that lies more than an element outside weighs nothing.
Neighbours aligned(Node &n, const Samples &s, UOpRef extent) {
  if (!s.at) return {};
  DType t = s.at->dtype;
  UOpRef length = scalar(n, extent, t), zero = n.literal(s.at, 0);
  UOpRef seen = n.bin(Op::And, n.bin(Op::Le, n.literal(s.at, -1), s.at), n.bin(Op::Le, s.at, length));
  Neighbours two = around(n, clampBetween(n, s.at, zero, lastElement(n, extent, t)), false, extent, Outside::Clamp, {});
  if (two.weight) two.weight = n.select(n.unsqueeze(seen, {0}), two.weight, zero);
  for (UOpRef *v : {&two.position, &two.weight})
    if (*v) *v = n.permute(*v, {1, 2, 3, 0});
  return two;
}

/// [R, bins, samples, 2] as [R, 1, bins, 1, samples, 1, 2] less the axes of the other direction: rows first.
UOpRef crossed(Node &n, UOpRef v, unsigned axis) {
  if (!v) return nullptr;
  Dims dims(v->rank() == 4 ? 7 : 5, n.c.index(1));
  dims[0] = v->shape[0];
  for (unsigned i = 1; i < v->rank(); ++i) dims[2 * i - 1 + axis] = v->shape[i];
  return n.reshape(v, dims);
}

void roiAlign(Node &n) {
  Regions r;
  r.x = n.widen(n.in(0));
  UOpRef rois = n.widen(n.in(1)), image = n.in(2);
  std::string mode = n.stringAttr("mode", "avg"),
              transform =
                  n.opset < 16 ? "output_half_pixel" : n.stringAttr("coordinate_transformation_mode", "half_pixel");
  int64_t ratio = n.intAttr("sampling_ratio", 0);
  if (mode != "avg" && mode != "max") n.fail("attribute 'mode' is '" + mode + "', expected avg or max");
  if (transform != "half_pixel" && transform != "output_half_pixel")
    n.fail("attribute 'coordinate_transformation_mode' is '" + transform + "', which is not one of ONNX's");
  if (ratio < 0 || ratio > 4096) n.fail("attribute 'sampling_ratio' is " + llvm::Twine(ratio) + ", expected 0..4096");
  if (!readBins(n, r, {n.intAttr("output_height", 1), n.intAttr("output_width", 1)}) || !n.requireRank(rois, 2, 2) ||
      !n.requireRank(image, 1, 1))
    return;
  if (rois->dtype != r.x->dtype) n.fail("the regions are not of the type of the input");
  if (Dims wanted = {image->shape[0], n.c.index(4)}; rois->shape != llvm::ArrayRef<UOpRef>(wanted))
    n.failExtents("the regions are " + dimsText(rois->shape) + ", expected 4 numbers for each of " +
                      dimsText(image->shape) + " images",
                  rois->shape, wanted);
  DType indexType = indexTypeFor(n, r.x);
  llvm::SmallVector<Neighbours, 2> axes;
  UOpRef counts = nullptr, number = nullptr;
  for (unsigned axis = 0; axis < 2 && !n.failed(); ++axis) {
    Samples s = samplesAlong(n, r, rois, axis, transform == "half_pixel", ratio);
    Neighbours two = aligned(n, s, r.x->shape[2 + axis]);
    axes.push_back({crossed(n, two.position, axis), crossed(n, two.weight, axis), nullptr, two.extent});
    number = number ? n.bin(Op::Mul, number, s.number) : s.number;
    if (UOpRef own = crossed(n, s.counts, axis)) counts = counts ? n.bin(Op::And, counts, own) : own;
  }
  if (n.failed()) return;
  // [R, bins, bins, samples, samples, 2, 2]: the axes of both directions beside each other
  UOpRef index =
      n.bin(Op::Add, n.bin(Op::Mul, n.cast(axes[0].position, indexType), scalar(n, axes[1].extent, indexType)),
            n.cast(axes[1].position, indexType));
  UOpRef weight = n.bin(Op::Mul, axes[0].weight, axes[1].weight);
  Dims regions(7, n.c.index(1));
  regions[0] = image->shape[0];
  UOpRef value = readImages(n, r.x, index, n.reshape(n.cast(image, indexType), regions));
  value = n.bin(Op::Mul, value, weight);
  if (!value) return;
  Ints folded = {4, 5, 6, 7}; // of [C, R, bins, bins, samples, samples, 2, 2]
  if (counts) {
    UOpRef none = n.literal(value, mode == "avg" ? -0.0 : -std::numeric_limits<double>::infinity());
    value = n.select(n.unsqueeze(counts, {5, 6}), value, none);
  }
  UOpRef y =
      n.squeeze(n.reduce(mode == "avg" ? ReduceKind::Sum : ReduceKind::Max, value, folded, /*chain=*/true), folded);
  if (mode == "avg") {
    number = n.bin(Op::Max, number, 1);
    y = n.bin(Op::Div, y, ratio > 0 ? number : n.unsqueeze(number, {1, 2}));
  } else if (counts) { // no sample at all
    y = n.select(n.bin(Op::Lt, n.literal(number, 0), n.unsqueeze(number, {1, 2})), y, n.literal(y, 0));
  }
  n.give(n.cast(imagesFirst(n, y), n.in(0)->dtype));
}

/// Regions cut at whole elements; the maximum of each bin, first along rows, then along columns. An empty bin gives 0.
void maxRoiPool(Node &n) {
  Regions r;
  r.x = n.widen(n.in(0));
  UOpRef rois = n.widen(n.in(1));
  if (!readBins(n, r, n.intsAttr("pooled_shape")) || !n.requireRank(rois, 2, 2)) return;
  if (rois->shape[1]->constIndex() != 5 || rois->dtype != r.x->dtype)
    n.fail("the regions are " + dimsText(rois->shape) + ", expected 5 numbers for each, of the type of the input");
  if (n.failed()) return;
  UOpRef least = n.literal(r.x, -std::numeric_limits<double>::infinity()), empty = nullptr;
  UOpRef y = n.make(Op::Gather, {r.x, n.cast(element(n, rois, 1, 0), DType::I64)}, {0}); // [R, C, H, W]
  auto rounded = [&](unsigned which) {                                                   // half away from zero
    UOpRef v = n.bin(Op::Mul, element(n, rois, 1, which), r.scale);
    return n.make(Op::CopySign, {n.un(Op::Floor, n.bin(Op::Add, n.un(Op::Abs, v), 0.5)), v});
  };
  for (unsigned axis : {1u, 0u}) { // columns of every row, then rows
    if (n.failed()) return;
    DType t = rois->dtype;
    UOpRef extent = r.x->shape[2 + axis], length = scalar(n, extent, t), zero = n.b.lit(t, 0);
    UOpRef begin = n.unsqueeze(rounded(2 - axis), {1}), end = n.unsqueeze(rounded(4 - axis), {1});
    UOpRef size = n.bin(Op::Max, n.bin(Op::Add, n.bin(Op::Sub, end, begin), 1), 1);
    UOpRef bin = n.bin(Op::Div, size, double(r.bins[axis])), number = n.iota(t, {n.c.index(r.bins[axis])}, 0);
    UOpRef from = n.un(Op::Floor, n.bin(Op::Mul, number, bin)),
           to = n.un(Op::Ceil, n.bin(Op::Mul, n.bin(Op::Add, number, 1), bin));
    from = clampBetween(n, n.bin(Op::Add, from, begin), zero, length); // [R, bins]
    to = clampBetween(n, n.bin(Op::Add, to, begin), zero, length);
    UOpRef at = n.iota(t, {extent}, 0);
    UOpRef inside = n.bin(Op::And, n.bin(Op::Le, n.unsqueeze(from, {2}), at), n.bin(Op::Lt, at, n.unsqueeze(to, {2})));
    UOpRef none = n.bin(Op::Le, to, from);
    if (!inside || !none || !y) return;
    Dims dims = {inside->shape[0], n.c.index(1), n.c.index(1), inside->shape[1], extent};
    if (axis == 0) dims = {inside->shape[0], n.c.index(1), inside->shape[1], extent, n.c.index(1)};
    // [R, C, H, 1, W] to [R, C, H, bins]; then [R, C, 1, H, bins] to [R, C, bins, bins]
    int64_t fold = axis ? 4 : 3;
    y = n.select(n.reshape(inside, dims), n.unsqueeze(y, {axis ? 3 : 2}), least);
    y = n.squeeze(n.reduce(ReduceKind::Max, y, {fold}), {fold});
    none = n.unsqueeze(none, axis ? Ints{1, 2} : Ints{1, 3});
    empty = empty ? n.bin(Op::Or, empty, none) : none;
  }
  n.give(n.cast(n.select(empty, n.literal(y, 0), y), n.in(0)->dtype));
}

// ---- DeformConv

/// A convolution each of whose reads is moved by an offset and weighed by a mask, both data: the elements so read, as
/// [N, C, kernel, places], and one `contract`.
void deformConv(Node &n) {
  UOpRef x = n.widen(n.in(0)), w = n.widen(n.in(1)), offset = n.widen(n.in(2));
  int64_t parts = n.intAttr("offset_group", 1), groups = n.intAttr("group", 1);
  if (!n.requireFloat(x) || !n.requireRank(x, 3) || !n.requireRank(w, x->rank(), x->rank()) ||
      !n.requireRank(offset, x->rank(), x->rank()))
    return;
  Ints kernel;
  for (unsigned axis = 2; axis < w->rank(); ++axis) kernel.push_back(n.constExtent(w, axis, "an extent of the kernel"));
  compose::Window window = windowOver(n, x, windowAttributes(n), kernel);
  requireFixedPads(n, window);
  int64_t channels = n.constExtent(x, 1, "the number of channels"),
          outputs = n.constExtent(w, 0, "the number of channels"), own = n.constExtent(w, 1, "the number of channels");
  if (groups < 1 || parts < 1 || outputs % std::max<int64_t>(groups, 1) || channels % std::max<int64_t>(parts, 1) ||
      llvm::MulOverflow(own, groups, own) || own != channels)
    n.fail("groups " + llvm::Twine(groups) + " and offset groups " + llvm::Twine(parts) + " do not fit the input " +
           dimsText(x->shape) + " and the weights " + dimsText(w->shape));
  if (n.failed()) return;
  own = channels / groups;
  unsigned spatial = window.spatial;
  UOpRef taps = idxProduct(n.c, w->shape.drop_front(2)), places_ = n.c.index(1), N = x->shape[0];
  Dims out;
  for (unsigned i = 0; i < spatial && !n.failed(); ++i) out.push_back(places(n, window, x->shape[2 + i], i));
  if (n.failed()) return;
  places_ = idxProduct(n.c, out);
  // offsets [N, parts, kernel..., spatial, out...]; masks the same without the axis `spatial`
  Dims split = {N, n.c.index(parts)};
  split.append(w->shape.begin() + 2, w->shape.end());
  Dims maskDims = split;
  split.push_back(n.c.index(spatial));
  split.append(out);
  maskDims.append(out);
  offset = n.reshape(offset, split);
  llvm::SmallVector<Neighbours, 3> axes;
  for (unsigned i = 0; i < spatial && offset && !n.failed(); ++i) {
    UOpRef at = element(n, offset, 2 + spatial, i); // [N, parts, kernel..., out...]
    auto ramp = [&](unsigned axis, int64_t step, int64_t shift) {
      Dims dims(at->rank(), n.c.index(1));
      dims[axis] = at->shape[axis];
      UOpRef v = n.bin(Op::Mul, n.iota(at->dtype, {at->shape[axis]}, 0), double(step));
      return n.reshape(settled(n, n.bin(Op::Add, v, double(shift))), dims);
    };
    UOpRef whole = n.bin(Op::Add, ramp(2 + i, window.dilations[i], 0),
                         ramp(2 + spatial + i, window.strides[i], -window.before[i]));
    at = withinReach(n, n.bin(Op::Add, at, whole)); // an infinite offset reads zeros
    axes.push_back(around(n, at, false, x->shape[2 + i], Outside::Zero, {}));
  }
  DType indexType = indexTypeFor(n, x);
  Reads reads = together(n, axes, indexType);
  if (!reads.index) return;
  Dims images(x->shape.begin(), x->shape.end());
  images[0] = idxMul(n.c, N, n.c.index(parts));
  images[1] = n.c.index(channels / parts);
  Dims numbers(reads.index->rank(), n.c.index(1));
  numbers[1] = N, numbers[2] = n.c.index(parts);
  UOpRef image = n.reshape(n.iota(indexType, {images[0]}, 0), numbers);
  UOpRef columns = weighed(n, readImages(n, n.reshape(x, images), reads.index, image), reads.weight);
  if (n.has(4)) columns = n.bin(Op::Mul, columns, n.reshape(n.widen(n.in(4)), maskDims));
  if (!columns) return;
  columns = n.reshape(columns, {images[1], N, n.c.index(parts), taps, places_});
  columns = n.reshape(n.permute(columns, {1, 2, 0, 3, 4}), {N, n.c.index(groups), n.c.index(own), taps, places_});
  w = n.reshape(w, {n.c.index(groups), n.c.index(outputs / groups), n.c.index(own), taps});
  auto label = [](int64_t l) { return AffineForm{{{l, 1}}, 0, 1}; };
  ContractSpec spec; // n, group, oc, place; tap, ic
  spec.kept = 4;
  spec.reduced = 2;
  spec.a = {label(0), label(1), label(5), label(4), label(3)};
  spec.b = {label(1), label(2), label(5), label(4)};
  Dims result = {N, n.c.index(outputs)};
  result.append(out);
  UOpRef y =
      n.contract(spec, columns, w, {N, n.c.index(groups), n.c.index(outputs / groups), places_, taps, n.c.index(own)});
  y = n.reshape(y, result);
  if (n.has(3) && y) y = n.bin(Op::Add, y, n.perChannel(n.widen(n.in(3)), y->rank()));
  n.give(n.cast(y, n.in(0)->dtype));
}

constexpr Row rows[] = {
    {"GridSample", 16, latest, 2, 2, gridSample, anyType,
     "what lies beyond a border is decided for each neighbour, as PyTorch does; bool and complex with mode nearest "
     "alone"},
    {"AffineGrid", 20, latest, 2, 2, affineGrid, floatTypes, "an extent of 1 with align_corners stands at 0"},
    {"RoiAlign", 10, latest, 3, 3, roiAlign, floatTypes,
     "where the number of samples is adaptive, at most 4096 along an axis"},
    {"MaxRoiPool", 1, latest, 2, 2, maxRoiPool, floatTypes},
    {"DeformConv", 19, latest, 3, 5, deformConv, floatTypes},
};

} // namespace

llvm::ArrayRef<Row> samplingRows() { return rows; }

} // namespace astra::onnx

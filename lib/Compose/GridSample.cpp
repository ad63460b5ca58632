//===- GridSample.cpp: images at places of a grid ------------------------===//
// Takes:    images, grids and matrices that may not fit.
// Gives:    gridSample and affineGrid.
#include "Neighbours.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Settled.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace astra::compose {

/// The coordinate, through which no gradient goes where it stands at a border or beyond, reflected or not: PyTorch's
/// gradient of the linear modes, which brings the coordinate itself within the image.
static UOpRef flatAtBorders(Composer &b, UOpRef at, UOpRef last, Outside outside, Border border) {
  if (!at || outside == Outside::Zero || !b.wantsGradients()) return at;
  UOpRef seen = outside == Outside::Reflect ? reflected(b, at, border) : at;
  UOpRef flat = b.bin(Op::Or, b.bin(Op::Le, seen, 0.0), b.bin(Op::Le, last, seen));
  return b.select(flat, b.un(Op::Detach, at), at);
}

UOpRef gridSample(Composer &b, UOpRef x, UOpRef given, const GridSampleOptions &options) {
  UOpRef grid = b.widen(given);
  bool align = options.alignCorners;
  bool cubic = options.mode == ResizeMode::Cubic, nearest = options.mode == ResizeMode::Nearest;
  Outside outside = options.outside;
  if (!b.requireRank(x, 3) || !b.requireRank(grid, x->rank(), x->rank()) || !b.requireFloat(grid)) return nullptr;
  unsigned spatial = x->rank() - 2;
  if (UOpRef last = b.idx(spatial); grid->shape.back() != last || grid->shape[0] != x->shape[0])
    b.failExtents("the grid is " + dimsText(grid->shape) + ", expected " + llvm::Twine(spatial) +
                      " coordinates for each place in each image of " + dimsText(x->shape),
                  {grid->shape[0], grid->shape.back()}, {x->shape[0], last});
  DType t = x->dtype;
  if (!nearest && !isFloat(t) && !isInt(t))
    b.unsupported(llvm::Twine("interpolation of type ") + info(t).text + " is not supported: use mode nearest");
  if (b.failed()) return nullptr;
  llvm::SmallVector<Neighbours, 3> axes;
  for (unsigned i = 0; i < spatial && !b.failed(); ++i) {
    UOpRef extent = x->shape[2 + i], at = b.element(grid, grid->rank() - 1, spatial - 1 - i); // x comes first
    if (!b.requireLeast(extent, 1, "the sampled extent", "0")) return nullptr;
    UOpRef length = b.scalar(extent, grid->dtype), last = lastElement(b, extent, grid->dtype);
    at = b.bin(Op::Add, at, 1);
    at = align ? b.bin(Op::Mul, b.bin(Op::Mul, at, 0.5), last)
               : b.bin(Op::Mul, b.bin(Op::Sub, b.bin(Op::Mul, at, length), 1), 0.5);
    if (nearest) at = b.un(Op::RoundEven, at);
    if (!cubic && outside != Outside::Zero) at = numberedPlace(b, at, outside);
    Border border{b.literal(last, align ? 0 : -0.5), align ? last : b.bin(Op::Sub, length, 0.5)};
    if (!nearest && !cubic) at = flatAtBorders(b, at, last, outside, border);
    axes.push_back(
        nearest ? placed(b, at ? b.unsqueeze(b.un(Op::Trunc, at), {0}) : nullptr, nullptr, extent, outside, border)
                : around(b, at, cubic, extent, outside, border));
  }
  DType indexType = indexTypeFor(b, x);
  Reads reads = together(b, axes, indexType);
  if (!reads.index) return nullptr;
  UOpRef image = imageNumbers(b, x->shape[0], reads.index->rank(), indexType);
  if (nearest) {
    UOpRef y = readImages(b, x, reads.index, image);
    return y ? imagesFirst(b, b.squeeze(y, {1})) : nullptr;
  }
  UOpRef y = weighed(b, readImages(b, weighable(b, x), reads.index, image), reads.weight);
  return b.cast(imagesFirst(b, y), t);
}

UOpRef affineGrid(Composer &b, UOpRef given, llvm::ArrayRef<UOpRef> size, bool align) {
  UOpRef theta = b.widen(given);
  if (!b.requireFloat(theta) || !b.requireRank(theta, 3, 3) || b.failed()) return nullptr;
  unsigned spatial = size.size() < 2 ? 0 : size.size() - 2;
  if (spatial != 2 && spatial != 3) b.fail("the size " + dimsText(size) + " must have 4 or 5 extents");
  if (theta->shape[1]->constIndex() != int64_t(spatial) || theta->shape[2]->constIndex() != int64_t(spatial) + 1)
    b.fail("the matrices are " + dimsText(theta->shape) + ", expected " + llvm::Twine(spatial) + " rows of " +
           llvm::Twine(spatial + 1));
  if (b.failed()) return nullptr;
  if (size[0] != theta->shape[0])
    b.fail("found " + dimsText(theta->shape[0]) + " matrices for " + dimsText(size[0]) + " images");
  DType t = theta->dtype;
  UOpRef y = nullptr;
  auto column = [&](unsigned k) { // [N, 1, ..., spatial]
    Dims dims(spatial + 2, b.idx(1));
    dims[0] = theta->shape[0];
    dims.back() = b.idx(spatial);
    return b.reshape(b.element(theta, 2, k), dims);
  };
  for (unsigned k = 0; k < spatial && !b.failed(); ++k) { // the last axis is x, the first coordinate
    unsigned axis = spatial - 1 - k;
    UOpRef extent = size[2 + axis], at = b.iota(t, {extent}, 0), length = b.scalar(extent, t);
    if (align) {
      UOpRef spread = b.bin(Op::Div, b.bin(Op::Mul, at, 2), b.bin(Op::Sub, length, 1));
      at = b.select(b.bin(Op::Eq, length, 1), b.literal(length, 0), b.bin(Op::Sub, spread, 1));
    } else {
      at = b.bin(Op::Sub, b.bin(Op::Div, b.bin(Op::Add, b.bin(Op::Mul, at, 2), 1), length), 1);
    }
    Dims dims(spatial + 2, b.idx(1));
    dims[1 + axis] = extent;
    UOpRef term = b.bin(Op::Mul, column(k), b.reshape(settled(b, at), dims));
    y = y ? b.bin(Op::Add, y, term) : term;
  }
  return b.cast(b.bin(Op::Add, y, column(spatial)), given->dtype);
}

} // namespace astra::compose

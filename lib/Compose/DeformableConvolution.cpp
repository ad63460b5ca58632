//===- DeformableConvolution.cpp: convolutions with moved reads ----------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    deformableConvolution.
#include "Neighbours.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Settled.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace astra::compose {

/// The elements so read, as [N, C, kernel, places], and one `contract`.
UOpRef deformableConvolution(Composer &b, UOpRef given, UOpRef weights, UOpRef offsets, UOpRef bias, UOpRef mask,
                             const DeformableConvolutionOptions &options) {
  UOpRef x = b.widen(given), w = b.widen(weights), offset = b.widen(offsets);
  int64_t parts = options.offsetGroups, groups = options.groups;
  if (!b.requireFloat(x) || !b.requireRank(x, 3) || !b.requireRank(w, x->rank(), x->rank()) ||
      !b.requireRank(offset, x->rank(), x->rank()))
    return nullptr;
  Ints kernel;
  for (unsigned axis = 2; axis < w->rank(); ++axis) kernel.push_back(b.constExtent(w, axis, "an extent of the kernel"));
  Window window = windowOver(b, x, options.window, kernel);
  requireFixedPads(b, window);
  int64_t channels = b.constExtent(x, 1, "the number of channels"),
          outputs = b.constExtent(w, 0, "the number of channels"), own = b.constExtent(w, 1, "the number of channels");
  if (groups < 1 || parts < 1 || outputs % std::max<int64_t>(groups, 1) || channels % std::max<int64_t>(parts, 1) ||
      llvm::MulOverflow(own, groups, own) || own != channels)
    b.fail("groups " + llvm::Twine(groups) + " and offset groups " + llvm::Twine(parts) + " do not fit the input " +
           dimsText(x->shape) + " and the weights " + dimsText(w->shape));
  if (b.failed()) return nullptr;
  own = channels / groups;
  unsigned spatial = window.spatial;
  UOpRef taps = idxProduct(b.c, w->shape.drop_front(2)), places_ = b.idx(1), N = x->shape[0];
  Dims out;
  for (unsigned i = 0; i < spatial && !b.failed(); ++i) out.push_back(places(b, window, x->shape[2 + i], i));
  if (b.failed()) return nullptr;
  places_ = idxProduct(b.c, out);
  // offsets [N, parts, kernel..., spatial, out...]; masks the same without the axis `spatial`
  Dims split = {N, b.idx(parts)};
  split.append(w->shape.begin() + 2, w->shape.end());
  Dims maskDims = split;
  split.push_back(b.idx(spatial));
  split.append(out);
  maskDims.append(out);
  offset = b.reshape(offset, split);
  llvm::SmallVector<Neighbours, 3> axes;
  for (unsigned i = 0; i < spatial && offset && !b.failed(); ++i) {
    UOpRef at = b.element(offset, 2 + spatial, i); // [N, parts, kernel..., out...]
    auto ramp = [&](unsigned axis, int64_t step, int64_t shift) {
      Dims dims(at->rank(), b.idx(1));
      dims[axis] = at->shape[axis];
      UOpRef v = b.bin(Op::Mul, b.iota(at->dtype, {at->shape[axis]}, 0), double(step));
      return b.reshape(settled(b, b.bin(Op::Add, v, double(shift))), dims);
    };
    UOpRef whole = b.bin(Op::Add, ramp(2 + i, window.dilations[i], 0),
                         ramp(2 + spatial + i, window.strides[i], -window.before[i]));
    at = withinReach(b, b.bin(Op::Add, at, whole)); // an infinite offset reads zeros
    axes.push_back(around(b, at, false, x->shape[2 + i], Outside::Zero, {}));
  }
  DType indexType = indexTypeFor(b, x);
  Reads reads = together(b, axes, indexType);
  if (!reads.index) return nullptr;
  Dims images(x->shape.begin(), x->shape.end());
  images[0] = idxMul(b.c, N, b.idx(parts));
  images[1] = b.idx(channels / parts);
  Dims numbers(reads.index->rank(), b.idx(1));
  numbers[1] = N, numbers[2] = b.idx(parts);
  UOpRef image = b.reshape(b.iota(indexType, {images[0]}, 0), numbers);
  UOpRef columns = weighed(b, readImages(b, b.reshape(x, images), reads.index, image), reads.weight);
  if (mask) columns = b.bin(Op::Mul, columns, b.reshape(b.widen(mask), maskDims));
  if (!columns) return nullptr;
  columns = b.reshape(columns, {images[1], N, b.idx(parts), taps, places_});
  columns = b.reshape(b.permute(columns, {1, 2, 0, 3, 4}), {N, b.idx(groups), b.idx(own), taps, places_});
  w = b.reshape(w, {b.idx(groups), b.idx(outputs / groups), b.idx(own), taps});
  ContractSpec spec; // n, group, oc, place; tap, ic
  spec.kept = 4;
  spec.reduced = 2;
  spec.a = {label(0), label(1), label(5), label(4), label(3)};
  spec.b = {label(1), label(2), label(5), label(4)};
  Dims result = {N, b.idx(outputs)};
  result.append(out);
  UOpRef y = b.contract(spec, columns, w, {N, b.idx(groups), b.idx(outputs / groups), places_, taps, b.idx(own)});
  y = b.reshape(y, result);
  if (bias && y) y = b.bin(Op::Add, y, b.perChannel(b.widen(bias), y->rank()));
  return b.cast(y, given->dtype);
}

} // namespace astra::compose

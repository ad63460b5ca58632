//===- Neighbours.h: the elements around a place ---------------------------===//
// Gives:    what gridSample, roiAlign and deformable convolutions share.
#pragma once
#include "astra/Compose/Sampling.h"

namespace astra::compose {

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

/// The products of the neighbours along all axes: [all, places...].
struct Reads {
  UOpRef index = nullptr, weight = nullptr; // row-major in the axes; -1 where there is nothing
};

UOpRef lastElement(Composer &b, UOpRef extent, DType t);
/// v folded at both borders until it lies between them, by PyTorch's formula: of whole numbers that are not huge it is
/// exact.
UOpRef reflected(Composer &b, UOpRef v, Border border);
/// Neighbours at whole positions.
Neighbours placed(Composer &b, UOpRef position, UOpRef weight, UOpRef extent, Outside outside, Border border);
/// The two elements around each place and their linear weights, or the four of a cubic.
Neighbours around(Composer &b, UOpRef at, bool cubic, UOpRef extent, Outside outside, Border border);
Reads together(Composer &b, llvm::ArrayRef<Neighbours> axes, DType indexType);
/// The type of an index into all of x: the narrower one where it suffices.
DType indexTypeFor(Composer &b, UOpRef x);
/// x [N, C, spatial...] read at index [places...], an element of the image `image` [places... or what broadcasts to
/// them] of N: gives [C, places...].
UOpRef readImages(Composer &b, UOpRef x, UOpRef index, UOpRef image);
/// The number of each image, [1, N, 1, ...] of the rank given.
UOpRef imageNumbers(Composer &b, UOpRef count, unsigned rank, DType t);
/// sum(value * weight) over the neighbours of [C, neighbours, places...].
UOpRef weighed(Composer &b, UOpRef value, UOpRef weight);
/// x widened to a type in which weights make sense.
UOpRef weighable(Composer &b, UOpRef x);
/// [C, N, places...] as [N, C, places...].
UOpRef imagesFirst(Composer &b, UOpRef y);
/// Finite, and beyond the borders where v is: an infinite place has no neighbours with weights.
UOpRef withinReach(Composer &b, UOpRef v);
/// v for a read of which the place is clipped or reflected as a whole: a NaN is 0, and so is what is reflected from
/// infinity.
UOpRef numberedPlace(Composer &b, UOpRef v, Outside outside);

} // namespace astra::compose

//===- Sampling.h: reading a tensor at places that are data ----------------===//
// Takes:    images [N, C, spatial...] and places as float tensors.
// Gives:    the elements around each place with their weights, one gather from the tensor seen as [channels, batch *
//           elements], and a sum over the neighbours in a plain chain, row-major.
// Keeps:    f16 and bf16 compute in f32 and round once. NaN and infinite places of gridSample give what PyTorch's CPU
//           kernels give: where a place is clipped or reflected as a whole it is in the image then, elsewhere the
//           weights are NaN, and mode nearest reads zero.
#pragma once
#include "astra/Compose/Convolution.h"
#include "astra/Compose/Resize.h"

namespace astra::compose {

/// What lies beyond the borders of an image.
enum class Outside { Zero, Clamp, Reflect };

struct GridSampleOptions {
  ResizeMode mode = ResizeMode::Linear;
  Outside outside = Outside::Zero; // decided for each neighbour, as PyTorch does
  bool alignCorners = false;       // -1 and 1 are the middles of the first and the last element, not their edges
};
/// x [N, C, spatial...] at grid [N, places..., spatial], coordinates from -1 to 1, those of the last axis first:
/// [N, C, places...]. Types that are not numbers with mode nearest alone.
UOpRef gridSample(Composer &b, UOpRef x, UOpRef grid, const GridSampleOptions &options);

/// Places spread evenly over [-1, 1], each brought through the matrix of its image: theta [N, s, s + 1] gives
/// [N, spatial..., s] for size [N, C, spatial...] of s = 2 or 3 spatial axes.
UOpRef affineGrid(Composer &b, UOpRef theta, llvm::ArrayRef<UOpRef> size, bool alignCorners);

struct RegionOptions {
  Ints bins = {1, 1}; // rows and columns of a result, 1..2^16
  double scale = 1;   // of the regions' coordinates
};
struct RoiAlignOptions : RegionOptions {
  bool greatest = false;     // of the samples, not their mean
  bool halfPixel = true;     // coordinates are half a pixel less
  int64_t samplingRatio = 0; // samples along an axis of a bin, 0..4096; 0: as many as the largest region needs
};
/// x [N, C, H, W], regions [R, 4] of corners (x, y, x, y), each of the image of its number: [R, C, bins...].
UOpRef roiAlign(Composer &b, UOpRef x, UOpRef regions, UOpRef images, const RoiAlignOptions &options);
/// Regions [R, 5], the image's number first, cut at whole elements; the maximum of each bin; an empty bin gives 0.
UOpRef maxRoiPool(Composer &b, UOpRef x, UOpRef regions, const RegionOptions &options);

struct DeformableConvolutionOptions : ConvolutionOptions {
  int64_t offsetGroups = 1; // of channels that share offsets
};
/// A convolution each of whose reads is moved by offset [N, offset groups * kernel * s, places...] and weighed by mask
/// [N, offset groups * kernel, places...]; bias and mask may be null.
UOpRef deformableConvolution(Composer &b, UOpRef x, UOpRef w, UOpRef offset, UOpRef bias, UOpRef mask,
                             const DeformableConvolutionOptions &options);

struct CropOptions {
  bool nearest = false; // else linear
  double outside = 0;   // what lies beyond the image
};
/// Crops of x [N, C, H, W]: regions [R, 4] of corners (y, x, y, x), where 0 and 1 are the middles of the first and the
/// last element, each of the image of its number, brought to the two extents of `size`: [R, C, size...].
UOpRef cropAndResize(Composer &b, UOpRef x, UOpRef regions, UOpRef images, llvm::ArrayRef<UOpRef> size,
                     const CropOptions &options);

} // namespace astra::compose

//===- Resize.h: images of another size ------------------------------------===//
// Takes:    x of any rank and type; axes, and by what factor or to which extent each is resized. Extents may be
//           symbolic.
// Gives:    one step per axis that changes: where the elements read (f64 arithmetic on the index), which neighbours
//           those are and with what weight, then a sum of a few gathered tensors, or one `contract` where an
//           antialiasing filter has many taps.
// Keeps:    all that follows from constants computed while building, by the reference evaluator. f16 and bf16 compute
//           in f32, integers in f32 or f64, and round once; bool and complex values are copied only.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

enum class ResizeMode { Nearest, Linear, Cubic };

/// The coordinate in the input that an element of the result reads at, by its index i. Half pixels: (i + 0.5) / scale -
/// 0.5; its kinds differ for one element, for lengths that are not whole, and in the last half.
enum class Coordinates {
  HalfPixel,
  PytorchHalfPixel,
  Asymmetric, // i / scale
  AlignCorners,
  HalfPixelSymmetric,
  CropAndResize, // of a part of the input, which may reach beyond it
  HalfPixelForNearest
};

/// Which element is the nearest to a coordinate.
enum class NearestRounding { PreferFloor, PreferCeil, Floor, Ceil, FloorUnlessShrinking };

/// What becomes of the ratio of the extents that are asked for: only for constant ones.
enum class AspectRatio { Stretch, NotLarger, NotSmaller };

struct ResizeOptions {
  ResizeMode mode = ResizeMode::Nearest;
  Coordinates coordinates = Coordinates::HalfPixel;
  NearestRounding rounding = NearestRounding::PreferFloor;
  double cubicCoefficient = -0.75, extrapolation = 0;
  bool antialias = false;                         // wider filters where the result is smaller; not for the mode nearest
  bool excludeOutside = false;                    // neighbours outside weigh nothing, and the others more
  AspectRatio aspectRatio = AspectRatio::Stretch; // resizeToSizes
  UOpRef region = nullptr; // CropAndResize: [begin..., end...] of the axes, parts of 1; null: all
};

/// Extents are floor(extent * scale), in f32. Of a symbolic extent the scale must be a simple fraction.
UOpRef resizeByScales(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<double> scales,
                      const ResizeOptions &options);
UOpRef resizeToSizes(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<UOpRef> sizes,
                     const ResizeOptions &options);

/// The cubic convolution kernel with coefficient a at distances d >= 0; 0 from 2 on.
UOpRef cubicKernel(Composer &b, UOpRef d, double a);

} // namespace astra::compose

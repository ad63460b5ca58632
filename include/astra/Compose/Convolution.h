//===- Convolution.h: convolutions and what is added up like one -----------===//
// Gives:    one `contract` each, groups and depthwise included; reduced labels are the kernel's axes, then the input
//           channels (N4).
#pragma once
#include "astra/Compose/Windows.h"

namespace astra::compose {

struct ConvolutionOptions {
  WindowOptions window; // its kernel may be left to the weights
  int64_t groups = 1;   // of channels; they divide those of the weights
};

/// The convolution of x [N, C, spatial...] with w [O, C / groups, kernel...], and bias [O], or null for none:
/// [N, O, places...]. All are of one number type, kernel and channels are constant.
/// Refuses: ranks that differ, channels that do not fit, a window that may be longer than the padded image.
UOpRef convolution(Composer &b, UOpRef x, UOpRef w, UOpRef bias, const ConvolutionOptions &options);

struct TransposedConvolutionOptions : ConvolutionOptions {
  Ints outputPadding; // elements more behind each spatial axis, less than its stride or dilation; empty: 0
  Ints shape;         // extents of the result, from which pads follow; empty: pads are given
};

/// The transposed convolution of x [N, C, spatial...] with w [C, O / groups, kernel...]: the gradient of a convolution
/// by its input, as a result of its own. SAME pads to spatial extents times stride.
UOpRef transposedConvolution(Composer &b, UOpRef x, UOpRef w, UOpRef bias, const TransposedConvolutionOptions &options);

/// A convolution whose axes stand anywhere, with elements put between those of the operand too (its dilation), pads of
/// any sign, and groups of channels or of the batch.
struct GeneralConvolutionOptions {
  int64_t batch = 0, channel = 1;        // axes of x
  int64_t inChannel = 1, outChannel = 0; // axes of w
  int64_t resultBatch = 0, resultChannel = 1;
  Ints spatial, kernel, resultSpatial;                // axes of x, of w, of the result
  Ints strides, before, after, xDilations, dilations; // one for each spatial axis
  Ints reversed;                                      // not 0: the kernel runs backwards
  int64_t groups = 1, batchGroups = 1;
};
/// Reduced labels are the kernel's axes, then the input channels (N4).
UOpRef generalConvolution(Composer &b, UOpRef x, UOpRef w, const GeneralConvolutionOptions &options);

/// Blocks x [N, C * kernel, places] added up where a window over `image` read them: [N, C, image...]. The extents of
/// `image` may be symbolic; options.kernel is needed.
UOpRef columnsToImage(Composer &b, UOpRef x, llvm::ArrayRef<UOpRef> image, const WindowOptions &options);

/// What a window over x [N, C, spatial...] reads, pads being 0: [N, C * kernel, places]. options.kernel is needed.
UOpRef imageToColumns(Composer &b, UOpRef x, const WindowOptions &options);

} // namespace astra::compose

//===- Windows.h: what convolutions and pools share ------------------------===//
#pragma once
#include "Node.h"

namespace astra::onnx {

/// A window over the spatial axes of [N, C, spatial...].
struct Window {
  unsigned spatial; // number of spatial axes
  Ints kernel, strides, dilations, before, after;

  /// An axis whose pads depend on its extent (auto_pad SAME_*, a stride, a dynamic extent); before and after are 0.
  struct Same {
    unsigned axis; // spatial
    UOpRef before, after;
    UOpRef length; // what the places cover of the padded axis
  };
  std::vector<Same> same;

  /// The elements that it spans along spatial axis i.
  int64_t reach(unsigned i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

/// Whether kernel, strides, dilations and pads fit the spatial axes and are in range; a failure if not.
bool checkWindow(Node &n, const Window &w, llvm::ArrayRef<int64_t> pads);

/// Reads kernel_shape, strides, dilations, pads and auto_pad for an input [N, C, spatial...]; `kernel` is what the
/// weights say, or empty. A transposed convolution reads auto_pad itself.
Window readWindow(Node &n, UOpRef x, llvm::ArrayRef<int64_t> kernel, bool transposed = false);

/// x [leading..., spatial...] with the pads of `w.same`, which hold `bits`; the other axes as they are.
UOpRef withSamePads(Node &n, UOpRef x, const Window &w, uint64_t bits, unsigned leading = 2);

/// Refuses pads that depend on a dynamic extent.
void requireFixedPads(Node &n, const Window &w);

/// The number of places of the window along spatial axis i, 0 where the window is longer than the extent by no more
/// than its stride; an extent where it would be negative is refused. partial: with a last window that begins inside,
/// though it ends beyond the pads (ceil_mode).
UOpRef places(Node &n, const Window &w, UOpRef extent, unsigned i, bool partial = false);

} // namespace astra::onnx

//===- Windows.h: windows that slide over spatial axes ---------------------===//
// Takes:    how a window lies over the spatial axes of [N, C, spatial...], as a user gives it: it may be wrong in every
//           way.
// Gives:    the same with numbers for all of it, and the number of its places. Convolutions and pools share it.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// Who says how many elements are put around an image.
enum class AutoPad {
  Given,     // `pads`
  Valid,     // none
  SameUpper, // as many that the result has ceil(extent / stride) places; an odd one is behind
  SameLower, // ... before
};

/// One number for each spatial axis. Not given: what `kernel` of the function says, 1, 1 and 0.
struct WindowOptions {
  std::optional<Ints> kernel, strides, dilations; // 1..2^24
  std::optional<Ints> pads;                       // before all axes, then behind all; 0..2^24
  AutoPad automatic = AutoPad::Given;
};

/// A window over the spatial axes of [N, C, spatial...].
struct Window {
  unsigned spatial = 0; // number of spatial axes
  Ints kernel, strides, dilations, before, after;

  /// An axis whose pads depend on its extent (SAME, a stride, a dynamic extent); before and after are 0.
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
bool checkWindow(Composer &b, const Window &w, llvm::ArrayRef<int64_t> pads);

/// The window over x [N, C, spatial...]; `kernel` is what the weights say, or empty. For a transposed convolution SAME
/// is left to the caller: its pads follow from the result.
Window windowOver(Composer &b, UOpRef x, const WindowOptions &options, llvm::ArrayRef<int64_t> kernel = {},
                  bool transposed = false);

/// x [leading..., spatial...] with the pads of `w.same`, which hold `bits`; the other axes as they are.
UOpRef withSamePads(Composer &b, UOpRef x, const Window &w, uint64_t bits, unsigned leading = 2);

/// Refuses pads that depend on a dynamic extent.
void requireFixedPads(Composer &b, const Window &w);

/// The number of places of the window along spatial axis i, 0 where the window is longer than the extent by no more
/// than its stride; an extent where it would be negative is refused. partial: with a last window that begins inside,
/// though it ends beyond the pads.
UOpRef places(Composer &b, const Window &w, UOpRef extent, unsigned i, bool partial = false);

} // namespace astra::compose

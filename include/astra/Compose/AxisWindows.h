//===- AxisWindows.h: windows over any axes --------------------------------===//
// Takes:    x, and for each of its axes a window; extents may be symbolic.
// Gives:    what the windows see, folds of it, and its inverse.
// Keeps:    sums in a plain chain, row-major over the window (N4).
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// One number for each axis.
struct AxisWindows {
  Ints size, stride;
  Ints between;       // elements that are put between two neighbours
  Ints dilation;      // of the window
  Ints before, after; // pads, of any sign
};

struct Seen {
  UOpRef value = nullptr; // [places..., an axis for each window of other than one element]
  unsigned windows = 0;   // how many of these there are
};
/// What each window sees of x, where pads and what stands between elements are `fill`, a scalar.
Seen seenThrough(Composer &b, UOpRef x, const AxisWindows &w, UOpRef fill);

/// The axis along which x is folded up to each element (+ axis + 1), or from each element on (- axis - 1), by windows
/// of these sizes and pads, whose strides and dilations are 1; 0 for other windows. All may be symbolic.
int64_t runningAxis(Composer &b, UOpRef x, llvm::ArrayRef<UOpRef> sizes, llvm::ArrayRef<UOpRef> before,
                    llvm::ArrayRef<UOpRef> after);

/// `init` everywhere, of x's shape, plus each element of `source` [places...] where its window of x has its first
/// greatest (or least) element. No dilations.
UOpRef scatterToExtremes(Composer &b, UOpRef x, UOpRef source, UOpRef init, const AxisWindows &w, bool greatest);

} // namespace astra::compose

//===- Median.h: the middle of an axis --------------------------------------===//
// Takes:    tensors of a real type and an axis of one element or more.
// Gives:    results that keep the axis, of extent 1.
#pragma once
#include "astra/Compose/Order.h"

namespace astra::compose {

/// NumPy's: the middle element in order, or the mean of the two; a NaN wins. Of a float type; the extent is known.
UOpRef median(Composer &b, UOpRef x, int64_t axis);
/// PyTorch's: the lesser of the two, and its index, by a stable order in which zeros of both signs are equal. A NaN
/// wins, the first of them; where `ignoresNaNs`, it is the median of the numbers, or a NaN where there are none.
FirstOfAxis lowerMedian(Composer &b, UOpRef x, int64_t axis, bool ignoresNaNs = false);

} // namespace astra::compose

//===- Median.cpp: the middle of an axis ------------------------------------===//
// Takes:    an axis that may be outside of the tensor, or of extent 0.
// Gives:    elements of a sorted axis, at places that follow from how many numbers there are.
#include "astra/Compose/Median.h"
#include "astra/Compose/Indexing.h"

namespace astra::compose {

UOpRef median(Composer &b, UOpRef x, int64_t axis) {
  if (!b.requireFloat(x) || !b.requireRank(x, 1)) return nullptr;
  axis = b.axis(axis, x->rank());
  int64_t n = b.failed() ? 0 : b.constExtent(x, axis, "the axis of a median");
  if (b.failed()) return nullptr;
  if (n == 0) return b.fail("an axis of extent 0 has no median");
  UOpRef sorted = gatherElements(b, x, b.make(Op::ArgSort, {x}, {axis, 0}), axis);
  UOpRef low = b.part(sorted, axis, (n - 1) / 2, 1), last = b.part(sorted, axis, n - 1, 1), middle = low;
  if (n % 2 == 0) middle = b.bin(Op::Div, b.bin(Op::Add, low, b.part(sorted, axis, n / 2, 1)), 2.0);
  return b.select(b.bin(Op::Ne, last, last), last, middle); // NaNs are last
}

/// Behind the numbers stand NaNs: the first of them is the median, or none counts.
FirstOfAxis lowerMedian(Composer &b, UOpRef x, int64_t axis, bool ignoresNaNs) {
  if (!b.requireRank(x, 1)) return {};
  axis = b.axis(axis, x->rank());
  if (b.failed()) return {};
  UOpRef key = x;
  if (isFloat(x->dtype)) key = b.select(b.bin(Op::Eq, x, 0.0), b.literal(x, 0), x);
  UOpRef order = b.make(Op::ArgSort, {key}, {axis, 0});
  UOpRef count = b.reduce(ReduceKind::Sum, b.cast(b.bin(Op::Eq, x, x), DType::I64), {axis});
  if (b.failed()) return {};
  UOpRef place = b.bin(Op::Shr, b.bin(Op::Max, b.bin(Op::Sub, count, 1.0), 0.0), 1.0);
  if (!ignoresNaNs) place = b.select(b.bin(Op::Eq, count, b.scalar(x->shape[axis], DType::I64)), place, count);
  UOpRef index = gatherElements(b, order, place, axis);
  return {gatherElements(b, x, index, axis), index};
}

} // namespace astra::compose

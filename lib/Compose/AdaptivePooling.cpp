//===- AdaptivePooling.cpp: pools whose results have a given size ----------===//
// Takes:    images and sizes that may be wrong in every way.
// Gives:    one axis after the other cut into bins, which may overlap, and folded: bins of one length that do not
//           overlap at once, others one by one.
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Pooling.h"
#include "astra/Compose/Reduction.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

namespace {

/// Where bin i of an axis begins, and how many elements it has.
std::pair<int64_t, int64_t> binOf(int64_t extent, int64_t size, int64_t i) {
  int64_t begin = i * extent / size, end = ((i + 1) * extent + size - 1) / size;
  return {begin, end - begin};
}

constexpr int64_t mostBins = 1 << 16;

/// Whether the sizes are there, in range, and no more than x has axes.
bool fit(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> size) {
  if (!b.requireRank(x, unsigned(size.size()))) return false;
  for (int64_t n : size)
    if (n < 0 || n > mostBins) b.fail("a pool of " + llvm::Twine(n) + " bins, expected 0..65536");
  return !b.failed();
}

UOpRef meansAlong(Composer &b, UOpRef x, int64_t axis, int64_t size) {
  if (size == 1) return mean(b, x, {axis});
  int64_t extent = b.constExtent(x, unsigned(axis), "an axis that an adaptive pool cuts into bins");
  if (b.failed() || size == extent) return x;
  if (size && extent % size == 0) {
    Dims dims(x->shape.begin(), x->shape.end());
    dims[axis] = b.idx(size);
    dims.insert(dims.begin() + axis + 1, b.idx(extent / size));
    UOpRef cut = b.reshape(x, dims);
    return cut ? b.squeeze(mean(b, cut, {axis + 1}), {axis + 1}) : nullptr;
  }
  std::vector<UOpRef> bins;
  for (int64_t i = 0; i < size && !b.failed(); ++i) {
    auto [begin, length] = binOf(extent, size, i);
    bins.push_back(mean(b, b.part(x, axis, begin, length), {axis}));
  }
  return bins.empty() ? b.part(x, axis, int64_t(0), int64_t(0)) : b.concat(bins, axis);
}

} // namespace

UOpRef adaptiveAveragePool(Composer &b, UOpRef given, llvm::ArrayRef<int64_t> size) {
  UOpRef x = b.widen(given);
  if (!b.requireFloat(x) || !fit(b, x, size)) return nullptr;
  int64_t lead = int64_t(x->rank() - size.size());
  for (auto [i, n] : llvm::enumerate(size))
    if (x) x = meansAlong(b, x, lead + int64_t(i), n);
  return b.cast(x, given->dtype);
}

MaxPoolResult adaptiveMaxPool(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> size) {
  if (!fit(b, x, size)) return {};
  int64_t lead = int64_t(x->rank() - size.size());
  UOpRef count = idxProduct(b.c, x->shape.drop_front(lead));
  UOpRef number = b.broadcastTo(b.reshape(b.iota(DType::I64, {count}, 0), x->shape.drop_front(lead)), x->shape);
  for (int64_t axis = lead; axis < int64_t(x->rank()) && !b.failed(); ++axis) {
    int64_t n = size[axis - lead], extent = b.constExtent(x, unsigned(axis), "an axis of an adaptive maximum");
    std::vector<UOpRef> values, numbers;
    for (int64_t i = 0; i < n && !b.failed(); ++i) {
      auto [begin, length] = binOf(extent, n, i);
      UOpRef part = b.part(x, axis, begin, length), at = argReduce(b, part, axis, /*greatest=*/true);
      values.push_back(gatherElements(b, part, at, axis));
      numbers.push_back(gatherElements(b, b.part(number, axis, begin, length), at, axis));
    }
    if (b.failed()) return {};
    x = values.empty() ? b.part(x, axis, int64_t(0), int64_t(0)) : b.concat(values, axis);
    number = numbers.empty() ? b.part(number, axis, int64_t(0), int64_t(0)) : b.concat(numbers, axis);
    if (!x || !number) return {};
  }
  return b.failed() ? MaxPoolResult() : MaxPoolResult{x, number};
}

} // namespace astra::compose

//===- Windows.cpp: windows that slide over spatial axes -------------------===//
// Takes:    options that may be wrong in every way.
// Gives:    the window, its pads as numbers, and the number of its places.
#include "astra/Compose/Windows.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"

namespace astra::compose {

bool checkWindow(Composer &b, const Window &w, llvm::ArrayRef<int64_t> pads) {
  if (w.kernel.size() != w.spatial || w.strides.size() != w.spatial || w.dilations.size() != w.spatial ||
      pads.size() != 2 * w.spatial)
    b.fail("kernel_shape, strides, dilations or pads do not fit " + llvm::Twine(w.spatial) + " spatial axes");
  constexpr int64_t most = 1 << 24;
  for (const Ints *list : {&w.kernel, &w.strides, &w.dilations})
    for (int64_t v : *list)
      if (v < 1 || v > most) b.fail("kernel_shape, strides and dilations must be in 1..2^24, found " + llvm::Twine(v));
  for (int64_t v : pads)
    if (v < 0 || v > most) b.fail("pads must be in 0..2^24, found " + llvm::Twine(v));
  return !b.failed();
}

/// As users call them.
static const char *textOf(AutoPad pads) { return pads == AutoPad::SameUpper ? "SAME_UPPER" : "SAME_LOWER"; }

Window windowOver(Composer &b, UOpRef x, const WindowOptions &options, llvm::ArrayRef<int64_t> kernel,
                  bool transposed) {
  Window w;
  w.spatial = x->rank() - 2;
  w.kernel = options.kernel.value_or(Ints(kernel.begin(), kernel.end()));
  w.strides = options.strides.value_or(Ints(w.spatial, 1));
  w.dilations = options.dilations.value_or(Ints(w.spatial, 1));
  Ints pads = options.pads.value_or(Ints(2 * w.spatial, 0));
  if (!kernel.empty() && llvm::ArrayRef<int64_t>(w.kernel) != kernel)
    b.fail(b.hints.option("kernel_shape") + " differs from the weights");
  if (!checkWindow(b, w, pads)) return w;
  bool isSame = options.automatic == AutoPad::SameUpper || options.automatic == AutoPad::SameLower;
  for (unsigned i = 0; i < w.spatial && !b.failed(); ++i) {
    int64_t low = pads[i], high = pads[w.spatial + i];
    if (options.automatic == AutoPad::Valid) low = high = 0;
    if (!transposed && isSame) { // as many places as strides begin in the extent
      UOpRef extent = x->shape[2 + i], stride = b.idx(w.strides[i]), one = b.idx(1);
      UOpRef covered = idxMul(b.c, idxSub(b.c, idxCeilDiv(b.c, extent, stride), one), stride);
      UOpRef total = idxMax(b.c, b.idx(0), idxSub(b.c, idxAdd(b.c, covered, b.idx(w.reach(i))), extent));
      UOpRef less = idxDiv(b.c, total, b.idx(2)), more = idxSub(b.c, total, less);
      if (options.automatic == AutoPad::SameLower) std::swap(less, more);
      if (total->constIndex()) {
        low = *less->constIndex();
        high = *more->constIndex();
      } else {
        low = high = 0;
        w.same.push_back({i, less, more, idxAdd(b.c, covered, b.idx(w.reach(i)))});
        b.requireLeast(extent, 1, "extent",
                       llvm::Twine("0, where auto_pad '") + textOf(options.automatic) + "' has no place");
      }
    }
    w.before.push_back(low);
    w.after.push_back(high);
  }
  return w;
}

UOpRef withSamePads(Composer &b, UOpRef x, const Window &w, uint64_t bits, unsigned leading) {
  if (!x || w.same.empty()) return x;
  Dims lo(x->rank(), b.idx(0)), hi = lo, begin = lo, size(x->shape.begin(), x->shape.end());
  for (const Window::Same &s : w.same) {
    lo[leading + s.axis] = s.before;
    hi[leading + s.axis] = s.after;
    size[leading + s.axis] = s.length; // shorter than the padded axis where strides leave gaps
  }
  return b.shrink(b.pad(x, lo, hi, bits), begin, size);
}

void requireFixedPads(Composer &b, const Window &w) {
  if (!w.same.empty())
    b.unsupported("auto_pad SAME of a dynamic extent with a stride is not supported for this op: give pads, or fix the "
                  "extent" +
                  b.hints.means());
}

UOpRef places(Composer &b, const Window &w, UOpRef extent, unsigned i, bool partial) {
  UOpRef one = b.idx(1), stride = b.idx(w.strides[i]), before = b.idx(w.before[i]);
  UOpRef room = idxAdd(b.c, extent, b.idx(w.before[i] + w.after[i] - w.reach(i)));
  UOpRef last = idxDiv(b.c, room, stride); // the number of the last window
  if (partial && w.strides[i] > 1)
    last =
        idxMin(b.c, idxCeilDiv(b.c, room, stride), idxDiv(b.c, idxAdd(b.c, extent, idxSub(b.c, before, one)), stride));
  UOpRef count = idxAdd(b.c, last, one);
  if (count->lo < 0) {
    std::string words = ("smaller than the window of " + llvm::Twine(w.reach(i)) + " allows").str();
    if (extent->constIndex() || count->hi < 0)
      b.fail("extent " + indexText(extent) + " of a spatial axis is " + words);
    else
      b.unsupported("extent " + indexText(extent) + " of a spatial axis may be " + words + b.hints.bound(room, 0));
  }
  return count;
}

} // namespace astra::compose

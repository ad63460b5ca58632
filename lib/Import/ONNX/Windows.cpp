//===- Windows.cpp: what convolutions and pools share ----------------------===//
// Takes:    nodes with the attributes of a sliding window, which may be wrong in every way.
// Gives:    the window, its pads as numbers, and the number of its places.
#include "Windows.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "onnx.pb.h"

namespace astra::onnx {

bool checkWindow(Node &n, const Window &w, llvm::ArrayRef<int64_t> pads) {
  if (w.kernel.size() != w.spatial || w.strides.size() != w.spatial || w.dilations.size() != w.spatial ||
      pads.size() != 2 * w.spatial)
    n.fail("kernel_shape, strides, dilations or pads do not fit " + llvm::Twine(w.spatial) + " spatial axes");
  constexpr int64_t most = 1 << 24;
  for (const Ints *list : {&w.kernel, &w.strides, &w.dilations})
    for (int64_t v : *list)
      if (v < 1 || v > most) n.fail("kernel_shape, strides and dilations must be in 1..2^24, found " + llvm::Twine(v));
  for (int64_t v : pads)
    if (v < 0 || v > most) n.fail("pads must be in 0..2^24, found " + llvm::Twine(v));
  return !n.failed();
}

Window readWindow(Node &n, UOpRef x, llvm::ArrayRef<int64_t> kernel, bool transposed) {
  Window w;
  w.spatial = x->rank() - 2;
  w.kernel = n.intsAttr("kernel_shape", kernel);
  w.strides = n.intsAttr("strides", Ints(w.spatial, 1));
  w.dilations = n.intsAttr("dilations", Ints(w.spatial, 1));
  Ints pads = n.intsAttr("pads", Ints(2 * w.spatial, 0));
  std::string automatic = n.stringAttr("auto_pad", "NOTSET");
  if (!kernel.empty() && llvm::ArrayRef<int64_t>(w.kernel) != kernel)
    n.fail("attribute 'kernel_shape' differs from the weights");
  if (!checkWindow(n, w, pads)) return w;
  if (automatic != "NOTSET" && automatic != "VALID" && automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
    n.fail("attribute 'auto_pad' is '" + automatic + "', which is not one of ONNX's");
  for (unsigned i = 0; i < w.spatial && !n.failed(); ++i) {
    int64_t low = pads[i], high = pads[w.spatial + i];
    if (automatic == "VALID") low = high = 0;
    if (!transposed && automatic.rfind("SAME", 0) == 0) { // as many places as strides begin in the extent
      UOpRef extent = x->shape[2 + i], stride = n.c.index(w.strides[i]), one = n.c.index(1);
      UOpRef covered = idxMul(n.c, idxSub(n.c, idxCeilDiv(n.c, extent, stride), one), stride);
      UOpRef total = idxMax(n.c, n.c.index(0), idxSub(n.c, idxAdd(n.c, covered, n.c.index(w.reach(i))), extent));
      UOpRef less = idxDiv(n.c, total, n.c.index(2)), more = idxSub(n.c, total, less);
      if (automatic == "SAME_LOWER") std::swap(less, more);
      if (total->constIndex()) {
        low = *less->constIndex();
        high = *more->constIndex();
      } else {
        low = high = 0;
        w.same.push_back({i, less, more, idxAdd(n.c, covered, n.c.index(w.reach(i)))});
        n.requireLeast(extent, 1, "extent", "0, where auto_pad '" + automatic + "' has no place");
      }
    }
    w.before.push_back(low);
    w.after.push_back(high);
  }
  return w;
}

UOpRef withSamePads(Node &n, UOpRef x, const Window &w, uint64_t bits, unsigned leading) {
  if (!x || w.same.empty()) return x;
  Dims lo(x->rank(), n.c.index(0)), hi = lo, begin = lo, size(x->shape.begin(), x->shape.end());
  for (const Window::Same &s : w.same) {
    lo[leading + s.axis] = s.before;
    hi[leading + s.axis] = s.after;
    size[leading + s.axis] = s.length; // shorter than the padded axis where strides leave gaps
  }
  return n.shrink(n.pad(x, lo, hi, bits), begin, size);
}

void requireFixedPads(Node &n, const Window &w) {
  if (!w.same.empty())
    n.unsupported("auto_pad SAME of a dynamic extent with a stride is not supported for this op: give pads, or fix the "
                  "extent with --dim");
}

UOpRef places(Node &n, const Window &w, UOpRef extent, unsigned i, bool partial) {
  UOpRef one = n.c.index(1), stride = n.c.index(w.strides[i]), before = n.c.index(w.before[i]);
  UOpRef room = idxAdd(n.c, extent, n.c.index(w.before[i] + w.after[i] - w.reach(i)));
  UOpRef last = idxDiv(n.c, room, stride); // the number of the last window
  if (partial && w.strides[i] > 1)
    last =
        idxMin(n.c, idxCeilDiv(n.c, room, stride), idxDiv(n.c, idxAdd(n.c, extent, idxSub(n.c, before, one)), stride));
  UOpRef count = idxAdd(n.c, last, one);
  if (count->lo < 0) {
    std::string words = ("smaller than the window of " + llvm::Twine(w.reach(i)) + " allows").str();
    if (extent->constIndex() || count->hi < 0)
      n.fail("extent " + indexText(extent) + " of a spatial axis is " + words);
    else
      n.unsupported("extent " + indexText(extent) + " of a spatial axis may be " + words + boundHint(n.c, room, 0));
  }
  return count;
}

} // namespace astra::onnx

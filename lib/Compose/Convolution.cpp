//===- Convolution.cpp: convolutions and what is added up like one ---------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    one `contract` per convolution (groups and depthwise included).
// Keeps:    reduced labels outermost first: kernel axes, then input channels (N4).
#include "astra/Compose/Convolution.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

namespace {

/// The weights' channel axis that is split into groups, and how a label (group, rest) indexes a split axis of `part`
/// channels per group.
AffineForm channelForm(bool grouped, int64_t groupLabel, int64_t rest, int64_t part) {
  if (!grouped) return label(rest);
  AffineForm form{{{groupLabel, part}}, 0, 1};
  if (part > 1)
    form.terms.push_back({rest, 1});
  else
    form.terms = {{groupLabel, 1}};
  llvm::sort(form.terms);
  return form;
}

struct Convolution {
  UOpRef x, w;
  int64_t groups, inputs, outputs; // channels of one group
  Window window;
};

std::optional<Convolution> operandsOf(Composer &b, UOpRef x, UOpRef w, const ConvolutionOptions &options,
                                      bool transposed) {
  if (!b.requireRank(x, 3) || !b.requireRank(w, x->rank(), x->rank())) return std::nullopt;
  Ints kernel;
  for (unsigned axis = 2; axis < w->rank(); ++axis) kernel.push_back(b.constExtent(w, axis, "an extent of the kernel"));
  int64_t groups = options.groups, channels = b.constExtent(x, 1, "the number of channels");
  int64_t rows = b.constExtent(w, 0, "the number of channels"), columns = b.constExtent(w, 1, "the number of channels");
  Convolution conv{x,
                   w,
                   groups,
                   transposed ? rows : columns,
                   transposed ? columns : rows,
                   windowOver(b, x, options.window, kernel, transposed)};
  if (groups < 1 || rows % groups)
    b.fail(llvm::Twine(groups) + " groups do not divide " + llvm::Twine(rows) + " channels of the weights");
  if (b.failed()) return std::nullopt;
  (transposed ? conv.inputs : conv.outputs) /= groups;
  if (conv.inputs * groups != channels)
    b.fail("the input has " + llvm::Twine(channels) + " channels, the weights " + dimsText(w->shape) + " in " +
           llvm::Twine(groups) + " groups expect " + llvm::Twine(conv.inputs * groups));
  if (b.failed()) return std::nullopt;
  return conv;
}

/// Both kinds of convolution: kept labels n, (group,) oc, out...; reduced labels kernel..., ic. `spatial` gives the
/// extent of an output axis and the form by which its label and the kernel's index the input. A depthwise one has no
/// oc: so its result has the rank of its input, and what follows joins its kernel and takes its layout.
template <class Spatial> UOpRef contraction(Composer &b, const Convolution &conv, bool transposed, Spatial spatial) {
  const Window &w = conv.window;
  bool grouped = conv.groups > 1, depthwise = grouped && conv.outputs == 1 && !transposed;
  int64_t oc = 1 + grouped, out = oc + !depthwise, kernel = out + w.spatial, ic = kernel + w.spatial;
  ContractSpec spec;
  spec.kept = kernel;
  spec.reduced = w.spatial + 1;
  AffineForm inputForm = channelForm(grouped, 1, ic, conv.inputs);
  spec.a = {label(0), inputForm};
  if (transposed)
    spec.b = {inputForm, label(oc)};
  else
    spec.b = {channelForm(grouped, 1, oc, conv.outputs), label(ic)};
  Dims extents = {conv.x->shape[0]}, kernelExtents, result = {conv.x->shape[0], b.idx(conv.groups * conv.outputs)};
  if (grouped) extents.push_back(b.idx(conv.groups));
  if (!depthwise) extents.push_back(b.idx(conv.outputs));
  for (unsigned i = 0; i < w.spatial; ++i) {
    auto [extent, form] = spatial(i, out + i, kernel + i);
    extents.push_back(extent);
    result.push_back(extent);
    kernelExtents.push_back(b.idx(w.kernel[i]));
    spec.a.push_back(form);
    spec.b.push_back(label(kernel + i));
  }
  extents.append(kernelExtents);
  extents.push_back(b.idx(conv.inputs));
  return b.reshape(b.contract(spec, conv.x, conv.w, extents), result);
}

UOpRef withBias(Composer &b, UOpRef y, UOpRef bias) {
  return bias && y ? b.bin(Op::Add, y, b.perChannel(bias, y->rank())) : y;
}

/// Where output `out` of a transposed convolution reads: at (out + before - k * dilation) / stride where that is a
/// whole number; elsewhere there is a hole.
AffineForm transposedForm(const Window &w, unsigned i, int64_t before, int64_t out, int64_t kernel) {
  return {{{out, 1}, {kernel, -w.dilations[i]}}, before, w.strides[i]};
}

} // namespace

UOpRef convolution(Composer &b, UOpRef x, UOpRef w, UOpRef bias, const ConvolutionOptions &options) {
  std::optional<Convolution> conv = operandsOf(b, x, w, options, false);
  if (!conv) return nullptr;
  const Window &window = conv->window;
  conv->x = withSamePads(b, conv->x, window, 0);
  if (!conv->x) return nullptr;
  UOpRef y = contraction(b, *conv, false, [&](unsigned i, int64_t out, int64_t kernel) {
    UOpRef extent = places(b, window, conv->x->shape[2 + i], i);
    AffineForm form{{{out, window.strides[i]}, {kernel, window.dilations[i]}}, -window.before[i], 1};
    // Of a kernel of 1 the label is always 0; a label alone must have the axis' extent, which padding behind changes.
    bool alone = window.strides[i] == 1 && window.before[i] == 0;
    if (window.kernel[i] == 1 && (!alone || extent == conv->x->shape[2 + i])) form.terms.pop_back();
    return std::pair(extent, form);
  });
  return withBias(b, y, bias);
}

/// Either pads say how long the result is, or output_shape or auto_pad does, and the pads follow.
UOpRef transposedConvolution(Composer &b, UOpRef x, UOpRef weights, UOpRef bias,
                             const TransposedConvolutionOptions &options) {
  Ints outputPadding = options.outputPadding, shape = options.shape;
  std::optional<Convolution> conv = operandsOf(b, x, weights, options, true);
  AutoPad automatic = options.window.automatic;
  if (!conv) return nullptr;
  const Window &w = conv->window;
  if (outputPadding.empty()) outputPadding.assign(w.spatial, 0);
  if (shape.size() == w.spatial + 2) shape.erase(shape.begin(), shape.begin() + 2);
  bool isWanted = !shape.empty();
  if (outputPadding.size() != w.spatial || (isWanted && shape.size() != w.spatial))
    b.fail("output_padding or output_shape does not fit " + llvm::Twine(w.spatial) + " spatial axes");
  for (unsigned i = 0; i < w.spatial && !b.failed(); ++i) {
    if (outputPadding[i] < 0 || outputPadding[i] >= std::max(w.strides[i], w.dilations[i]))
      b.fail("output_padding " + llvm::Twine(outputPadding[i]) + " is not smaller than the stride or the dilation");
    if (isWanted && shape[i] < 0) b.fail("output_shape has the extent " + llvm::Twine(shape[i]));
  }
  if (b.failed()) return nullptr;
  UOpRef y = contraction(b, *conv, true, [&](unsigned i, int64_t out, int64_t kernel) {
    UOpRef in = conv->x->shape[2 + i], stride = b.idx(w.strides[i]);
    UOpRef full = idxAdd(b.c, idxMul(b.c, idxSub(b.c, in, b.idx(1)), stride), b.idx(outputPadding[i] + w.reach(i)));
    if (!isWanted && automatic != AutoPad::SameUpper && automatic != AutoPad::SameLower) {
      UOpRef extent = idxSub(b.c, full, b.idx(w.before[i] + w.after[i]));
      b.requireLeast(extent, 0, "the result's extent", "negative");
      return std::pair(extent, transposedForm(w, i, w.before[i], out, kernel));
    }
    UOpRef extent = isWanted ? b.idx(shape[i]) : idxMul(b.c, in, stride);
    UOpRef cut = idxMax(b.c, b.idx(0), idxSub(b.c, full, extent));
    if (!cut->constIndex())
      b.unsupported("output_shape " + llvm::Twine(isWanted ? shape[i] : 0) + " of the dynamic extent " + dimsText(in) +
                    " is not supported: give pads, or fix the extent" + b.hints.means());
    int64_t both = cut->constIndex().value_or(0);
    return std::pair(extent,
                     transposedForm(w, i, automatic == AutoPad::SameUpper ? both / 2 : both - both / 2, out, kernel));
  });
  return withBias(b, y, bias);
}

/// Blocks [N, C * kernel, places] added up where they stand in the image: a transposed convolution by ones.
UOpRef columnsToImage(Composer &b, UOpRef x, llvm::ArrayRef<UOpRef> image, const WindowOptions &options) {
  Ints block = options.kernel.value_or(Ints());
  if (!b.requireRank(x, 3, 3) || b.failed()) return nullptr;
  if (block.empty() || image.size() != block.size())
    b.fail("the shapes of image and block have " + llvm::Twine(image.size()) + " and " + llvm::Twine(block.size()) +
           " extents");
  Window w;
  w.spatial = block.size();
  w.kernel = block;
  w.strides = options.strides.value_or(Ints(w.spatial, 1));
  w.dilations = options.dilations.value_or(Ints(w.spatial, 1));
  Ints pads = options.pads.value_or(Ints(2 * w.spatial, 0));
  if (!checkWindow(b, w, pads)) return nullptr;
  w.before.assign(pads.begin(), pads.begin() + w.spatial);
  w.after.assign(pads.begin() + w.spatial, pads.end());
  Dims split = {x->shape[0]}, taps, at;
  for (unsigned i = 0; i < w.spatial && !b.failed(); ++i) {
    taps.push_back(b.idx(block[i]));
    at.push_back(places(b, w, image[i], i));
  }
  UOpRef size = idxProduct(b.c, taps);
  if (!b.failed() &&
      (!x->shape[1]->constIndex() || !size->constIndex() || *x->shape[1]->constIndex() % *size->constIndex()))
    b.fail("blocks of " + dimsText(taps) + " elements do not divide " + dimsText(x->shape[1]) + " channels");
  if (b.failed()) return nullptr;
  split.push_back(b.idx(*x->shape[1]->constIndex() / *size->constIndex()));
  ContractSpec spec;
  spec.kept = 2 + w.spatial;
  spec.reduced = w.spatial;
  spec.a = {label(0), label(1)};
  Dims extents = split;
  extents.append(image.begin(), image.end());
  extents.append(taps);
  split.append(taps);
  split.append(at);
  for (unsigned i = 0; i < w.spatial; ++i) spec.a.push_back(label(spec.kept + i));
  for (unsigned i = 0; i < w.spatial; ++i) spec.a.push_back(transposedForm(w, i, w.before[i], 2 + i, spec.kept + i));
  return b.contract(spec, b.reshape(x, split), b.b.litInt(x->dtype, 1), extents);
}

UOpRef imageToColumns(Composer &b, UOpRef x, const WindowOptions &options) {
  if (!b.requireRank(x, 3)) return nullptr;
  Window w = windowOver(b, x, options);
  requireFixedPads(b, w);
  if (b.failed()) return nullptr;
  Dims lo(2, b.idx(0)), hi = lo;
  for (int64_t n : w.before) lo.push_back(b.idx(n));
  for (int64_t n : w.after) hi.push_back(b.idx(n));
  UOpRef seen = b.pad(x, lo, hi, 0);
  for (unsigned i = 0; i < w.spatial; ++i)
    seen = b.make(Op::Window, {seen}, {2 + i, w.kernel[i], w.strides[i], w.dilations[i]});
  if (!seen) return nullptr;
  Ints order = {0, 1}; // [N, C, places..., kernel...] to [N, C, kernel..., places...]
  for (unsigned i = 0; i < w.spatial; ++i) order.push_back(2 + w.spatial + i);
  for (unsigned i = 0; i < w.spatial; ++i) order.push_back(2 + i);
  llvm::ArrayRef<UOpRef> dims = seen->shape;
  UOpRef taps = idxProduct(b.c, dims.take_back(w.spatial)), count = idxProduct(b.c, dims.slice(2, w.spatial));
  return b.reshape(b.permute(seen, order), {dims[0], idxMul(b.c, dims[1], taps), count});
}

} // namespace astra::compose

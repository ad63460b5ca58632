//===- OpsNetwork.cpp: products and convolutions ---------------------------===//
// Takes:    nodes whose operands have fixed roles.
// Gives:    one `contract` per product or convolution (groups and depthwise included).
// Keeps:    reduced labels outermost first: k; or kernel axes, then input channels (N4).
#include "OpTable.h"
#include "Windows.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::onnx {

namespace {

AffineForm label(int64_t l) { return {{{l, 1}}, 0, 1}; }
AffineForm first() { return {{}, 0, 1}; } // index 0, of an axis of extent 1 that is repeated

// ---- matrix products

void matmul(Node &n) {
  if (UOpRef y = product(n, n.in(0), n.in(1))) n.give(y);
}

/// alpha A' B' + beta C, A' and B' transposed on request; the transposition is only another index list.
void gemm(Node &n) {
  UOpRef a = n.in(0), b = n.in(1);
  bool turnA = n.intAttr("transA", 0), turnB = n.intAttr("transB", 0);
  double alpha = n.floatAttr("alpha", 1), beta = n.floatAttr("beta", 1);
  if (!n.requireRank(a, 2, 2) || !n.requireRank(b, 2, 2)) return;
  ContractSpec spec;
  spec.kept = 2;
  spec.reduced = 1;
  spec.a = {label(turnA ? 2 : 0), label(turnA ? 0 : 2)};
  spec.b = {label(turnB ? 1 : 2), label(turnB ? 2 : 1)};
  if (!n.requireEqual(a->shape[!turnA], b->shape[turnB], "the axes that are multiplied")) return;
  UOpRef y = n.contract(spec, a, b, {a->shape[turnA], b->shape[!turnB], a->shape[!turnA]});
  if (alpha != 1) y = n.bin(Op::Mul, y, alpha);
  if (n.has(2) && y) {
    UOpRef bias = beta == 1 ? n.in(2) : n.bin(Op::Mul, n.in(2), beta);
    y = n.bin(Op::Add, y, n.broadcastTo(bias, y->shape));
  }
  n.give(y);
}

// ---- convolutions

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

std::optional<Convolution> readConvolution(Node &n, UOpRef x, UOpRef w, bool transposed) {
  if (!n.requireRank(x, 3) || !n.requireRank(w, x->rank(), x->rank())) return std::nullopt;
  Ints kernel;
  for (unsigned axis = 2; axis < w->rank(); ++axis) kernel.push_back(n.constExtent(w, axis, "an extent of the kernel"));
  int64_t groups = n.intAttr("group", 1), channels = n.constExtent(x, 1, "the number of channels");
  int64_t rows = n.constExtent(w, 0, "the number of channels"), columns = n.constExtent(w, 1, "the number of channels");
  Convolution conv{
      x, w, groups, transposed ? rows : columns, transposed ? columns : rows, readWindow(n, x, kernel, transposed)};
  if (groups < 1 || rows % groups)
    n.fail(llvm::Twine(groups) + " groups do not divide " + llvm::Twine(rows) + " channels of the weights");
  if (n.failed()) return std::nullopt;
  (transposed ? conv.inputs : conv.outputs) /= groups;
  if (conv.inputs * groups != channels)
    n.fail("the input has " + llvm::Twine(channels) + " channels, the weights " + dimsText(w->shape) + " in " +
           llvm::Twine(groups) + " groups expect " + llvm::Twine(conv.inputs * groups));
  if (n.failed()) return std::nullopt;
  return conv;
}

/// Both kinds of convolution: kept labels n, (group,) oc, out...; reduced labels kernel..., ic. `spatial` gives the
/// extent of an output axis and the form by which its label and the kernel's index the input. A depthwise one has no
/// oc: so its result has the rank of its input, and what follows joins its kernel and takes its layout.
template <class Spatial> UOpRef convolution(Node &n, const Convolution &conv, bool transposed, Spatial spatial) {
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
  Dims extents = {conv.x->shape[0]}, kernelExtents, result = {conv.x->shape[0], n.c.index(conv.groups * conv.outputs)};
  if (grouped) extents.push_back(n.c.index(conv.groups));
  if (!depthwise) extents.push_back(n.c.index(conv.outputs));
  for (unsigned i = 0; i < w.spatial; ++i) {
    auto [extent, form] = spatial(i, out + i, kernel + i);
    extents.push_back(extent);
    result.push_back(extent);
    kernelExtents.push_back(n.c.index(w.kernel[i]));
    spec.a.push_back(form);
    spec.b.push_back(label(kernel + i));
  }
  extents.append(kernelExtents);
  extents.push_back(n.c.index(conv.inputs));
  return n.reshape(n.contract(spec, conv.x, conv.w, extents), result);
}

void giveWithBias(Node &n, UOpRef y) {
  if (n.has(2) && y) y = n.bin(Op::Add, y, n.perChannel(n.in(2), y->rank()));
  n.give(y);
}

void conv(Node &n) {
  if (UOpRef y = convolution(n, n.in(0), n.in(1))) giveWithBias(n, y);
}

/// Where output `out` of a transposed convolution reads: at (out + before - k * dilation) / stride where that is a
/// whole number; elsewhere there is a hole.
AffineForm transposedForm(const Window &w, unsigned i, int64_t before, int64_t out, int64_t kernel) {
  return {{{out, 1}, {kernel, -w.dilations[i]}}, before, w.strides[i]};
}

/// Either pads say how long the result is, or output_shape or auto_pad does, and the pads follow.
void convTranspose(Node &n) {
  Ints outputPadding = n.intsAttr("output_padding"), shape = n.intsAttr("output_shape");
  std::optional<Convolution> conv = readConvolution(n, n.in(0), n.in(1), true);
  std::string automatic = n.stringAttr("auto_pad", "NOTSET");
  if (!conv) return;
  const Window &w = conv->window;
  if (outputPadding.empty()) outputPadding.assign(w.spatial, 0);
  if (shape.size() == w.spatial + 2) shape.erase(shape.begin(), shape.begin() + 2);
  bool isWanted = !shape.empty();
  if (outputPadding.size() != w.spatial || (isWanted && shape.size() != w.spatial))
    n.fail("output_padding or output_shape does not fit " + llvm::Twine(w.spatial) + " spatial axes");
  for (unsigned i = 0; i < w.spatial && !n.failed(); ++i) {
    if (outputPadding[i] < 0 || outputPadding[i] >= std::max(w.strides[i], w.dilations[i]))
      n.fail("output_padding " + llvm::Twine(outputPadding[i]) + " is not smaller than the stride or the dilation");
    if (isWanted && shape[i] < 0) n.fail("output_shape has the extent " + llvm::Twine(shape[i]));
  }
  if (n.failed()) return;
  UOpRef y = convolution(n, *conv, true, [&](unsigned i, int64_t out, int64_t kernel) {
    UOpRef in = conv->x->shape[2 + i], stride = n.c.index(w.strides[i]);
    UOpRef full =
        idxAdd(n.c, idxMul(n.c, idxSub(n.c, in, n.c.index(1)), stride), n.c.index(outputPadding[i] + w.reach(i)));
    if (!isWanted && automatic.rfind("SAME", 0) != 0) {
      UOpRef extent = idxSub(n.c, full, n.c.index(w.before[i] + w.after[i]));
      n.requireLeast(extent, 0, "the result's extent", "negative");
      return std::pair(extent, transposedForm(w, i, w.before[i], out, kernel));
    }
    UOpRef extent = isWanted ? n.c.index(shape[i]) : idxMul(n.c, in, stride);
    UOpRef cut = idxMax(n.c, n.c.index(0), idxSub(n.c, full, extent));
    if (!cut->constIndex())
      n.unsupported("output_shape " + llvm::Twine(isWanted ? shape[i] : 0) + " of the dynamic extent " + dimsText(in) +
                    " is not supported: give pads, or fix the extent with --dim");
    int64_t both = cut->constIndex().value_or(0);
    return std::pair(extent, transposedForm(w, i, automatic == "SAME_UPPER" ? both / 2 : both - both / 2, out, kernel));
  });
  giveWithBias(n, y);
}

/// Blocks [N, C * kernel, places] added up where they stand in the image: a transposed convolution by ones.
void col2im(Node &n) {
  UOpRef x = n.in(0);
  Dims image = n.knownDims(1, "the image's shape");
  Ints block = n.knownInts(2, "the block's shape");
  if (!n.requireRank(x, 3, 3) || n.failed()) return;
  if (block.empty() || image.size() != block.size())
    n.fail("the shapes of image and block have " + llvm::Twine(image.size()) + " and " + llvm::Twine(block.size()) +
           " extents");
  Window w;
  w.spatial = block.size();
  w.kernel = block;
  w.strides = n.intsAttr("strides", Ints(w.spatial, 1));
  w.dilations = n.intsAttr("dilations", Ints(w.spatial, 1));
  Ints pads = n.intsAttr("pads", Ints(2 * w.spatial, 0));
  if (!checkWindow(n, w, pads)) return;
  w.before.assign(pads.begin(), pads.begin() + w.spatial);
  w.after.assign(pads.begin() + w.spatial, pads.end());
  Dims split = {x->shape[0]}, taps, at;
  for (unsigned i = 0; i < w.spatial && !n.failed(); ++i) {
    taps.push_back(n.c.index(block[i]));
    at.push_back(places(n, w, image[i], i));
  }
  UOpRef size = idxProduct(n.c, taps);
  if (!n.failed() &&
      (!x->shape[1]->constIndex() || !size->constIndex() || *x->shape[1]->constIndex() % *size->constIndex()))
    n.fail("blocks of " + dimsText(taps) + " elements do not divide " + dimsText(x->shape[1]) + " channels");
  if (n.failed()) return;
  split.push_back(n.c.index(*x->shape[1]->constIndex() / *size->constIndex()));
  ContractSpec spec;
  spec.kept = 2 + w.spatial;
  spec.reduced = w.spatial;
  spec.a = {label(0), label(1)};
  Dims extents = split;
  extents.append(image);
  extents.append(taps);
  split.append(taps);
  split.append(at);
  for (unsigned i = 0; i < w.spatial; ++i) spec.a.push_back(label(spec.kept + i));
  for (unsigned i = 0; i < w.spatial; ++i) spec.a.push_back(transposedForm(w, i, w.before[i], 2 + i, spec.kept + i));
  n.give(n.contract(spec, n.reshape(x, split), n.b.litInt(x->dtype, 1), extents));
}

constexpr Row rows[] = {
    {"MatMul", 1, latest, 2, 2, matmul, numberTypes},  {"Gemm", 7, latest, 2, 3, gemm, numberTypes},
    {"Conv", 1, latest, 2, 3, conv, numberTypes},      {"ConvTranspose", 1, latest, 2, 3, convTranspose, numberTypes},
    {"Col2Im", 18, latest, 3, 3, col2im, numberTypes},
};

} // namespace

UOpRef product(Node &n, UOpRef a, UOpRef b) {
  if (!n.requireRank(a, 1) || !n.requireRank(b, 1)) return nullptr;
  bool row = a->rank() == 1, column = b->rank() == 1;
  llvm::ArrayRef<UOpRef> batchA = row ? a->shape.take_front(0) : a->shape.drop_back(2),
                         batchB = column ? b->shape.take_front(0) : b->shape.drop_back(2);
  Dims extents = n.broadcastShape({batchA, batchB});
  int64_t batch = extents.size();
  ContractSpec spec;
  spec.kept = batch + !row + !column;
  spec.reduced = 1;
  auto batchForms = [&](llvm::ArrayRef<UOpRef> dims, llvm::SmallVectorImpl<AffineForm> &forms) {
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t l = batch - dims.size() + i;
      forms.push_back(dims[i] == extents[l] ? label(l) : first());
    }
  };
  batchForms(batchA, spec.a);
  batchForms(batchB, spec.b);
  if (!row) {
    spec.a.push_back(label(batch));
    extents.push_back(a->shape[a->rank() - 2]);
  }
  spec.a.push_back(label(spec.kept));
  spec.b.push_back(label(spec.kept));
  if (!column) {
    spec.b.push_back(label(spec.kept - 1));
    extents.push_back(b->shape.back());
  }
  extents.push_back(a->shape.back());
  if (!n.requireEqual(a->shape.back(), b->shape[column ? 0 : b->rank() - 2], "the axes that are multiplied"))
    return nullptr;
  return n.contract(spec, a, b, extents);
}

UOpRef convolution(Node &n, UOpRef x, UOpRef w) {
  std::optional<Convolution> conv = readConvolution(n, x, w, false);
  if (!conv) return nullptr;
  const Window &window = conv->window;
  conv->x = withSamePads(n, conv->x, window, 0);
  if (!conv->x) return nullptr;
  return convolution(n, *conv, false, [&](unsigned i, int64_t out, int64_t kernel) {
    UOpRef extent = places(n, window, conv->x->shape[2 + i], i);
    AffineForm form{{{out, window.strides[i]}, {kernel, window.dilations[i]}}, -window.before[i], 1};
    // Of a kernel of 1 the label is always 0; a label alone must have the axis' extent, which padding behind changes.
    bool alone = window.strides[i] == 1 && window.before[i] == 0;
    if (window.kernel[i] == 1 && (!alone || extent == conv->x->shape[2 + i])) form.terms.pop_back();
    return std::pair(extent, form);
  });
}

llvm::ArrayRef<Row> networkRows() { return rows; }

} // namespace astra::onnx

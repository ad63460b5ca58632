//===- OpsNetwork.cpp: products, convolutions, pooling ---------------------===//
// Takes:    nodes whose operands have fixed roles.
// Gives:    one `contract` per product or convolution (groups and depthwise included), windows and chain reductions per
//           pool.
// Keeps:    reduced labels outermost first: k; or kernel axes, then input channels (N4).
#include "OpTable.h"
#include "astra/IR/Index.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>
#include <map>

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
  UOpRef y = n.contract(spec, a, b, {a->shape[turnA], b->shape[!turnB], a->shape[!turnA]});
  if (alpha != 1) y = n.bin(Op::Mul, y, alpha);
  if (n.has(2) && y) {
    UOpRef bias = beta == 1 ? n.in(2) : n.bin(Op::Mul, n.in(2), beta);
    y = n.bin(Op::Add, y, n.broadcastTo(bias, y->shape));
  }
  n.give(y);
}

// ---- einsum

/// "bij, bjk -> bik" cut into one string per operand and the result's; implicit results are made explicit.
std::optional<std::vector<std::string>> einsumTerms(Node &n) {
  std::string equation = n.stringAttr("equation", "");
  llvm::erase(equation, ' ');
  size_t arrow = equation.find("->");
  llvm::SmallVector<llvm::StringRef, 4> parts;
  llvm::StringRef(equation).take_front(arrow).split(parts, ',');
  std::vector<std::string> result(parts.begin(), parts.end());
  auto isLetters = [](llvm::StringRef s) { return llvm::all_of(s, [](char c) { return llvm::isAlpha(c); }); };
  std::string last;
  if (arrow != std::string::npos) {
    last = equation.substr(arrow + 2);
  } else { // letters that occur once, in alphabetical order
    for (int c = 'A'; c <= 'z'; ++c)
      if (llvm::count(equation, char(c)) == 1 && llvm::isAlpha(char(c))) last += char(c);
  }
  result.push_back(last);
  if (!llvm::all_of(result, isLetters)) {
    n.unsupported("the equation '" + equation + "' has more than letters: name the axes of an ellipsis");
    return std::nullopt;
  }
  return result;
}

/// Two operands are one `contract`: the result's letters are kept, the others are reduced in the order in which they
/// first occur. One operand is a permutation after a sum.
void einsum(Node &n) {
  auto terms = einsumTerms(n);
  if (!terms) return;
  if (terms->size() != n.numInputs() + 1)
    n.fail("the equation has " + llvm::Twine(terms->size() - 1) + " operands, the node " + llvm::Twine(n.numInputs()));
  if (n.numInputs() > 2) n.unsupported("an einsum of more than two operands is not supported");
  std::string letters = terms->back();
  for (size_t i = 0; i < letters.size(); ++i)
    if (letters.find(letters[i]) != i) n.fail("the result of the equation names an axis twice");
  size_t kept = letters.size();
  std::map<char, UOpRef> extents;
  for (unsigned i = 0; i < n.numInputs() && !n.failed(); ++i) {
    UOpRef x = n.in(i);
    llvm::StringRef term = (*terms)[i];
    if (!n.requireRank(x, term.size(), term.size())) return;
    for (auto [letter, extent] : llvm::zip(term, x->shape)) {
      auto [entry, isNew] = extents.try_emplace(letter, extent);
      if (!isNew && entry->second != extent)
        n.unsupported("axis '" + llvm::Twine(letter) + "' has the extents " + dimsText({entry->second, extent}) +
                      ", which is not supported");
      if (letters.find(letter) == std::string::npos) letters += letter;
    }
  }
  for (char letter : letters)
    if (!extents.count(letter)) n.fail("axis '" + llvm::Twine(letter) + "' of the result is in no operand");
  if (n.failed()) return;
  if (n.numInputs() == 1) {
    UOpRef x = n.in(0);
    llvm::StringRef term = (*terms)[0];
    Ints folded, perm;
    for (size_t i = 0; i < term.size(); ++i) {
      if (term.find(term[i]) != i) n.unsupported("a diagonal of one operand is not supported");
      if (letters.find(term[i]) >= kept) folded.push_back(i);
    }
    for (size_t i = 0; i < kept; ++i) {
      perm.push_back(0);
      for (size_t j = 0; term[j] != letters[i]; ++j) perm.back() += letters.find(term[j]) < kept;
    }
    if (!n.failed()) n.give(n.permute(n.squeeze(n.reduce(ReduceKind::Sum, x, folded), folded), perm));
    return;
  }
  ContractSpec spec;
  spec.kept = kept;
  spec.reduced = letters.size() - kept;
  Dims labels;
  for (char letter : letters) labels.push_back(extents[letter]);
  for (char letter : (*terms)[0]) spec.a.push_back(label(letters.find(letter)));
  for (char letter : (*terms)[1]) spec.b.push_back(label(letters.find(letter)));
  n.give(n.contract(spec, n.in(0), n.in(1), labels));
}

// ---- windows: what convolutions and pools share

struct Window {
  unsigned spatial; // number of spatial axes
  Ints kernel, strides, dilations, before, after;
};

/// Reads kernel_shape, strides, dilations, pads and auto_pad for an input [N, C, spatial...].
Window readWindow(Node &n, UOpRef x, llvm::ArrayRef<int64_t> kernel) {
  Window w;
  w.spatial = x->rank() - 2;
  w.kernel = n.intsAttr("kernel_shape", kernel);
  w.strides = n.intsAttr("strides", Ints(w.spatial, 1));
  w.dilations = n.intsAttr("dilations", Ints(w.spatial, 1));
  Ints pads = n.intsAttr("pads", Ints(2 * w.spatial, 0));
  std::string automatic = n.stringAttr("auto_pad", "NOTSET");
  if (w.kernel.size() != w.spatial || w.strides.size() != w.spatial || w.dilations.size() != w.spatial ||
      pads.size() != 2 * w.spatial)
    n.fail("kernel_shape, strides, dilations or pads do not fit " + llvm::Twine(w.spatial) + " spatial axes");
  if (!kernel.empty() && llvm::ArrayRef<int64_t>(w.kernel) != kernel)
    n.fail("attribute 'kernel_shape' differs from the weights");
  constexpr int64_t most = 1 << 24;
  for (const Ints *list : {&w.kernel, &w.strides, &w.dilations})
    for (int64_t v : *list)
      if (v < 1 || v > most) n.fail("kernel_shape, strides and dilations must be in 1..2^24, found " + llvm::Twine(v));
  for (int64_t v : pads)
    if (v < 0 || v > most) n.fail("pads must be in 0..2^24, found " + llvm::Twine(v));
  if (n.failed()) return w;
  for (unsigned i = 0; i < w.spatial; ++i) {
    int64_t low = pads[i], high = pads[w.spatial + i];
    if (automatic == "VALID") low = high = 0;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      int64_t extent = n.constExtent(x, 2 + i, "an extent padded by auto_pad"),
              outputs = (extent + w.strides[i] - 1) / w.strides[i];
      int64_t total =
          std::max<int64_t>(0, (outputs - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 - extent);
      low = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      high = total - low;
    } else if (automatic != "NOTSET" && automatic != "VALID") {
      n.fail("attribute 'auto_pad' is '" + automatic + "', which is not one of ONNX's");
    }
    w.before.push_back(low);
    w.after.push_back(high);
  }
  return w;
}

/// The number of places of the window along spatial axis i; an extent that may be smaller than the window is refused.
UOpRef places(Node &n, const Window &w, UOpRef extent, unsigned i) {
  UOpRef room = idxAdd(n.c, extent, n.c.index(w.before[i] + w.after[i] - (w.kernel[i] - 1) * w.dilations[i] - 1));
  if (room->lo < 0) n.fail("extent " + dimsText(extent) + " of a spatial axis may be smaller than the window");
  return idxAdd(n.c, idxDiv(n.c, room, n.c.index(w.strides[i])), n.c.index(1));
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
  Convolution conv{x, w, groups, transposed ? rows : columns, transposed ? columns : rows, readWindow(n, x, kernel)};
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
/// extent of an output axis and the form by which its label and the kernel's index the input.
template <class Spatial> UOpRef convolution(Node &n, const Convolution &conv, bool transposed, Spatial spatial) {
  const Window &w = conv.window;
  bool grouped = conv.groups > 1;
  int64_t oc = 1 + grouped, out = oc + 1, kernel = out + w.spatial, ic = kernel + w.spatial;
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
  extents.push_back(n.c.index(conv.outputs));
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

/// The input is read at (out + pad - k * dilation) / stride where that is a whole number: elsewhere there is a hole.
void convTranspose(Node &n) {
  Ints outputPadding = n.intsAttr("output_padding");
  if (n.hasAttr("output_shape")) n.unsupported("attribute 'output_shape' is not supported: give pads");
  if (n.stringAttr("auto_pad", "NOTSET") != "NOTSET") n.unsupported("attribute 'auto_pad' is not supported: give pads");
  std::optional<Convolution> conv = readConvolution(n, n.in(0), n.in(1), true);
  if (!conv) return;
  const Window &w = conv->window;
  if (outputPadding.empty()) outputPadding.assign(w.spatial, 0);
  if (outputPadding.size() != w.spatial)
    n.fail("attribute 'output_padding' does not fit " + llvm::Twine(w.spatial) + " spatial axes");
  if (n.failed()) return;
  UOpRef y = convolution(n, *conv, true, [&](unsigned i, int64_t out, int64_t kernel) {
    UOpRef steps = idxSub(n.c, conv->x->shape[2 + i], n.c.index(1));
    int64_t rest = outputPadding[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 - w.before[i] - w.after[i];
    UOpRef extent = idxAdd(n.c, idxMul(n.c, steps, n.c.index(w.strides[i])), n.c.index(rest));
    return std::pair(extent, AffineForm{{{out, 1}, {kernel, -w.dilations[i]}}, w.before[i], w.strides[i]});
  });
  giveWithBias(n, y);
}

// ---- pools

/// Room for one more, partial window where ceil_mode asks for it: how far the last window reaches past the padded
/// input. A window that begins in the padding at the end is left out.
Ints overhang(Node &n, UOpRef x, const Window &w, bool ceil) {
  Ints extra(w.spatial, 0);
  for (unsigned i = 0; ceil && !n.failed() && i < w.spatial; ++i) {
    int64_t extent = n.constExtent(x, 2 + i, "an extent pooled with ceil_mode"),
            reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    int64_t room = extent + w.before[i] + w.after[i] - reach;
    if (room < 0) n.fail("an extent of " + llvm::Twine(extent) + " is smaller than the window");
    if (n.failed()) return extra;
    int64_t last = (room + w.strides[i] - 1) / w.strides[i]; // the number of the last window
    if (last * w.strides[i] >= extent + w.before[i]) --last;
    if ((last + 1) * w.strides[i] <= room)
      n.unsupported("a whole window in the padding at the end is not supported with ceil_mode");
    extra[i] = std::max<int64_t>(0, last * w.strides[i] - room);
  }
  return extra;
}

/// x padded on its last `spatial` axes and seen through the window: [leading..., places..., kernel...].
UOpRef windows(Node &n, UOpRef x, const Window &w, llvm::ArrayRef<int64_t> before, llvm::ArrayRef<int64_t> after,
               uint64_t bits, unsigned leading) {
  Dims lo(leading, n.c.index(0)), hi(leading, n.c.index(0));
  for (unsigned i = 0; i < w.spatial; ++i) {
    lo.push_back(n.c.index(before[i]));
    hi.push_back(n.c.index(after[i]));
  }
  x = n.pad(x, lo, hi, bits);
  for (unsigned i = 0; i < w.spatial; ++i)
    x = n.make(Op::Window, {x}, {leading + i, w.kernel[i], w.strides[i], w.dilations[i]});
  return x;
}

/// The window's axes, the last ones, folded away in plain chain order.
UOpRef foldWindow(Node &n, ReduceKind kind, UOpRef x, unsigned spatial) {
  if (!x) return nullptr;
  Ints axes;
  for (unsigned axis = x->rank() - spatial; axis < x->rank(); ++axis) axes.push_back(axis);
  UOpRef folded = n.reduce(kind, x, axes, /*chain=*/true);
  return folded ? n.squeeze(folded, axes) : nullptr;
}

Ints sum(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  Ints result;
  for (auto [x, y] : llvm::zip(a, b)) result.push_back(x + y);
  return result;
}

/// The bits of the least value of a dtype, which the pads of a max pool hold.
uint64_t leastBits(Node &n, DType t) {
  if (isFloat(t)) return uint64_t(n.b.lit(t, -std::numeric_limits<double>::infinity())->ints[0]);
  return isSigned(t) ? uint64_t(1) << (bitWidth(t) - 1) : 0;
}

void maxPool(Node &n) {
  UOpRef x = n.in(0);
  if (!n.requireRank(x, 3)) return;
  Window w = readWindow(n, x, {});
  Ints extra = overhang(n, x, w, n.intAttr("ceil_mode", 0));
  n.ignoreAttr("storage_order"); // of the second output
  if (n.wants(1)) n.unsupported("the second output, the indices of the maxima, is not supported");
  if (!n.failed())
    n.give(foldWindow(n, ReduceKind::Max, windows(n, x, w, w.before, sum(w.after, extra), leastBits(n, x->dtype), 2),
                      w.spatial));
}

/// The sum of the window over the number of elements in it. Pads that do not count are -0.0, the identity of the sum;
/// those that count are +0.0.
void averagePool(Node &n) {
  UOpRef x = n.widen(n.in(0));
  if (!n.requireFloat(x) || !n.requireRank(x, 3)) return;
  Window w = readWindow(n, x, {});
  bool padsCount = n.intAttr("count_include_pad", 0);
  Ints extra = overhang(n, x, w, n.intAttr("ceil_mode", 0));
  if (n.failed()) return;
  Ints none(w.spatial, 0), after = sum(w.after, extra);
  uint64_t identity = uint64_t(n.b.lit(x->dtype, -0.0)->ints[0]);
  auto amounts = [&](const Ints &spatial) {
    Dims dims(2, n.c.index(0));
    for (int64_t v : spatial) dims.push_back(n.c.index(v));
    return dims;
  };
  UOpRef seen = padsCount ? windows(n, n.pad(x, amounts(w.before), amounts(w.after), 0), w, none, extra, identity, 2)
                          : windows(n, x, w, w.before, after, identity, 2);
  UOpRef total = foldWindow(n, ReduceKind::Sum, seen, w.spatial);
  if (!total) return;
  bool uniform = llvm::all_of(extra, [](int64_t v) { return v == 0; }) &&
                 (padsCount || (llvm::all_of(w.before, [](int64_t v) { return v == 0; }) &&
                                llvm::all_of(w.after, [](int64_t v) { return v == 0; })));
  UOpRef count;
  if (uniform) {
    int64_t product = 1;
    for (int64_t k : w.kernel) product *= k;
    count = n.literal(x, double(product));
  } else { // the same windows over ones, as exact integers
    Dims spatial(x->shape.begin() + 2, x->shape.end());
    if (padsCount)
      for (unsigned i = 0; i < w.spatial; ++i)
        spatial[i] = idxAdd(n.c, spatial[i], n.c.index(w.before[i] + w.after[i]));
    UOpRef ones = n.broadcastTo(n.b.litInt(DType::I32, 1), spatial);
    UOpRef inside = windows(n, ones, w, padsCount ? none : w.before, padsCount ? extra : after, 0, 0);
    count = n.cast(foldWindow(n, ReduceKind::Sum, inside, w.spatial), x->dtype);
  }
  n.give(n.cast(n.bin(Op::Div, total, count), n.in(0)->dtype));
}

Ints spatialAxes(UOpRef x) {
  Ints axes;
  for (unsigned axis = 2; axis < x->rank(); ++axis) axes.push_back(axis);
  return axes;
}

void globalAveragePool(Node &n) {
  UOpRef x = n.widen(n.in(0));
  if (n.requireFloat(x) && n.requireRank(x, 3)) n.give(n.cast(mean(n, x, spatialAxes(x)), n.in(0)->dtype));
}

void globalMaxPool(Node &n) {
  UOpRef x = n.in(0);
  if (n.requireRank(x, 3)) n.give(n.reduce(ReduceKind::Max, x, spatialAxes(x)));
}

constexpr Row rows[] = {
    {"MatMul", 1, latest, 2, 2, matmul},
    {"Einsum", 12, latest, 1, anyNumber, einsum},
    {"Gemm", 7, latest, 2, 3, gemm},
    {"Conv", 1, latest, 2, 3, conv},
    {"ConvTranspose", 1, latest, 2, 3, convTranspose},
    {"MaxPool", 1, latest, 1, 1, maxPool},
    {"AveragePool", 7, latest, 1, 1, averagePool},
    {"GlobalAveragePool", 1, latest, 1, 1, globalAveragePool},
    {"GlobalMaxPool", 1, latest, 1, 1, globalMaxPool},
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
  return n.contract(spec, a, b, extents);
}

UOpRef convolution(Node &n, UOpRef x, UOpRef w) {
  std::optional<Convolution> conv = readConvolution(n, x, w, false);
  if (!conv) return nullptr;
  const Window &window = conv->window;
  return convolution(n, *conv, false, [&](unsigned i, int64_t out, int64_t kernel) {
    AffineForm form{{{out, window.strides[i]}, {kernel, window.dilations[i]}}, -window.before[i], 1};
    if (window.kernel[i] == 1) form.terms.pop_back(); // the label is always 0
    return std::pair(places(n, window, conv->x->shape[2 + i], i), form);
  });
}

llvm::ArrayRef<Row> networkRows() { return rows; }

} // namespace astra::onnx

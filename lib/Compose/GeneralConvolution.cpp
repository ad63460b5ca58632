//===- GeneralConvolution.cpp: convolutions whose axes stand anywhere ------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    one `contract`, whose kept labels stand as the result's axes do.
// Keeps:    reduced labels outermost first: kernel axes, then input channels (N4).
#include "astra/Compose/Convolution.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

namespace {

constexpr int64_t most = 1 << 24;

bool check(Composer &b, UOpRef x, UOpRef w, const GeneralConvolutionOptions &o) {
  if (!x || !w) return false;
  size_t n = o.spatial.size();
  for (const Ints *list :
       {&o.kernel, &o.resultSpatial, &o.strides, &o.before, &o.after, &o.xDilations, &o.dilations, &o.reversed})
    if (list->size() != n) b.fail("the options of a convolution do not fit " + llvm::Twine(n) + " spatial axes");
  if (x->rank() != n + 2 || w->rank() != n + 2)
    b.fail("a convolution over " + llvm::Twine(n) + " spatial axes of operands of rank " + llvm::Twine(x->rank()) +
           " and " + llvm::Twine(w->rank()));
  for (auto [first, second, rest] :
       {std::tuple(o.batch, o.channel, &o.spatial), std::tuple(o.inChannel, o.outChannel, &o.kernel),
        std::tuple(o.resultBatch, o.resultChannel, &o.resultSpatial)}) {
    Ints all = {first, second};
    all.append(rest->begin(), rest->end());
    llvm::sort(all);
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i] != int64_t(i)) b.fail("the axes of a convolution do not name each axis once");
  }
  for (const Ints *list : {&o.strides, &o.xDilations, &o.dilations})
    for (int64_t v : *list)
      if (v < 1 || v > most) b.fail("strides and dilations must be in 1..2^24, found " + llvm::Twine(v));
  for (const Ints *list : {&o.before, &o.after})
    for (int64_t v : *list)
      if (v < -most || v > most) b.fail("pads must be in -2^24..2^24, found " + llvm::Twine(v));
  if (o.groups < 1 || o.batchGroups < 1 || (o.groups > 1 && o.batchGroups > 1))
    b.fail("groups of channels and of the batch must be 1 or more, and one of them 1");
  return !b.failed();
}

/// Index group * part + rest.
AffineForm grouped(bool isGrouped, int64_t group, int64_t rest, int64_t part) {
  if (!isGrouped) return label(rest);
  AffineForm form{{{group, part}}, 0, 1};
  if (part > 1)
    form.terms.push_back({rest, 1});
  else
    form.terms = {{group, 1}};
  llvm::sort(form.terms);
  return form;
}

} // namespace

UOpRef generalConvolution(Composer &b, UOpRef x, UOpRef w, const GeneralConvolutionOptions &o) {
  if (!check(b, x, w, o)) return nullptr;
  unsigned spatial = o.spatial.size();
  int64_t outputs = b.constExtent(w, o.outChannel, "the number of channels"),
          inputs = b.constExtent(w, o.inChannel, "the number of channels"),
          channels = b.constExtent(x, o.channel, "the number of channels"), groups = o.groups * o.batchGroups;
  Ints kernel;
  for (unsigned i = 0; i < spatial; ++i) {
    kernel.push_back(b.constExtent(w, o.kernel[i], "an extent of the kernel"));
    if (kernel.back() < 1 || kernel.back() > most) b.fail("an extent of the kernel is " + llvm::Twine(kernel.back()));
  }
  if (b.failed()) return nullptr;
  if (outputs % groups || inputs * o.groups != channels)
    return b.fail("the input has " + llvm::Twine(channels) + " channels, the weights " + dimsText(w->shape) + " in " +
                  llvm::Twine(groups) + " groups do not fit");
  UOpRef batch = x->shape[o.batch], perGroup = batch;
  if (o.batchGroups > 1) {
    perGroup = b.idx(b.constExtent(x, o.batch, "a batch in groups") / o.batchGroups);
    if (!b.failed() && *batch->constIndex() % o.batchGroups)
      return b.fail(llvm::Twine(o.batchGroups) + " groups do not divide the batch of " + dimsText(batch));
    if (b.failed()) return nullptr;
  }
  // A label for each axis of the result; of groups one more, before that of the channels.
  bool isGrouped = groups > 1;
  int64_t next = 0, n = 0, g = 0, oc = 0;
  Ints out(spatial);
  Dims extents, result;
  for (unsigned axis = 0; axis < spatial + 2; ++axis) {
    if (int64_t(axis) == o.resultBatch) {
      n = next++;
      extents.push_back(perGroup);
      result.push_back(perGroup);
    } else if (int64_t(axis) == o.resultChannel) {
      if (isGrouped) {
        g = next++;
        extents.push_back(b.idx(groups));
      }
      oc = next++;
      extents.push_back(b.idx(outputs / groups));
      result.push_back(b.idx(outputs));
    } else {
      unsigned i = llvm::find(o.resultSpatial, int64_t(axis)) - o.resultSpatial.begin();
      out[i] = next++;
      UOpRef extent = x->shape[o.spatial[i]], one = b.idx(1);
      UOpRef wide = idxAdd(b.c, idxMul(b.c, idxSub(b.c, extent, one), b.idx(o.xDilations[i])), one);
      if (extent->lo < 1) wide = idxMax(b.c, wide, b.idx(0));
      int64_t reach = (kernel[i] - 1) * o.dilations[i] + 1;
      UOpRef room = idxAdd(b.c, wide, b.idx(o.before[i] + o.after[i] - reach));
      UOpRef count = idxAdd(b.c, idxDiv(b.c, room, b.idx(o.strides[i])), one);
      if (count->lo < 0) count = idxMax(b.c, count, b.idx(0));
      extents.push_back(count);
      result.push_back(count);
    }
  }
  ContractSpec spec;
  spec.kept = next;
  spec.reduced = spatial + 1;
  int64_t ic = next + spatial;
  spec.a.resize(x->rank());
  spec.b.resize(w->rank());
  bool ofBatch = o.batchGroups > 1;
  spec.a[o.batch] = grouped(ofBatch, g, n, ofBatch ? *perGroup->constIndex() : 1);
  spec.a[o.channel] = grouped(o.groups > 1, g, ic, inputs);
  spec.b[o.inChannel] = label(ic);
  spec.b[o.outChannel] = grouped(isGrouped, g, oc, outputs / groups);
  for (unsigned i = 0; i < spatial; ++i) {
    int64_t k = next + i, step = o.dilations[i];
    int64_t begin = -o.before[i] + (o.reversed[i] ? (kernel[i] - 1) * step : 0);
    AffineForm form{{{out[i], o.strides[i]}, {k, o.reversed[i] ? -step : step}}, begin, o.xDilations[i]};
    // Of a kernel of 1 the label is always 0; a label alone must have the axis' extent.
    bool alone = o.strides[i] == 1 && begin == 0 && o.xDilations[i] == 1;
    if (kernel[i] == 1 && (!alone || extents[out[i]] == x->shape[o.spatial[i]])) form.terms.pop_back();
    spec.a[o.spatial[i]] = form;
    spec.b[o.kernel[i]] = label(k);
    extents.push_back(b.idx(kernel[i]));
  }
  extents.push_back(b.idx(inputs));
  return b.reshape(b.contract(spec, x, w, extents), result);
}

} // namespace astra::compose

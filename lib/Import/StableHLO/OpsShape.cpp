//===- OpsShape.cpp: ops that move elements, or say extents ----------------===//
// Takes:    axes, extents and pads from attributes; those of dynamic ops from operands that follow from shapes.
// Gives:    movement UOps; extents as scalars that are known.
#include "Lowering.h"
#include "astra/Compose/Creation.h"
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Movement.h"
#include "astra/Compose/Special.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::stablehlo {

namespace {

void constant(Statement &s) {
  const Attribute *value = s.op.find("value");
  if (!value || value->kind != Attribute::Kind::Dense) {
    s.fail("attribute 'value' must be dense<...>: print with all elements of constants");
    return;
  }
  DType t = s.resultDType();
  Dims dims = s.resultDims();
  if (s.b.failed()) return;
  if (value->type.dtype != t || value->type.dims != s.resultType().dims) {
    s.fail("the types of the value and of the result differ");
    return;
  }
  llvm::Expected<std::vector<uint8_t>> bytes = denseBytes(*value);
  if (!bytes) {
    s.fail(llvm::toString(bytes.takeError()));
    return;
  }
  size_t size = byteSize(t), count = size_t(elementCount(s.resultType()).value_or(0));
  UOpRef same = isArithmetic(t) || isComplex(t) ? repeatedNumber(s.b, t, *bytes, dims) : nullptr;
  if (same || s.b.failed()) return s.give(same);
  constexpr size_t most = size_t(1) << 30; // bytes of one number that is repeated
  if (bytes->size() < count * size) {
    if (count > most / size) {
      s.unsupported("a constant of more than 2^30 bytes");
      return;
    }
    for (size_t i = size; i < count * size; ++i) bytes->push_back((*bytes)[i - size]);
  }
  s.give(s.b.constant({t, {value->type.dims.begin(), value->type.dims.end()}, std::move(*bytes)}));
}

void iotaTo(Statement &s, llvm::ArrayRef<UOpRef> dims) {
  int64_t axis = s.intAttr("iota_dimension");
  DType t = s.resultDType();
  if (s.b.failed()) return;
  if (!isComplex(t)) return s.give(s.b.iota(t, dims, axis));
  s.give(s.b.cast(s.b.iota(partOf(t), dims, axis), t));
}
void iota(Statement &s) { iotaTo(s, s.resultDims()); }
void dynamicIota(Statement &s) { iotaTo(s, s.knownDims(0, "the shape")); }

void broadcastIn(Statement &s, llvm::ArrayRef<UOpRef> dims) {
  if (UOpRef x = s.in(0)) s.give(broadcastAlong(s.b, x, s.intsAttr("broadcast_dimensions", x->rank(), 0), dims));
}
/// In a region that is lifted the operand is a tensor already.
void broadcastInDim(Statement &s) {
  if (s.b.isLifted && s.resultType().dims.empty()) return s.give(s.in(0));
  if (s.b.isLifted) s.unsupported("a tensor in this region is not supported");
  broadcastIn(s, s.resultDims());
}
void dynamicBroadcastInDim(Statement &s) { broadcastIn(s, s.knownDims(1, "the shape")); }

/// The old form: new axes in front.
void broadcast(Statement &s) {
  UOpRef x = s.in(0);
  Dims dims;
  for (int64_t d : s.intsAttr("broadcast_sizes")) dims.push_back(s.b.idx(std::max<int64_t>(d, 0)));
  if (!x) return;
  dims.append(x->shape.begin(), x->shape.end());
  s.give(s.b.broadcastTo(x, dims));
}

void reshape(Statement &s) {
  if (s.b.isLifted && s.resultType().dims.empty()) return s.give(s.in(0));
  if (s.b.isLifted) s.unsupported("a tensor in this region is not supported");
  s.give(s.b.reshape(s.in(0), s.resultDims()));
}
void dynamicReshape(Statement &s) { s.give(s.b.reshape(s.in(0), s.knownDims(1, "the shape"))); }

void transpose(Statement &s) { s.give(s.b.permute(s.in(0), s.intsAttr("permutation"))); }

void reverse(Statement &s) {
  UOpRef x = s.in(0);
  if (!x) return;
  Ints axes = s.b.axes(s.intsAttr("dimensions"), x->rank());
  if (!s.b.failed()) s.give(axes.empty() ? x : s.b.make(Op::Flip, {x}, axes));
}

void concatenate(Statement &s) {
  UOpRef x = s.in(0);
  if (!x) return;
  int64_t axis = s.intAttr("dimension");
  if (axis < 0 || axis >= int64_t(x->rank())) s.fail("attribute 'dimension' is outside rank " + llvm::Twine(x->rank()));
  std::vector<UOpRef> xs = s.inputs(0, s.numInputs());
  if (!s.b.failed()) s.give(s.b.concat(xs, axis));
}

/// Elements start, start + step ... below limit, which lie inside.
void sliceOf(Statement &s, llvm::ArrayRef<UOpRef> starts, llvm::ArrayRef<UOpRef> limits, const Ints &strides) {
  UOpRef x = s.in(0);
  for (unsigned i = 0; x && i < strides.size() && !s.b.failed(); ++i) {
    UOpRef extent = x->shape[i];
    if (strides[i] < 1) s.fail("strides must be 1 or more");
    if (starts[i]->lo < 0 && starts[i]->constIndex()) s.fail("a slice that starts below 0");
    if (limits[i]->constIndex() && extent->constIndex() && *limits[i]->constIndex() > *extent->constIndex())
      s.fail("a slice that ends at " + compose::dimsText(limits[i]) + ", the extent is " + compose::dimsText(extent));
    if (starts[i]->constIndex() && limits[i]->constIndex() && *starts[i]->constIndex() > *limits[i]->constIndex())
      s.fail("a slice that ends before it starts");
    if (!s.b.failed()) x = slice(s.b, x, i, starts[i], limits[i], strides[i]);
  }
  s.give(x);
}

Dims indices(Statement &s, llvm::ArrayRef<int64_t> values) {
  Dims dims;
  for (int64_t v : values) dims.push_back(s.b.idx(v));
  return dims;
}

void sliceOp(Statement &s) {
  UOpRef x = s.in(0);
  if (!x) return;
  size_t rank = x->rank();
  Ints starts = s.intsAttr("start_indices", rank, 0), limits = s.intsAttr("limit_indices", rank, 0),
       strides = s.intsAttr("strides", rank, 1);
  sliceOf(s, indices(s, starts), indices(s, limits), strides);
}

void realDynamicSlice(Statement &s) {
  UOpRef x = s.in(0);
  Dims starts = s.knownDims(1, "the start"), limits = s.knownDims(2, "the limit");
  Ints strides = s.knownInts(3, "the stride");
  if (s.b.failed()) return;
  if (starts.size() != x->rank() || limits.size() != x->rank() || strides.size() != x->rank()) {
    s.fail("starts, limits and strides do not fit rank " + llvm::Twine(x->rank()));
    return;
  }
  sliceOf(s, starts, limits, strides);
}

void padBy(Statement &s, llvm::ArrayRef<UOpRef> lo, llvm::ArrayRef<UOpRef> hi, const Ints &between) {
  UOpRef x = s.in(0), value = s.in(1);
  if (s.b.failed()) return;
  if (value->rank() || value->dtype != x->dtype) {
    s.fail("the padding value must be a scalar of the operand's type");
    return;
  }
  bool literal = value->isConst() && !isComplex(x->dtype);
  s.give(padAround(s.b, padBetween(s.b, x, between, value), lo, hi, compose::PadMode::Constant,
                   literal ? uint64_t(value->ints[0]) : 0, literal ? nullptr : value));
}
void pad(Statement &s) {
  UOpRef x = s.in(0);
  if (!x) return;
  size_t rank = x->rank();
  Ints lo = s.intsAttr("edge_padding_low", rank, 0), hi = s.intsAttr("edge_padding_high", rank, 0),
       between = s.intsAttr("interior_padding", rank, 0);
  padBy(s, indices(s, lo), indices(s, hi), between);
}
void dynamicPad(Statement &s) {
  UOpRef x = s.in(0);
  Dims lo = s.knownDims(2, "the padding"), hi = s.knownDims(3, "the padding");
  Ints between = s.knownInts(4, "the interior padding");
  if (x && between.size() != x->rank()) s.fail("the interior padding does not fit rank " + llvm::Twine(x->rank()));
  if (!s.b.failed()) padBy(s, lo, hi, between);
}

void dimensionSize(Statement &s) {
  UOpRef x = s.in(0);
  int64_t axis = s.intAttr("dimension");
  if (x && (axis < 0 || axis >= int64_t(x->rank())))
    s.fail("attribute 'dimension' is outside rank " + llvm::Twine(x->rank()));
  if (!s.b.failed()) s.give(s.b.scalar(x->shape[axis], s.resultDType()));
}

/// The extent that it has, or a smaller one that is known: the elements behind it go.
void setDimensionSize(Statement &s) {
  UOpRef x = s.in(0);
  int64_t axis = s.intAttr("dimension");
  Dims size = s.knownDims(1, "the size");
  if (x && (axis < 0 || axis >= int64_t(x->rank())))
    s.fail("attribute 'dimension' is outside rank " + llvm::Twine(x->rank()));
  if (!s.b.failed() && size.size() != 1) s.fail("the size must be a scalar");
  if (!s.b.failed()) s.give(s.b.part(x, axis, s.b.idx(0), size[0]));
}

void bitcastConvert(Statement &s) { s.give(reinterpret(s.b, s.in(0), s.resultDType())); }

void identity(Statement &s) {
  for (unsigned i = 0; i < s.numInputs() && !s.b.failed(); ++i) s.give(i, s.in(i));
}

const Row rows[] = {
    {"stablehlo.bitcast_convert", bitcastConvert, "a NaN becomes canonical first; no bool, no complex numbers", 1, 1},
    {"stablehlo.broadcast", broadcast, "", 1, 1},
    {"stablehlo.broadcast_in_dim", broadcastInDim, "", 1, 1, true},
    {"stablehlo.concatenate", concatenate, "", 1},
    {"stablehlo.constant", constant, "no types below 8 bits", 0, 0, true},
    {"stablehlo.dynamic_broadcast_in_dim", dynamicBroadcastInDim, "the shape must follow from extents", 2, 2},
    {"stablehlo.dynamic_iota", dynamicIota, "the shape must follow from extents", 1, 1},
    {"stablehlo.dynamic_pad", dynamicPad, "pads must follow from extents, interior ones be constant", 5, 5},
    {"stablehlo.dynamic_reshape", dynamicReshape, "the shape must follow from extents", 2, 2},
    {"stablehlo.get_dimension_size", dimensionSize, "", 1, 1},
    {"stablehlo.iota", iota, "", 0, 0},
    {"stablehlo.optimization_barrier", identity, "what it is given"},
    {"stablehlo.pad", pad, "", 2, 2},
    {"stablehlo.real_dynamic_slice", realDynamicSlice, "bounds must follow from extents, strides be constant", 4, 4},
    {"stablehlo.reshape", reshape, "", 1, 1, true},
    {"stablehlo.reverse", reverse, "", 1, 1},
    {"stablehlo.set_dimension_size", setDimensionSize, "the size must follow from extents", 2, 2},
    {"stablehlo.slice", sliceOp, "", 1, 1},
    {"stablehlo.transpose", transpose, "", 1, 1},
};

} // namespace

llvm::ArrayRef<Row> shapeRows() { return rows; }

} // namespace astra::stablehlo

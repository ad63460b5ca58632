//===- OpsShape.cpp: shapes, constants, and moving whole axes --------------===//
// Takes:    nodes whose shape operands are known while importing (Known.h).
// Gives:    movement UOps, literals, iotas.
#include "Control.h"
#include "Multiples.h"
#include "OpTable.h"
#include "astra/Compose/Creation.h"
#include "astra/Compose/Movement.h"
#include "astra/Compose/Settled.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "onnx.pb.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <cstring>
#include <numeric>

namespace astra::onnx {

namespace {

Dims shapeOf(UOpRef x) { return x ? Dims(x->shape.begin(), x->shape.end()) : Dims(); }

// ---- shapes as values

void shape(Node &n) {
  Dims dims = shapeOf(n.in(0));
  n.give(indexVector(n, dims));
}

void shapeSlice(Node &n) {
  Dims dims = shapeOf(n.in(0));
  int64_t rank = dims.size(), start = n.intAttr("start", 0), end = n.intAttr("end", rank);
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  start = clamp(start);
  end = std::max(clamp(end), start);
  n.give(indexVector(n, llvm::ArrayRef<UOpRef>(dims).slice(start, end - start)));
}

void size(Node &n) {
  UOpRef x = n.in(0);
  if (x) n.give(n.fromIndex(idxProduct(n.c, x->shape), DType::I64));
}

// ---- constants

UOpRef tensorLiteral(Node &n, const Payload &p) {
  Dims dims;
  for (int64_t d : p.dims) dims.push_back(n.c.index(d));
  UOpRef same = repeatedNumber(n, p.dtype, p.bytes, dims);
  return same || n.failed() ? same : n.parameter(p, ParamKind::Fixed);
}

void constant(Node &n) {
  const char *tensor = n.hasAttr("sparse_value") ? "sparse_value" : "value";
  if (n.hasAttr(tensor)) {
    if (std::optional<Payload> p = n.tensorAttr(tensor)) n.give(tensorLiteral(n, *p));
  } else if (n.hasAttr("value_string") || n.hasAttr("value_strings")) {
    n.unsupported("a constant of strings is not supported");
  } else if (n.hasAttr("value_int")) {
    n.give(n.b.litInt(DType::I64, n.intAttr("value_int", 0)));
  } else if (n.hasAttr("value_float")) {
    n.give(n.b.lit(DType::F32, n.floatAttr("value_float", 0)));
  } else if (n.hasAttr("value_ints")) {
    Ints values = n.intsAttr("value_ints");
    n.give(tensorLiteral(n, compose::payloadOf<int64_t>(DType::I64, values, {int64_t(values.size())})));
  } else if (n.hasAttr("value_floats")) {
    auto values = n.floatsAttr("value_floats");
    n.give(tensorLiteral(n, compose::payloadOf<float>(DType::F32, values, {int64_t(values.size())})));
  } else {
    n.fail("none of the attributes value, sparse_value, value_int, value_ints, value_float, value_floats is given");
  }
}

void constantOfShape(Node &n) {
  Dims dims = n.knownDims(0, "the shape");
  UOpRef value = n.b.lit(DType::F32, 0);
  if (n.hasAttr("value")) {
    std::optional<Payload> p = n.tensorAttr("value");
    if (!p) return;
    uint64_t bits = 0;
    if (p->bytes.size() != byteSize(p->dtype) || p->bytes.size() > 8) {
      n.fail("attribute 'value' must hold one element");
      return;
    }
    std::memcpy(&bits, p->bytes.data(), p->bytes.size());
    value = n.c.literal(p->dtype, bits);
  }
  n.give(n.broadcastTo(value, dims));
}

/// Floats: the number of elements is computed in f64 from constants, or from extents.
void floatRange(Node &n) {
  UOpRef first = n.knownInteger(n.in(0)), last = n.knownInteger(n.in(1)), step = n.knownInteger(n.in(2)), extent;
  constexpr const char *endless = "the range has no finite number of elements";
  if (first && last && step && step->isConst() && *step->constIndex()) {
    extent = compose::rangeLength(n, first, last, *step->constIndex());
    if (extent->lo >= 1000000000) return void(n.fail(endless));
  } else {
    double start = n.literalNumber(0, "start"), limit = n.literalNumber(1, "limit"),
           delta = n.literalNumber(2, "delta");
    std::optional<int64_t> count = compose::rangeLength(start, limit, delta);
    if (!count) n.fail(endless);
    if (n.failed()) return;
    extent = n.idx(*count);
  }
  n.give(compose::range(n, n.in(0)->dtype, extent, n.in(0), n.in(2)));
}

void range(Node &n) {
  UOpRef start = n.in(0), limit = n.in(1), delta = n.in(2);
  if (!start || !limit || !delta) return;
  if (isFloat(start->dtype)) return floatRange(n);
  Dims first = n.knownDims(0, "start"), last = n.knownDims(1, "limit");
  Ints step = n.knownInts(2, "delta");
  if (n.failed()) return;
  if (first.size() != 1 || last.size() != 1 || step.size() != 1 || step[0] == 0) {
    n.fail("start, limit and delta must be scalars, and delta not 0");
    return;
  }
  n.give(compose::range(n, start->dtype, compose::rangeLength(n, first[0], last[0], step[0]),
                        first[0]->constIndex() == 0 ? nullptr : start, step[0] == 1 ? nullptr : delta));
}

// ---- the same elements under another shape

/// The product of the constants among extents; 1 where it is 0 or large.
int64_t coefficientOf(llvm::ArrayRef<UOpRef> extents) {
  int64_t product = 1;
  for (UOpRef e : extents)
    if (auto k = e->constIndex(); k && llvm::MulOverflow(product, *k, product)) return 1;
  return std::max<int64_t>(product, 1);
}

void reshapeTo(Node &n, Dims dims, bool keepZero) {
  UOpRef x = n.in(0);
  if (n.failed()) return;
  std::optional<size_t> open;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i]->constIndex() == 0 && !keepZero) {
      if (i >= x->rank())
        n.fail("the shape copies axis " + llvm::Twine(i) + " of " + dimsText(x->shape));
      else
        dims[i] = x->shape[i];
    } else if (dims[i]->constIndex() == -1) {
      if (open) n.fail("the shape " + dimsText(dims) + " has more than one -1");
      open = i;
    }
  }
  if (n.failed()) return;
  if (open) {
    Dims others = dims;
    others.erase(others.begin() + *open);
    dims[*open] = compose::exactQuotient(n, x->shape, others);
    if (!dims[*open]) {
      Dims all = others;
      all.append(x->shape.begin(), x->shape.end());
      llvm::SmallVector<std::pair<UOpRef, int64_t>, 4>
          divided; // by the constants of the others: any of the dims may be
      int64_t by = coefficientOf(others);
      by /= std::gcd(by, coefficientOf(x->shape));
      for (UOpRef extent : x->shape)
        if (!llvm::is_contained(others, extent))
          for (UOpRef d : topoSort(extent))
            if (d->is(Op::Dim)) divided.push_back({d, by});
      auto holds = [&](WithMultiples with) {
        Dims total(llvm::map_range(x->shape, with)), part(llvm::map_range(others, with));
        return compose::exactQuotient(n, total, part) != nullptr;
      };
      std::string hint = multipleHint(n.lowering, all, holds, divided);
      std::string sentence = dimsText(x->shape) + " does not divide into " + dimsText(others) + " and one more axis";
      if (llvm::all_of(all, [](UOpRef d) { return d->constIndex().has_value(); }))
        n.fail(sentence);
      else
        n.unsupported(sentence + ", as far as is known" + orElse(hint, fixHint(all)));
      return;
    }
  }
  n.give(n.reshape(x, dims));
}

void reshape(Node &n) {
  bool keepZero = n.intAttr("allowzero", 0) != 0;
  reshapeTo(n, n.knownDims(1, "the shape"), keepZero);
}

/// Before opset 5.
void reshapeAttr(Node &n) {
  n.ignoreAttr("consumed_inputs");
  Dims dims;
  for (int64_t d : n.intsAttr("shape")) dims.push_back(n.c.index(d));
  if (!n.hasAttr("shape")) n.fail("attribute 'shape' is missing");
  reshapeTo(n, dims, false);
}

void flatten(Node &n) {
  UOpRef x = n.in(0);
  int64_t axis = n.intAttr("axis", 1);
  if (!x) return;
  axis = axis == int64_t(x->rank()) ? axis : n.axis(axis, x->rank() ? x->rank() : 1);
  n.give(n.reshape(x, {idxProduct(n.c, x->shape.take_front(axis)), idxProduct(n.c, x->shape.drop_front(axis))}));
}

void squeezeAxes(Node &n, llvm::ArrayRef<int64_t> given, bool all) {
  UOpRef x = n.in(0);
  if (!x) return;
  Ints axes = n.axes(given, x->rank());
  if (all)
    for (unsigned i = 0; i < x->rank(); ++i)
      if (x->shape[i]->constIndex() == 1) axes.push_back(i);
  n.give(n.squeeze(x, axes));
}
void squeezeAttr(Node &n) { squeezeAxes(n, n.intsAttr("axes"), !n.hasAttr("axes")); }
void squeeze(Node &n) { squeezeAxes(n, n.has(1) ? n.knownInts(1, "the axes") : Ints(), !n.has(1)); }

void unsqueezeAxes(Node &n, llvm::ArrayRef<int64_t> given) {
  UOpRef x = n.in(0);
  if (x) n.give(n.unsqueeze(x, n.axes(given, x->rank() + given.size())));
}
void unsqueezeAttr(Node &n) { unsqueezeAxes(n, n.intsAttr("axes")); }
void unsqueeze(Node &n) { unsqueezeAxes(n, n.knownInts(1, "the axes")); }

// ---- moving, repeating, joining and cutting axes

void transpose(Node &n) {
  UOpRef x = n.in(0);
  if (!x) return;
  Ints reversed;
  for (int64_t i = x->rank(); i-- > 0;) reversed.push_back(i);
  n.give(n.permute(x, n.intsAttr("perm", reversed)));
}

void expand(Node &n) {
  UOpRef x = n.in(0);
  Dims dims = n.knownDims(1, "the shape");
  if (n.failed()) return;
  n.give(n.broadcastTo(x, n.broadcastShape({x->shape, dims})));
}

void tile(Node &n) {
  UOpRef x = n.in(0);
  Dims repeats = n.knownDims(1, "the repeats");
  if (!n.failed()) n.give(tile(n, x, repeats));
}

/// Opset 1: copies along one axis; both numbers may be of a float type.
void tileAxis(Node &n) {
  UOpRef x = n.in(0);
  int64_t numbers[2] = {};
  for (unsigned i = 0; i < 2; ++i) {
    auto known = n.failed() ? std::nullopt : settledNumbers(n, n.in(1 + i));
    if (!known)
      n.unsupported(llvm::Twine(i ? "the axis" : "the number of copies") + " (input " + llvm::Twine(1 + i) +
                    ") depends on data: it must be a constant" + n.cause(n.in(1 + i)));
    else if (known->size() != 1 || !(std::abs((*known)[0]) < 0x1p40) || std::trunc((*known)[0]) != (*known)[0])
      n.fail("input " + llvm::Twine(1 + i) + " is not a whole number");
    else
      numbers[i] = int64_t((*known)[0]);
  }
  if (n.failed()) return;
  int64_t axis = n.axis(numbers[1], x->rank());
  if (n.failed()) return;
  Dims repeats(x->rank(), n.c.index(1));
  repeats[axis] = n.c.index(numbers[0]);
  n.give(tile(n, x, repeats));
}

void concat(Node &n) {
  llvm::SmallVector<UOpRef, 4> parts;
  for (unsigned i = 0; i < n.numInputs(); ++i) parts.push_back(n.in(i));
  if (n.failed()) return;
  int64_t axis = n.axis(n.intAttr("axis", 1), parts[0]->rank());
  if (!n.failed()) n.give(n.concat(parts, axis));
}

/// Pieces of the extents given, side by side along an axis.
void splitInto(Node &n, int64_t axis, llvm::ArrayRef<UOpRef> sizes) {
  UOpRef x = n.in(0);
  if (n.failed()) return;
  if (sizes.size() != n.numOutputs())
    n.fail("split into " + llvm::Twine(sizes.size()) + " pieces, but the node has " + llvm::Twine(n.numOutputs()) +
           " outputs");
  for (auto [i, piece] : llvm::enumerate(compose::pieces(n, x, axis, sizes))) n.give(i, piece);
}

void splitEvenly(Node &n, int64_t axis, int64_t count) {
  for (auto [i, piece] : llvm::enumerate(splitEvenly(n, n.in(0), axis, count))) n.give(i, piece);
}

Dims indices(Context &c, llvm::ArrayRef<int64_t> values) {
  Dims dims;
  for (int64_t v : values) dims.push_back(c.index(v));
  return dims;
}

void splitAttr(Node &n) {
  UOpRef x = n.in(0);
  int64_t axis = n.axis(n.intAttr("axis", 0), x ? x->rank() : 0);
  Ints pieces = n.intsAttr("split");
  if (n.failed()) return;
  if (pieces.empty())
    splitEvenly(n, axis, n.numOutputs());
  else
    splitInto(n, axis, indices(n.c, pieces));
}

/// Opset 1: the extents are an attribute or an input, which may be of a float type.
void splitEither(Node &n) {
  if (!n.has(1)) return splitAttr(n);
  UOpRef x = n.in(0);
  int64_t axis = n.axis(n.intAttr("axis", 0), x ? x->rank() : 0);
  auto known = n.failed() ? std::nullopt : settledNumbers(n, n.in(1));
  if (!known) n.unsupported("the sizes (input 1) depend on data: they must be constants" + n.cause(n.in(1)));
  if (n.hasAttr("split")) n.fail("the sizes are given twice, as an attribute and as input 1");
  Dims pieces;
  for (double size : known.value_or(std::vector<double>())) {
    if (!(size >= 0 && size < 0x1p40) || std::trunc(size) != size)
      n.fail("input 1 has a size that is not a whole number");
    if (n.failed()) return;
    pieces.push_back(n.c.index(int64_t(size)));
  }
  splitInto(n, axis, pieces);
}

void split(Node &n) {
  UOpRef x = n.in(0);
  int64_t axis = n.axis(n.intAttr("axis", 0), x ? x->rank() : 0), count = n.intAttr("num_outputs", n.numOutputs());
  if (n.failed()) return;
  if (count < 1 || count != int64_t(n.numOutputs()))
    n.fail("attribute 'num_outputs' is " + llvm::Twine(count) + ", the node has " + llvm::Twine(n.numOutputs()));
  else if (n.has(1))
    splitInto(n, axis, n.knownDims(1, "the sizes"));
  else
    splitEvenly(n, axis, count);
}

// ---- padding

compose::PadMode padMode(Node &n) {
  using compose::PadMode;
  constexpr std::pair<const char *, PadMode> modes[] = {
      {"constant", PadMode::Constant}, {"edge", PadMode::Edge}, {"reflect", PadMode::Reflect}, {"wrap", PadMode::Wrap}};
  std::string given = n.stringAttr("mode", "constant");
  for (auto [name, mode] : modes)
    if (given == name) return mode;
  n.fail("attribute 'mode' is '" + given + "', which is not one of ONNX's");
  return PadMode::Constant;
}

void padAttr(Node &n) {
  UOpRef x = n.in(0);
  Ints pads = n.intsAttr(n.opset < 2 ? "paddings" : "pads");
  UOpRef value = n.literal(x, n.floatAttr("value", 0));
  if (n.failed() || !n.requireRank(x, pads.size() / 2, pads.size() / 2)) return;
  Dims amounts = indices(n.c, pads);
  llvm::ArrayRef<UOpRef> all = amounts;
  n.give(padAround(n, x, all.take_front(x->rank()), all.drop_front(x->rank()), padMode(n), uint64_t(value->ints[0])));
}

void pad(Node &n) {
  UOpRef x = n.in(0);
  Dims amounts = n.knownDims(1, "the amounts");
  std::optional<uint64_t> bits = n.has(2) ? n.knownBits(2) : 0;
  UOpRef value = x && !bits ? controlScalar(n, n.in(2), x->dtype, "the value (input 2)") : nullptr;
  if (n.failed()) return;
  Ints axes;
  for (unsigned i = 0; i < x->rank(); ++i) axes.push_back(i);
  if (n.has(3)) {
    axes.clear();
    for (int64_t axis : n.knownInts(3, "the axes")) axes.push_back(n.axis(axis, x->rank()));
  }
  if (amounts.size() != 2 * axes.size())
    n.fail("found " + llvm::Twine(amounts.size()) + " amounts, expected two for each of " + llvm::Twine(axes.size()) +
           " axes");
  if (n.failed()) return;
  Dims before(x->rank(), n.c.index(0)), after = before;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    before[axis] = amounts[i];
    after[axis] = amounts[axes.size() + i];
  }
  n.give(padAround(n, x, before, after, padMode(n), bits.value_or(0), value));
}

void centerCropPad(Node &n) {
  UOpRef x = n.in(0);
  Dims wanted = n.knownDims(1, "the shape");
  if (n.failed()) return;
  Ints axes = n.hasAttr("axes") ? n.intsAttr("axes") : compose::axesBetween(0, x->rank());
  n.give(centreCropOrPad(n, x, axes, wanted));
}

// ---- triangles and blocks

void eyeLike(Node &n) {
  UOpRef x = n.in(0);
  int64_t k = n.intAttr("k", 0);
  if (!n.requireRank(x, 2, 2)) return;
  DType t = x->dtype;
  if (n.hasAttr("dtype")) {
    llvm::Expected<DType> named = elementType(int32_t(n.intAttr("dtype", 0)));
    if (!named) n.fail("attribute 'dtype': " + llvm::toString(named.takeError()));
    if (n.failed()) return;
    t = *named;
  }
  n.give(eye(n, x->shape, k, t));
}

/// Elements on one side of a diagonal.
void trilu(Node &n) {
  bool upper = n.intAttr("upper", 1) != 0;
  UOpRef x = n.in(0), k = n.has(1) ? n.reshape(n.in(1), {}) : n.b.litInt(DType::I64, 0);
  n.give(triangle(n, x, k, upper));
}

/// The order of the block's axes and the channels: depth-column-row or column-row-depth.
compose::BlockOrder blockOrder(Node &n) {
  std::string mode = n.stringAttr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.fail("attribute 'mode' is '" + mode + "', expected DCR or CRD");
  return mode == "DCR" ? compose::BlockOrder::DepthColumnRow : compose::BlockOrder::ColumnRowDepth;
}

void depthToSpace(Node &n) { n.give(depthToSpace(n, n.in(0), n.intAttr("blocksize", 0), blockOrder(n))); }
void spaceToDepth(Node &n) { n.give(spaceToDepth(n, n.in(0), n.intAttr("blocksize", 0), blockOrder(n))); }

constexpr Row rows[] = {
    {"Shape", 1, 14, 1, 1, shape},
    {"Shape", 15, latest, 1, 1, shapeSlice},
    {"Size", 1, latest, 1, 1, size},
    {"Constant", 1, latest, 0, 0, constant},
    {"ConstantOfShape", 9, latest, 1, 1, constantOfShape},
    {"Range", 11, latest, 3, 3, range},
    {"Reshape", 1, 4, 1, 1, reshapeAttr},
    {"Reshape", 5, latest, 2, 2, reshape},
    {"Flatten", 1, latest, 1, 1, flatten},
    {"Squeeze", 1, 12, 1, 1, squeezeAttr},
    {"Squeeze", 13, latest, 1, 2, squeeze},
    {"Unsqueeze", 1, 12, 1, 1, unsqueezeAttr},
    {"Unsqueeze", 13, latest, 2, 2, unsqueeze},
    {"Transpose", 1, latest, 1, 1, transpose},
    {"Expand", 8, latest, 2, 2, expand},
    {"Tile", 1, 5, 3, 3, tileAxis},
    {"Tile", 6, latest, 2, 2, tile},
    {"Concat", 1, latest, 1, anyNumber, concat},
    {"Split", 1, 1, 1, 2, splitEither, anyType, "the axis is 0 unless it is given"},
    {"Split", 2, 12, 1, 1, splitAttr},
    {"Split", 13, latest, 1, 2, split},
    {"Pad", 1, 10, 1, 1, padAttr},
    {"Pad", 11, latest, 2, 4, pad, anyType, "", input(2)},
    {"CenterCropPad", 18, latest, 2, 2, centerCropPad},
    {"EyeLike", 9, latest, 1, 1, eyeLike},
    {"com.microsoft::Pad", 1, latest, 2, 3, pad, floatTypes, "", input(2)},
    {"com.microsoft::Range", 1, latest, 3, 3, range, anyType, "three inputs"},
    {"com.microsoft::Trilu", 1, latest, 1, 2, trilu},
    {"Trilu", 14, latest, 1, 2, trilu},
    {"DepthToSpace", 1, latest, 1, 1, depthToSpace},
    {"SpaceToDepth", 1, latest, 1, 1, spaceToDepth},
};

} // namespace

llvm::ArrayRef<Row> shapeRows() { return rows; }

} // namespace astra::onnx

//===- OpsShape.cpp: shapes, constants, and moving whole axes --------------===//
// Takes:    nodes whose shape operands are known while importing (Known.h).
// Gives:    movement UOps, literals, iotas.
#include "Control.h"
#include "Multiples.h"
#include "OpTable.h"
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

/// A tensor of rank 1 that holds symbolic integers.
UOpRef fromIndices(Node &n, llvm::ArrayRef<UOpRef> values) {
  if (values.empty()) return n.broadcastTo(n.b.litInt(DType::I64, 0), {n.c.index(0)});
  llvm::SmallVector<UOpRef, 4> scalars;
  for (UOpRef v : values) scalars.push_back(n.unsqueeze(n.fromIndex(v, DType::I64), {0}));
  return n.concat(scalars, 0);
}

// ---- shapes as values

void shape(Node &n) {
  Dims dims = shapeOf(n.in(0));
  n.give(fromIndices(n, dims));
}

void shapeSlice(Node &n) {
  Dims dims = shapeOf(n.in(0));
  int64_t rank = dims.size(), start = n.intAttr("start", 0), end = n.intAttr("end", rank);
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  start = clamp(start);
  end = std::max(clamp(end), start);
  n.give(fromIndices(n, llvm::ArrayRef<UOpRef>(dims).slice(start, end - start)));
}

void size(Node &n) {
  UOpRef x = n.in(0);
  if (x) n.give(n.fromIndex(idxProduct(n.c, x->shape), DType::I64));
}

// ---- constants

UOpRef tensorLiteral(Node &n, const Payload &p) {
  unsigned width = byteSize(p.dtype);
  if (width == 0 || width > 8) return n.parameter(p, ParamKind::Fixed);
  std::vector<uint64_t> bits(p.bytes.size() / width);
  for (size_t i = 0; i < bits.size(); ++i) std::memcpy(&bits[i], p.bytes.data() + i * width, width);
  Dims dims;
  for (int64_t d : p.dims) dims.push_back(n.c.index(d));
  bool uniform = !bits.empty() && llvm::all_equal(bits);
  if (uniform) return n.broadcastTo(n.c.literal(p.dtype, bits[0]), dims);
  return n.parameter(p, ParamKind::Fixed);
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
    Payload p{DType::I64, {}, {}};
    Ints values = n.intsAttr("value_ints");
    p.dims = {int64_t(values.size())};
    p.bytes.resize(values.size() * 8);
    if (!values.empty()) std::memcpy(p.bytes.data(), values.data(), p.bytes.size());
    n.give(tensorLiteral(n, p));
  } else if (n.hasAttr("value_floats")) {
    Payload p{DType::F32, {}, {}};
    auto values = n.floatsAttr("value_floats");
    p.dims = {int64_t(values.size())};
    p.bytes.resize(values.size() * 4);
    if (!values.empty()) std::memcpy(p.bytes.data(), values.data(), p.bytes.size());
    n.give(tensorLiteral(n, p));
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

UOpRef stepsBetween(Context &c, UOpRef first, UOpRef last, int64_t step) {
  UOpRef distance = step > 0 ? idxSub(c, last, first) : idxSub(c, first, last);
  return idxMax(c, c.index(0), idxCeilDiv(c, distance, c.index(std::abs(step))));
}

/// Floats: the number of elements is computed in f64 from constants, or from extents; element i is start + i * delta.
void floatRange(Node &n) {
  UOpRef first = n.knownInteger(n.in(0)), last = n.knownInteger(n.in(1)), step = n.knownInteger(n.in(2)), extent;
  if (first && last && step && step->isConst() && *step->constIndex()) {
    extent = stepsBetween(n.c, first, last, *step->constIndex());
    if (extent->lo >= 1000000000) return void(n.fail("the range has no finite number of elements"));
  } else {
    double start = n.literalNumber(0, "start"), limit = n.literalNumber(1, "limit"),
           delta = n.literalNumber(2, "delta");
    double count = std::ceil((limit - start) / delta);
    if (!n.failed() && !(std::isfinite(count) && count < 1e9)) n.fail("the range has no finite number of elements");
    if (n.failed()) return;
    extent = n.c.index(std::max<int64_t>(0, int64_t(count)));
  }
  UOpRef x = n.in(0), ramp = n.iota(x->dtype, {extent}, 0);
  n.give(n.bin(Op::Add, n.bin(Op::Mul, ramp, n.in(2)), x));
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
  UOpRef ramp = n.iota(start->dtype, {stepsBetween(n.c, first[0], last[0], step[0])}, 0);
  if (step[0] != 1) ramp = n.bin(Op::Mul, ramp, delta);
  n.give(first[0]->constIndex() == 0 ? ramp : n.bin(Op::Add, ramp, start));
}

// ---- the same elements under another shape

/// total / part where the quotient is exact whenever part is not 0: equal extents cancel, then constants and factors of
/// monomials; null when a symbolic factor of part is left over.
UOpRef cancelled(Context &c, llvm::ArrayRef<UOpRef> total, llvm::ArrayRef<UOpRef> part) {
  Dims above(total.begin(), total.end()), below;
  for (UOpRef p : part) {
    auto *same = llvm::find(above, p);
    if (same != above.end())
      above.erase(same);
    else
      below.push_back(p);
  }
  IndexTerm divisor{1, {}};
  for (UOpRef p : below) {
    auto ts = terms(p);
    if (ts.size() != 1 || llvm::MulOverflow(divisor.coefficient, ts[0].coefficient, divisor.coefficient))
      return nullptr;
    divisor.atoms.append(ts[0].atoms.begin(), ts[0].atoms.end());
  }
  auto quotient = terms(idxProduct(c, above));
  for (IndexTerm &t : quotient) {
    if (divisor.coefficient == 0 || t.coefficient % divisor.coefficient) return nullptr;
    t.coefficient /= divisor.coefficient;
    for (UOpRef atom : divisor.atoms) {
      auto *same = llvm::find(t.atoms, atom);
      if (same == t.atoms.end()) return nullptr;
      t.atoms.erase(same);
    }
  }
  return fromTerms(c, quotient);
}

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
    dims[*open] = cancelled(n.c, x->shape, others);
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
        return cancelled(n.c, total, part) != nullptr;
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

void tileBy(Node &n, llvm::ArrayRef<UOpRef> repeats) {
  UOpRef x = n.in(0);
  if (n.failed() || !n.requireRank(x, repeats.size(), repeats.size())) return;
  Dims split, repeated, joined;
  for (auto [extent, times] : llvm::zip(x->shape, repeats)) {
    split.append({n.c.index(1), extent});
    repeated.append({times, extent});
    joined.push_back(idxMul(n.c, times, extent));
  }
  n.give(n.reshape(n.broadcastTo(n.reshape(x, split), repeated), joined));
}

void tile(Node &n) { tileBy(n, n.knownDims(1, "the repeats")); }

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
  tileBy(n, repeats);
}

void concat(Node &n) {
  llvm::SmallVector<UOpRef, 4> parts;
  for (unsigned i = 0; i < n.numInputs(); ++i) parts.push_back(n.in(i));
  if (n.failed()) return;
  int64_t axis = n.axis(n.intAttr("axis", 1), parts[0]->rank());
  if (!n.failed()) n.give(n.concat(parts, axis));
}

/// Pieces of the extents given, side by side along an axis.
void splitInto(Node &n, int64_t axis, llvm::ArrayRef<UOpRef> pieces) {
  UOpRef x = n.in(0);
  if (n.failed()) return;
  Dims begin(x->rank(), n.c.index(0)), sizes = shapeOf(x);
  if (pieces.size() != n.numOutputs())
    n.fail("split into " + llvm::Twine(pieces.size()) + " pieces, but the node has " + llvm::Twine(n.numOutputs()) +
           " outputs");
  for (auto [i, piece] : llvm::enumerate(pieces)) {
    sizes[axis] = piece;
    n.give(i, n.shrink(x, begin, sizes));
    begin[axis] = idxAdd(n.c, begin[axis], piece);
    if (n.failed()) return;
  }
  if (!n.failed()) n.requireEqual(begin[axis], x->shape[axis], "all pieces and of what is split");
}

/// Pieces of ceil(extent / count), as long as there is something left.
void splitEvenly(Node &n, int64_t axis, int64_t count) {
  UOpRef x = n.in(0);
  if (count < 1) n.fail("the node has no output");
  if (n.failed()) return;
  UOpRef extent = x->shape[axis], piece = idxCeilDiv(n.c, extent, n.c.index(count));
  Dims begin(x->rank(), n.c.index(0)), sizes = shapeOf(x);
  for (int64_t i = 0; i < count && !n.failed(); ++i) {
    UOpRef before = idxMul(n.c, piece, n.c.index(i)), left = idxSub(n.c, extent, before), zero = n.c.index(0);
    bool within = left->lo >= 0, whole = idxSub(n.c, left, piece)->lo >= 0;
    begin[axis] = within ? before : idxMin(n.c, before, extent);
    sizes[axis] = whole ? piece : idxMin(n.c, within ? left : idxMax(n.c, left, zero), piece);
    if (i + 1 == count) sizes[axis] = within ? left : idxMax(n.c, left, zero); // no more than a piece
    n.give(i, n.shrink(x, begin, sizes));
  }
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

/// Other modes read the source at an index made from the result's: edge clamps it, reflect folds it at both ends, wrap
/// takes it modulo the extent.
UOpRef mirrored(Node &n, UOpRef x, int64_t axis, UOpRef before, UOpRef after, llvm::StringRef mode) {
  UOpRef extent = x->shape[axis], zero = n.c.index(0);
  if (before->constIndex() == 0 && after->constIndex() == 0) return x;
  if (!n.requireLeast(extent, 1, "the extent", "0, which mode '" + mode + "' has nothing to repeat of")) return nullptr;
  if (mode == "reflect" && !n.requireLeast(extent, std::max(before->hi, after->hi) + 1, "the extent",
                                           "no larger than its pads, as mode 'reflect' needs it"))
    return nullptr;
  UOpRef last = n.fromIndex(idxSub(n.c, extent, n.c.index(1)), DType::I64), none = n.fromIndex(zero, DType::I64);
  UOpRef at = n.iota(DType::I64, {idxAdd(n.c, idxAdd(n.c, before, extent), after)}, 0);
  at = n.bin(Op::Sub, at, n.fromIndex(before, DType::I64));
  if (mode == "edge") at = n.bin(Op::Min, n.bin(Op::Max, at, none), last);
  if (mode == "wrap") at = n.bin(Op::Mod, at, n.fromIndex(extent, DType::I64));
  if (mode == "reflect") at = n.bin(Op::Sub, last, n.un(Op::Abs, n.bin(Op::Sub, last, n.un(Op::Abs, at))));
  return n.make(Op::Gather, {x, at}, {axis});
}

/// Amounts before and after each axis; a negative amount cuts.
/// value: a scalar that is known when the model runs, instead of `bits`; null for none.
void padBy(Node &n, llvm::ArrayRef<UOpRef> before, llvm::ArrayRef<UOpRef> after, uint64_t bits,
           UOpRef value = nullptr) {
  UOpRef x = n.in(0), zero = n.c.index(0);
  std::string mode = n.stringAttr("mode", "constant");
  if (!llvm::is_contained({"constant", "edge", "reflect", "wrap"}, mode))
    n.fail("attribute 'mode' is '" + mode + "', which is not one of ONNX's");
  if (n.failed()) return;
  Dims lo, hi, begin, size;
  for (unsigned i = 0; i < x->rank(); ++i) {
    begin.push_back(idxMax(n.c, zero, idxSub(n.c, zero, before[i])));
    lo.push_back(idxMax(n.c, zero, before[i]));
    hi.push_back(idxMax(n.c, zero, after[i]));
    UOpRef cut = idxAdd(n.c, begin[i], idxMax(n.c, zero, idxSub(n.c, zero, after[i])));
    size.push_back(idxSub(n.c, x->shape[i], cut));
  }
  x = n.shrink(x, begin, size);
  if (mode == "constant") {
    UOpRef padded = n.pad(x, lo, hi, bits);
    if (!value || !padded) return n.give(padded);
    UOpRef inside = n.pad(n.broadcastTo(n.b.lit(DType::Bool, 1), x->shape), lo, hi, 0);
    return n.give(n.select(inside, padded, value));
  }
  for (unsigned i = 0; x && i < lo.size(); ++i) x = mirrored(n, x, i, lo[i], hi[i], mode);
  n.give(x);
}

void padAttr(Node &n) {
  UOpRef x = n.in(0);
  Ints pads = n.intsAttr(n.opset < 2 ? "paddings" : "pads");
  UOpRef value = n.literal(x, n.floatAttr("value", 0));
  if (n.failed() || !n.requireRank(x, pads.size() / 2, pads.size() / 2)) return;
  Dims amounts = indices(n.c, pads);
  padBy(n, llvm::ArrayRef<UOpRef>(amounts).take_front(x->rank()), llvm::ArrayRef<UOpRef>(amounts).drop_front(x->rank()),
        uint64_t(value->ints[0]));
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
  padBy(n, before, after, bits.value_or(0), value);
}

/// The middle of each axis named, cut or padded to the extent given; an odd element more falls to the end.
void centerCropPad(Node &n) {
  UOpRef x = n.in(0);
  Dims wanted = n.knownDims(1, "the shape");
  if (n.failed()) return;
  Ints axes;
  for (unsigned i = 0; i < x->rank(); ++i) axes.push_back(i);
  if (n.hasAttr("axes")) {
    axes.clear();
    for (int64_t axis : n.intsAttr("axes")) axes.push_back(n.axis(axis, x->rank()));
    n.axes(axes, x->rank()); // refuses an axis that is named twice
  }
  if (wanted.size() != axes.size())
    n.fail("found " + llvm::Twine(wanted.size()) + " extents for " + llvm::Twine(axes.size()) + " axes");
  if (n.failed()) return;
  UOpRef zero = n.c.index(0), two = n.c.index(2);
  Dims begin(x->rank(), zero), size = shapeOf(x), lo = begin, hi = begin;
  for (auto [axis, extent] : llvm::zip(axes, wanted)) {
    UOpRef more = idxSub(n.c, extent, x->shape[axis]);
    n.requireLeast(extent, 0, "the extent", "negative");
    bool pads = more->lo >= 0 && idxSub(n.c, more, idxDiv(n.c, more, two))->lo >= 0;
    if (!pads && more->hi > 0)
      n.unsupported("an extent " + dimsText(x->shape[axis]) + " whose distance from " + dimsText(extent) +
                    " is dynamic is not supported: fix it with --dim");
    if (pads) {
      lo[axis] = idxDiv(n.c, more, two);
      hi[axis] = idxSub(n.c, more, lo[axis]);
    } else {
      begin[axis] = idxDiv(n.c, idxSub(n.c, zero, more), two);
      size[axis] = extent;
    }
  }
  if (!n.failed()) n.give(n.pad(n.shrink(x, begin, size), lo, hi, 0));
}

// ---- triangles and blocks

/// Ones at column = row + k.
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
  UOpRef row = n.iota(DType::I64, x->shape, 0), column = n.iota(DType::I64, x->shape, 1);
  n.give(n.cast(n.bin(Op::Eq, n.bin(Op::Sub, column, row), n.b.litInt(DType::I64, k)), t));
}

/// Elements on one side of a diagonal: column - row <= k (lower) or >= k (upper); the rest 0.
void trilu(Node &n) {
  bool upper = n.intAttr("upper", 1) != 0;
  UOpRef x = n.in(0), k = n.has(1) ? n.reshape(n.in(1), {}) : n.b.litInt(DType::I64, 0);
  if (n.failed() || !n.requireRank(x, 2)) return;
  constexpr int64_t far = int64_t(1) << 41; // beyond every extent: the sum with a row cannot wrap
  k = n.bin(Op::Max, n.bin(Op::Min, k, n.b.litInt(DType::I64, far)), n.b.litInt(DType::I64, -far));
  llvm::ArrayRef<UOpRef> plane = x->shape.take_back(2);
  UOpRef row = n.iota(DType::I64, plane, 0), column = n.iota(DType::I64, plane, 1);
  UOpRef edge = n.bin(Op::Add, row, k);
  UOpRef keep = upper ? n.bin(Op::Le, edge, column) : n.bin(Op::Le, column, edge);
  n.give(n.select(keep, x, n.make(Op::Const, {}, {0}, x->dtype)));
}

/// The order of the block's axes and the channels: depth-column-row or column-row-depth.
std::string blockMode(Node &n) {
  std::string mode = n.stringAttr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.fail("attribute 'mode' is '" + mode + "', expected DCR or CRD");
  return mode;
}

/// [N, C, H, W] with C = b*b*c against [N, c, H*b, W*b]: a reshape, a permutation, a reshape.
void depthToSpace(Node &n) {
  UOpRef x = n.in(0);
  int64_t block = n.intAttr("blocksize", 0);
  bool dcr = blockMode(n) == "DCR";
  if (!n.requireRank(x, 4, 4)) return;
  int64_t channels = n.constExtent(x, 1, "the number of channels");
  if (block < 1 || block > 65535 || channels % (block * block))
    n.fail("blocksize " + llvm::Twine(block) + " does not divide " + llvm::Twine(channels) + " channels");
  if (n.failed()) return;
  UOpRef b = n.c.index(block), rest = n.c.index(channels / (block * block));
  Dims split = dcr ? Dims{x->shape[0], b, b, rest, x->shape[2], x->shape[3]}
                   : Dims{x->shape[0], rest, b, b, x->shape[2], x->shape[3]};
  UOpRef moved = n.permute(n.reshape(x, split), dcr ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
  n.give(n.reshape(moved, {x->shape[0], rest, idxMul(n.c, x->shape[2], b), idxMul(n.c, x->shape[3], b)}));
}

void spaceToDepth(Node &n) {
  UOpRef x = n.in(0);
  int64_t block = n.intAttr("blocksize", 0);
  std::string mode = blockMode(n);
  if (!n.requireRank(x, 4, 4)) return;
  if (block < 1 || block > 65535) return void(n.fail("blocksize " + llvm::Twine(block) + " is not in 1..65535"));
  UOpRef b = n.c.index(block), height = x->shape[2], width = x->shape[3];
  for (UOpRef extent : {height, width}) {
    UOpRef rest = idxMod(n.c, extent, b);
    if (rest->lo > 0) n.fail("blocksize " + llvm::Twine(block) + " does not divide " + dimsText(x->shape));
    if (rest->hi > 0)
      n.unsupported("blocksize " + llvm::Twine(block) + " is not known to divide the extent " + dimsText(extent) +
                    orElse(multipleHint(n.lowering, rest, [&](auto with) { return with(rest)->constIndex() == 0; }),
                           fixHint(extent)));
  }
  if (n.failed()) return;
  UOpRef h = idxDiv(n.c, height, b), w = idxDiv(n.c, width, b);
  UOpRef moved = n.permute(n.reshape(x, {x->shape[0], x->shape[1], h, b, w, b}),
                           mode == "DCR" ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4});
  n.give(n.reshape(moved, {x->shape[0], idxMul(n.c, x->shape[1], n.c.index(block * block)), h, w}));
}

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
    {"Trilu", 14, latest, 1, 2, trilu},
    {"DepthToSpace", 1, latest, 1, 1, depthToSpace},
    {"SpaceToDepth", 1, latest, 1, 1, spaceToDepth},
};

} // namespace

llvm::ArrayRef<Row> shapeRows() { return rows; }

} // namespace astra::onnx

//===- Movement.cpp: padding, tiles, triangles and blocks ----------------===//
// Takes:    operands and amounts that may be wrong in every way.
// Gives:    what Movement.h says.
#include "astra/Compose/Movement.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

namespace {

/// As users call them.
const char *textOf(PadMode mode) {
  constexpr const char *names[] = {"constant", "edge", "reflect", "wrap"};
  return names[unsigned(mode)];
}

/// Other modes read the source at an index made from the result's: edge clamps it, reflect folds it at both ends, wrap
/// takes it modulo the extent.
UOpRef mirrored(Composer &b, UOpRef x, int64_t axis, UOpRef before, UOpRef after, PadMode mode) {
  UOpRef extent = x->shape[axis], zero = b.idx(0);
  if (before->constIndex() == 0 && after->constIndex() == 0) return x;
  if (!b.requireLeast(extent, 1, "the extent",
                      llvm::Twine("0, which mode '") + textOf(mode) + "' has nothing to repeat of"))
    return nullptr;
  if (mode == PadMode::Reflect && !b.requireLeast(extent, std::max(before->hi, after->hi) + 1, "the extent",
                                                  "no larger than its pads, as mode 'reflect' needs it"))
    return nullptr;
  UOpRef last = b.fromIndex(idxSub(b.c, extent, b.idx(1)), DType::I64), none = b.fromIndex(zero, DType::I64);
  UOpRef at = b.iota(DType::I64, {idxAdd(b.c, idxAdd(b.c, before, extent), after)}, 0);
  at = b.bin(Op::Sub, at, b.fromIndex(before, DType::I64));
  if (mode == PadMode::Edge) at = b.bin(Op::Min, b.bin(Op::Max, at, none), last);
  if (mode == PadMode::Wrap) at = b.bin(Op::Mod, at, b.fromIndex(extent, DType::I64));
  if (mode == PadMode::Reflect) at = b.bin(Op::Sub, last, b.un(Op::Abs, b.bin(Op::Sub, last, b.un(Op::Abs, at))));
  return b.make(Op::Gather, {x, at}, {axis});
}

} // namespace

UOpRef padAround(Composer &b, UOpRef x, llvm::ArrayRef<UOpRef> before, llvm::ArrayRef<UOpRef> after, PadMode mode,
                 uint64_t bits, UOpRef value) {
  UOpRef zero = b.idx(0);
  if (!x || b.failed()) return nullptr;
  if (before.size() != x->rank() || after.size() != x->rank())
    return b.fail("found " + llvm::Twine(before.size() + after.size()) + " amounts, expected two for each of " +
                  llvm::Twine(x->rank()) + " axes");
  Dims lo, hi, begin, size;
  for (unsigned i = 0; i < x->rank(); ++i) {
    begin.push_back(idxMax(b.c, zero, idxSub(b.c, zero, before[i])));
    lo.push_back(idxMax(b.c, zero, before[i]));
    hi.push_back(idxMax(b.c, zero, after[i]));
    UOpRef cut = idxAdd(b.c, begin[i], idxMax(b.c, zero, idxSub(b.c, zero, after[i])));
    size.push_back(idxSub(b.c, x->shape[i], cut));
  }
  x = b.shrink(x, begin, size);
  if (mode == PadMode::Constant) {
    UOpRef padded = b.pad(x, lo, hi, bits);
    if (!value || !padded) return padded;
    UOpRef inside = b.pad(b.broadcastTo(b.b.lit(DType::Bool, 1), x->shape), lo, hi, 0);
    return b.select(inside, padded, value);
  }
  for (unsigned i = 0; x && i < lo.size(); ++i) x = mirrored(b, x, i, lo[i], hi[i], mode);
  return x;
}

/// Each element gets an axis of its own, which is padded behind; what stands behind the last element goes.
UOpRef padBetween(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> between, UOpRef value) {
  for (unsigned axis = 0; x && axis < x->rank() && !b.failed(); ++axis) {
    if (between[axis] < 0 || between[axis] > 1 << 24)
      return b.fail("pads between elements must be in 0..2^24, found " + llvm::Twine(between[axis]));
    if (between[axis] == 0 || x->shape[axis]->constIndex() == 0) continue;
    UOpRef each = b.idx(between[axis] + 1), extent = x->shape[axis];
    UOpRef spread = b.unsqueeze(x, {int64_t(axis) + 1});
    if (!spread) return nullptr;
    Dims none(spread->rank(), b.idx(0)), behind = none, joined(x->shape.begin(), x->shape.end()), size = joined;
    behind[axis + 1] = b.idx(between[axis]);
    bool literal = value->isConst() && !isComplex(x->dtype);
    spread = padAround(b, spread, none, behind, PadMode::Constant, literal ? uint64_t(value->ints[0]) : 0,
                       literal ? nullptr : value);
    joined[axis] = idxMul(b.c, extent, each);
    size[axis] = idxSub(b.c, joined[axis], b.idx(between[axis]));
    if (extent->lo < 1) size[axis] = idxMax(b.c, size[axis], b.idx(0));
    x = b.shrink(b.withRoom(b.reshape(spread, joined), axis, size[axis]), Dims(x->rank(), b.idx(0)), size);
  }
  return x;
}

UOpRef centreCropOrPad(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> given, llvm::ArrayRef<UOpRef> wanted) {
  if (!x || b.failed()) return nullptr;
  Ints axes;
  for (int64_t axis : given) axes.push_back(b.axis(axis, x->rank()));
  b.axes(axes, x->rank()); // refuses an axis that is named twice
  if (wanted.size() != axes.size())
    b.fail("found " + llvm::Twine(wanted.size()) + " extents for " + llvm::Twine(axes.size()) + " axes");
  if (b.failed()) return nullptr;
  UOpRef zero = b.idx(0), two = b.idx(2);
  Dims begin(x->rank(), zero), size(x->shape.begin(), x->shape.end()), lo = begin, hi = begin;
  for (auto [axis, extent] : llvm::zip(axes, wanted)) {
    UOpRef more = idxSub(b.c, extent, x->shape[axis]);
    b.requireLeast(extent, 0, "the extent", "negative");
    bool pads = more->lo >= 0 && idxSub(b.c, more, idxDiv(b.c, more, two))->lo >= 0;
    if (!pads && more->hi > 0)
      b.unsupported("an extent " + dimsText(x->shape[axis]) + " whose distance from " + dimsText(extent) +
                    " is dynamic is not supported: fix it" + b.hints.means());
    if (pads) {
      lo[axis] = idxDiv(b.c, more, two);
      hi[axis] = idxSub(b.c, more, lo[axis]);
    } else {
      begin[axis] = idxDiv(b.c, idxSub(b.c, zero, more), two);
      size[axis] = extent;
    }
  }
  return b.failed() ? nullptr : b.pad(b.shrink(x, begin, size), lo, hi, 0);
}

// ---- tiles and pieces

/// Equal extents cancel, then constants and factors of monomials.
UOpRef exactQuotient(Composer &b, llvm::ArrayRef<UOpRef> total, llvm::ArrayRef<UOpRef> part) {
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
  auto quotient = terms(idxProduct(b.c, above));
  for (IndexTerm &t : quotient) {
    if (divisor.coefficient == 0 || t.coefficient % divisor.coefficient) return nullptr;
    t.coefficient /= divisor.coefficient;
    for (UOpRef atom : divisor.atoms) {
      auto *same = llvm::find(t.atoms, atom);
      if (same == t.atoms.end()) return nullptr;
      t.atoms.erase(same);
    }
  }
  return fromTerms(b.c, quotient);
}

UOpRef broadcastAlong(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> places, llvm::ArrayRef<UOpRef> dims) {
  if (!x || b.failed() || !b.requireRank(x, places.size(), places.size())) return nullptr;
  Dims spread(dims.size(), b.idx(1));
  Ints order = axesBetween(0, x->rank());
  for (int64_t i : order) {
    if (places[i] < 0 || places[i] >= int64_t(dims.size()) || llvm::count(places, places[i]) > 1)
      return b.fail("the places of axes must be axes of the result, each once: axis " + llvm::Twine(i) + " is to be " +
                    llvm::Twine(places[i]));
    bool fits = x->shape[i]->constIndex() == 1 ||
                b.requireEqual(x->shape[i], dims[places[i]], "axis " + llvm::Twine(i) + " and its axis of the result");
    if (!fits) return nullptr;
    spread[places[i]] = x->shape[i];
  }
  llvm::sort(order, [&](int64_t i, int64_t j) { return places[i] < places[j]; });
  return b.broadcastTo(b.reshape(b.permute(x, order), spread), dims);
}

UOpRef tile(Composer &b, UOpRef x, llvm::ArrayRef<UOpRef> repeats) {
  if (b.failed() || !b.requireRank(x, repeats.size(), repeats.size())) return nullptr;
  Dims split, repeated, joined;
  for (auto [extent, times] : llvm::zip(x->shape, repeats)) {
    split.append({b.idx(1), extent});
    repeated.append({times, extent});
    joined.push_back(idxMul(b.c, times, extent));
  }
  return b.reshape(b.broadcastTo(b.reshape(x, split), repeated), joined);
}

std::vector<UOpRef> pieces(Composer &b, UOpRef x, int64_t axis, llvm::ArrayRef<UOpRef> sizes) {
  std::vector<UOpRef> all;
  if (!x || b.failed()) return all;
  Dims begin(x->rank(), b.idx(0)), size(x->shape.begin(), x->shape.end());
  for (UOpRef piece : sizes) {
    size[axis] = piece;
    all.push_back(b.shrink(x, begin, size));
    begin[axis] = idxAdd(b.c, begin[axis], piece);
    if (b.failed()) return {};
  }
  if (!b.requireEqual(begin[axis], x->shape[axis], "all pieces and of what is split")) return {};
  return all;
}

std::vector<UOpRef> splitEvenly(Composer &b, UOpRef x, int64_t axis, int64_t count) {
  std::vector<UOpRef> pieces;
  if (count < 1) b.fail("the node has no output");
  if (!x || b.failed()) return pieces;
  UOpRef extent = x->shape[axis], piece = idxCeilDiv(b.c, extent, b.idx(count));
  Dims begin(x->rank(), b.idx(0)), sizes(x->shape.begin(), x->shape.end());
  for (int64_t i = 0; i < count && !b.failed(); ++i) {
    UOpRef before = idxMul(b.c, piece, b.idx(i)), left = idxSub(b.c, extent, before), zero = b.idx(0);
    bool within = left->lo >= 0, whole = idxSub(b.c, left, piece)->lo >= 0;
    begin[axis] = within ? before : idxMin(b.c, before, extent);
    sizes[axis] = whole ? piece : idxMin(b.c, within ? left : idxMax(b.c, left, zero), piece);
    if (i + 1 == count) sizes[axis] = within ? left : idxMax(b.c, left, zero); // no more than a piece
    pieces.push_back(b.shrink(x, begin, sizes));
  }
  return pieces;
}

// ---- triangles and blocks

UOpRef triangle(Composer &b, UOpRef x, UOpRef k, bool upper) {
  if (b.failed() || !b.requireRank(x, 2)) return nullptr;
  constexpr int64_t far = int64_t(1) << 41; // beyond every extent: the sum with a row cannot wrap
  k = b.bin(Op::Max, b.bin(Op::Min, k, b.b.litInt(DType::I64, far)), b.b.litInt(DType::I64, -far));
  llvm::ArrayRef<UOpRef> plane = x->shape.take_back(2);
  UOpRef row = b.iota(DType::I64, plane, 0), column = b.iota(DType::I64, plane, 1);
  UOpRef edge = b.bin(Op::Add, row, k);
  UOpRef keep = upper ? b.bin(Op::Le, edge, column) : b.bin(Op::Le, column, edge);
  return b.select(keep, x, isComplex(x->dtype) ? b.b.lit(x->dtype, 0) : b.make(Op::Const, {}, {0}, x->dtype));
}

UOpRef depthToSpace(Composer &b, UOpRef x, int64_t block, BlockOrder order) {
  bool dcr = order == BlockOrder::DepthColumnRow;
  if (!b.requireRank(x, 4, 4)) return nullptr;
  int64_t channels = b.constExtent(x, 1, "the number of channels");
  if (block < 1 || block > 65535 || channels % (block * block))
    b.fail("blocksize " + llvm::Twine(block) + " does not divide " + llvm::Twine(channels) + " channels");
  if (b.failed()) return nullptr;
  UOpRef side = b.idx(block), rest = b.idx(channels / (block * block));
  Dims split = dcr ? Dims{x->shape[0], side, side, rest, x->shape[2], x->shape[3]}
                   : Dims{x->shape[0], rest, side, side, x->shape[2], x->shape[3]};
  UOpRef moved = b.permute(b.reshape(x, split), dcr ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
  return b.reshape(moved, {x->shape[0], rest, idxMul(b.c, x->shape[2], side), idxMul(b.c, x->shape[3], side)});
}

UOpRef spaceToDepth(Composer &b, UOpRef x, int64_t block, BlockOrder order) {
  if (!b.requireRank(x, 4, 4)) return nullptr;
  if (block < 1 || block > 65535) return b.fail("blocksize " + llvm::Twine(block) + " is not in 1..65535");
  UOpRef side = b.idx(block), height = x->shape[2], width = x->shape[3];
  for (UOpRef extent : {height, width}) {
    UOpRef rest = idxMod(b.c, extent, side);
    if (rest->lo > 0) b.fail("blocksize " + llvm::Twine(block) + " does not divide " + dimsText(x->shape));
    if (rest->hi > 0)
      b.unsupported("blocksize " + llvm::Twine(block) + " is not known to divide the extent " + dimsText(extent) +
                    Hints::orElse(b.hints.multiple(rest, [&](auto with) { return with(rest)->constIndex() == 0; }),
                                  b.hints.fix(extent)));
  }
  if (b.failed()) return nullptr;
  UOpRef h = idxDiv(b.c, height, side), w = idxDiv(b.c, width, side);
  UOpRef moved = b.permute(b.reshape(x, {x->shape[0], x->shape[1], h, side, w, side}),
                           order == BlockOrder::DepthColumnRow ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4});
  return b.reshape(moved, {x->shape[0], idxMul(b.c, x->shape[1], b.idx(block * block)), h, w});
}

} // namespace astra::compose

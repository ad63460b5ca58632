//===- Neighbours.cpp: the elements around a place -----------------------===//
// Takes:    places along each axis of an image.
// Gives:    which elements they read, and with what weights.
#include "Neighbours.h"
#include "astra/Compose/Activation.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace astra::compose {

UOpRef lastElement(Composer &b, UOpRef extent, DType t) { return b.scalar(idxSub(b.c, extent, b.idx(1)), t); }

UOpRef reflected(Composer &b, UOpRef v, Border border) {
  UOpRef range = b.bin(Op::Sub, border.most, border.least), period = b.bin(Op::Mul, range, 2);
  UOpRef distance = b.un(Op::Abs, b.bin(Op::Sub, v, border.least));
  UOpRef turns = b.un(Op::Trunc, b.bin(Op::Div, distance, period));
  UOpRef rest = b.bin(Op::Sub, distance, b.bin(Op::Mul, turns, period));
  UOpRef folded = b.bin(Op::Add, b.bin(Op::Min, rest, b.bin(Op::Sub, period, rest)), border.least);
  return b.select(b.bin(Op::Eq, range, 0.0), border.least, folded); // one element has nowhere to turn
}

Neighbours placed(Composer &b, UOpRef position, UOpRef weight, UOpRef extent, Outside outside, Border border) {
  if (!position) return {};
  UOpRef zero = b.literal(position, 0), last = lastElement(b, extent, position->dtype);
  Neighbours result{position, weight, nullptr, extent};
  if (outside == Outside::Zero)
    result.inside = b.bin(Op::And, b.bin(Op::Le, zero, position), b.bin(Op::Le, position, last));
  if (outside == Outside::Reflect) result.position = reflected(b, position, border);
  if (outside != Outside::Zero) result.position = clampBetween(b, result.position, zero, last);
  return result;
}

Neighbours around(Composer &b, UOpRef at, bool cubic, UOpRef extent, Outside outside, Border border) {
  if (!at) return {};
  Dims taps(at->rank() + 1, b.idx(1));
  taps[0] = b.idx(cubic ? 4 : 2);
  UOpRef base = b.un(Op::Floor, at);
  UOpRef offset = b.reshape(b.iota(at->dtype, {taps[0]}, 0), taps);
  if (cubic) offset = b.bin(Op::Sub, offset, 1);
  // A reflected coordinate that runs backward: its gradient to the right is this one's to the left.
  if (!cubic && outside == Outside::Reflect && b.wantsGradients()) {
    UOpRef before = b.bin(Op::Sub, base, 1);
    UOpRef backward = b.bin(Op::Lt, reflected(b, base, border), reflected(b, before, border));
    base = b.select(b.bin(Op::And, backward, b.bin(Op::Eq, base, at)), before, base);
  }
  UOpRef part = b.unsqueeze(b.bin(Op::Sub, at, base), {0});
  UOpRef away = b.bin(Op::Sub, offset, part), distance = b.un(Op::Abs, away);
  // The same number without a kink at 0: at a whole coordinate the gradient is the one to the right, PyTorch's.
  if (!cubic && b.wantsGradients()) distance = b.select(b.bin(Op::Eq, offset, 0.0), part, away);
  UOpRef weight = cubic ? cubicKernel(b, distance, -0.75) : b.bin(Op::Sub, b.literal(at, 1), distance);
  if (cubic) weight = b.select(b.bin(Op::Eq, distance, distance), weight, distance); // the kernel's ranges lose a NaN
  return placed(b, b.bin(Op::Add, b.unsqueeze(base, {0}), offset), weight, extent, outside, border);
}

Reads together(Composer &b, llvm::ArrayRef<Neighbours> axes, DType indexType) {
  Reads reads;
  UOpRef inside = nullptr;
  for (auto [i, a] : llvm::enumerate(axes)) {
    if (!a.position || b.failed()) return {};
    auto spread = [&, i = i](UOpRef v) { // its neighbours on axis i
      if (!v) return v;
      Dims dims(axes.size(), b.idx(1));
      dims[i] = v->shape[0];
      dims.append(v->shape.begin() + 1, v->shape.end());
      return b.reshape(v, dims);
    };
    auto both = [&](Op op, UOpRef x, UOpRef y) { return !x ? y : !y ? x : b.bin(op, x, y); };
    UOpRef at = spread(b.cast(a.position, indexType));
    reads.index = reads.index ? b.bin(Op::Add, b.bin(Op::Mul, reads.index, b.scalar(a.extent, indexType)), at) : at;
    reads.weight = both(Op::Mul, reads.weight, spread(a.weight));
    inside = both(Op::And, inside, spread(a.inside));
  }
  if (inside) reads.index = b.select(inside, reads.index, b.b.litInt(indexType, -1));
  if (!reads.index) return {};
  Dims dims{idxProduct(b.c, reads.index->shape.take_front(axes.size()))};
  dims.append(reads.index->shape.begin() + axes.size(), reads.index->shape.end());
  reads.index = b.reshape(reads.index, dims);
  if (reads.weight) reads.weight = b.reshape(reads.weight, dims);
  return reads;
}

DType indexTypeFor(Composer &b, UOpRef x) {
  return idxProduct(b.c, x->shape)->hi < std::numeric_limits<int32_t>::max() ? DType::I32 : DType::I64;
}

UOpRef readImages(Composer &b, UOpRef x, UOpRef index, UOpRef image) {
  if (!x || !index || !image || b.failed()) return nullptr;
  UOpRef size = idxProduct(b.c, x->shape.drop_front(2));
  UOpRef flat = b.bin(Op::Add, b.bin(Op::Mul, image, b.scalar(size, index->dtype)), index);
  flat = b.select(b.bin(Op::Lt, index, b.b.litInt(index->dtype, 0)), b.b.litInt(index->dtype, -1), flat);
  UOpRef table = b.permute(b.reshape(x, {x->shape[0], x->shape[1], size}), {1, 0, 2});
  table = b.reshape(table, {x->shape[1], idxMul(b.c, x->shape[0], size)});
  return b.make(Op::Gather, {table, flat}, {1});
}

UOpRef imageNumbers(Composer &b, UOpRef count, unsigned rank, DType t) {
  Dims dims(rank, b.idx(1));
  dims[1] = count;
  return b.reshape(b.iota(t, {count}, 0), dims);
}

UOpRef weighed(Composer &b, UOpRef value, UOpRef weight) {
  if (!value || !weight) return nullptr;
  value = b.bin(Op::Mul, value, b.cast(weight, value->dtype));
  return b.squeeze(b.reduce(ReduceKind::Sum, value, {1}, /*chain=*/true), {1});
}

UOpRef weighable(Composer &b, UOpRef x) {
  return x && isInt(x->dtype) ? b.cast(x, bitWidth(x->dtype) < 32 ? DType::F32 : DType::F64) : b.widen(x);
}

UOpRef imagesFirst(Composer &b, UOpRef y) {
  if (!y) return nullptr;
  Ints perm;
  for (unsigned i = 0; i < y->rank(); ++i) perm.push_back(i < 2 ? 1 - i : i);
  return b.permute(y, perm);
}

/// What is beyond every extent, and whole in every float type.
static constexpr double farAway = 0x1p62;

UOpRef withinReach(Composer &b, UOpRef v) { return clampBetween(b, v, b.literal(v, -farAway), b.literal(v, farAway)); }

UOpRef numberedPlace(Composer &b, UOpRef v, Outside outside) {
  UOpRef zero = b.literal(v, 0);
  if (outside == Outside::Clamp) return withinReach(b, b.select(b.bin(Op::Eq, v, v), v, zero));
  UOpRef infinity = b.literal(v, std::numeric_limits<double>::infinity());
  return b.select(b.bin(Op::Lt, b.un(Op::Abs, v), infinity), v, zero);
}

} // namespace astra::compose

//===- IntegerProducts.cpp: products of dequantized values ------------------===//
// Takes:    a graph with (x - zero) * scale of integers x of 8 bits, moved, multiplied, added, quantized again.
// Gives:    the same with products of integers; see IntegerProducts.h.
// Keeps:    a contract that could leave 32 bits stays one of floats. Linear time in the nodes.
// Does not: choose how integers are multiplied (lib/Schedule/ByteProducts.cpp).
//
// Note [Scaled integers]. Of each f32 value it is remembered whether it is integers times a scale, and whether it is
// bytes by one scale and zero point that were only moved or compared since. The first meet in contracts, the second
// where they are quantized again. Both are of the value's own shape; scales have extent 1 along axes where they stay.
#include "astra/Compose/IntegerProducts.h"
#include "astra/IR/Builder.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

/// value = integers * scale.
struct Scaled {
  UOpRef integers = nullptr; // i32; null: it is no such value
  UOpRef scale = nullptr;    // f32 of the value's rank
  int64_t most = 0;          // magnitude of the integers; 0: of sums, which no product takes
};

/// value = (bytes - zero) * scale, which are one number each.
struct Bytes8 {
  UOpRef bytes = nullptr; // null: it is no such value
  uint64_t zero = 0, scale = 0;
};

bool isByte(DType t) { return t == DType::I8 || t == DType::U8; }
bool isOne(UOpRef extent) { return extent->constIndex() == 1; }

class IntegerProducts {
public:
  IntegerProducts(Module &m, ArrayRef<Param> params) : m(m), c(m.ctx()), b(c) {
    for (const Param &p : params)
      if (p.data) data[p.value] = p.data.get();
  }
  void run() {
    mapValues(m, [&](UOpRef n) {
      if (n->dtype == DType::F32 && !n->isIndex()) return ofFloats(n);
      return isByte(n->dtype) && n->op == Op::Cast ? quantizedAgain(n) : n;
    });
  }

private:
  Module &m;
  Context &c;
  Builder b;
  llvm::DenseMap<UOpRef, const std::vector<uint8_t> *> data; // of parameters
  llvm::DenseMap<UOpRef, Scaled> scaled;
  llvm::DenseMap<UOpRef, Bytes8> stored;
  llvm::DenseMap<UOpRef, bool> known; // what follows from parameters with data

  UOpRef ofFloats(UOpRef n);
  void dequantized(UOpRef n);
  void moved(UOpRef n);
  UOpRef product(UOpRef n);
  UOpRef divided(UOpRef x, UOpRef scale, unsigned depth);
  UOpRef quantizedAgain(UOpRef n);
  UOpRef value(const Scaled &s) {
    return b.mul(b.cast(s.integers, DType::F32), b.broadcastTo(s.scale, s.integers->shape));
  }
  bool isZero(UOpRef x) const;
  bool isKnown(UOpRef x);
  UOpRef alongKept(UOpRef scale, ArrayRef<AffineForm> forms, int64_t kept);
};

/// A literal repeated, of a magnitude by which divisions may become products.
std::optional<float> positiveLiteral(UOpRef x) {
  UOpRef k = uniformLiteral(x);
  if (!k || k->dtype != DType::F32) return std::nullopt;
  float f = llvm::bit_cast<float>(uint32_t(k->ints[0]));
  return f > 0x1p-60f && f < 0x1p60f ? std::optional(f) : std::nullopt;
}

/// What is repeated along axes, with extent 1 there; x itself otherwise.
UOpRef unrepeated(UOpRef x) { return x->op == Op::Expand ? x->src[0] : x; }
} // namespace

/// Whether x is zeros: a literal, or a parameter that nothing but zeros was given for.
bool IntegerProducts::isZero(UOpRef x) const {
  if (UOpRef k = uniformLiteral(x)) return k->ints[0] == 0;
  while (x->op == Op::Expand || x->op == Op::Reshape || x->op == Op::Cast) x = x->src[0];
  auto found = data.find(x);
  return found != data.end() && llvm::all_of(*found->second, [](uint8_t byte) { return byte == 0; });
}

bool IntegerProducts::isKnown(UOpRef x) {
  if (auto found = known.find(x); found != known.end()) return found->second;
  constexpr unsigned most = 64; // nodes behind a bias or the like
  SmallVector<UOpRef, 16> work{x};
  bool is = true;
  for (size_t at = 0; is && at < work.size(); ++at) {
    UOpRef n = work[at];
    bool leaf = has(n->op, Leaf) && !n->isConst();
    is = work.size() < most && (!leaf || data.contains(n)) && !has(n->op, Control) && n->op != Op::Proj;
    if (is && !leaf) llvm::append_range(work, n->tensors());
  }
  return known[x] = is;
}

/// (x - zero) * scale, as Quantization.cpp writes it.
void IntegerProducts::dequantized(UOpRef n) {
  for (unsigned side : {0u, 1u}) {
    UOpRef q = n->src[side], scale = unrepeated(n->src[1 - side]);
    if (q->op != Op::Cast || q->src[0]->dtype != DType::I32 || !isKnown(scale)) continue;
    q = q->src[0];
    UOpRef zero = nullptr;
    if (q->op == Op::Sub) zero = q->src[1], q = q->src[0];
    if (q->op != Op::Cast || !isByte(q->src[0]->dtype)) continue;
    UOpRef bytes = q->src[0], z = zero ? uniformLiteral(zero) : nullptr;
    int64_t low = bytes->dtype == DType::I8 ? -128 : 0;
    bool none = !zero || isZero(zero);
    // Another zero point must be one of the bytes' type, so that the difference is one of 8 bits and a sign.
    if (!none && z && (int32_t(z->ints[0]) < low || int32_t(z->ints[0]) > low + 255)) continue;
    if (!none && !z) {
      while (zero->op == Op::Expand || zero->op == Op::Reshape) zero = zero->src[0];
      if (zero->op != Op::Cast || zero->src[0]->dtype != bytes->dtype) continue;
    }
    scaled[n] = {none ? q : n->src[side]->src[0], scale, none && low ? 128 : 255};
    if (auto k = positiveLiteral(n->src[1 - side]); k && (none || z))
      stored[n] = {bytes, none ? 0 : uint64_t(z->ints[0]) & 255, llvm::bit_cast<uint32_t>(*k)};
    return;
  }
}

/// Movement of a value is movement of its integers; so is a maximum of bytes by one positive scale.
void IntegerProducts::moved(UOpRef n) {
  bool maximum = n->op == Op::Reduce && llvm::cantFail(decodeReduce(n->ints)).kind == ReduceKind::Max &&
                 llvm::cantFail(decodeReduce(n->ints)).domain.empty();
  if (!has(n->op, Movement) && !maximum) return;
  SmallVector<UOpRef, 8> src(n->src.begin(), n->src.end());
  if (auto found = stored.find(n->src[0]); found != stored.end()) {
    Bytes8 s = found->second;
    src[0] = s.bytes;
    std::optional<UOpRef> to;
    if (n->op != Op::Pad) {
      to = maximum ? b.reduce(llvm::cantFail(decodeReduce(n->ints)), src[0], n->indices()) : c.withSources(n, src);
    } else if (auto around = n->indices(); uint32_t(n->ints[0]) == 0 || uint32_t(n->ints[0]) == 0xff800000) {
      // 0 is the zero point, and -inf is quantized to the least byte.
      uint64_t least = s.bytes->dtype == DType::I8 ? 0x80 : 0;
      to = b.pad(s.bytes, around.take_front(n->rank()), around.drop_front(n->rank()), n->ints[0] ? least : s.zero);
    }
    if (to) stored[n] = {*to, s.zero, s.scale};
  }
  auto found = scaled.find(n->src[0]);
  if (maximum || found == scaled.end()) return;
  Scaled s = found->second;
  bool same = llvm::all_of(s.scale->shape, isOne);
  src[0] = s.integers;
  switch (n->op) {
  case Op::Permute: s.scale = b.permute(s.scale, n->ints); break;
  case Op::Expand: break;
  case Op::Reshape:
    if (!same) return;
    s.scale = b.reshape(s.scale, SmallVector<UOpRef, 6>(n->rank(), b.idx(1)));
    break;
  case Op::Pad:
    if (!same || n->ints[0]) return;
    break;
  case Op::Shrink:
  case Op::Flip:
    if (!same) return;
    break;
  default: return;
  }
  if (n->op == Op::Pad) {
    auto around = n->indices();
    s.integers = b.pad(s.integers, around.take_front(n->rank()), around.drop_front(n->rank()));
  } else {
    s.integers = c.withSources(n, src);
  }
  scaled[n] = s;
}

/// A scale of an operand with these forms as one of the result; null where it changes along what is summed.
UOpRef IntegerProducts::alongKept(UOpRef scale, ArrayRef<AffineForm> forms, int64_t kept) {
  SmallVector<UOpRef, 6> shape(kept, b.idx(1));
  SmallVector<std::pair<int64_t, int64_t>, 6> order; // labels and axes
  SmallVector<int64_t, 6> perm;
  for (auto [axis, f] : llvm::enumerate(forms)) {
    if (isOne(scale->shape[axis])) continue;
    if (!f.isLabel() || f.terms[0].first >= kept) return nullptr;
    order.push_back({f.terms[0].first, int64_t(axis)});
    shape[f.terms[0].first] = scale->shape[axis];
  }
  llvm::sort(order);
  for (auto [label, axis] : order) perm.push_back(axis);
  for (int64_t axis = 0; axis < int64_t(scale->rank()); ++axis)
    if (!llvm::is_contained(perm, axis)) perm.push_back(axis);
  return b.reshape(b.permute(scale, perm), shape);
}

/// The contract of integers, scaled; null where there is none.
UOpRef IntegerProducts::product(UOpRef n) {
  auto x = scaled.find(n->src[0]), y = scaled.find(n->src[1]);
  if (x == scaled.end() || y == scaled.end() || !x->second.most || !y->second.most) return nullptr;
  ContractSpec s = llvm::cantFail(decodeContract(n->ints));
  ArrayRef<UOpRef> extents = n->indices().take_front(s.kept + s.reduced);
  if (!s.domain.empty() || !s.outside.empty()) return nullptr;
  int64_t most = x->second.most * y->second.most;
  for (UOpRef extent : extents.drop_front(s.kept)) {
    if (extent->hi > 0 && most > INT32_MAX / extent->hi) return nullptr; // the sum might wrap
    most *= std::max<int64_t>(extent->hi, 1);
  }
  UOpRef left = alongKept(x->second.scale, s.a, s.kept), right = alongKept(y->second.scale, s.b, s.kept);
  if (!left || !right) return nullptr;
  SmallVector<UOpRef, 6> shape(s.kept, b.idx(1));
  for (int64_t l = 0; l < s.kept; ++l) shape[l] = isOne(left->shape[l]) ? right->shape[l] : left->shape[l];
  Scaled r{b.contract(s, x->second.integers, y->second.integers, extents),
           b.mul(b.broadcastTo(left, shape), b.broadcastTo(right, shape)), 0};
  UOpRef product = value(r);
  scaled[product] = r;
  return product;
}

/// x / scale with the scale in those of the integers that x is a sum of; null where it is something else.
UOpRef IntegerProducts::divided(UOpRef x, UOpRef scale, unsigned depth) {
  auto literal = [&](Shape shape) { return b.broadcastTo(scale, shape); };
  if (auto found = scaled.find(x); found != scaled.end()) {
    Scaled s = found->second;
    s.scale = b.div(s.scale, literal(s.scale->shape));
    return value(s);
  }
  if (isKnown(x)) {
    // As it is before it is repeated: a bias is divided while compiling.
    return x->op == Op::Expand ? b.expand(b.div(x->src[0], literal(x->src[0]->shape)), x->shape)
                               : b.div(x, literal(x->shape));
  }
  if (!depth) return nullptr;
  if (x->op == Op::Add || x->op == Op::Sub) {
    UOpRef l = divided(x->src[0], scale, depth - 1), r = l ? divided(x->src[1], scale, depth - 1) : nullptr;
    return r ? b.bin(x->op, l, r) : nullptr;
  }
  bool relu = x->op == Op::Select && x->src[0]->op == Op::Lt && x->src[0]->src[0] == x->src[2] &&
              isZero(x->src[0]->src[1]) && isZero(x->src[1]);
  if (!relu) return nullptr;
  UOpRef y = divided(x->src[2], scale, depth - 1);
  return y ? b.select(b.lt(y, x->src[0]->src[1]), x->src[1], y) : nullptr;
}

UOpRef IntegerProducts::ofFloats(UOpRef n) {
  constexpr unsigned depth = 4; // of sums and relus between a product and what quantizes it
  if (n->op == Op::Mul) dequantized(n);
  if (n->op == Op::Contract)
    if (UOpRef p = product(n)) return p;
  bool again = n->op == Op::Div && stored.contains(n->src[0]); // perhaps as it was: quantizedAgain sees it
  if (n->op == Op::Div && !again && positiveLiteral(n->src[1]) && !isKnown(n->src[0]))
    if (UOpRef q = divided(n->src[0], uniformLiteral(n->src[1]), depth)) return q;
  moved(n);
  return n;
}

/// Bytes that were dequantized, moved and are quantized by the same scale and zero point are what they were.
UOpRef IntegerProducts::quantizedAgain(UOpRef n) {
  UOpRef x = n->src[0];
  uint64_t zero = 0;
  if (x->op == Op::Add) {
    UOpRef k = uniformLiteral(x->src[1]);
    if (!k || k->dtype != DType::F32) return n;
    float z = llvm::bit_cast<float>(uint32_t(k->ints[0]));
    if (!(z >= -128 && z <= 255) || z != std::floor(z)) return n;
    zero = uint64_t(int64_t(z)) & 255, x = x->src[0];
  }
  if (x->op != Op::RoundEven) return n;
  x = x->src[0];
  if (x->op != Op::Div) return n;
  auto scale = positiveLiteral(x->src[1]);
  auto found = stored.find(x->src[0]);
  if (!scale || found == stored.end()) return n;
  const Bytes8 &s = found->second;
  bool same = s.bytes->dtype == n->dtype && s.zero == zero && s.scale == llvm::bit_cast<uint32_t>(*scale);
  return same ? s.bytes : n;
}

void compose::integerProducts(Module &m, ArrayRef<Param> params) { IntegerProducts(m, params).run(); }

//===- ByteProducts.cpp: products of 8-bit integers, four bytes a step -----===//
// Takes:    a module past the rewrite rules.
// Gives:    each i32 contract of (a - za) and (b - zb), a and b of 8 bits, as contracts of words: four neighbours along
//           one summed label are one element (Note [Byte products]).
// Keeps:    bits: all sums are exact modulo 2^32. Linear time in the nodes.
// Does not: look into the bodies of control ops; choose instructions.
//
// Note [Byte products]. A product of words multiplies unsigned bytes by signed ones. Where both operands are of one
// kind, f = a with its highest bit flipped is of the other, and a = f + c with c = 128 or -128. Then
//     sum (a - za) (b - zb)  =  sum f b  -  zb sum f  -  (za - c) sum (b - zb)
// of which the second sum is there only where b has a zero point. b is the operand that is of parameters with data and
// constants alone, whose last sum is computed while compiling; or one of two that change, which are made words in each
// call: less is written than where both are cast. What an operand reads outside of itself is za, as a - za is 0
// there; along the label of the words both are 0 behind their end.
#include "astra/Schedule/ByteProducts.h"
#include "Legalize.h"
#include "Thresholds.h"
#include "astra/IR/Builder.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace astra;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {
/// An operand: bytes - zero.
struct Operand {
  UOpRef bytes = nullptr; // i8 or u8; null: it is no such thing
  UOpRef zero = nullptr;  // i32, of extent 1 along summed labels and where no label is; null: 0
};

/// A contract that can be one of words.
struct Product {
  UOpRef r = nullptr;
  ContractSpec s;                 // of r
  unsigned w = 0;                 // the side of b of the note
  bool change = false;            // neither operand is known
  int64_t label = -1, length = 0; // of the words
  SmallVector<int64_t, 4> summed; // axes of b

  ArrayRef<UOpRef> extents() const { return r->indices().take_front(s.kept + s.reduced); }
  ArrayRef<AffineForm> formsOf(unsigned side) const { return side ? s.b : s.a; }
  /// The axis of an operand that is this label; -1: there is none.
  int64_t axisOf(unsigned side, int64_t l) const {
    for (auto [d, f] : llvm::enumerate(formsOf(side)))
      if (f.isLabel() && f.terms[0].first == l) return int64_t(d);
    return -1;
  }
};

class Joiner {
public:
  explicit Joiner(Module &m) : m(m), c(m.ctx()), b(c) {
    for (const Param &p : m.params)
      if (p.data) known.insert(p.value);
  }
  void run();

private:
  Module &m;
  Context &c;
  Builder b;
  llvm::DenseSet<UOpRef> known; // params with data, and what is computed from them and constants alone

  bool isKnown(UOpRef n) const;
  UOpRef joined(UOpRef contract);
  std::optional<Product> productOf(UOpRef contract);
  UOpRef wordsOf(const Product &p, UOpRef x, unsigned side, SmallVector<AffineForm, 4> &forms);
  UOpRef lessZeroOfA(const Product &p, UOpRef y, UOpRef zero, int64_t bias);
  UOpRef lessZeroOfB(const Product &p, UOpRef y, UOpRef zero, const ContractSpec &t, ArrayRef<UOpRef> operands,
                     ArrayRef<UOpRef> counts);
  UOpRef split(UOpRef x, int64_t axis, UOpRef outer, UOpRef inner);
  UOpRef splitGroups(UOpRef contract);
  UOpRef bytesOf(UOpRef x);
  UOpRef flip(UOpRef x);
  UOpRef wordsAlong(UOpRef x, int64_t axis);
  Operand operandOf(UOpRef x, ArrayRef<AffineForm> forms, int64_t kept);
  UOpRef spread(UOpRef zero, ArrayRef<AffineForm> forms, UOpRef result);
};

bool isByte(DType t) { return t == DType::I8 || t == DType::U8; }
bool isView(UOpRef x) { return has(x->op, Movement) && x->op != Op::Pad; }
} // namespace

bool Joiner::isKnown(UOpRef n) const {
  if (known.contains(n) || n->op == Op::Const) return true;
  bool leaf = n->isIndex() || has(n->op, Leaf) || has(n->op, Control) || n->op == Op::Proj || n->op == Op::After;
  auto constant = [](UOpRef e) { return e->isConst(); };
  return !leaf && llvm::all_of(n->indices(), constant) &&
         llvm::all_of(n->tensors(), [&](UOpRef s) { return known.contains(s) || s->op == Op::Const; });
}

/// The bytes that x is the i32 cast of, through views; null: it is no such cast.
UOpRef Joiner::bytesOf(UOpRef x) {
  SmallVector<UOpRef, 4> views;
  for (; isView(x); x = x->src[0]) views.push_back(x);
  if (x->op != Op::Cast || !isByte(x->src[0]->dtype)) return nullptr;
  x = x->src[0];
  for (UOpRef v : llvm::reverse(views)) {
    SmallVector<UOpRef, 6> src{x};
    llvm::append_range(src, v->indices());
    x = c.withSources(v, src);
  }
  return x;
}

Operand Joiner::operandOf(UOpRef x, ArrayRef<AffineForm> forms, int64_t kept) {
  UOpRef around = nullptr;
  if (x->op == Op::Pad && x->ints[0] == 0) around = x, x = x->src[0];
  Operand o;
  UOpRef fill = nullptr; // of the type of the bytes
  bool sum = x->op == Op::Add || x->op == Op::Sub;
  if (!(o.bytes = bytesOf(x)) && sum)
    for (unsigned side : {0u, 1u}) {
      if (side && x->op == Op::Sub) break;
      UOpRef bytes = bytesOf(x->src[side]), zero = x->src[1 - side];
      if (!bytes) continue;
      if (UOpRef value = uniformLiteral(zero)) {
        int32_t z = int32_t(value->ints[0]), low = bytes->dtype == DType::I8 ? -128 : 0;
        if (x->op == Op::Add) z = int32_t(0 - uint32_t(z));
        if (z < low || z > low + 255) continue;
        fill = b.litInt(bytes->dtype, z);
        o = {bytes, b.broadcastTo(b.litInt(DType::I32, z), SmallVector<UOpRef, 6>(bytes->rank(), b.idx(1)))};
        break;
      }
      // Another zero point stays the same along what is summed, and along axes that are no label of their own.
      if (x->op != Op::Sub || zero->op != Op::Expand) continue;
      UOpRef one = zero->src[0];
      auto stays = [&](auto pair) {
        auto &[form, extent] = pair;
        return extent->constIndex() == 1 || (form.isLabel() && form.terms[0].first < kept);
      };
      if (!llvm::all_of(llvm::zip(forms, one->shape), stays)) continue;
      fill = bytesOf(one);
      if (fill && fill->dtype == bytes->dtype) o = {bytes, one};
      break;
    }
  if (!o.bytes || !around) return o;
  SmallVector<UOpRef, 6> lo(around->indices().take_front(x->rank())), hi(around->indices().drop_front(x->rank()));
  if (!fill || fill->isConst()) {
    o.bytes = b.pad(o.bytes, lo, hi, fill ? uint64_t(fill->ints[0]) : 0);
    return o;
  }
  for (auto [at, extent] : llvm::enumerate(fill->shape)) // padded along an axis where it changes
    if (extent->constIndex() != 1 && (lo[at]->constIndex() != 0 || hi[at]->constIndex() != 0)) return {};
  UOpRef inside = b.pad(b.splat(b.litInt(DType::Bool, 1), o.bytes->shape), lo, hi);
  o.bytes = b.select(inside, b.pad(o.bytes, lo, hi), b.broadcastTo(fill, around->shape));
  return o;
}

/// A zero point, one of an operand with these forms, as a value of the result's shape.
UOpRef Joiner::spread(UOpRef zero, ArrayRef<AffineForm> forms, UOpRef result) {
  SmallVector<UOpRef, 6> shape(result->rank(), b.idx(1));
  SmallVector<std::pair<int64_t, int64_t>, 6> order; // labels and axes
  for (auto [axis, f] : llvm::enumerate(forms))
    if (zero->shape[axis]->constIndex() != 1) {
      order.push_back({f.terms[0].first, int64_t(axis)});
      shape[f.terms[0].first] = zero->shape[axis];
    }
  llvm::sort(order);
  SmallVector<int64_t, 6> perm;
  for (auto [label, axis] : order) perm.push_back(axis);
  for (int64_t axis = 0; axis < int64_t(zero->rank()); ++axis)
    if (!llvm::is_contained(perm, axis)) perm.push_back(axis);
  return b.broadcastTo(b.reshape(b.permute(zero, perm), shape), result->shape);
}

/// The bytes with their highest bits flipped, as the other type; padding stays outermost.
UOpRef Joiner::flip(UOpRef x) {
  constexpr int64_t highest = 128;
  if (x->op == Op::Pad) {
    auto around = x->indices();
    return b.pad(flip(x->src[0]), around.take_front(x->rank()), around.drop_front(x->rank()), x->ints[0] ^ highest);
  }
  UOpRef flipped = b.bin(Op::Xor, x, b.bits(x->dtype, highest));
  return b.bitcast(flipped, x->dtype == DType::I8 ? DType::U8 : DType::I8);
}

/// Words of four neighbours along an axis that is not the innermost one, in their place: four rows at a time.
UOpRef Joiner::wordsAlong(UOpRef x, int64_t axis) {
  SmallVector<UOpRef, 6> shape(x->shape), begin(x->rank() + 1, b.idx(0));
  shape[axis] = b.idx(*shape[axis]->constIndex() / 4);
  SmallVector<UOpRef, 6> row = shape, split = shape;
  row.insert(row.begin() + axis + 1, b.idx(1));
  split.insert(split.begin() + axis + 1, b.idx(4));
  UOpRef rows = b.reshape(x, split), y = nullptr;
  for (int64_t i = 0; i < 4; ++i) {
    begin[axis + 1] = b.idx(i);
    UOpRef byte = b.cast(b.bitcast(b.reshape(b.shrink(rows, begin, row), shape), DType::U8), DType::U32);
    UOpRef placed = i ? b.bin(Op::Shl, byte, b.bits(DType::U32, 8 * i)) : byte;
    y = i ? b.bin(Op::Or, y, placed) : placed;
  }
  return x->dtype == DType::U8 ? y : b.bitcast(y, DType::I32);
}

/// An operand with an axis as two, from its cast on, so that operandOf still sees its padding and its zero point.
UOpRef Joiner::split(UOpRef x, int64_t axis, UOpRef outer, UOpRef inner) {
  auto term = [&](UOpRef y) {
    SmallVector<UOpRef, 6> shape(y->shape);
    shape[axis] = outer;
    shape.insert(shape.begin() + axis + 1, inner);
    return splitAxis(b, y, axis, shape);
  };
  auto sum = [&](UOpRef y) {
    bool isSum = y->op == Op::Add || y->op == Op::Sub;
    return isSum ? b.bin(y->op, term(y->src[0]), term(y->src[1])) : term(y);
  };
  UOpRef zero = b.idx(0);
  auto around = x->indices();
  if (x->op != Op::Pad || around[axis] != zero || around[x->rank() + axis] != zero) return sum(x);
  SmallVector<UOpRef, 6> lo(around.take_front(x->rank())), hi(around.drop_front(x->rank()));
  lo.insert(lo.begin() + axis, zero);
  hi.insert(hi.begin() + axis, zero);
  return b.pad(sum(x->src[0]), lo, hi, x->ints[0]);
}

/// A contract whose operands number channels as group * channels + channel (a grouped convolution), with axes of both.
UOpRef Joiner::splitGroups(UOpRef r) {
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  ArrayRef<UOpRef> extents = r->indices().take_front(s.kept + s.reduced);
  UOpRef operands[] = {r->src[0], r->src[1]};
  for (unsigned side : {0u, 1u}) {
    auto &forms = side ? s.b : s.a;
    for (size_t axis = 0; axis < forms.size(); ++axis) {
      if (forms[axis].terms.size() != 2 || forms[axis].constant || forms[axis].divisor != 1) continue;
      auto outer = forms[axis].terms[0], inner = forms[axis].terms[1];
      if (inner.second != 1) std::swap(outer, inner);
      UOpRef many = extents[outer.first], each = extents[inner.first];
      auto n = each->constIndex();
      if (inner.second != 1 || !n || *n < 2 || *n != outer.second || !hasLabel(side ? s.a : s.b, outer.first) ||
          operands[side]->shape[axis] != idxMul(c, many, each))
        continue;
      operands[side] = split(operands[side], axis, many, each);
      forms[axis].terms = {{outer.first, 1}};
      AffineForm channel;
      channel.terms = {{inner.first, 1}};
      forms.insert(forms.begin() + axis + 1, channel);
    }
  }
  return b.contract(s, operands[0], operands[1], extents, r->indices().drop_front(extents.size()));
}

/// The contract that can be one of words; nothing where it cannot. What its operands are is not looked at.
std::optional<Product> Joiner::productOf(UOpRef original) {
  if (original->dtype != DType::I32 || original->src[0]->dtype != original->src[1]->dtype) return std::nullopt;
  Product p;
  p.r = splitGroups(legalizeContract(b, original));
  p.s = llvm::cantFail(decodeContract(p.r->ints));
  bool knownSide[] = {known.contains(original->src[0]), known.contains(original->src[1])};
  if (!p.s.domain.empty() || !p.s.reduced || (knownSide[0] && knownSide[1])) return std::nullopt;
  p.change = !knownSide[0] && !knownSide[1];
  p.w = p.change || knownSide[1];
  auto isLabel = [](const AffineForm &f) { return f.isLabel(); };
  if (!llvm::all_of(p.formsOf(p.w), isLabel)) return std::nullopt;
  for (unsigned side : {0u, 1u}) { // a label in one place of each operand
    llvm::DenseSet<int64_t> seen;
    for (const AffineForm &f : p.formsOf(side))
      for (auto [l, k] : f.terms)
        if (!seen.insert(l).second) return std::nullopt;
  }
  for (auto [f, extent] : llvm::zip(p.formsOf(!p.w), p.r->src[!p.w]->shape)) { // nothing is read outside
    if (f.isLabel()) continue;
    UOpRef most = b.idx(f.constant);
    int64_t least = f.constant;
    for (auto [l, k] : f.terms) {
      if (k < 0) return std::nullopt;
      most = idxAdd(c, most, idxMul(c, idxSub(c, p.extents()[l], b.idx(1)), b.idx(k)));
    }
    if (f.divisor != 1 || least < 0 || !provablyLess(c, most, extent)) return std::nullopt;
  }
  // The label of the words: an axis of its own of both operands, the longest.
  p.length = threshold::wordBytes - 1;
  for (int64_t l = p.s.kept; l < p.s.kept + p.s.reduced; ++l) {
    if (p.axisOf(p.w, l) < 0) return std::nullopt;
    p.summed.push_back(p.axisOf(p.w, l));
    auto n = p.extents()[l]->constIndex();
    if (n && *n > p.length && p.axisOf(!p.w, l) >= 0) p.label = l, p.length = *n;
  }
  return p.label < 0 ? std::nullopt : std::optional(std::move(p));
}

/// An operand's bytes as words along the label of the product; `forms` becomes what the words are read by.
UOpRef Joiner::wordsOf(const Product &p, UOpRef x, unsigned side, SmallVector<AffineForm, 4> &forms) {
  int64_t axis = p.axisOf(side, p.label), last = int64_t(x->rank()) - 1;
  if (!p.change && axis != last) {
    SmallVector<int64_t, 6> perm = llvm::to_vector<6>(llvm::seq<int64_t>(0, last + 1));
    std::rotate(perm.begin() + axis, perm.begin() + axis + 1, perm.end());
    std::rotate(forms.begin() + axis, forms.begin() + axis + 1, forms.end());
    x = b.permute(x, perm);
    axis = last;
  }
  SmallVector<UOpRef, 6> none(x->rank(), b.idx(0)), more = none;
  more[axis] = b.idx(llvm::alignTo(p.length, 4) - p.length);
  if (p.length % 4) x = b.pad(x, none, more);
  return axis == last ? c.make(Op::Words, {x}) : wordsAlong(x, axis);
}

/// y - (za - bias) sum (b - zb)
UOpRef Joiner::lessZeroOfA(const Product &p, UOpRef y, UOpRef zero, int64_t bias) {
  auto isOne = [](UOpRef e) { return e->constIndex() == 1; };
  bool same = !zero || llvm::all_of(zero->shape, isOne); // for all sums: multiplied while compiling
  UOpRef minus = b.litInt(DType::I32, -bias), factor = zero ? zero : bias ? minus : nullptr;
  if (zero) factor = same ? b.reshape(zero, {}) : spread(zero, p.formsOf(!p.w), y);
  if (zero && bias) factor = b.add(factor, minus);
  if (!factor) return y;
  SmallVector<int64_t, 4> summed = p.summed;
  llvm::sort(summed);
  UOpRef operand = p.r->src[p.w];
  SmallVector<AffineForm, 4> forms;
  for (unsigned d = 0; d < operand->rank(); ++d)
    if (!llvm::is_contained(summed, d)) forms.push_back(p.formsOf(p.w)[d]);
  UOpRef sums = b.reduce(ReduceKind::Sum, operand, summed);
  if (same) sums = b.mul(sums, factor);
  sums = spread(sums, forms, y);
  return b.sub(y, same ? sums : b.mul(factor, sums));
}

/// y - zb sum f, of the contract `t` of words that gives y.
UOpRef Joiner::lessZeroOfB(const Product &p, UOpRef y, UOpRef zero, const ContractSpec &t, ArrayRef<UOpRef> operands,
                           ArrayRef<UOpRef> counts) {
  ContractSpec ones = t;
  auto &forms = p.w ? ones.b : ones.a;
  SmallVector<UOpRef, 6> shape;
  SmallVector<AffineForm, 4> own;
  for (auto [f, d] : llvm::zip(forms, operands[p.w]->shape))
    if (f.terms[0].first >= t.kept) own.push_back(f), shape.push_back(d);
  forms = own;
  // Only the labels that the other operand has.
  SmallVector<int64_t, 8> number(t.kept + t.reduced, -1);
  SmallVector<UOpRef, 8> sizes;
  SmallVector<UOpRef, 6> into(t.kept, b.idx(1));
  ones.kept = 0;
  for (int64_t l = 0; l < t.kept + t.reduced; ++l) {
    if (l < t.kept && !hasLabel(p.w ? ones.a : ones.b, l)) continue;
    number[l] = int64_t(sizes.size());
    sizes.push_back(counts[l]);
    if (l < t.kept) ++ones.kept, into[l] = counts[l];
  }
  for (auto *list : {&ones.a, &ones.b})
    for (AffineForm &f : *list)
      for (auto &[l, k] : f.terms) l = number[l];
  UOpRef one = b.splat(b.bits(operands[p.w]->dtype, 0x01010101), shape);
  UOpRef sum = p.w ? b.contract(ones, operands[0], one, sizes) : b.contract(ones, one, operands[1], sizes);
  return b.sub(y, b.mul(spread(zero, p.formsOf(p.w), y), b.broadcastTo(b.reshape(sum, into), y->shape)));
}

UOpRef Joiner::joined(UOpRef original) {
  std::optional<Product> p = productOf(original);
  if (!p) return nullptr;
  auto operand = [&](unsigned side) { return operandOf(p->r->src[side], p->formsOf(side), p->s.kept); };
  Operand a = operand(!p->w), k = operand(p->w);
  if (!a.bytes || !k.bytes) return nullptr;

  UOpRef flipped = a.bytes;
  int64_t bias = 0; // a = flipped + bias
  if (a.bytes->dtype == k.bytes->dtype) {
    bias = a.bytes->dtype == DType::I8 ? -128 : 128;
    flipped = flip(a.bytes);
  }
  ContractSpec t = p->s; // of words
  UOpRef operands[2];
  operands[!p->w] = wordsOf(*p, flipped, !p->w, p->w ? t.a : t.b);
  operands[p->w] = wordsOf(*p, k.bytes, p->w, p->w ? t.b : t.a);
  SmallVector<UOpRef, 8> counts(p->extents());
  counts[p->label] = b.idx(llvm::divideCeil(p->length, 4));
  UOpRef y = lessZeroOfA(*p, b.contract(t, operands[0], operands[1], counts), a.zero, bias);
  return k.zero ? lessZeroOfB(*p, y, k.zero, t, operands, counts) : y;
}

void Joiner::run() {
  mapValues(m, [&](UOpRef x) {
    if (isKnown(x)) known.insert(x);
    UOpRef y = x->op == Op::Contract ? joined(x) : nullptr;
    return y ? y : x;
  });
}

void astra::joinBytes(Module &m) { Joiner(m).run(); }

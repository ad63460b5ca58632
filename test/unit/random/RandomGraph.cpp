//===- RandomGraph.cpp: growing a module op by op --------------------------===//
// Takes:    a seed.
// Gives:    a module whose every node passed the type rules: what a rule refuses is not added.
// Keeps:    tensors small (a few thousand elements), sums sometimes long.
#include "Grower.h"
#include "astra/IR/Fields.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>

using namespace astra;
using namespace astra::test;

DType Grower::dtype() {
  static constexpr DType ints[] = {DType::I8, DType::I16, DType::I32, DType::I64,
                                   DType::U8, DType::U16, DType::U32, DType::U64};
  static constexpr DType narrow[] = {DType::F16, DType::BF16};
  static constexpr DType complex[] = {DType::C64, DType::C64, DType::C128};
  static constexpr DType subByte[] = {DType::I2, DType::U2, DType::I4, DType::U4, DType::F4E2M1};
  if (options.complex && chance(8)) return oneOf(complex);
  if (options.subByte && chance(8)) return oneOf(subByte);
  int64_t k = upTo(100);
  if (k < 50) return DType::F32;
  if (k < 60) return DType::F64;
  if (k < 72 && options.narrow) return oneOf(narrow);
  return k < 80 ? DType::Bool : oneOf(ints);
}

UOpRef Grower::extent() {
  static constexpr int64_t sizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33};
  if (options.symbolic && chance(25)) return dims[upTo(dims.size())];
  return b.idx(oneOf(sizes));
}

Tensor Grower::values(DType t, ArrayRef<UOpRef> shape) {
  Tensor v{t, {}, {}};
  for (UOpRef d : shape) v.shape.push_back(valueOf(d));
  if (isSubByte(t)) { // packed, the padding of rows 0
    v.bytes.resize(tensorBytes(t, v.shape));
    int64_t row = v.shape.empty() ? 1 : v.shape.back(), per = 8 / bitWidth(t), rowBytes = (row + per - 1) / per;
    for (int64_t i = 0, n = v.count(); i < n; ++i)
      v.bytes[i / row * rowBytes + i % row / per] |= upTo(1 << bitWidth(t)) << i % row % per * bitWidth(t);
    return v;
  }
  int64_t numbers = v.count() * (isComplex(t) ? 2 : 1);
  t = partOf(t);
  unsigned w = byteSize(t), bits = bitWidth(t), m = info(t).mantissaBits;
  int64_t special = chance(50) ? 0 : upTo(40); // percent of edge values
  uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  for (int64_t i = 0; i < numbers; ++i) {
    uint64_t r = next(), x = r & mask;
    if (t == DType::Bool) {
      x = r & 1;
    } else if (isFloat(t)) {
      uint64_t sign = (r & 1) << (bits - 1), top = ((1ull << info(t).exponentBits) - 1) << m,
               one = (1ull << (bits - 2)) - (1ull << m);
      uint64_t edges[] = {0, 1, top, top - 1, top | 1ull << (m - 1), one, 1ull << m, (1ull << m) - 1};
      uint64_t exponent = (one >> m) - 4 + (r >> 8) % 7;
      x = chance(special) ? edges[(r >> 4) % 8] | sign : sign | exponent << m | (r >> 12 & ((1ull << m) - 1));
    } else if (chance(special)) {
      uint64_t edges[] = {0, 1, mask, mask >> 1, (mask >> 1) + 1, 2, mask - 1, 7};
      x = edges[(r >> 4) % 8];
    } else if (chance(50)) {
      x = (r >> 8) % 12; // small: divisors, shift counts
    }
    for (unsigned k = 0; k < w; ++k) v.bytes.push_back(x >> 8 * k);
  }
  return v;
}

UOpRef Grower::input(DType t, ArrayRef<UOpRef> shape) {
  if (llvm::any_of(shape, [&](UOpRef d) { return valueOf(d) < 0; }) || elements(shape) > 200000) return nullptr;
  Entry &e = entry();
  if (chance(15)) {
    std::string name = "w" + std::to_string(m.params.size());
    if (llvm::all_of(shape, [](UOpRef d) { return d->isConst(); })) {
      UOpRef p = b.param(name, t, shape);
      m.params.push_back({p, std::make_shared<std::vector<uint8_t>>(values(t, shape).bytes), {}, {}});
      pool.push_back(p);
      return p;
    }
  }
  UOpRef x = b.arg(int64_t(e.inputs.size()), t, shape);
  e.inputs.push_back({"x" + std::to_string(e.inputs.size()), x});
  given.inputs.push_back(values(t, shape));
  pool.push_back(x);
  return x;
}

/// Integers about 0 ... most - 1, some outside, in the shape of `like`.
UOpRef Grower::indices(UOpRef x, int64_t most, DType t) {
  UOpRef i = input(t, x->shape);
  if (!i || i->op != Op::Arg) return nullptr;
  Tensor &v = given.inputs.back();
  for (int64_t k = 0, n = v.count(), w = byteSize(t); k < n; ++k) {
    int64_t value = upTo(most + 2) - (chance(10) ? 1 : 0);
    memcpy(&v.bytes[k * w], &value, w);
  }
  return i;
}

UOpRef Grower::add(Op op, ArrayRef<UOpRef> src, ArrayRef<int64_t> ints, DType t, ArrayRef<UOpRef> fns) {
  if (llvm::is_contained(src, nullptr)) return nullptr;
  auto n = c.tryMake(op, src, ints, {}, t, fns);
  if (!n) {
    llvm::consumeError(n.takeError());
    return nullptr;
  }
  if (elements((*n)->shape) > 200000) return nullptr;
  if ((*n)->dtype != DType::Void && !(*n)->isIndex()) pool.push_back(*n);
  return *n;
}

UOpRef Grower::like(DType t, Shape shape) {
  if (chance(25)) {
    UOpRef s = anyOf([&](UOpRef n) { return n->dtype == t && n->rank() == 0; });
    if (s && !shape.empty()) return b.splat(s, shape);
    if (isSubByte(t)) return b.splat(b.bits(t, uint64_t(upTo(1 << bitWidth(t)))), shape);
    if (t != DType::Bool) return b.splat(b.lit(t, double(upTo(9)) - 4), shape);
  }
  UOpRef found = anyOf([&](UOpRef n) { return n->dtype == t && n->shape == shape; });
  if (found && chance(80)) return found;
  UOpRef fresh = input(t, shape);
  return fresh ? fresh : found;
}

/// Those of the list, then what the op table has besides: elementwise ops that are functions or not, of sources of one
/// type (Scale2 has another).
static std::vector<Op> completed(std::vector<Op> list, bool functions, std::initializer_list<int> sources) {
  for (unsigned i = 0; i < numOps; ++i)
    if (Op op = Op(i); has(op, Elementwise) && has(op, Function) == functions && !*info(op).attributes &&
                       llvm::is_contained(sources, info(op).sources) && op != Op::Scale2 &&
                       !llvm::is_contained(list, op))
      list.push_back(op);
  return list;
}

void Grower::elementwise() {
  static const std::vector<Op> unary = completed({}, false, {1});
  static const std::vector<Op> binary = completed(
      {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Max, Op::Min, Op::Add, Op::Mul, Op::FloorDiv, Op::Mod, Op::TruncDiv,
       Op::Rem, Op::And, Op::Or,  Op::Xor, Op::Shl, Op::Shr, Op::Lt,  Op::Le,  Op::Eq,       Op::Ne,  Op::CopySign},
      false, {2});
  static const std::vector<Op> functions =
      completed({Op::Exp2,  Op::Exp,   Op::Expm1, Op::Log2,    Op::Log,   Op::Log1p, Op::Sin,  Op::Cos,
                 Op::Tan,   Op::Tanh,  Op::Asin,  Op::Acos,    Op::Atan,  Op::Sinh,  Op::Cosh, Op::Asinh,
                 Op::Acosh, Op::Atanh, Op::Erf,   Op::Sigmoid, Op::Rsqrt, Op::Pow},
                true, {1, 2});
  UOpRef x = any();
  bool real = isFloat(x->dtype);
  switch (upTo(8)) {
  case 0: add(oneOf(unary), {x}); break;
  case 1:
    if (!options.functions || !real) break;
    if (Op f = oneOf(functions); info(f).sources == 1)
      add(f, {x});
    else
      add(f, {x, like(x)});
    break;
  case 2:
    if (real || x->dtype == DType::I32) add(real ? Op::Fma : Op::Dot4, {x, like(x), like(x)});
    break;
  case 3: add(Op::Select, {like(DType::Bool, x->shape), x, like(x)}); break;
  case 4:
    if (real) add(Op::Scale2, {x, like(DType::I32, x->shape)});
    break;
  default: add(oneOf(binary), {x, like(x)});
  }
}

void Grower::convert() {
  UOpRef x = any();
  DType to = dtype();
  if (isComplex(x->dtype) && chance(50)) {
    add(chance(50) ? Op::Real : Op::Imag, {x});
  } else if (options.complex && (x->dtype == DType::F32 || x->dtype == DType::F64) && chance(15)) {
    add(Op::Complex, {x, like(x)});
  } else if (chance(20)) {
    add(Op::Bitcast, {x}, {}, to);
  } else if (chance(10)) {
    llvm::SmallVector<int64_t, 16> table;
    for (int i = 0; i < 16; ++i) table.push_back(int64_t(next() >> (64 - bitWidth(partOf(to)))));
    add(Op::Lookup16, {x}, table, to == DType::Bool ? DType::F32 : to);
  } else if (to != x->dtype) {
    add(Op::Cast, {x}, {0}, to);
  }
}

void Grower::move() {
  UOpRef x = any();
  int64_t rank = x->rank();
  Index shape(x->shape.begin(), x->shape.end());
  auto reshape = [&](UOpRef from, ArrayRef<UOpRef> to) {
    llvm::SmallVector<UOpRef, 8> src{from};
    src.append(to.begin(), to.end());
    add(Op::Reshape, src);
  };
  switch (upTo(8)) {
  case 0: // a new axis of extent 1, which expand may repeat
    if (rank < 5) {
      shape.insert(shape.begin() + upTo(rank + 1), b.idx(1));
      reshape(x, shape);
    }
    break;
  case 1: // neighbours merge
    if (rank > 1) {
      int64_t a = upTo(rank - 1);
      shape[a] = idxMul(c, shape[a], shape[a + 1]);
      shape.erase(shape.begin() + a + 1);
      reshape(x, shape);
    }
    break;
  case 2: {
    llvm::SmallVector<int64_t, 6> perm;
    for (int64_t i = 0; i < rank; ++i) perm.insert(perm.begin() + upTo(i + 1), i);
    add(Op::Permute, {x}, perm);
    break;
  }
  case 3:
    for (UOpRef &d : shape)
      if (d->constIndex() == 1 && chance(70)) d = extent();
    if (elements(shape) <= mostElements) pool.push_back(b.expand(x, shape));
    break;
  case 4: {
    Index lo, hi;
    for (int64_t i = 0; i < rank; ++i) lo.push_back(b.idx(upTo(3))), hi.push_back(b.idx(upTo(3)));
    uint64_t fill = x->dtype == DType::Bool     ? upTo(2)
                    : isFloat(partOf(x->dtype)) ? b.lit(x->dtype, double(upTo(3)) - 1)->ints[0]
                                                : upTo(isSubByte(x->dtype) ? 1 << bitWidth(x->dtype) : 5);
    if (elements(shape) < mostElements / 4) pool.push_back(b.pad(x, lo, hi, fill));
    break;
  }
  case 5: {
    llvm::SmallVector<UOpRef, 9> src{x};
    Index size;
    for (UOpRef d : shape) {
      int64_t cut = std::min<int64_t>(d->lo, upTo(3)), begin = upTo(cut + 1);
      src.push_back(b.idx(begin));
      size.push_back(idxSub(c, d, b.idx(cut)));
    }
    src.append(size);
    add(Op::Shrink, src);
    break;
  }
  case 6: {
    llvm::SmallVector<int64_t, 6> axes;
    for (int64_t i = 0; i < rank; ++i)
      if (chance(50)) axes.push_back(i);
    pool.push_back(b.flip(x, axes));
    break;
  }
  default:
    if (x->dtype == DType::U8 || x->dtype == DType::I8)
      add(Op::Words, {input(x->dtype, {b.idx(1 + upTo(4)), b.idx(4 * upTo(4))})});
    else if (rank && rank < 5 && elements(shape) < mostElements / 3)
      add(Op::Window, {x}, {upTo(rank), 1 + upTo(4), 1 + upTo(3), 1 + upTo(2)});
  }
}

void Grower::fold() {
  UOpRef x = any();
  if (!x->rank()) return;
  int64_t axis = upTo(x->rank());
  if (chance(25)) { // a long axis: several chunks of lanes
    static constexpr int64_t lengths[] = {64, 65, 100, 513, 4097};
    x = input(chance(60) ? DType::F32 : dtype(), {b.idx(1 + upTo(2)), b.idx(oneOf(lengths))});
    if (!x) return;
    axis = 1;
  }
  switch (upTo(6)) {
  case 0: add(Op::ArgReduce, {x}, {upTo(2), axis}); return;
  case 1: add(Op::Cumulate, {x}, {upTo(4), axis}); return;
  case 2:
    if (elements(x->shape) <= 1200) add(Op::ArgSort, {x}, {axis, upTo(2)});
    return;
  default: break;
  }
  ReduceSpec s{ReduceKind(upTo(6)), ReduceOrder::Exact, {}, {}};
  for (int64_t i = 0; i < x->rank(); ++i)
    if (i == axis || chance(40)) s.axes.push_back(i);
  if (isFloat(x->dtype) && (s.kind == ReduceKind::Sum || s.kind == ReduceKind::Prod))
    s.order = chance(75) ? ReduceOrder::Lane64 : ReduceOrder::Chain;
  if (isComplex(x->dtype))
    s.order = s.kind == ReduceKind::Prod ? ReduceOrder::Pairs : chance(75) ? ReduceOrder::Lane64 : ReduceOrder::Chain;
  llvm::SmallVector<UOpRef, 2> src{x};
  if (x->rank() > 1 && chance(20)) {
    s.domain.push_back({{{0, 1}, {1, -1}}, 0, 1}); // axis 1 <= axis 0
    src.push_back(b.idx(upTo(3)));
  }
  add(Op::Reduce, src, encode(s));
}

void Grower::contract() {
  UOpRef x =
      anyOf([](UOpRef n) { return n->rank() > 0 && n->rank() < 5 && (isFloat(partOf(n->dtype)) || isInt(n->dtype)); });
  if (!x || elements(x->shape) > mostElements) return;
  auto label = [](int64_t l) { return AffineForm{{{l, 1}}, 0, 1}; };
  int64_t rank = x->rank();
  ContractSpec s;
  Index extents, shape, domain;
  UOpRef y = nullptr;
  DType other = x->dtype; // words of bytes are multiplied by words of the other kind
  if ((other == DType::U32 || other == DType::I32) && chance(50)) other = other == DType::U32 ? DType::I32 : DType::U32;
  if (chance(65)) { // x[.., k] w[k, n], in either order; sometimes causal
    UOpRef n = b.idx(1 + upTo(chance(20) ? 70 : 6));
    s.kept = rank, s.reduced = 1;
    for (int64_t i = 0; i + 1 < rank; ++i) s.a.push_back(label(i)), extents.push_back(x->shape[i]);
    s.a.push_back(label(rank));
    bool transposed = chance(40);
    s.b = {label(transposed ? rank - 1 : rank), label(transposed ? rank : rank - 1)};
    extents.push_back(n);
    extents.push_back(x->shape[rank - 1]);
    shape = {transposed ? n : x->shape[rank - 1], transposed ? x->shape[rank - 1] : n};
    y = like(other, c.internShape(shape));
    if (rank > 1 && chance(20)) {
      s.domain.push_back({{{0, 1}, {rank, -1}}, 0, 1});
      domain.push_back(b.idx(0));
    }
  } else { // the last axis is a channel, the one before is windowed: x[.., o*s + t*d - p, ch] w[t, ch, oc]
    if (rank < 2) return;
    int64_t taps = 1 + upTo(3), stride = 1 + upTo(2), dilation = 1 + upTo(2), pad = upTo(3), oc = 1 + upTo(4);
    bool transposed = chance(25);
    s.kept = rank, s.reduced = 2; // labels: outer axes, o, oc | t, ch
    for (int64_t i = 0; i + 2 < rank; ++i) s.a.push_back(label(i)), extents.push_back(x->shape[i]);
    s.a.push_back(transposed ? AffineForm{{{rank - 2, 1}, {rank, -1}}, 1, 2}
                             : AffineForm{{{rank - 2, stride}, {rank, dilation}}, -pad, 1});
    s.a.push_back(label(rank + 1));
    s.b = {label(rank), label(rank + 1), label(rank - 1)};
    extents.push_back(chance(50) ? x->shape[rank - 2] : b.idx(1 + upTo(8)));
    extents.push_back(b.idx(oc));
    extents.push_back(b.idx(taps));
    extents.push_back(x->shape[rank - 1]);
    shape = {b.idx(taps), x->shape[rank - 1], b.idx(oc)};
    y = input(other, shape);
  }
  if (!y) return;
  if (options.units && aside() % 8 == 0) addByUnit(s, x->dtype);
  llvm::SmallVector<UOpRef, 12> src{x, y};
  src.append(extents);
  src.append(domain);
  add(Op::Contract, src, encode(s));
}

/// A matrix unit adds products of this type, if one takes it.
void Grower::addByUnit(ContractSpec &s, DType t) {
  std::vector<const UnitStep *> fit;
  for (const UnitStep &u : unitSteps()) {
    bool isOwn = u.inputs.a == u.inputs.b && matrixInputOf(t) == u.inputs.a;
    if (t == DType::F32 || isOwn) fit.push_back(&u);
  }
  if (fit.empty()) return;
  const UnitStep &u = *fit[(aside() >> 8) % fit.size()];
  s.unit = u.unit, s.inputs = u.inputs;
}

/// A product of many steps, x[rows, k] w[k, n]: what is summed in parts, with few rows under plans of their own.
void Grower::product() {
  static constexpr int64_t steps[] = {512, 515, 600}, columns[] = {1, 3, 10, 17, 24};
  UOpRef rows = dims.empty() || chance(25) ? b.idx(1 + upTo(8)) : oneOf(dims), k = b.idx(oneOf(steps)),
         n = b.idx(oneOf(columns)), x = input(DType::F32, {rows, k}), w = input(DType::F32, {k, n});
  auto label = [](int64_t l) { return AffineForm{{{l, 1}}, 0, 1}; };
  ContractSpec s;
  s.kept = 2, s.reduced = 1;
  s.a = {label(0), label(2)}, s.b = {label(2), label(1)};
  if (x && w) add(Op::Contract, {x, w, rows, n, k}, encode(s));
}

/// Parts one behind another: a product or a reduction, and what is like it but for the extent along an axis.
void Grower::join() {
  bool rootOp = chance(70);
  UOpRef x = anyOf([&](UOpRef n) {
    bool isRootOp = n->op == Op::Contract || n->op == Op::Reduce;
    return n->rank() > 0 && (isFloat(n->dtype) || isInt(n->dtype)) && !isSubByte(n->dtype) && (isRootOp || !rootOp) &&
           elements(n->shape) <= mostElements;
  });
  if (!x) return;
  int64_t axis = upTo(x->rank());
  std::vector<UOpRef> parts{x};
  for (int64_t k = 1 + upTo(3); k-- > 0;) {
    UOpRef y = anyOf([&](UOpRef n) {
      bool fits = n->dtype == x->dtype && n->rank() == x->rank() && elements(n->shape) <= mostElements;
      for (unsigned i = 0; fits && i < x->rank(); ++i) fits = int64_t(i) == axis || n->shape[i] == x->shape[i];
      return fits;
    });
    if (chance(30)) {
      Index shape(x->shape);
      shape[axis] = b.idx(1 + upTo(20));
      y = like(x->dtype, c.internShape(shape));
    }
    if (y && chance(30)) y = b.un(Op::Neg, y);
    if (y) parts.insert(chance(50) ? parts.begin() : parts.end(), y);
  }
  if (parts.size() > 1) pool.push_back(b.concat(parts, axis));
}

void Grower::index() {
  UOpRef x = anyOf([](UOpRef n) { return n->rank() > 0; });
  if (!x) return;
  int64_t rank = x->rank(), axis = upTo(rank), most = std::max<int64_t>(valueOf(x->shape[axis]), 0);
  DType it = chance(70) ? DType::I64 : DType::I32;
  Index shape(x->shape.begin(), x->shape.end());
  auto scalars = [&](llvm::SmallVectorImpl<UOpRef> &src) {
    for (int64_t i = 0; i < rank; ++i) {
      UOpRef s = input(DType::I64, {});
      if (s && s->op == Op::Arg) {
        int64_t v = upTo(8) - 2;
        memcpy(given.inputs.back().bytes.data(), &v, 8);
      }
      src.push_back(s);
    }
  };
  switch (upTo(8)) {
  case 0: {
    UOpRef i = b.arg(0, it, {b.idx(1 + upTo(3)), b.idx(2)});
    if (elements(shape) < mostElements / 6) add(Op::Gather, {x, indices(i, most, it)}, {axis});
    break;
  }
  case 1:
    shape[axis] = b.idx(upTo(5));
    add(Op::Pick, {x, indices(b.arg(0, it, shape), most, it)}, {axis});
    break;
  case 2: {
    shape[axis] = b.idx(upTo(5));
    UOpRef i = indices(b.arg(0, it, shape), most, it);
    if (i) add(Op::Scatter, {x, i, like(x->dtype, i->shape)}, {axis, upTo(5)});
    break;
  }
  case 3: {
    llvm::SmallVector<UOpRef, 12> src{x};
    scalars(src);
    for (UOpRef d : shape) src.push_back(idxSub(c, d, b.idx(std::min<int64_t>(d->lo, upTo(3)))));
    add(Op::SliceAt, src);
    break;
  }
  case 4: {
    for (UOpRef &d : shape) d = idxSub(c, d, b.idx(std::min<int64_t>(d->lo, upTo(3))));
    llvm::SmallVector<UOpRef, 12> src{x, like(x->dtype, c.internShape(shape))};
    scalars(src);
    add(Op::UpdateAt, src);
    break;
  }
  case 5:
    if (options.symbolic) {
      UOpRef mask = like(DType::Bool, c.internShape({x->shape[0]}));
      if (mask && valueOf(x->shape[0]) >= 0) pool.push_back(b.compact(x, mask));
    }
    break;
  case 6: {
    UOpRef seed = input(DType::U32, {}), stream = input(DType::U32, {});
    if (seed && stream) add(Op::Random, {seed, stream, extent(), extent()});
    break;
  }
  default:
    shape = {extent(), extent()};
    if (chance(70))
      add(Op::Iota, shape, {upTo(2)}, dtype());
    else
      add(Op::FromIndex, {idxAdd(c, idxMul(c, shape[0], shape[1]), b.idx(upTo(5)))}, {}, dtype());
  }
}

/// An expression of two values of one type, or a literal, which the graph around may have too.
UOpRef Grower::bodyOf(UOpRef x, UOpRef y) {
  if (isSubByte(x->dtype)) return b.cast(bodyOf(b.cast(x, DType::F32), b.cast(y, DType::F32)), x->dtype);
  if (chance(20)) {
    UOpRef literal = b.splat(b.lit(x->dtype, double(upTo(2))), x->shape);
    if (chance(60)) pool.push_back(literal);
    return literal;
  }
  static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Sub, Op::Max, Op::Min};
  auto op = [&] { return x->dtype == DType::Bool ? Op::Xor : ops[upTo(isComplex(x->dtype) ? 3 : 5)]; }; // no order
  UOpRef r = c.make(op(), {x, y});
  return x->dtype != DType::Bool && chance(50) ? c.make(op(), {r, x}) : r;
}

void Grower::control() {
  UOpRef x = anyOf([&](UOpRef n) {
    return llvm::all_of(n->shape, [&](UOpRef d) { return valueOf(d) >= 0; }) && elements(n->shape) < 300;
  });
  if (!x) return;
  UOpRef y = like(x);
  if (!y) return;
  UOpRef p = b.arg(0, x->dtype, x->shape), q = b.arg(1, x->dtype, x->shape);
  auto project = [&](UOpRef op, int64_t i, DType t, ArrayRef<UOpRef> shape) {
    llvm::SmallVector<UOpRef, 6> src{op};
    src.append(shape.begin(), shape.end());
    add(Op::Proj, src, {i}, t);
  };
  switch (upTo(3)) {
  case 0: {
    UOpRef f = c.make(Op::Func, {bodyOf(p, q)}, {2}), g = c.make(Op::Func, {bodyOf(q, p)}, {2});
    UOpRef flag = like(DType::Bool, {});
    if (flag) project(c.make(Op::Cond, {flag, x, y}, {}, {}, DType::Void, {f, g}), 0, x->dtype, x->shape);
    break;
  }
  case 1: { // i, x: while i < trips
    UOpRef i = b.arg(0, DType::I32, {}), v = b.arg(1, x->dtype, x->shape), w = b.arg(2, x->dtype, x->shape);
    UOpRef go = c.make(Op::Func, {b.lt(i, b.litInt(DType::I32, upTo(5)))}, {3});
    UOpRef body = c.make(Op::Func, {b.add(i, b.litInt(DType::I32, 1)), bodyOf(v, w), w}, {3});
    UOpRef loop = c.make(Op::While, {b.litInt(DType::I32, 0), x, y}, {}, {}, DType::Void, {go, body});
    project(loop, 0, DType::I32, {});
    project(loop, 1, x->dtype, x->shape);
    break;
  }
  default: // over the first axis: carry is the sum so far, stacked
    if (!x->rank()) return;
    Shape row = c.internShape(x->shape.drop_front());
    UOpRef start = like(x->dtype, row);
    if (!start) return;
    UOpRef carry = b.arg(0, x->dtype, row), slice = b.arg(1, x->dtype, row), next = bodyOf(carry, slice);
    UOpRef f = c.make(Op::Func, {next, bodyOf(next, carry)}, {2});
    UOpRef scan = c.make(Op::Scan, {start, x, x->shape[0]}, {1, 1}, {}, DType::Void, {f});
    project(scan, 0, x->dtype, row);
    project(scan, 1, x->dtype, x->shape);
  }
}

/// A third of the dims have bounds beside the sizes of tiles: then an index that is divided by one is a constant.
UOpRef Grower::dimOf(const std::string &of) {
  static constexpr int64_t tiles[] = {3, 4, 6, 14, 16};
  uint64_t bounds = aside();
  int64_t lo = upTo(2), hi = 4 + upTo(20);
  return bounds % 3 ? b.dim(of, lo, hi) : b.dim(of, 1, tiles[bounds / 3 % std::size(tiles)]);
}

void Grower::run() {
  m.entries.push_back({name, {}, {}, {}});
  if (options.symbolic)
    for (const char *dim : {"n", "m"}) {
      UOpRef d = dimOf(named(dim));
      dims.push_back(d);
      m.dims.push_back(d);
      dimValues[d] = d->lo + upTo(std::min<int64_t>(d->hi - d->lo, 12) + 1);
      input(DType::F32, {d}); // binds it
      if (entry().inputs.empty() || entry().inputs.back().value->shape[0] != d) given.dims[named(dim)] = dimValues[d];
    }
  for (int i = 0; i < 2; ++i) {
    Index shape;
    for (int64_t k = upTo(4); k > 0; --k) shape.push_back(extent());
    if (elements(shape) <= mostElements) input(dtype(), shape);
  }
  if (pool.empty()) input(DType::F32, {b.idx(3)});
  std::vector<UOpRef> held; // of one type: each may become what another was
  if (options.states && chance(30)) {
    DType t = options.complex && chance(20) ? DType::C64 : options.subByte && chance(20) ? DType::I4 : DType::F32;
    for (int64_t k = 1 + upTo(3); k > 0; --k) {
      UOpRef s = b.state(named("s" + std::to_string(k)), t, {b.idx(5)});
      m.states.push_back({s, std::make_shared<std::vector<uint8_t>>(values(t, s->shape).bytes)});
      pool.push_back(s);
      held.push_back(s);
    }
  }
  for (unsigned i = 0; i < options.steps; ++i) {
    int64_t k = upTo(100);
    if (k < 40)
      elementwise();
    else if (k < 48)
      convert();
    else if (k < 65)
      move();
    else if (k < 77)
      fold();
    else if (k < 83)
      contract();
    else if (k < 86)
      join();
    else if (k < 95 || !options.control)
      index();
    else
      control();
  }
  if (aside() % 16 == 0) product();
  if (options.kernels && (aside() >> 8) % 4 == 0) kernel();
  Entry &e = entry();
  for (UOpRef s : held) { // from a value, or from a state: rings of them are swaps
    UOpRef next = chance(40) ? held[upTo(held.size())] : like(s);
    if (next) e.updates.push_back({s->str.str(), next});
  }
  llvm::DenseSet<UOpRef> used;
  for (UOpRef n : topoSort(pool))
    for (UOpRef s : n->src) used.insert(s);
  std::vector<UOpRef> last;
  for (UOpRef n : llvm::reverse(pool))
    if (!used.count(n) && !n->is(Op::Arg) && !n->is(Op::Param) && !n->is(Op::State) && !llvm::is_contained(last, n) &&
        last.size() < 8)
      last.push_back(n);
  for (UOpRef s : held)
    if (chance(30) && !llvm::is_contained(last, s)) last.push_back(s);
  if (last.empty()) last.push_back(pool.back());
  for (UOpRef n : last) e.outputs.push_back({"y" + std::to_string(e.outputs.size()), n});
}

EvalInputs test::addRandomEntry(Module &m, llvm::StringRef name, uint64_t seed, const RandomOptions &options) {
  EvalInputs given;
  Grower(m, given, name, seed, options).run();
  return given;
}

RandomCase test::randomCase(uint64_t seed, const RandomOptions &options) {
  RandomCase r;
  r.module.name = "random";
  r.inputs = addRandomEntry(r.module, "main", seed, options);
  return r;
}

//===- MatrixUnit.cpp: what a matrix unit adds, in primitives --------------===//
// Takes:    a contract of f32 that names a matrix unit (N4.8).
// Gives:    a scan over the unit's steps, whose body is the row of MatrixUnits.def in primitives: so every target
//           computes it, those too that have no such unit. Each operand becomes an array [step, block, kept labels],
//           of significands and one of exponents where the unit aligns.
// Keeps:    exactness of what the row does not round: significands are f32 in [0, 4), aligned terms integers that i32
//           holds, their sums f64.
// Does not: use a unit that a target has.
#include "MatrixUnit.h"
#include "astra/IR/Contract.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace astra;
using namespace astra::numerics;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {
class UnitSum {
public:
  UnitSum(Builder &b, UOpRef n)
      : b(b), n(n), s(llvm::cantFail(decodeContract(n->ints))), unit(*s.unit), extents(n->indices()),
        bounds(n->indices().drop_front(s.kept + s.reduced)) {
    extents.truncate(s.kept + s.reduced);
    reduced.assign(extents.begin() + s.kept, extents.end());
    if (reduced.empty()) reduced = {b.idx(1)};
    blocks = idxCeilDiv(b.c, reduced.back(), b.idx(unit.block));
  }

  UOpRef run() {
    SmallVector<UOpRef, 4> xs;
    for (int which : {0, 1}) {
      Operand o = operand(which);
      UOpRef v = rounded(o.value);
      if (unit.isAligned()) {
        UOpRef e = exponentOf(v, info(s.input).minExponent);
        xs.push_back(steps(o, b.scale2(v, negated(e)), 0));
        xs.push_back(steps(o, e, uint32_t(-126)));
      } else
        xs.push_back(steps(o, flushed(v), 0));
    }
    SmallVector<UOpRef, 6> src{b.splat(num(0), n->shape)}, arguments{b.arg(0, DType::F32, n->shape)};
    for (UOpRef x : xs) {
      arguments.push_back(b.arg(src.size(), x->dtype, x->shape.drop_front()));
      src.push_back(x);
    }
    ArrayRef<UOpRef> parts = ArrayRef<UOpRef>(arguments).drop_front();
    UOpRef next = unit.isAligned() ? aligned(arguments[0], parts) : chained(arguments[0], parts);
    UOpRef body = b.c.make(Op::Func, {next}, {int64_t(src.size())});
    int64_t slices = xs.size();
    src.push_back(xs[0]->shape[0]);
    UOpRef scan = b.c.make(Op::Scan, src, {1, slices}, {}, DType::Void, {body});
    SmallVector<UOpRef, 6> of{scan};
    llvm::append_range(of, n->shape);
    return b.c.make(Op::Proj, of, {0}, {}, DType::F32);
  }

private:
  Builder &b;
  UOpRef n;
  ContractSpec s;
  const MatrixUnit &unit;
  SmallVector<UOpRef, 8> extents; // of all labels
  ArrayRef<UOpRef> bounds;
  SmallVector<UOpRef, 4> reduced; // extents; one of 1 where nothing is summed
  UOpRef blocks;

  UOpRef num(float v) { return b.bits(DType::F32, llvm::bit_cast<uint32_t>(v)); }
  UOpRef num64(double v) { return b.bits(DType::F64, llvm::bit_cast<uint64_t>(v)); }
  UOpRef whole(int64_t v) { return b.litInt(DType::I32, v); }
  UOpRef negated(UOpRef x) { return b.un(Op::Neg, x); }
  UOpRef magnitude(UOpRef x) { return b.un(Op::Abs, x); }

  /// An operand as an array of the labels that it depends on, ascending.
  struct Operand {
    UOpRef value;
    SmallVector<int64_t, 8> labels;
  };

  Operand operand(int which) {
    const auto &forms = which ? s.b : s.a;
    SmallVector<const AffineForm *, 2> domain;
    SmallVector<UOpRef, 2> limits;
    for (auto [f, bound] : llvm::zip(s.domain, bounds))
      if (operandOf(s, f) == which) domain.push_back(&f), limits.push_back(bound);
    Operand o{n->src[which], {}};
    for (int64_t l = 0; l < int64_t(extents.size()); ++l)
      if (hasLabel(forms, l) || llvm::any_of(domain, [&](const AffineForm *f) { return hasLabel({*f}, l); }))
        o.labels.push_back(l);
    o.value = read(o, forms);
    for (auto [f, bound] : llvm::zip(domain, limits)) o.value = inside(o, *f, bound);
    return o;
  }

  /// The operand at every point of its labels: +0 outside of it, and where an index is no whole number.
  UOpRef read(const Operand &o, ArrayRef<AffineForm> forms) {
    SmallVector<UOpRef, 8> to;
    for (int64_t l : o.labels) to.push_back(extents[l]);
    bool bare = o.labels.size() == forms.size() && llvm::all_of(forms, [](auto &f) { return f.isLabel(); });
    if (bare) {
      SmallVector<int64_t, 8> order;
      for (int64_t l : o.labels)
        order.push_back(llvm::find_if(forms, [&](auto &f) { return f.terms[0].first == l; }) - forms.begin());
      return b.permute(o.value, order);
    }
    ContractSpec copy; // x * 1 - 0.0
    copy.kept = o.labels.size();
    for (AffineForm f : forms) {
      for (auto &[l, k] : f.terms) l = llvm::find(o.labels, l) - o.labels.begin();
      copy.a.push_back(std::move(f));
    }
    UOpRef y = b.contract(copy, o.value, num(1), to);
    if (llvm::none_of(forms, [](auto &f) { return f.divisor != 1; })) return y;
    UOpRef ones = b.contract(copy, b.splat(num(1), o.value->shape), num(1), to); // -0 at a hole
    return b.select(b.eq(ones, num(1)), y, num(0));
  }

  UOpRef inside(const Operand &o, const AffineForm &f, UOpRef bound) {
    UOpRef sum = b.fromIndex(bound, DType::I64);
    for (auto [l, k] : f.terms) {
      int64_t axis = llvm::find(o.labels, l) - o.labels.begin();
      sum = b.add(b.mul(b.iota(DType::I64, o.value->shape, axis), b.litInt(DType::I64, k)), sum);
    }
    return b.select(b.lt(sum, b.litInt(DType::I64, 0)), num(0), o.value);
  }

  /// As the unit's type of input has it (matrixInput).
  UOpRef rounded(UOpRef x) {
    if (s.input != MatrixInput::TF32) return b.cast(b.cast(x, *dtypeNamed(info(s.input).text)), DType::F32);
    UOpRef cut = b.bin(Op::And, b.bitcast(x, DType::U32), b.litInt(DType::U32, 0xffffe000));
    return b.select(b.eq(x, x), b.bitcast(cut, DType::F32), x);
  }

  /// e of a value significand * 2^e, -126 of a zero.
  UOpRef exponentOf(UOpRef x, int least) {
    UOpRef field = b.bin(Op::And, b.bin(Op::Shr, b.bitcast(x, DType::I32), whole(23)), whole(255));
    return b.select(b.eq(field, whole(0)), whole(-126), b.max(b.sub(field, whole(127)), whole(least)));
  }

  /// [step, block, kept labels] of an array of the operand's labels; `beyond`: what is behind the last k.
  UOpRef steps(const Operand &o, UOpRef x, uint32_t beyond) {
    SmallVector<UOpRef, 8> mine, one, all;
    for (int64_t l : o.labels)
      if (l < s.kept) mine.push_back(extents[l]);
    one = all = mine;
    for (auto [i, extent] : llvm::enumerate(reduced)) {
      one.push_back(llvm::is_contained(o.labels, s.kept + int64_t(i)) ? extent : b.idx(1));
      all.push_back(extent);
    }
    x = b.expand(b.reshape(x, one), all);
    UOpRef count = idxMul(b.c, blocks, b.idx(unit.block));
    SmallVector<UOpRef, 8> none(all.size(), b.idx(0)), behind = none;
    behind.back() = idxSub(b.c, count, all.back());
    x = b.pad(x, none, behind, beyond);
    all.back() = blocks;
    all.push_back(b.idx(unit.block));
    x = b.reshape(x, all);
    SmallVector<int64_t, 8> order;
    for (size_t i = 0; i <= reduced.size(); ++i) order.push_back(mine.size() + i);
    for (size_t i = 0; i < mine.size(); ++i) order.push_back(i);
    x = b.permute(x, order);
    SmallVector<UOpRef, 8> to{idxProduct(b.c, ArrayRef<UOpRef>(all).slice(mine.size(), reduced.size())),
                              b.idx(unit.block)};
    llvm::append_range(to, mine);
    return b.reshape(x, to);
  }

  /// Element k of a step of an operand, [block, kept labels of its own], beside all kept labels.
  UOpRef at(UOpRef x, int k, int which) {
    SmallVector<UOpRef, 8> begin(x->rank(), b.idx(0)), size(x->shape), one;
    begin[0] = b.idx(k), size[0] = b.idx(1);
    const auto &forms = which ? s.b : s.a;
    for (int64_t l = 0; l < s.kept; ++l) {
      bool own = hasLabel(forms, l) || llvm::any_of(s.domain, [&](const AffineForm &f) {
                   return operandOf(s, f) == which && hasLabel({f}, l);
                 });
      one.push_back(own ? extents[l] : b.idx(1));
    }
    return b.expand(b.reshape(b.shrink(x, begin, size), one), n->shape);
  }
  /// Values joined by an op in a tree.
  UOpRef joined(Op op, SmallVector<UOpRef, 32> xs) {
    for (; xs.size() > 1; xs.truncate((xs.size() + 1) / 2))
      for (size_t i = 0; i < (xs.size() + 1) / 2; ++i)
        xs[i] = 2 * i + 1 < xs.size() ? b.bin(op, xs[2 * i], xs[2 * i + 1]) : xs[2 * i];
    return xs[0];
  }
  /// 2^n, of n below -100 2^-100; at most 2^127.
  UOpRef power(UOpRef n) {
    return b.bitcast(b.bin(Op::Shl, b.add(b.max(n, whole(-100)), whole(127)), whole(23)), DType::F32);
  }
  /// 2^n in f64, of any n that exponents here give.
  UOpRef power64(UOpRef n) {
    UOpRef field = b.cast(b.add(n, whole(1023)), DType::I64);
    return b.bitcast(b.bin(Op::Shl, field, b.litInt(DType::I64, 52)), DType::F64);
  }

  UOpRef aligned(UOpRef c, ArrayRef<UOpRef> parts) {
    SmallVector<UOpRef, 32> products, exponents, terms, specials;
    for (int k = 0; k < unit.block; ++k) {
      products.push_back(b.mul(at(parts[0], k, 0), at(parts[2], k, 1)));
      exponents.push_back(b.add(at(parts[1], k, 0), at(parts[3], k, 1)));
    }
    UOpRef ofC = exponentOf(c, -126), significand = b.scale2(c, negated(ofC));
    UOpRef most = joined(Op::Max, exponents), joint = b.max(most, ofC);
    if (!unit.joint) most = joint;
    UOpRef from = b.sub(whole(unit.bits), most);
    for (auto [p, e] : llvm::zip(products, exponents)) {
      terms.push_back(b.cast(b.mul(p, power(b.add(e, from))), DType::I32)); // toward zero
      specials.push_back(unit.joint ? beyondF32(p, e) : p);
    }
    UOpRef sum = b.cast(joined(Op::Add, terms), DType::F64), wide = b.cast(significand, DType::F64);
    UOpRef addend = b.mul(wide, power64(b.add(b.sub(ofC, joint), whole(unit.bits))));
    UOpRef exact; // in f64
    if (!unit.joint) {
      sum = b.add(sum, b.un(Op::Trunc, addend));
      exact = b.mul(sum, power64(b.sub(joint, whole(unit.bits))));
    } else {
      sum = b.un(Op::Floor, b.mul(sum, power64(b.add(b.sub(most, joint), whole(unit.joint - unit.bits)))));
      sum = b.add(sum, b.mul(b.un(Op::Floor, addend), num64(double(1ull << (unit.joint - unit.bits)))));
      exact = b.mul(sum, power64(b.sub(joint, whole(unit.joint))));
    }
    UOpRef special = b.add(joined(Op::Add, specials), significand);
    return b.select(b.lt(magnitude(special), num(INFINITY)), toResult(exact), special);
  }

  /// The infinity or NaN that a product is as f32, else 0.
  UOpRef beyondF32(UOpRef product, UOpRef exponent) {
    UOpRef rest = b.min(b.sub(exponent, whole(126)), whole(127));
    UOpRef value = b.mul(b.mul(product, num(0x1p126f)), power(rest));
    return b.select(b.lt(magnitude(value), num(INFINITY)), num(0), value);
  }

  /// f64 to f32 of the row's bits of mantissa.
  UOpRef toResult(UOpRef exact) {
    UOpRef near = b.cast(exact, DType::F32);
    if (!unit.nearest) {
      UOpRef bits = b.bitcast(near, DType::U32);
      UOpRef over = b.lt(magnitude(exact), magnitude(b.cast(near, DType::F64)));
      over = b.bin(Op::And, over, b.lt(magnitude(exact), num64(0x1p128)));
      bits = b.select(over, b.sub(bits, b.litInt(DType::U32, 1)), bits);
      if (unit.result < 23) bits = b.bin(Op::And, bits, b.litInt(DType::U32, ~0u << (23 - unit.result)));
      near = b.bitcast(bits, DType::F32);
    }
    return b.select(b.eq(near, num(0)), num(0), near); // +0
  }

  UOpRef zeroWhere(UOpRef tiny, UOpRef x) { return b.select(tiny, b.bin(Op::CopySign, num(0), x), x); }
  UOpRef flushed(UOpRef x) { return zeroWhere(b.lt(magnitude(x), num(0x1p-126f)), x); }
  UOpRef flushedFma(UOpRef x, UOpRef y, UOpRef z) {
    UOpRef r = b.fma(x, y, z);
    if (!unit.tinyBefore) return flushed(r);
    UOpRef wide = b.fma(b.mul(x, num(0x1p32f)), b.mul(y, num(0x1p32f)), b.mul(z, num(0x1p64f)));
    return zeroWhere(b.lt(magnitude(wide), num(0x1p-62f)), r);
  }
  UOpRef flushedAdd(UOpRef x, UOpRef y) { return flushedFma(x, b.splat(num(1), x->shape), y); }

  UOpRef chained(UOpRef c, ArrayRef<UOpRef> parts) {
    auto x = [&](int k) { return at(parts[0], k, 0); };
    auto y = [&](int k) { return at(parts[1], k, 1); };
    if (!unit.chains) {
      for (int k = unit.block; k-- > 0;) c = flushedFma(x(k), y(k), c);
      return c;
    }
    SmallVector<UOpRef, 4> sums(unit.chains, b.splat(num(0), n->shape));
    for (int k = 0; k < unit.block; ++k) sums[k % unit.chains] = flushedFma(x(k), y(k), sums[k % unit.chains]);
    for (; sums.size() > 1; sums.truncate(sums.size() / 2))
      for (size_t i = 0; i < sums.size() / 2; ++i) sums[i] = flushedAdd(sums[2 * i], sums[2 * i + 1]);
    return flushedAdd(sums[0], c);
  }
};
} // namespace

bool numerics::usesMatrixUnit(UOpRef contract) { return llvm::cantFail(decodeContract(contract->ints)).unit; }

UOpRef numerics::lowerMatrixUnit(Builder &b, UOpRef contract) {
  return usesMatrixUnit(contract) ? UnitSum(b, contract).run() : contract;
}

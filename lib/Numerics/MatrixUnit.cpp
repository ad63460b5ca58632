//===- MatrixUnit.cpp: what a matrix unit adds, in primitives --------------===//
// Takes:    a contract of f32 that names a matrix unit (N4.8); a step of a unit.
// Gives:    the contract of words (Contract.h): each operand is rounded to the unit's type, and neighbours along what
//           is summed are one u32, zeros behind the end of a block. The step, the row of MatrixUnits.def, in
//           primitives: so a target computes it that has no such unit.
// Keeps:    exactness of what the row does not round: significands are f32 in [0, 4), aligned terms integers that i32
//           holds, their sums f64.
// Does not: choose instructions (Codegen).
#include "MatrixUnit.h"
#include "astra/IR/Contract.h"
#include "astra/IR/Index.h"
#include "astra/Numerics/MatrixUnit.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace astra;
using namespace astra::numerics;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {
/// A contract as one of words.
class UnitWords {
public:
  UnitWords(Builder &b, UOpRef n)
      : b(b), n(n), s(llvm::cantFail(decodeContract(n->ints))), unit(*s.unit), extents(n->indices()),
        bounds(n->indices().drop_front(s.kept + s.reduced)) {
    extents.truncate(s.kept + s.reduced);
    if (!s.reduced) ++s.reduced, extents.push_back(b.idx(1));
    steps = idxCeilDiv(b.c, extents.back(), b.idx(unit.block));
  }

  UOpRef run() {
    ContractSpec t;
    t.kept = s.kept, t.reduced = s.reduced + 1, t.unit = s.unit, t.inputs = s.inputs;
    UOpRef x[] = {words(0, t.a), words(1, t.b)};
    extents.back() = steps;
    extents.push_back(b.idx(unit.block / each()));
    return b.contract(t, x[0], x[1], extents);
  }

private:
  Builder &b;
  UOpRef n;
  ContractSpec s; // with a reduced label, whether or not n has one
  const MatrixUnit &unit;
  SmallVector<UOpRef, 8> extents; // of all labels
  ArrayRef<UOpRef> bounds;
  UOpRef steps;

  int64_t each() const { return matrixInputsInWord(s.inputs); }
  MatrixInput input(int which) const { return which ? s.inputs.b : s.inputs.a; }
  UOpRef num(float v) { return b.bits(DType::F32, llvm::bit_cast<uint32_t>(v)); }

  /// An operand as an array of the labels that it depends on, one an axis.
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
    bool bare = o.labels.size() == forms.size() && llvm::all_of(forms, [](auto &f) { return f.isLabel(); });
    if (bare)
      for (auto [label, f] : llvm::zip(o.labels, forms)) label = f.terms[0].first;
    else
      o.value = read(o, forms);
    for (auto [f, bound] : llvm::zip(domain, limits)) o.value = inside(o, *f, bound);
    return o;
  }

  /// The operand at every point of its labels: +0 outside of it, and where an index is no whole number.
  UOpRef read(const Operand &o, ArrayRef<AffineForm> forms) {
    SmallVector<UOpRef, 8> to;
    for (int64_t l : o.labels) to.push_back(extents[l]);
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
  UOpRef rounded(UOpRef x, MatrixInput t) {
    if (t != MatrixInput::TF32) return b.cast(b.cast(x, *dtypeNamed(info(t).text)), DType::F32);
    UOpRef cut = b.bin(Op::And, b.bitcast(x, DType::U32), b.litInt(DType::U32, 0xffffe000));
    return b.select(b.eq(x, x), b.bitcast(cut, DType::F32), x);
  }

  /// The operand's words; `forms` becomes what they are indexed by.
  UOpRef words(int which, SmallVector<AffineForm, 4> &forms) {
    Operand o = operand(which);
    int64_t label = s.kept + s.reduced - 1;
    UOpRef x = bitsOf(rounded(o.value, input(which)), input(which));
    if (!llvm::is_contained(o.labels, label)) { // the same at each point of the label
      o.labels.push_back(label);
      SmallVector<UOpRef, 8> shape(x->shape);
      shape.push_back(b.idx(1));
      x = b.reshape(x, shape);
      shape.back() = extents[label];
      x = b.expand(x, shape);
    }
    size_t axis = llvm::find(o.labels, label) - o.labels.begin();
    auto labelForm = [](int64_t l) {
      AffineForm f;
      f.terms = {{l, 1}};
      return f;
    };
    for (int64_t l : o.labels) {
      forms.push_back(labelForm(l));
      if (l == label) forms.push_back(labelForm(l + 1));
    }
    SmallVector<UOpRef, 8> none(x->rank(), b.idx(0)), behind = none;
    behind[axis] = idxSub(b.c, idxMul(b.c, steps, b.idx(unit.block)), extents[label]);
    x = b.pad(x, none, behind);
    SmallVector<UOpRef, 8> shape(x->shape), parts, one;
    shape[axis] = steps;
    shape.insert(shape.begin() + axis + 1, b.idx(unit.block / each()));
    if (each() == 1) return b.reshape(x, shape);
    parts = one = shape;
    parts.insert(parts.begin() + axis + 2, b.idx(each()));
    one.insert(one.begin() + axis + 2, b.idx(1));
    x = b.reshape(x, parts);
    SmallVector<UOpRef, 8> begin(parts.size(), b.idx(0));
    UOpRef word = nullptr;
    for (int64_t i = 0; i < each(); ++i) {
      begin[axis + 2] = b.idx(i);
      UOpRef part = b.reshape(b.shrink(x, begin, one), shape);
      if (i) part = b.bin(Op::Shl, part, b.bits(DType::U32, 32 / each() * i));
      word = word ? b.bin(Op::Or, word, part) : part;
    }
    return word;
  }

  /// The bits, as u32, of an f32 that the unit's type of input has.
  UOpRef bitsOf(UOpRef x, MatrixInput t) {
    auto shifted = [&](UOpRef y, Op op, int64_t n) { return b.bin(op, y, b.bits(DType::U32, n)); };
    auto narrow = [&](DType t) { return b.cast(b.bitcast(b.cast(x, t), DType::U16), DType::U32); };
    switch (t) {
    case MatrixInput::BF16: return narrow(DType::BF16);
    case MatrixInput::F16: return narrow(DType::F16);
    case MatrixInput::TF32: return b.bitcast(x, DType::U32);
    case MatrixInput::E5M2: return shifted(narrow(DType::F16), Op::Shr, 8); // the higher half of an f16
    case MatrixInput::E4M3: break;                                          // 2^-120 times that is a part of an f32
    }
    UOpRef part = shifted(b.bitcast(b.mul(b.un(Op::Abs, x), num(0x1p-120f)), DType::U32), Op::Shr, 20);
    UOpRef sign = b.bin(Op::And, shifted(b.bitcast(x, DType::U32), Op::Shr, 24), b.bits(DType::U32, 0x80));
    return b.select(b.eq(x, x), b.bin(Op::Or, part, sign), b.bits(DType::U32, 0x7f));
  }
};

/// One step, of scalars.
class UnitGraph {
public:
  UnitGraph(Builder &b, const UnitStep &step) : b(b), unit(*step.unit), inputs(step.inputs) {}

  UOpRef run(UOpRef addend, ArrayRef<UOpRef> words) {
    SmallVector<UOpRef, 64> values;
    size_t each = words.size() / 2;
    for (auto [i, w] : llvm::enumerate(words)) appendValues(w, i < each ? inputs.a : inputs.b, values);
    ArrayRef<UOpRef> all(values), x = all.take_front(unit.block), y = all.drop_front(unit.block);
    return unit.isAligned() ? aligned(addend, x, y) : chained(addend, x, y);
  }

private:
  Builder &b;
  const MatrixUnit &unit;
  MatrixInputs inputs;

  UOpRef num(float v) { return b.bits(DType::F32, llvm::bit_cast<uint32_t>(v)); }
  UOpRef num64(double v) { return b.bits(DType::F64, llvm::bit_cast<uint64_t>(v)); }
  UOpRef whole(int64_t v) { return b.litInt(DType::I32, v); }
  UOpRef negated(UOpRef x) { return b.un(Op::Neg, x); }
  UOpRef magnitude(UOpRef x) { return b.un(Op::Abs, x); }

  /// What is in a word, as f32.
  void appendValues(UOpRef w, MatrixInput t, SmallVector<UOpRef, 64> &values) {
    unsigned each = matrixInputsInWord(t), bits = 32 / each;
    for (unsigned i = 0; i < each; ++i) {
      UOpRef part = i ? b.bin(Op::Shr, w, b.bits(DType::U32, i * bits)) : w;
      values.push_back(valueOf(part, w, t, i + 1 == each));
    }
  }

  /// The f32 of the lowest bits of `part`; `w`: those of the word, whose highest ones they are where they are `last`.
  UOpRef valueOf(UOpRef part, UOpRef w, MatrixInput t, bool last) {
    auto masked = [&](UOpRef x, uint32_t bits) { return b.bin(Op::And, x, b.bits(DType::U32, bits)); };
    auto shifted = [&](UOpRef x, int64_t n) { return b.bin(Op::Shl, x, b.bits(DType::U32, n)); };
    auto half = [&](UOpRef x) { return b.cast(b.bitcast(b.cast(x, DType::U16), DType::F16), DType::F32); };
    switch (t) {
    case MatrixInput::TF32: return b.bitcast(w, DType::F32);
    case MatrixInput::BF16: // the higher half of an f32
      return b.bitcast(last ? masked(w, 0xffff0000) : shifted(part, 16), DType::F32);
    case MatrixInput::F16: return half(part);
    case MatrixInput::E5M2: return half(shifted(part, 8));
    case MatrixInput::E4M3: break;
    }
    UOpRef magnitude = masked(part, 0x7f), sign = shifted(masked(part, 0x80), 24);
    UOpRef v = b.mul(b.bitcast(shifted(magnitude, 20), DType::F32), num(0x1p120f));
    v = b.bitcast(b.bin(Op::Or, b.bitcast(v, DType::U32), sign), DType::F32);
    return b.select(b.eq(magnitude, b.bits(DType::U32, 0x7f)), num(NAN), v);
  }

  /// e of a value significand * 2^e, -126 of a zero.
  UOpRef exponentOf(UOpRef x, int least) {
    UOpRef field = b.bin(Op::And, b.bin(Op::Shr, b.bitcast(x, DType::I32), whole(23)), whole(255));
    return b.select(b.eq(field, whole(0)), whole(-126), b.max(b.sub(field, whole(127)), whole(least)));
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

  /// A value's exponent, and its significand.
  std::pair<UOpRef, UOpRef> partsOf(UOpRef v, MatrixInput t) {
    UOpRef e = exponentOf(v, info(t).minExponent);
    return {e, b.scale2(v, negated(e))};
  }

  UOpRef aligned(UOpRef c, ArrayRef<UOpRef> x, ArrayRef<UOpRef> y) {
    SmallVector<UOpRef, 32> products, exponents, terms, specials;
    for (int k = 0; k < unit.block; ++k) {
      auto [ex, sx] = partsOf(x[k], inputs.a);
      auto [ey, sy] = partsOf(y[k], inputs.b);
      products.push_back(b.mul(sx, sy));
      exponents.push_back(b.add(ex, ey));
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
    UOpRef isZero = unit.nearest ? b.eq(exact, num64(0)) : b.eq(near, num(0));
    return b.select(isZero, num(0), near); // +0
  }

  UOpRef zeroWhere(UOpRef tiny, UOpRef x) { return b.select(tiny, b.bin(Op::CopySign, num(0), x), x); }
  UOpRef flushed(UOpRef x, float least = 0x1p-126f) { return zeroWhere(b.lt(magnitude(x), num(least)), x); }
  UOpRef flushedFma(UOpRef x, UOpRef y, UOpRef z) {
    UOpRef r = b.fma(x, y, z);
    if (!unit.likeX86) return flushed(r);
    UOpRef wide = b.fma(b.mul(x, num(0x1p32f)), b.mul(y, num(0x1p32f)), b.mul(z, num(0x1p64f)));
    return zeroWhere(b.lt(magnitude(wide), num(0x1p-62f)), r);
  }
  UOpRef flushedAdd(UOpRef x, UOpRef y) { return flushedFma(x, num(1), y); }

  UOpRef chained(UOpRef c, ArrayRef<UOpRef> as, ArrayRef<UOpRef> bs) {
    const float least = std::ldexp(1.0f, info(inputs.a).minExponent); // of b likewise
    const int size = unit.block / unit.groups;
    if (!unit.likeX86) c = b.select(b.lt(magnitude(c), num(0x1p-126f)), num(0), c);
    for (; !as.empty(); as = as.drop_front(size), bs = bs.drop_front(size)) {
      auto x = [&](int k) { return flushed(as[k], least); };
      auto y = [&](int k) { return flushed(bs[k], least); };
      if (!unit.chains) {
        for (int k = size; k-- > 0;) c = flushedFma(x(k), y(k), c);
        continue;
      }
      SmallVector<UOpRef, 4> sums(unit.chains, num(0));
      for (int k = 0; k < size; ++k) sums[k % unit.chains] = flushedFma(x(k), y(k), sums[k % unit.chains]);
      for (; sums.size() > 1; sums.truncate(sums.size() / 2))
        for (size_t i = 0; i < sums.size() / 2; ++i) sums[i] = flushedAdd(sums[2 * i], sums[2 * i + 1]);
      c = flushedAdd(sums[0], c);
    }
    return c;
  }
};
} // namespace

bool numerics::isToBecomeWords(UOpRef contract) {
  ContractSpec s = llvm::cantFail(decodeContract(contract->ints));
  return s.unit && !isOfWords(s, contract->src[0]);
}

UOpRef numerics::lowerMatrixUnit(Builder &b, UOpRef contract) {
  return isToBecomeWords(contract) ? UnitWords(b, contract).run() : contract;
}

UOpRef astra::unitStepGraph(Builder &b, const UnitStep &step, UOpRef addend, ArrayRef<UOpRef> words) {
  return UnitGraph(b, step).run(addend, words);
}

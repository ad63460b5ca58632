//===- SubByte.cpp: sub-byte values become values of a byte or more --------===//
// Takes:    entries and function bodies, callees first.
// Gives:    each node once, over sources of the types that stand for sub-byte ones: i8 for i2 and i4, u8 for u2 and u4,
//           f32 for f4e2m1. Each holds every value, so what moves values stays as it is.
// Keeps:    time linear in the number of nodes; no recursion over the graph.
#include "SubByte.h"
#include "Complex.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::numerics;
using llvm::ArrayRef;
using llvm::SmallVector;

static bool isBorder(UOpRef n) { return n->is(Op::Arg) || n->is(Op::Param) || n->is(Op::State); }

bool numerics::isWidened(UOpRef n) {
  if (!isSubByte(n->dtype) && llvm::none_of(n->src, [](UOpRef s) { return isSubByte(s->dtype); })) return true;
  if (isBorder(n) || n->is(Op::Tap)) return true;
  return n->is(Op::Cast) && (isSubByte(n->dtype) ? !isSubByte(n->src[0]->dtype) : isBorder(n->src[0]));
}

/// The type that stands for t.
static DType wide(DType t) {
  switch (t) {
  case DType::I2:
  case DType::I4: return DType::I8;
  case DType::U2:
  case DType::U4: return DType::U8;
  case DType::F4E2M1: return DType::F32;
  default: return t;
  }
}

static uint64_t wideBits(DType t, uint64_t bits) {
  return isSubByte(t) ? llvm::cantFail(foldElementwise(Op::Cast, {0}, wide(t), {{t, bits}})) : bits;
}

/// The nearest number of f4e2m1, a tie to the even code, of a float or a small integer; what is too large the
/// greatest, a NaN 0.
static UOpRef toF4E2M1(Builder &b, UOpRef x) {
  UOpRef sign = b.cast(x, DType::F32); // of NaNs that of the canonical one, which copysign sees to
  if (x->dtype != DType::F64) x = sign;
  static constexpr struct {
    double from;
    bool included;
    double gives;
  } steps[] = {{0.25, false, 0.5}, {0.75, true, 1}, {1.25, false, 1.5}, {1.75, true, 2},
               {2.5, false, 3},    {3.5, true, 4},  {5, false, 6}};
  UOpRef magnitude = b.un(Op::Abs, x), result = b.splat(b.lit(DType::F32, 0), x->shape);
  for (auto &s : steps)
    result = b.select(b.bin(s.included ? Op::Le : Op::Lt, b.lit(x->dtype, s.from), magnitude),
                      b.lit(DType::F32, s.gives), result);
  return b.bin(Op::CopySign, result, sign);
}

namespace {
class Widening {
public:
  explicit Widening(Module &m) : m(m), b(m.ctx()) {}

  void run(ArrayRef<UOpRef> functions) {
    inFunction = true;
    for (UOpRef f : functions) add(f);
    inFunction = false;
    add(m.roots());
    for (Entry &e : m.entries) {
      for (Value &v : e.outputs) v.value = border(v.value);
      for (StateUpdate &u : e.updates) u.value = border(u.value);
    }
  }

private:
  Module &m;
  Builder b;
  bool inFunction = false;
  llvm::DenseMap<UOpRef, UOpRef> done, inside; // of entries; of function bodies, whose arguments are not the border

  llvm::DenseMap<UOpRef, UOpRef> &map() { return inFunction ? inside : done; }

  void add(ArrayRef<UOpRef> roots) {
    for (UOpRef n : topoSort(roots)) {
      auto [at, fresh] = map().try_emplace(n);
      if (!fresh) continue;
      UOpRef now = widen(n);
      m.origins.inherit(now, n);
      map()[n] = now;
    }
  }
  UOpRef of(UOpRef n) { return map().lookup(n); }

  UOpRef widen(UOpRef n) {
    SmallVector<UOpRef, 8> src, fns;
    for (UOpRef s : n->src) src.push_back(of(s));
    for (UOpRef f : n->fns) fns.push_back(inside.lookup(f));
    DType t = wide(n->dtype);
    if (n->is(Op::Cast)) return cast(n, src[0]);
    if (n->isConst()) return isSubByte(n->dtype) ? b.bits(t, wideBits(n->dtype, uint64_t(n->ints[0]))) : n;
    if (isSubByte(n->dtype) && isBorder(n)) {
      if (n->is(Op::Arg) && inFunction) return b.c.make(n->op, src, n->ints, n->str, t);
      return b.cast(b.c.withSources(n, src), t);
    }
    SmallVector<int64_t, 8> ints(n->ints);
    if (n->is(Op::Pad)) ints[0] = int64_t(wideBits(n->dtype, uint64_t(ints[0])));
    return b.c.make(n->op, src, ints, n->str, t, fns);
  }

  UOpRef cast(UOpRef n, UOpRef x) {
    DType from = n->src[0]->dtype, to = n->dtype, t = wide(to);
    if (!isSubByte(to)) return b.cast(x, to, n->ints[0]);
    if (to == from) return x;
    if (to == DType::F4E2M1) return toF4E2M1(b, x);
    unsigned bits = bitWidth(to);
    bool hasSign = t == DType::I8;
    if (info(from).exponentBits) { // saturates: to the wide type first, whose range holds this one
      UOpRef least = b.litInt(t, hasSign ? -(1 << (bits - 1)) : 0), most = b.litInt(t, (1 << (bits - hasSign)) - 1);
      return b.min(b.max(b.cast(x, t), least), most);
    }
    UOpRef v = b.cast(x, t); // wraps
    if (!hasSign) return b.bin(Op::And, v, b.litInt(t, (1 << bits) - 1));
    UOpRef shift = b.litInt(t, 8 - bits);
    return b.bin(Op::Shr, b.bin(Op::Shl, v, shift), shift);
  }

  /// An output or a new state: of its own type again.
  UOpRef border(UOpRef n) {
    UOpRef now = of(n);
    if (!isSubByte(n->dtype)) return now;
    if (n->is(Op::Tap)) return b.c.make(Op::Tap, {b.cast(of(n->src[0]), n->dtype)}, {}, n->str);
    return b.cast(now, n->dtype);
  }
};
} // namespace

void numerics::widenSubByte(Module &m) {
  std::vector<UOpRef> roots = m.roots(), functions = functionsOf(roots);
  auto subByte = [](ArrayRef<UOpRef> from) {
    return llvm::any_of(topoSort(from), [](UOpRef n) { return isSubByte(n->dtype); });
  };
  if (subByte(roots) || llvm::any_of(functions, [&](UOpRef f) { return subByte(f); })) Widening(m).run(functions);
}

//===- Random.cpp: random numbers by the contract's generator ------------===//
// Takes:    shapes, probabilities and weights that may be wrong in every way.
// Gives:    what Random.h says.
#include "astra/Numerics/Random.h"
#include "astra/Compose/Random.h"
#include "astra/IR/Index.h"
#include <numbers>

namespace astra::compose {

Generator generatorOf(Composer &b, uint32_t seed, uint32_t stream) {
  return {b.b.bits(DType::U32, seed), b.b.bits(DType::U32, stream)};
}

Generator nextGenerator(Composer &b) { return generatorOf(b, 0, b.nextRandomStream()); }

DType drawnType(DType t) { return t == DType::F64 ? t : DType::F32; }

/// Whether numbers of this shape can be drawn: some distributions take two words of two elements for each.
static bool requireDrawable(Composer &b, llvm::ArrayRef<UOpRef> shape) {
  __int128 most = 1;
  if (shape.size() > 64) b.fail("the shape has " + llvm::Twine(shape.size()) + " axes, at most 64 are supported");
  for (UOpRef d : shape)
    if (most *= std::max<int64_t>(d->hi, 1); d->lo < 0 || most > int64_t(1) << 40)
      return b.fail("the shape " + dimsText(shape) + " is negative or has more than 2^40 elements"), false;
  return !b.failed();
}

/// x * scale + shift, in x's type, then rounded to `type`; numbers are of x's type.
static UOpRef scaled(Composer &b, UOpRef x, UOpRef scale, UOpRef shift, DType type) {
  return b.cast(b.bin(Op::Add, b.bin(Op::Mul, x, scale), shift), type);
}

UOpRef uniform(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type, double low, double high) {
  if (b.failed() || !requireDrawable(b, shape)) return nullptr;
  UOpRef u = randomUniform(b.b, g.seed, g.stream, drawnType(type), shape);
  return scaled(b, u, b.literal(u, high - low), b.literal(u, low), type);
}

UOpRef normal(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type, double mean, double scale) {
  if (b.failed() || !requireDrawable(b, shape)) return nullptr;
  UOpRef z = randomNormal(b.b, g.seed, g.stream, drawnType(type), shape);
  return scaled(b, z, b.literal(z, scale), b.literal(z, mean), type);
}

UOpRef uniformBetween(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type, UOpRef low,
                      UOpRef high) {
  if (b.failed() || !requireDrawable(b, shape)) return nullptr;
  low = b.cast(low, drawnType(type)), high = b.cast(high, drawnType(type));
  UOpRef u = randomUniform(b.b, g.seed, g.stream, drawnType(type), shape);
  return scaled(b, u, b.bin(Op::Sub, high, low), low, type);
}

UOpRef normalAround(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type, UOpRef mean,
                    UOpRef deviation) {
  if (b.failed() || !requireDrawable(b, shape)) return nullptr;
  UOpRef z = randomNormal(b.b, g.seed, g.stream, drawnType(type), shape);
  return scaled(b, z, b.cast(deviation, drawnType(type)), b.cast(mean, drawnType(type)), type);
}

/// f of uniform numbers, rounded once.
template <class F>
static UOpRef distributed(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type, F f) {
  UOpRef u = uniform(b, g, shape, drawnType(type));
  return u ? b.cast(f(u), type) : nullptr;
}

/// Where that rounds to 1, the number below.
static UOpRef middleOf(Composer &b, UOpRef u) {
  bool wide = u->dtype == DType::F64;
  return b.bin(Op::Min, b.bin(Op::Add, u, wide ? 0x1p-54 : 0x1p-25), b.literal(u, wide ? 1 - 0x1p-53 : 1 - 0x1p-24));
}

static UOpRef negativeLog(Composer &b, UOpRef x) { return b.un(Op::Neg, b.un(Op::Log, x)); }
static UOpRef oneMinus(Composer &b, UOpRef x) { return b.bin(Op::Sub, b.literal(x, 1), x); }

UOpRef exponential(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type) {
  return distributed(b, g, shape, type, [&](UOpRef u) { return negativeLog(b, oneMinus(b, u)); });
}

UOpRef cauchy(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type) {
  return distributed(b, g, shape, type,
                     [&](UOpRef u) { return b.un(Op::Tan, b.bin(Op::Mul, b.bin(Op::Sub, u, 0.5), std::numbers::pi)); });
}

UOpRef gumbel(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type) {
  return distributed(b, g, shape, type, [&](UOpRef u) { return negativeLog(b, negativeLog(b, middleOf(b, u))); });
}

UOpRef logistic(Composer &b, const Generator &g, llvm::ArrayRef<UOpRef> shape, DType type) {
  return distributed(b, g, shape, type, [&](UOpRef u) {
    UOpRef v = middleOf(b, u);
    return b.un(Op::Log, b.bin(Op::Div, v, oneMinus(b, v)));
  });
}

UOpRef bernoulli(Composer &b, const Generator &g, UOpRef given, DType type) {
  UOpRef p = b.widen(given);
  if (b.failed() || !b.requireFloat(p) || !requireDrawable(b, p->shape)) return nullptr;
  UOpRef u = randomUniform(b.b, g.seed, g.stream, p->dtype, p->shape);
  return b.cast(b.bin(Op::Lt, u, p), type);
}

UOpRef multinomial(Composer &b, const Generator &g, UOpRef given, int64_t samples, DType type) {
  UOpRef x = b.widen(given);
  if (samples < 0 || samples > int64_t(1) << 40)
    b.fail(b.hints.option("sample_size") + " is " + llvm::Twine(samples) + ", expected 0..2^40");
  if (b.failed() || !b.requireFloat(x) || !b.requireRank(x, 2, 2)) return nullptr;
  UOpRef batch = x->shape[0], classes = x->shape[1], one = b.idx(1), zero = b.idx(0);
  if (classes->lo < 1) b.fail("input 0 has " + dimsText(classes) + " classes, expected one or more");
  Dims drawnShape = {batch, b.idx(samples)};
  if (b.failed() || !requireDrawable(b, drawnShape)) return nullptr;
  UOpRef weight = b.un(Op::Exp, b.bin(Op::Sub, x, b.reduce(ReduceKind::Max, x, {1})));
  UOpRef sums = b.make(Op::Cumulate, {weight}, {int64_t(CumulateKind::Sum), 1});
  UOpRef before = idxSub(b.c, classes, one);
  UOpRef whole = b.shrink(sums, {zero, before}, {batch, one});
  UOpRef part = b.bin(Op::Mul, randomUniform(b.b, g.seed, g.stream, x->dtype, drawnShape), whole);
  UOpRef edges = b.unsqueeze(b.shrink(sums, {zero, zero}, {batch, before}), {1});
  UOpRef reached = b.cast(b.bin(Op::Le, edges, b.unsqueeze(part, {2})), DType::I64);
  return b.cast(b.squeeze(b.reduce(ReduceKind::Sum, reached, {2}), {2}), type);
}

Dropped dropout(Composer &b, const Generator &g, UOpRef x, UOpRef ratio) {
  if (!x || b.failed() || !requireDrawable(b, x->shape)) return {};
  UOpRef wide = b.cast(x, drawnType(x->dtype));
  if (!wide || !ratio || b.failed()) return {nullptr, nullptr};
  UOpRef scale = b.bin(Op::Div, b.literal(wide, 1), b.bin(Op::Sub, b.literal(wide, 1), ratio));
  UOpRef u = randomUniform(b.b, g.seed, g.stream, wide->dtype, x->shape);
  UOpRef keep = b.bin(Op::Le, ratio, u);
  return {b.cast(b.select(keep, b.bin(Op::Mul, wide, scale), b.literal(wide, 0)), x->dtype), keep};
}

} // namespace astra::compose

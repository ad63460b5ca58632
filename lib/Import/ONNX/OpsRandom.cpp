//===- OpsRandom.cpp: random numbers by the contract's generator -----------===//
// Takes:    nodes that draw from a distribution.
// Gives:    graphs over the `random` op (numeric contract, N13): the same numbers in every run.
// Keeps:    the seed: an attribute that is a whole number of 32 bits is the generator's seed, any other its f32 bits,
//           with stream 0; without the attribute the seed is 0 and the stream 1 and up, by the node's place among the
//           random nodes without a seed. Narrow types are drawn in f32 and rounded once.
// Does not: draw afresh in each run or loop iteration: a node's numbers are its own.
#include "OpTable.h"
#include "astra/IR/Index.h"
#include "astra/Numerics/Random.h"
#include "onnx.pb.h"
#include "llvm/ADT/bit.h"
#include <cmath>

namespace astra::onnx {

namespace {

struct Generator {
  UOpRef seed, stream; // u32 scalars
};

Generator fromSeed(Node &n, uint32_t seed, uint32_t stream) {
  return {n.b.bits(DType::U32, seed), n.b.bits(DType::U32, stream)};
}

Generator generator(Node &n) {
  if (!n.hasAttr("seed")) return fromSeed(n, 0, n.nextRandomStream());
  double seed = n.floatAttr("seed", 0);
  bool whole = seed >= 0 && seed < 0x1p32 && std::trunc(seed) == seed;
  return fromSeed(n, whole ? uint32_t(seed) : llvm::bit_cast<uint32_t>(float(seed)), 0);
}

/// The type that numbers of type t are drawn in.
DType drawn(DType t) { return t == DType::F64 ? t : DType::F32; }

/// Whether numbers of this shape can be drawn: some distributions take two words of two elements for each.
bool requireDrawable(Node &n, llvm::ArrayRef<UOpRef> shape) {
  __int128 most = 1;
  if (shape.size() > 64) n.fail("the shape has " + llvm::Twine(shape.size()) + " axes, at most 64 are supported");
  for (UOpRef d : shape)
    if (most *= std::max<int64_t>(d->hi, 1); d->lo < 0 || most > int64_t(1) << 40)
      return n.fail("the shape " + dimsText(shape) + " is negative or has more than 2^40 elements"), false;
  return !n.failed();
}

/// The attribute `shape`, or the shape of input 0.
Dims shapeOf(Node &n, bool like) {
  if (UOpRef x = like ? n.in(0) : nullptr) return Dims(x->shape.begin(), x->shape.end());
  if (!like && !n.hasAttr("shape")) n.fail("attribute 'shape' is missing");
  Dims dims;
  constexpr int64_t far = int64_t(1) << 41;
  if (!like)
    for (int64_t d : n.intsAttr("shape")) dims.push_back(n.c.index(std::clamp<int64_t>(d, -1, far)));
  return dims;
}

/// The attribute `dtype`, else that of input 0 or f32.
DType floatType(Node &n, bool like) {
  DType t = dtypeAttr(n, "dtype");
  if (t == DType::Void) t = like && n.in(0) ? n.in(0)->dtype : DType::F32;
  if (!n.failed() && !isFloat(t)) n.fail(llvm::Twine("numbers of type ") + info(t).text + ", expected a float type");
  return t;
}

template <bool like> void randomUniform(Node &n) {
  double low = n.floatAttr("low", 0), high = n.floatAttr("high", 1);
  DType t = floatType(n, like);
  Dims shape = shapeOf(n, like);
  Generator g = generator(n);
  if (n.failed() || !requireDrawable(n, shape)) return;
  UOpRef u = astra::randomUniform(n.b, g.seed, g.stream, drawn(t), shape);
  n.give(n.cast(n.bin(Op::Add, n.bin(Op::Mul, u, high - low), low), t));
}

template <bool like> void randomNormal(Node &n) {
  double mean = n.floatAttr("mean", 0), scale = n.floatAttr("scale", 1);
  DType t = floatType(n, like);
  Dims shape = shapeOf(n, like);
  Generator g = generator(n);
  if (n.failed() || !requireDrawable(n, shape)) return;
  UOpRef z = astra::randomNormal(n.b, g.seed, g.stream, drawn(t), shape);
  n.give(n.cast(n.bin(Op::Add, n.bin(Op::Mul, z, scale), mean), t));
}

/// 1 where a uniform number is below the probability.
void bernoulli(Node &n) {
  DType t = dtypeAttr(n, "dtype");
  UOpRef p = n.widen(n.in(0));
  Generator g = generator(n);
  if (n.failed() || !n.requireFloat(p) || !requireDrawable(n, p->shape)) return;
  UOpRef u = astra::randomUniform(n.b, g.seed, g.stream, p->dtype, p->shape);
  n.give(n.cast(n.bin(Op::Lt, u, p), t == DType::Void ? n.in(0)->dtype : t));
}

/// The number of running sums of the weights that a uniform part of the whole sum has reached; the last class takes
/// what is left.
void multinomial(Node &n) {
  int64_t samples = n.intAttr("sample_size", 1);
  DType t = dtypeAttr(n, "dtype");
  UOpRef x = n.widen(n.in(0));
  Generator g = generator(n);
  if (samples < 0 || samples > int64_t(1) << 40)
    n.fail("attribute 'sample_size' is " + llvm::Twine(samples) + ", expected 0..2^40");
  if (n.failed() || !n.requireFloat(x) || !n.requireRank(x, 2, 2)) return;
  UOpRef batch = x->shape[0], classes = x->shape[1], one = n.c.index(1), zero = n.c.index(0);
  if (classes->lo < 1) n.fail("input 0 has " + dimsText(classes) + " classes, expected one or more");
  Dims drawnShape = {batch, n.c.index(samples)};
  if (n.failed() || !requireDrawable(n, drawnShape)) return;
  UOpRef weight = n.un(Op::Exp, n.bin(Op::Sub, x, n.reduce(ReduceKind::Max, x, {1})));
  UOpRef sums = n.make(Op::Cumulate, {weight}, {int64_t(CumulateKind::Sum), 1});
  UOpRef before = idxSub(n.c, classes, one);
  UOpRef whole = n.shrink(sums, {zero, before}, {batch, one});
  UOpRef part = n.bin(Op::Mul, astra::randomUniform(n.b, g.seed, g.stream, x->dtype, drawnShape), whole);
  UOpRef edges = n.unsqueeze(n.shrink(sums, {zero, zero}, {batch, before}), {1});
  UOpRef reached = n.cast(n.bin(Op::Le, edges, n.unsqueeze(part, {2})), DType::I64);
  n.give(n.cast(n.squeeze(n.reduce(ReduceKind::Sum, reached, {2}), {2}), t == DType::Void ? DType::I32 : t));
}

// ---- dropout

UOpRef maskOf(Node &n, UOpRef keep) { return n.opset < 10 ? n.cast(keep, n.in(0)->dtype) : keep; }

void giveAll(Node &n, UOpRef x) {
  if (n.wants(1) && x) n.give(1, maskOf(n, n.broadcastTo(n.b.lit(DType::Bool, 1), x->shape)));
  n.give(x);
}

struct Dropped {
  UOpRef value, keep; // the mask, bool
};

/// x / (1 - ratio) where a uniform number is not below the ratio, else 0. The ratio is a scalar of the type that x is
/// drawn in.
Dropped drop(Node &n, UOpRef x, UOpRef ratio, const Generator &g) {
  UOpRef wide = n.cast(x, drawn(x->dtype));
  if (!wide || !ratio || n.failed()) return {nullptr, nullptr};
  UOpRef scale = n.bin(Op::Div, n.literal(wide, 1), n.bin(Op::Sub, n.literal(wide, 1), ratio));
  UOpRef u = astra::randomUniform(n.b, g.seed, g.stream, wide->dtype, x->shape);
  UOpRef keep = n.bin(Op::Le, ratio, u);
  return {n.cast(n.select(keep, n.bin(Op::Mul, wide, scale), n.literal(wide, 0)), x->dtype), keep};
}

/// In training each call has numbers of its own: of the state of random numbers.
Generator ofCall(Node &n) {
  Shared::Training &t = *n.training();
  if (!t.key) t.key = n.b.state("random.key", DType::U32, {});
  return {t.key, n.b.bits(DType::U32, n.nextRandomStream())};
}

/// From opset 7 to 11 nothing is dropped outside of training.
void dropoutOfInference(Node &n) {
  double ratio = n.floatAttr("ratio", 0.5);
  UOpRef x = n.in(0);
  if (!n.training()) return giveAll(n, x);
  if (!(ratio >= 0 && ratio < 1)) n.fail("attribute 'ratio' is " + std::to_string(ratio) + ", expected 0 up to 1");
  if (n.failed() || !n.requireFloat(x) || !requireDrawable(n, x->shape)) return;
  Dropped d = drop(n, x, n.b.lit(drawn(x->dtype), ratio), ofCall(n));
  if (n.wants(1)) n.give(1, maskOf(n, d.keep));
  n.give(d.value);
}

/// Before opset 7 an attribute tells training from inference.
void dropoutByAttribute(Node &n) {
  if (n.opset < 6) n.ignoreAttr("consumed_inputs");
  double ratio = n.floatAttr("ratio", 0.5);
  UOpRef x = n.in(0);
  if (!(ratio >= 0 && ratio < 1)) n.fail("attribute 'ratio' is " + std::to_string(ratio) + ", expected 0 up to 1");
  if (n.intAttr("is_test", 0) && !n.training()) return giveAll(n, x);
  if (n.failed() || !requireDrawable(n, x->shape)) return;
  Dropped d =
      drop(n, x, n.b.lit(drawn(x->dtype), ratio), n.training() ? ofCall(n) : fromSeed(n, 0, n.nextRandomStream()));
  if (n.wants(1)) n.give(1, maskOf(n, d.keep));
  n.give(d.value);
}

/// In training mode, which may be known at run time only, some elements are dropped.
void dropout(Node &n) {
  UOpRef x = n.in(0), training = n.training() ? n.b.lit(DType::Bool, 1) : n.has(2) ? n.in(2) : n.b.lit(DType::Bool, 0);
  uint64_t seed = uint64_t(n.intAttr("seed", 0));
  const std::vector<UOpRef> *known = n.elements(training);
  if (known && known->size() == 1 && (*known)[0]->constIndex() == 0) return giveAll(n, x);
  if (n.failed() || !requireDrawable(n, x->shape)) return;
  Generator g = n.training()        ? ofCall(n)
                : n.hasAttr("seed") ? fromSeed(n, uint32_t(seed), 0)
                                    : fromSeed(n, 0, n.nextRandomStream());
  DType t = drawn(x->dtype);
  UOpRef yes = n.reshape(training, {}), ratio = n.has(1) ? n.reshape(n.cast(n.in(1), t), {}) : n.b.lit(t, 0.5);
  Dropped d = drop(n, x, ratio, g);
  if (n.failed()) return;
  if (n.wants(1)) n.give(1, n.bin(Op::Or, n.un(Op::Not, yes), d.keep));
  n.give(n.select(yes, d.value, x));
}

constexpr const char *drawnAnew =
    "the same numbers in every run and every trip of a loop: by the generator of the numeric contract (N13), from the "
    "seed, or from the node's place among the random nodes without one (a body with a random node that is lowered "
    "twice counts twice)";

constexpr Row rows[] = {
    {"RandomUniform", 1, latest, 0, 0, randomUniform<false>, anyType, drawnAnew},
    {"RandomUniformLike", 1, latest, 1, 1, randomUniform<true>, anyType, drawnAnew},
    {"RandomNormal", 1, latest, 0, 0, randomNormal<false>, anyType, drawnAnew},
    {"RandomNormalLike", 1, latest, 1, 1, randomNormal<true>, anyType, drawnAnew},
    {"Bernoulli", 15, latest, 1, 1, bernoulli, floatTypes, drawnAnew},
    {"Multinomial", 7, latest, 1, 1, multinomial, floatTypes, drawnAnew},
    {"Dropout", 1, 6, 1, 1, dropoutByAttribute, floatTypes, drawnAnew},
    {"Dropout", 7, 11, 1, 1, dropoutOfInference},
    {"Dropout", 12, latest, 1, 3, dropout, anyType, drawnAnew, input(1)},
};

} // namespace

llvm::ArrayRef<Row> randomRows() { return rows; }

} // namespace astra::onnx

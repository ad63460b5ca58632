//===- OpsRandom.cpp: random numbers by the contract's generator ---------===//
// Takes:    nodes that draw from a distribution.
// Gives:    the composites of Random.h.
// Keeps:    the seed: an attribute that is a whole number of 32 bits is the generator's seed, any other its f32 bits,
//           with stream 0; without the attribute the seed is 0 and the stream 1 and up, by the node's place among the
//           random nodes without a seed.
// Does not: draw afresh in each run or loop iteration: a node's numbers are its own.
#include "OpTable.h"
#include "astra/Compose/Random.h"
#include "onnx.pb.h"
#include "llvm/ADT/bit.h"
#include <cmath>

namespace astra::onnx {

namespace {

using compose::drawnType;
using compose::Generator;

Generator generator(Node &n) {
  if (!n.hasAttr("seed")) return nextGenerator(n);
  double seed = n.floatAttr("seed", 0);
  bool whole = seed >= 0 && seed < 0x1p32 && std::trunc(seed) == seed;
  return generatorOf(n, whole ? uint32_t(seed) : llvm::bit_cast<uint32_t>(float(seed)), 0);
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
  n.give(uniform(n, generator(n), shape, t, low, high));
}

template <bool like> void randomNormal(Node &n) {
  double mean = n.floatAttr("mean", 0), scale = n.floatAttr("scale", 1);
  DType t = floatType(n, like);
  Dims shape = shapeOf(n, like);
  n.give(normal(n, generator(n), shape, t, mean, scale));
}

void bernoulli(Node &n) {
  DType t = dtypeAttr(n, "dtype");
  if (UOpRef p = n.in(0)) n.give(bernoulli(n, generator(n), p, t == DType::Void ? p->dtype : t));
}

void multinomial(Node &n) {
  int64_t samples = n.intAttr("sample_size", 1);
  DType t = dtypeAttr(n, "dtype");
  n.give(multinomial(n, generator(n), n.in(0), samples, t == DType::Void ? DType::I32 : t));
}

// ---- dropout

UOpRef maskOf(Node &n, UOpRef keep) { return n.opset < 10 ? n.cast(keep, n.in(0)->dtype) : keep; }

void giveAll(Node &n, UOpRef x) {
  if (n.wants(1) && x) n.give(1, maskOf(n, n.broadcastTo(n.b.lit(DType::Bool, 1), x->shape)));
  n.give(x);
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
  if (n.failed() || !n.requireFloat(x)) return;
  compose::Dropped d = compose::dropout(n, ofCall(n), x, n.b.lit(drawnType(x->dtype), ratio));
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
  if (n.failed()) return;
  compose::Dropped d =
      compose::dropout(n, n.training() ? ofCall(n) : nextGenerator(n), x, n.b.lit(drawnType(x->dtype), ratio));
  if (n.wants(1)) n.give(1, maskOf(n, d.keep));
  n.give(d.value);
}

/// In training mode, which may be known at run time only, some elements are dropped.
void dropout(Node &n) {
  UOpRef x = n.in(0), training = n.training() ? n.b.lit(DType::Bool, 1) : n.has(2) ? n.in(2) : n.b.lit(DType::Bool, 0);
  uint64_t seed = uint64_t(n.intAttr("seed", 0));
  const std::vector<UOpRef> *known = n.elements(training);
  if (known && known->size() == 1 && (*known)[0]->constIndex() == 0) return giveAll(n, x);
  if (n.failed()) return;
  Generator g = n.training() ? ofCall(n) : n.hasAttr("seed") ? generatorOf(n, uint32_t(seed)) : nextGenerator(n);
  DType t = drawnType(x->dtype);
  UOpRef yes = n.reshape(training, {}), ratio = n.has(1) ? n.reshape(n.cast(n.in(1), t), {}) : n.b.lit(t, 0.5);
  compose::Dropped d = compose::dropout(n, g, x, ratio);
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

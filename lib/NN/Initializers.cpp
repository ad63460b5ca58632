//===- Initializers.cpp: what weights begin as -----------------------------===//
// Takes:    a weight's type and shape.
// Gives:    a scaled distribution, or a number repeated.
// Keeps:    one row an initializer: how it spreads, its parameters, the width of its distribution.
#include "Elements.h"
#include "astra/IR/Text.h"
#include "astra/NN/Initializer.h"
#include "astra/Numerics/Random.h"
#include <cmath>

using namespace astra;
using namespace astra::nn;

namespace {
constexpr Parameter transposed{"transposed", 0, "1: the weight is [in, out], as of an ONNX MatMul"};
constexpr Parameter constantParameters[] = {{"value", 0, "of every element"}};
constexpr Parameter uniformParameters[] = {{"low", 0, "the least number"}, {"high", 1, "what all numbers are below"}};
constexpr Parameter normalParameters[] = {{"mean", 0, "the mean"}, {"std", 1, "the standard deviation"}};
constexpr Parameter xavierParameters[] = {{"gain", 1, "a factor"}, transposed};
constexpr Parameter kaimingParameters[] = {{"a", 0, "the slope of a leaky relu behind it, 0 for relu"},
                                           {"fan_out", 0, "1: by the outputs that an input feeds"},
                                           transposed};

/// How many inputs feed an element of the output, and the other way round: [out, in, ...], as PyTorch stores weights.
struct Fan {
  double in, out;
};
Fan fanOf(const Recipe &r, UOpRef like) {
  double rest = 1;
  for (UOpRef d : like->shape.drop_front(2)) rest *= double(*d->constIndex());
  Fan f{rest * double(*like->shape[1]->constIndex()), rest * double(*like->shape[0]->constIndex())};
  if (r["transposed"] != 0) std::swap(f.in, f.out);
  return f;
}
double xavier(const Recipe &r, UOpRef like) {
  Fan f = fanOf(r, like);
  return r["gain"] * std::sqrt(2 / (f.in + f.out));
}
double kaiming(const Recipe &r, UOpRef like) {
  Fan f = fanOf(r, like);
  return std::sqrt(2 / (1 + r["a"] * r["a"])) / std::sqrt(r["fan_out"] != 0 ? f.out : f.in);
}

enum class Spread { Constant, Uniform, Normal };
struct Row {
  Signature signature;
  Spread spread;
  double (*deviation)(const Recipe &, UOpRef like); // null: the parameters say all
};
const Row rows[] = {
    {{"constant", constantParameters, "a number"}, Spread::Constant, nullptr},
    {{"uniform", uniformParameters, "evenly between two numbers"}, Spread::Uniform, nullptr},
    {{"normal", normalParameters, "normal"}, Spread::Normal, nullptr},
    {{"xavier_uniform", xavierParameters, "evenly, by inputs and outputs (Glorot and Bengio 2010)"},
     Spread::Uniform,
     xavier},
    {{"xavier_normal", xavierParameters, "normal, by inputs and outputs (Glorot and Bengio 2010)"},
     Spread::Normal,
     xavier},
    {{"kaiming_uniform", kaimingParameters, "evenly, by inputs (He et al. 2015)"}, Spread::Uniform, kaiming},
    {{"kaiming_normal", kaimingParameters, "normal, by inputs (He et al. 2015)"}, Spread::Normal, kaiming},
};
} // namespace

llvm::ArrayRef<Signature> nn::initializers() {
  static const std::vector<Signature> all = signaturesOf(rows);
  return all;
}
llvm::Expected<Recipe> nn::parseInitializer(llvm::StringRef text) {
  return Recipe::parse(text, initializers(), "initializer");
}

llvm::Expected<UOpRef> nn::initial(Builder &b, const Recipe &r, UOpRef like, UOpRef seed, uint32_t stream) {
  const Row &row = rows[r.row];
  if (row.deviation && like->rank() < 2)
    return llvm::createStringError("initializer " + llvm::Twine(row.signature.name) +
                                   ": goes by the inputs of a weight [out, in, ...], found '" + like->str + "' " +
                                   typeText(like->dtype, like->shape));
  double deviation = row.deviation ? row.deviation(r, like) : 0, widest = std::sqrt(3) * deviation;
  UOpRef id = b.bits(DType::U32, stream);
  switch (row.spread) {
  case Spread::Constant: return b.splat(num(b, like, r["value"]), like->shape);
  case Spread::Uniform: {
    double low = row.deviation ? -widest : r["low"], high = row.deviation ? widest : r["high"];
    UOpRef u = randomUniform(b, seed, id, like->dtype, like->shape);
    return b.add(b.mul(u, num(b, like, high - low)), num(b, like, low));
  }
  case Spread::Normal: {
    double mean = row.deviation ? 0 : r["mean"];
    UOpRef z = randomNormal(b, seed, id, like->dtype, like->shape);
    return b.add(b.mul(z, num(b, like, row.deviation ? deviation : r["std"])), num(b, like, mean));
  }
  }
  llvm_unreachable("every spread is above");
}

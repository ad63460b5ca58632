//===- Initializers.cpp: what weights begin as -----------------------------===//
// Takes:    a weight's type and shape.
// Gives:    a scaled distribution, a number repeated, or a matrix made of these.
// Keeps:    one row an initializer: how it spreads, its parameters, the width of its distribution.
#include "Elements.h"
#include "Matrices.h"
#include "astra/IR/Text.h"
#include "astra/NN/Initializer.h"
#include "astra/Numerics/Random.h"
#include <cmath>

using namespace astra;
using namespace astra::nn;

namespace {
constexpr Parameter transposed{"transposed", 0, yesOrNo, "1: the weight is [in, out], as of an ONNX MatMul"};
constexpr Parameter constantParameters[] = {{"value", 0, anyNumber, "of every element"}};
constexpr Parameter uniformParameters[] = {{"low", 0, anyNumber, "the least number"},
                                           {"high", 1, anyNumber, "what all numbers are below"}};
constexpr Parameter normalParameters[] = {{"mean", 0, anyNumber, "the mean"},
                                          {"std", 1, notNegative, "the standard deviation"}};
constexpr Relation intervalRelations[] = {{[](const Recipe &r) { return r["low"] < r["high"]; }, "low is below high"}};
constexpr Parameter truncatedParameters[] = {{"mean", 0, anyNumber, "the mean before it is cut"},
                                             {"std", 1, positive, "the standard deviation before it is cut"},
                                             {"low", -2, anyNumber, "the least number"},
                                             {"high", 2, anyNumber, "the greatest number"}};
constexpr Parameter orthogonalParameters[] = {{"gain", 1, anyNumber, "a factor"}};
constexpr Parameter sparseParameters[] = {{"sparsity", 0.1, zeroToOne, "the part of each column that is 0, rounded up"},
                                          {"std", 0.01, notNegative, "the standard deviation of the others"}};
constexpr Parameter diracParameters[] = {{"groups", 1, wholeFromOne, "of the convolution"}};
constexpr Parameter xavierParameters[] = {{"gain", 1, notNegative, "a factor"}, transposed};
constexpr Parameter kaimingParameters[] = {{"a", 0, anyNumber, "the slope of a leaky relu behind it, 0 for relu"},
                                           {"fan_out", 0, yesOrNo, "1: by the outputs that an input feeds"},
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

enum class Spread { Default, Constant, Uniform, Normal, Truncated, Orthogonal, Eye, Dirac, Sparse };
struct Row {
  Signature signature;
  Spread spread;
  double (*deviation)(const Recipe &, UOpRef like); // null: the parameters say all
};
const Row rows[] = {
    {{"default", {}, "as PyTorch's module does: by the role of the parameter in the model, below"},
     Spread::Default,
     nullptr},
    {{"constant", constantParameters, "a number"}, Spread::Constant, nullptr},
    {{"uniform", uniformParameters, "evenly between two numbers", intervalRelations}, Spread::Uniform, nullptr},
    {{"normal", normalParameters, "normal"}, Spread::Normal, nullptr},
    {{"xavier_uniform", xavierParameters, "evenly, by inputs and outputs (Glorot and Bengio 2010)"},
     Spread::Uniform,
     xavier},
    {{"xavier_normal", xavierParameters, "normal, by inputs and outputs (Glorot and Bengio 2010)"},
     Spread::Normal,
     xavier},
    {{"kaiming_uniform", kaimingParameters, "evenly, by inputs (He et al. 2015)"}, Spread::Uniform, kaiming},
    {{"kaiming_normal", kaimingParameters, "normal, by inputs (He et al. 2015)"}, Spread::Normal, kaiming},
    {{"trunc_normal", truncatedParameters, "normal, of the part between two numbers", intervalRelations},
     Spread::Truncated,
     nullptr},
    {{"orthogonal", orthogonalParameters,
      "orthonormal rows [out], or columns where those are fewer (Saxe et al. 2013)"},
     Spread::Orthogonal,
     nullptr},
    {{"eye", {}, "1 where out is in, else 0"}, Spread::Eye, nullptr},
    {{"dirac", diracParameters, "a convolution that gives what it gets"}, Spread::Dirac, nullptr},
    {{"sparse", sparseParameters, "normal, but some of each column are 0 (Martens 2010)"}, Spread::Sparse, nullptr},
};

UOpRef truncated(Builder &b, const Recipe &r, UOpRef like, UOpRef seed, UOpRef id) {
  double mean = r["mean"], std = r["std"], low = r["low"], high = r["high"];
  auto below = [&](double x) { return std::erf((x - mean) / std / std::sqrt(2)); };
  double from = below(low), to = below(high);
  // Evenly between both ends' places in the distribution, half a step away from where its inverse is infinite.
  UOpRef u = b.add(randomUniform(b, seed, id, like->dtype, like->shape), num(b, like, 0x1p-25));
  UOpRef z = inverseErf(b, b.add(b.mul(u, num(b, like, (to - from) * (1 - 0x1p-24))), num(b, like, from)));
  UOpRef x = b.add(b.mul(z, num(b, like, std * std::sqrt(2))), num(b, like, mean));
  return b.min(b.max(x, num(b, like, low)), num(b, like, high));
}

UOpRef orthogonal(Builder &b, const Recipe &r, UOpRef like, UOpRef seed, UOpRef id) {
  UOpRef rows = like->shape[0], columns = idxProduct(b.c, like->shape.drop_front());
  bool tall = *rows->constIndex() > *columns->constIndex();
  UOpRef a = randomNormal(b, seed, id, like->dtype, {rows, columns});
  UOpRef q = orthonormalRows(b, tall ? b.permute(a, {1, 0}) : a);
  return b.mul(b.reshape(tall ? b.permute(q, {1, 0}) : q, like->shape), num(b, like, r["gain"]));
}

/// 1 where an output of its group is the input, in the middle of the kernel.
UOpRef dirac(Builder &b, UOpRef like, int64_t groups) {
  auto index = [&](unsigned axis) { return b.iota(DType::I64, like->shape, axis); };
  int64_t out = std::max<int64_t>(*like->shape[0]->constIndex() / groups, 1);
  UOpRef one = b.eq(b.bin(Op::Mod, index(0), b.litInt(DType::I64, out)), index(1));
  for (unsigned axis = 2; axis < like->rank(); ++axis)
    one = b.bin(Op::And, one, b.eq(index(axis), b.litInt(DType::I64, *like->shape[axis]->constIndex() / 2)));
  return b.cast(one, like->dtype);
}

UOpRef sparse(Builder &b, const Recipe &r, UOpRef like, UOpRef seed, UOpRef id) {
  // The places of one set of numbers say which are 0, another set gives the values.
  UOpRef rows = like->shape[0], both[] = {b.idx(2), rows, like->shape[1]}, one[] = {b.idx(1), rows, like->shape[1]};
  auto set = [&](UOpRef x, int64_t i) {
    return b.reshape(b.shrink(x, {b.idx(i), b.idx(0), b.idx(0)}, one), like->shape);
  };
  UOpRef place = b.argSort(b.argSort(set(randomUniform(b, seed, id, like->dtype, both), 0), 0, false), 0, false);
  auto zeros = int64_t(std::ceil(r["sparsity"] * double(*rows->constIndex())));
  UOpRef z = b.mul(set(randomNormal(b, seed, id, like->dtype, both), 1), num(b, like, r["std"]));
  return b.select(b.lt(place, b.litInt(DType::I64, zeros)), num(b, like, 0), z);
}

/// What is wrong with a weight of this shape; null if nothing is.
const char *wrongWith(const Row &row, const Recipe &r, UOpRef like) {
  switch (row.spread) {
  case Spread::Default: return "goes by the role of a parameter in a model";
  case Spread::Orthogonal: return like->rank() >= 2 ? nullptr : "is of weights [out, in, ...]";
  case Spread::Eye:
  case Spread::Sparse: return like->rank() == 2 ? nullptr : "is of matrices";
  case Spread::Dirac:
    if (like->rank() < 3 || like->rank() > 5) return "is of convolutions, [out, in, ...] with 3 to 5 axes";
    return *like->shape[0]->constIndex() % int64_t(r["groups"]) ? "needs groups that divide the outputs" : nullptr;
  default: return row.deviation && like->rank() < 2 ? "goes by the inputs of a weight [out, in, ...]" : nullptr;
  }
}
} // namespace

llvm::ArrayRef<Signature> nn::initializers() {
  static const std::vector<Signature> all = signaturesOf(rows);
  return all;
}
llvm::Expected<Recipe> nn::parseInitializer(llvm::StringRef text) {
  return Recipe::parse(text, initializers(), "initializer");
}
bool nn::isDefault(const Recipe &initializer) { return rows[initializer.row].spread == Spread::Default; }

llvm::Expected<UOpRef> nn::initial(Builder &b, const Recipe &r, UOpRef like, UOpRef seed, uint32_t stream) {
  const Row &row = rows[r.row];
  if (const char *why = wrongWith(row, r, like))
    return llvm::createStringError("initializer " + llvm::Twine(row.signature.name) + ": " + why + ", found '" +
                                   like->str + "' " + typeText(like->dtype, like->shape));
  double deviation = row.deviation ? row.deviation(r, like) : 0, widest = std::sqrt(3) * deviation;
  // A value of its own, and no literal: so weights of one shape are drawn by one kernel.
  UOpRef id = b.c.make(Op::After, {b.bits(DType::U32, stream), seed});
  switch (row.spread) {
  case Spread::Default: break; // refused above
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
  case Spread::Truncated: return truncated(b, r, like, seed, id);
  case Spread::Orthogonal: return orthogonal(b, r, like, seed, id);
  case Spread::Eye:
    return b.cast(b.eq(b.iota(DType::I64, like->shape, 0), b.iota(DType::I64, like->shape, 1)), like->dtype);
  case Spread::Dirac: return dirac(b, like, int64_t(r["groups"]));
  case Spread::Sparse: return sparse(b, r, like, seed, id);
  }
  llvm_unreachable("every spread is above");
}

//===- OpsMicrosoft.cpp: products and convolutions with more in them -------===//
// Takes:    nodes of the domain com.microsoft that ONNX Runtime's optimizer and exporters write.
// Gives:    composites; most are those of an op of the default domain with something behind it.
// Source:   ONNX Runtime's ContribOperators documentation; where it is open, its kernels for CPUs.
#include "GemmAttributes.h"
#include "OpTable.h"
#include "WindowAttributes.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Arithmetic.h"
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Linalg.h"
#include "astra/Compose/Order.h"
#include "astra/Compose/Product.h"
#include "astra/Compose/QuantizedLayers.h"
#include "astra/Compose/Reduction.h"
#include "astra/Compose/Sampling.h"

namespace astra::onnx {

namespace {

UOpRef optional(Node &n, unsigned i) { return n.has(i) ? n.in(i) : nullptr; }

// ---- products

UOpRef fusedProduct(Node &n) {
  compose::OperandLayout x{n.intAttr("transA", 0) != 0, n.intAttr("transBatchA", 0) != 0},
      y{n.intAttr("transB", 0) != 0, n.intAttr("transBatchB", 0) != 0};
  return compose::fusedProduct(n, n.in(0), x, n.in(1), y, n.floatAttr("alpha", 1));
}

/// The numbers of an activation in attributes of their own, as many as are given.
llvm::SmallVector<float, 3> activationNumbers(Node &n) {
  llvm::SmallVector<float, 3> numbers;
  for (const char *name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (n.hasAttr(name)) numbers.push_back(float(n.floatAttr(name, 0)));
  return numbers;
}

void fusedMatMul(Node &n) { n.give(fusedProduct(n)); }

void fusedMatMulActivation(Node &n) {
  UOpRef y = fusedProduct(n);
  std::string name = n.stringAttr("activation", "");
  n.ignoreAttr("activation_axis"); // of activations that are refused
  if (y) n.give(fusedActivation(n, y, name, activationNumbers(n)));
}

void gemmFastGelu(Node &n) {
  if (UOpRef y = product(n, n.in(0), n.in(1))) n.give(biasedGelu(n, y, optional(n, 2), true));
}

void fusedGemm(Node &n) {
  UOpRef y = generalMatrixProduct(n);
  if (y) n.give(fusedActivation(n, y, n.stringAttr("activation", ""), activationNumbers(n)));
}

// ---- convolutions

/// Channels first, or the last axis of x and of what is added.
template <bool last> void fusedConv(Node &n) {
  compose::ConvolutionOptions options = convolutionAttributes(n);
  std::string name = n.stringAttr("activation", "");
  auto numbers = n.floatsAttr("activation_params");
  auto image = [&](UOpRef x) { return last && x ? compose::channelsFirst(n, x) : x; };
  UOpRef y = convolution(n, image(n.in(0)), n.in(1), optional(n, 2), options);
  if (n.has(3) && y) y = compose::sum(n, {y, image(n.in(3))});
  if (y) y = fusedActivation(n, y, name, numbers);
  n.give(last && y ? compose::channelsLast(n, y) : y);
}

// ---- sums

void biasAdd(Node &n) { n.give(compose::sum(n, {n.in(0), n.in(1), n.in(2)})); }

void biasSoftmax(Node &n) {
  int64_t given = n.intAttr("axis", 1);
  n.ignoreAttr("is_inner_broadcast"); // as the bias's shape says
  UOpRef x = compose::sum(n, {n.in(0), n.in(1)});
  if (!x) return;
  int64_t rank = x->rank(), axis = n.axis(given, rank);
  if (!n.failed()) n.give(reduction(n, compose::softmax, x, compose::axesBetween(axis, rank), /*keep=*/true));
}

/// As in inference: nothing is dropped.
void biasDropout(Node &n) {
  n.ignoreAttr("seed");
  if (n.training())
    return void(n.unsupported("it is not supported in a training: take the model from before the optimizer"));
  if (n.has(4) && n.literalNumber(4, "training_mode") != 0)
    return void(n.unsupported("training_mode is set, which is not supported"));
  llvm::SmallVector<UOpRef, 3> parts = {n.in(0), n.in(1)};
  if (n.has(2)) parts.push_back(n.in(2));
  n.give(compose::sum(n, parts));
}

// ---- the rest

void cDist(Node &n) {
  std::string metric = n.stringAttr("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean")
    return void(n.fail("attribute 'metric' is '" + metric + "', expected sqeuclidean or euclidean"));
  n.give(compose::distances(n, n.in(0), n.in(1), metric == "sqeuclidean"));
}

/// The values in the order of x, which is taken as flat.
void unique(Node &n) {
  compose::Unique r = compose::unique(n, n.in(0), std::nullopt, false);
  n.give(r.values);
  if (n.wants(1)) n.give(1, r.group);
  if (n.wants(2)) n.give(2, r.counts);
}

void expandDims(Node &n) {
  Ints at = n.knownInts(1, "the axis");
  UOpRef x = n.in(0);
  if (n.failed()) return;
  if (at.size() != 1) return void(n.fail("found " + llvm::Twine(at.size()) + " axes, expected one"));
  n.give(n.unsqueeze(x, {n.axis(at[0], int64_t(x->rank()) + 1)}));
}

void torchEmbedding(Node &n) {
  if (n.requireRank(n.in(0), 2, 2)) n.give(gather(n, n.in(0), n.in(1), 0));
}

void inverse(Node &n) { n.give(inverse(n, n.in(0)).value); }

void cropAndResize(Node &n) {
  compose::CropOptions options;
  std::string mode = n.stringAttr("mode", "bilinear");
  if (mode != "bilinear" && mode != "nearest")
    return void(n.fail("attribute 'mode' is '" + mode + "', expected bilinear or nearest"));
  options.nearest = mode == "nearest";
  options.outside = n.floatAttr("extrapolation_value", 0);
  n.give(cropAndResize(n, n.in(0), n.in(1), n.in(2), n.knownDims(3, "the size of the crops"), options));
}

constexpr Row rows[] = {
    {"com.microsoft::FusedMatMul", 1, latest, 2, 2, fusedMatMul, floatTypes},
    {"com.microsoft::TransposeMatMul", 1, latest, 2, 2, fusedMatMul, floatTypes},
    {"com.microsoft::FusedMatMulActivation", 1, latest, 2, 2, fusedMatMulActivation, floatTypes,
     "activations as of recurrent layers, and Clip"},
    {"com.microsoft::GemmFastGelu", 1, latest, 2, 3, gemmFastGelu, floatTypes},
    {"com.microsoft::FusedGemm", 1, latest, 2, 3, fusedGemm, floatTypes,
     "activations as of recurrent layers, and Clip"},
    {"com.microsoft::FusedConv", 1, latest, 2, 4, fusedConv<false>, floatTypes,
     "activations as of recurrent layers, and Clip"},
    {"com.microsoft::NhwcConv", 1, latest, 2, 3, fusedConv<true>, floatTypes, "weights [O, C / group, kernel...]"},
    {"com.microsoft::NhwcFusedConv", 1, latest, 2, 4, fusedConv<true>, floatTypes, "weights [O, C / group, kernel...]"},
    {"com.microsoft::BiasAdd", 1, latest, 3, 3, biasAdd, floatTypes},
    {"com.microsoft::BiasSoftmax", 1, latest, 2, 2, biasSoftmax, floatTypes},
    {"com.microsoft::BiasDropout", 1, latest, 2, 5, biasDropout, floatTypes, "as in inference; no mask"},
    {"com.microsoft::CDist", 1, latest, 2, 2, cDist, floatTypes},
    {"com.microsoft::Unique", 1, latest, 1, 1, unique, realTypes | boolType,
     "the size of the result is a dim whose value the run reports"},
    {"com.microsoft::ExpandDims", 1, latest, 2, 2, expandDims},
    {"com.microsoft::Inverse", 1, latest, 1, 1, inverse, floatTypes,
     "matrices up to 4096 x 4096; of a singular one not finite"},
    {"com.microsoft::TorchEmbedding", 1, latest, 2, 4, torchEmbedding},
    {"com.microsoft::CropAndResize", 1, latest, 4, 4, cropAndResize, floatTypes},
};

} // namespace

llvm::ArrayRef<Row> microsoftRows() { return rows; }

} // namespace astra::onnx

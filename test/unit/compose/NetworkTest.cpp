//===- NetworkTest.cpp: convolutions, pools, products, norms, activations --===//
// Keeps:    expected numbers were worked out with NumPy from the definitions, in f64.
#include "Compose.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Convolution.h"
#include "astra/Compose/Embedding.h"
#include "astra/Compose/Median.h"
#include "astra/Compose/Normalization.h"
#include "astra/Compose/OptimizerStep.h"
#include "astra/Compose/Pooling.h"
#include "astra/Compose/Product.h"
#include "astra/Compose/Reduction.h"

namespace astra::compose {
namespace {

const double infinity = std::numeric_limits<double>::infinity();
const std::vector<double> nine = {1, 2, 3, 4, 5, 6, 7, 8, 9}, two = {1, 2, 3, 4, 5, 6};

class Network : public testing::Test {
protected:
  Context c;
  Composer b{c};
  UOpRef image() { return tensor(b, {1, 1, 3, 3}, nine); }
  UOpRef rows() { return tensor(b, {2, 3}, two); }
};

TEST_F(Network, Convolution) {
  UOpRef w = tensor(b, {1, 1, 2, 2}, {1, 2, 3, 4}), bias = tensor(b, {1}, {0.5});
  expectValues(b, convolution(b, image(), w, nullptr, {}), {1, 1, 2, 2}, {37, 47, 67, 77});
  expectValues(b, convolution(b, image(), w, bias, {}), {1, 1, 2, 2}, {37.5, 47.5, 67.5, 77.5});
  ConvolutionOptions options;
  options.window.strides = Ints{2, 2};
  options.window.automatic = AutoPad::SameUpper;
  expectValues(b, convolution(b, image(), w, nullptr, options), {1, 1, 2, 2}, {37, 21, 23, 9});
  UOpRef grouped = tensor(b, {1, 2, 2}, {1, 2, 3, 4}), each = tensor(b, {2, 1, 1}, {10, 100});
  options = {{}, 2};
  expectValues(b, convolution(b, grouped, each, nullptr, options), {1, 2, 2}, {10, 20, 300, 400});
  options.groups = 3;
  expectRefusal(b, convolution(b, grouped, each, nullptr, options), "3 groups do not divide 2 channels of the weights");
  options = {};
  options.window.kernel = Ints{3};
  expectRefusal(b, convolution(b, grouped, tensor(b, {2, 2, 1}, {1, 2, 3, 4}), nullptr, options),
                "option 'kernel_shape' differs from the weights");
}

TEST_F(Network, OptimizerSteps) {
  auto pair = [&](double x, double y) { return tensor(b, {2}, {x, y}); };
  auto at = [&](double count) {
    return StepOperands{tensor(b, {}, {0.1}),
                        tensor(b, {}, {count}, DType::I64),
                        pair(1, 2),
                        pair(0.5, -1),
                        {pair(0.1, 0.2), pair(0.04, 0.09)}};
  };
  MomentumStep momentum{0.9, 0.5, 0, false};
  expectValues(b, optimizerStep(b, at(0), momentum).kept[0], {2}, {0.59, -0.82});
  expectValues(b, optimizerStep(b, at(3), momentum).kept[0], {2}, {0.34, -0.32});
  expectValues(b, optimizerStep(b, at(0), momentum).x, {2}, {0.941, 2.082});
  momentum.nesterov = true;
  expectValues(b, optimizerStep(b, at(0), momentum).x, {2}, {0.8969, 2.1738});
  expectValues(b, optimizerStep(b, at(2), AdagradStep{0.5, 0, 0}).x, {2},
               {1 - 0.05 * 0.5 / std::sqrt(0.35), 2 + 0.05 / std::sqrt(1.2)});
  AdamStep adam{0.9, 0.99, 0, 0, 0.5};
  expectValues(b, optimizerStep(b, at(0), adam).x, {2},
               {0.5 * (1 - 0.1 * 0.14 / std::sqrt(0.0421)), 0.5 * (2 - 0.1 * 0.08 / std::sqrt(0.0991))});
  double rate = 0.1 * std::sqrt(1 - 0.99 * 0.99) / (1 - 0.9 * 0.9);
  expectValues(b, optimizerStep(b, at(2), adam).x, {2},
               {0.5 * (1 - rate * 0.14 / std::sqrt(0.0421)), 0.5 * (2 - rate * 0.08 / std::sqrt(0.0991))});
  StepOperands wrong = at(0);
  wrong.gradient = tensor(b, {2, 1}, {1, 2});
  expectRefusal(b, optimizerStep(b, wrong, adam).x, "a gradient or a state is not of its tensor's type and rank");
}

TEST_F(Network, TransposedConvolution) {
  UOpRef w = tensor(b, {1, 1, 2, 2}, {1, 2, 3, 4});
  expectValues(b, transposedConvolution(b, image(), w, nullptr, {}), {1, 1, 4, 4},
               {1, 4, 7, 6, 7, 23, 33, 24, 19, 53, 63, 42, 21, 52, 59, 36});
  WindowOptions blocks;
  blocks.kernel = Ints{2};
  UOpRef x = tensor(b, {1, 2, 2}, {1, 2, 10, 20}); // blocks (1, 10) and (2, 20)
  expectValues(b, columnsToImage(b, x, {b.idx(3)}, blocks), {1, 1, 3}, {1, 12, 20});
}

TEST_F(Network, Pools) {
  PoolOptions options;
  options.window.kernel = Ints{2, 2};
  MaxPoolResult r = maxPoolWithIndices(b, image(), options);
  expectValues(b, r.values, {1, 1, 2, 2}, {5, 6, 8, 9});
  expectValues(b, r.indices, {1, 1, 2, 2}, {4, 5, 7, 8});
  expectValues(b, maxPool(b, image(), options), {1, 1, 2, 2}, {5, 6, 8, 9});
  expectValues(b, averagePool(b, image(), options), {1, 1, 2, 2}, {3, 4, 6, 7});
  expectValues(b, lpPool(b, image(), 1, options), {1, 1, 2, 2}, {12, 16, 24, 28});
  WindowOptions two;
  two.kernel = two.strides = Ints{2, 2};
  UOpRef place = tensor(b, {1, 1, 1, 1}, {2}, DType::I64);
  expectValues(b, maxUnpool(b, tensor(b, {1, 1, 1, 1}, {7}), place, {}, two), {1, 1, 2, 2}, {0, 0, 7, 0});
  UOpRef pairs = tensor(b, {2, 2}, {7, 5, 3, 1}), places = tensor(b, {2, 2}, {2, 2, 0, 9}, DType::I64);
  Dims line = {b.idx(3)};
  expectValues(b, unpool(b, pairs, places, line, true), {2, 3}, {0, 0, 12, 3, 0, 0});
  expectValues(b, unpool(b, pairs, places, line, false), {2, 3}, {0, 0, 5, 3, 0, 0});
  expectRefusal(b, unpool(b, pairs, place, line, false), "the indices are [1, 1, 1, 1], the input [2, 2]");
  options.window.pads = Ints{1, 1, 0, 0};
  expectValues(b, averagePool(b, image(), options), {1, 1, 3, 3}, {1, 1.5, 2.5, 2.5, 3, 4, 5.5, 6, 7});
  options.padsCount = true;
  expectValues(b, averagePool(b, image(), options), {1, 1, 3, 3}, {0.25, 0.75, 1.25, 1.25, 3, 4, 2.75, 6, 7});
  expectValues(b, globalAveragePool(b, image()), {1, 1, 1, 1}, {5});
  expectValues(b, globalMaxPool(b, image()), {1, 1, 1, 1}, {9});
  expectValues(b, globalLpPool(b, image(), 2), {1, 1, 1, 1}, {std::sqrt(285.0)});
  expectRefusal(b, lpPool(b, image(), 0.5, options), "option 'p' is 0.500000, expected 1 or more");
  options.window.kernel = Ints{2};
  expectRefusal(b, maxPool(b, image(), options), "kernel_shape, strides, dilations or pads do not fit 2 spatial axes");
}

TEST_F(Network, EmbeddingBags) {
  UOpRef table = tensor(b, {3, 2}, two); // rows {1, 2}, {3, 4}, {5, 6}; bags {0, 2}, {}, {1, 1, 2}
  Bags bags{tensor(b, {5}, {0, 2, 1, 1, 2}, DType::I64), tensor(b, {3}, {0, 2, 2}, DType::I64)};
  EmbeddingBag sums = embeddingBag(b, table, bags);
  expectValues(b, sums.value, {3, 2}, {6, 8, 0, 0, 11, 14});
  expectValues(b, sums.bag, {5}, {0, 0, 2, 2, 2});
  expectValues(b, sums.sizes, {3}, {2, 0, 3});
  UOpRef gradient = tensor(b, {3, 2}, {1, 2, 9, 9, 6, 12});
  expectValues(b, embeddingBagGradient(b, gradient, bags, b.idx(3), false), {3, 2}, {1, 2, 12, 24, 7, 14});
  expectValues(b, embeddingBagGradient(b, gradient, bags, b.idx(3), true), {3, 2}, {1, 2, 6, 12, 3.5, 7});
  expectValues(b, embeddingWeightsGradient(b, gradient, table, bags), {5}, {5, 17, 66, 66, 102});
  bags.mode = BagMode::Max;
  EmbeddingBag most = embeddingBag(b, table, bags);
  expectValues(b, most.value, {3, 2}, {5, 6, 0, 0, 5, 6});
  expectValues(b, most.rows, {3, 2}, {2, 2, 0, 0, 2, 2});
  expectValues(b, embeddingMaximaGradient(b, gradient, most.rows, most.sizes, b.idx(3)), {3, 2}, {0, 0, 0, 0, 7, 14});
  bags.mode = BagMode::Mean, bags.padding = 2;
  expectValues(b, embeddingBag(b, table, bags).value, {3, 2}, {1, 2, 0, 0, 3, 4});
  expectValues(b, embeddingBagGradient(b, gradient, bags, b.idx(3), false), {3, 2}, {1, 2, 6, 12, 0, 0});
  bags.weights = tensor(b, {2}, {1, 2});
  expectRefusal(b, embeddingBag(b, table, bags).value, "extents 2 and 5 of the weights are not equal");
}

TEST_F(Network, Medians) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  UOpRef x = tensor(b, {3, 4}, {4, 1, 3, 2, 7, none, 5, none, none, none, none, none});
  expectValues(b, median(b, tensor(b, {2, 4}, {4, 1, 3, 2, 9, 9, 0, 1}), 1), {2, 1}, {2.5, 5});
  expectValues(b, median(b, rows(), -1), {2, 1}, {2, 5});
  std::vector<double> ofNaNs = valuesOf(b, median(b, x, 1));
  ASSERT_EQ(ofNaNs.size(), 3u);
  EXPECT_EQ(ofNaNs[0], 2.5);
  EXPECT_TRUE(std::isnan(ofNaNs[1]));
  expectValues(b, lowerMedian(b, x, 1).indices, {3, 1}, {3, 1, 0});
  expectValues(b, lowerMedian(b, x, 1, true).indices, {3, 1}, {3, 2, 0});
  expectValues(b, lowerMedian(b, tensor(b, {4}, {0, -0.0, 0, 5}), 0).indices, {1}, {1});
  expectRefusal(b, median(b, tensor(b, {2, 0}, {}), 1), "an axis of extent 0 has no median");
}

TEST_F(Network, Products) {
  UOpRef y = tensor(b, {3, 2}, two), column = tensor(b, {3}, {1, 0, 2});
  expectValues(b, product(b, rows(), y), {2, 2}, {22, 28, 49, 64});
  expectValues(b, product(b, rows(), column), {2}, {7, 16});
  AffineProductOptions options{false, true, b.literal(y, 2), b.literal(y, 10)};
  expectValues(b, affineProduct(b, rows(), rows(), tensor(b, {2}, {1, 2}), options), {2, 2}, {38, 84, 74, 174});
  UOpRef batch = tensor(b, {2, 1, 3}, {1, 0, 0, 0, 0, 1});
  expectValues(b, affineProduct(b, batch, rows(), tensor(b, {2, 1, 1}, {10, 20}), {false, true}), {2, 1, 2},
               {11, 14, 23, 26});
  expectRefusal(b, product(b, rows(), rows()), "extents 3 and 2 of the axes that are multiplied are not equal");
}

TEST_F(Network, Reductions) {
  expectValues(b, reduction(b, mean, rows(), {0}, false), {3}, {2.5, 3.5, 4.5});
  expectValues(b, reduction(b, sumOfSquares, rows(), {1}, true), {2, 1}, {14, 77});
  expectValues(b, euclideanNorm(b, rows(), {1}), {2, 1}, {3.74165739, 8.77496439});
  expectValues(b, logOfSumOfExp(b, rows(), {1}), {2, 1}, {3.40760596, 6.40760596});
  expectValues(b, logOfSumOfExp(b, tensor(b, {2}, {-infinity, -infinity}), {0}), {1}, {-infinity});
  UOpRef ties = tensor(b, {4}, {1, 7, 7, 2});
  expectValues(b, argReduce(b, ties, 0, true), {1}, {1});
  expectValues(b, argReduce(b, ties, 0, true, /*last=*/true), {1}, {2});
  expectValues(b, argReduce(b, ties, 0, false), {1}, {0});
  expectValues(b, softmax(b, rows(), {1}), {2, 3},
               {0.09003057, 0.24472847, 0.66524096, 0.09003057, 0.24472847, 0.66524096});
  expectValues(b, logSoftmax(b, rows(), {1}), {2, 3},
               {-2.40760596, -1.40760596, -0.40760596, -2.40760596, -1.40760596, -0.40760596});
  expectValues(b, hardmax(b, ties, {0}), {4}, {0, 1, 0, 0});
  // a narrow type is folded in f32 and rounded once: a chain in f16 would stop at 2048
  UOpRef many = b.broadcastTo(b.b.lit(DType::F16, 1), {b.idx(4096)});
  expectValues(b, reduction(b, plainFold<ReduceKind::Sum>, many, {0}, false), {}, {4096});
}

TEST_F(Network, Normalizations) {
  UOpRef scale = tensor(b, {3}, {1, 2, 3}), bias = tensor(b, {3}, {0.5, 0, -0.5}), zero = tensor(b, {3}, {0, 0, 0}),
         one = tensor(b, {3}, {1, 1, 1});
  LayerNormalized r = layerNormalization(b, rows(), scale, bias, {});
  expectValues(b, r.value, {2, 3}, {-0.72473569, 0, 3.17420706, -0.72473569, 0, 3.17420706});
  expectValues(b, r.mean, {2, 1}, {2, 5});
  expectValues(b, rmsNormalization(b, rows(), scale, {}).value, {2, 3},
               {0.46290955, 1.85163822, 4.16618599, 0.78954188, 1.9738547, 3.55293846});
  BatchNormalizationOptions options;
  options.epsilon = 0;
  expectValues(b, batchNormalization(b, rows(), scale, bias, one, one, options).value, {2, 3},
               {0.5, 2, 5.5, 3.5, 8, 14.5});
  options.ofBatch = true;
  BatchNormalized batch = batchNormalization(b, rows(), one, zero, zero, zero, options);
  expectValues(b, batch.value, {2, 3}, {-1, -1, -1, 1, 1, 1});
  expectValues(b, batch.variance, {3}, {2.25, 2.25, 2.25});
  expectValues(b, unbiased(b, batch.variance, batch.count), {3}, {4.5, 4.5, 4.5});
  expectValues(b, movingAverage(b, zero, batch.mean, 0.9), {3}, {0.25, 0.35, 0.45});
  // centred: the mean of 10,000 leaves nothing behind, where x * factor + shift loses half of the digits
  options.centred = true;
  UOpRef far = tensor(b, {2, 1}, {10000, 10001});
  expectValues(b, batchNormalization(b, far, nullptr, nullptr, nullptr, nullptr, options).value, {2, 1}, {-1, 1});
  options.axis = 0; // two channels of three elements
  options.epsilon = 1.0 / 3;
  UOpRef each2 = tensor(b, {2}, {1, 10}), shift2 = tensor(b, {2}, {0.5, 0});
  batch = batchNormalization(b, rows(), each2, shift2, nullptr, nullptr, options);
  expectValues(b, batch.value, {2, 3}, {-0.5, 0.5, 1.5, -10, 0, 10});
  expectValues(b, batch.mean, {2}, {2, 5});
  expectValues(b, batch.variance, {2}, {2.0 / 3, 2.0 / 3});
  UOpRef channels = tensor(b, {1, 2, 2}, {1, 3, 10, 30}), each = tensor(b, {2}, {1, 2}), none = tensor(b, {2}, {0, 0});
  expectValues(b, instanceNormalization(b, channels, each, none, 0), {1, 2, 2}, {-1, 1, -2, 2});
  GroupNormalizationOptions groups;
  groups.groups = 2;
  groups.epsilon = 0;
  expectValues(b, groupNormalization(b, channels, each, none, groups).value, {1, 2, 2}, {-1, 1, -2, 2});
  groups.groups = 3;
  expectRefusal(b, groupNormalization(b, channels, each, none, groups).value, "3 groups do not divide 2 channels");
  LocalResponseOptions response;
  response.size = 3;
  expectValues(b, localResponseNormalization(b, tensor(b, {1, 3}, {1, 2, 3}), response), {1, 3},
               {0.99987502, 1.99930029, 2.99902537});
  expectValues(b, lpNormalization(b, tensor(b, {2, 2}, {3, 4, 0, 0}), 1), {2, 2}, {0.6, 0.8, 0, 0});
  expectRefusal(b, lpNormalization(b, rows(), 1, 3), "option 'p' is 3, expected 1 or 2");
  expectValues(b, meanVarianceNormalization(b, tensor(b, {2}, {1, 3}), {0}), {2}, {-1, 1});
  expectRefusal(b, layerNormalization(b, tensor(b, {2}, {1, 2}, DType::I32), scale, bias, {}).value,
                "the operand is of type i32, expected a float type");
}

// Worked out by hand.
TEST_F(Network, BatchNormalizationGradients) {
  UOpRef x = rows(), scale = tensor(b, {2}, {1, 10}), g = tensor(b, {2, 3}, {1, 0, 0, 0, 2, 1});
  BatchNormalizationOptions options;
  options.epsilon = 1.0 / 3; // both deviations are 1: unit is -1, 0, 1
  options.axis = 0;
  options.ofBatch = true;
  UOpRef mean = tensor(b, {2}, {2, 5}), variance = tensor(b, {2}, {2.0 / 3, 2.0 / 3}), one = tensor(b, {2}, {1, 1});
  for (bool byInverse : {false, true}) {
    BatchNormalizationGradients r = batchNormalizationGradients(b, g, x, scale, mean, byInverse ? nullptr : variance,
                                                                byInverse ? one : nullptr, options);
    // g - mean(g) - unit * mean(g * unit): means of g 1/3 and 1, of g * unit -1/3 and 1/3
    expectValues(b, r.x, {2, 3}, {1.0 / 3, -1.0 / 3, 0, -20.0 / 3, 10, -10.0 / 3});
    expectValues(b, r.scale, {2}, {-1, 1});
    expectValues(b, r.bias, {2}, {1, 3});
  }
  options.ofBatch = false;
  BatchNormalizationGradients fixed = batchNormalizationGradients(b, g, x, scale, mean, variance, nullptr, options);
  expectValues(b, fixed.x, {2, 3}, {1, 0, 0, 0, 20, 10});
  BatchNormalizationGradients plain = batchNormalizationGradients(b, g, x, nullptr, mean, nullptr, one, options);
  expectValues(b, plain.x, {2, 3}, {1, 0, 0, 0, 2, 1});
  options.axis = 2;
  expectRefusal(b, batchNormalizationGradients(b, g, x, scale, mean, variance, nullptr, options).x,
                "the operand f32[2, 3] has rank 2, expected 3 or more");
}

TEST_F(Network, Activations) {
  UOpRef x = tensor(b, {5}, {-2, -0.5, 0, 0.5, 3});
  auto expect = [&](UOpRef y, std::vector<double> values) { expectValues(b, y, {5}, std::move(values)); };
  expect(gelu(b, x), {-0.04550026, -0.15426877, 0, 0.34573123, 2.99595031});
  expect(gelu(b, x, true), {-0.04540231, -0.15428599, 0, 0.34571401, 2.99636261});
  expect(swish(b, x), {-0.23840584, -0.18877033, 0, 0.31122967, 2.85772238});
  expect(mish(b, x), {-0.25250148, -0.22074377, 0, 0.37524521, 2.986535});
  expect(selu(b, x), {-1.52016647, -0.69175819, 0, 0.52535051, 3.15210307});
  expect(celu(b, x, 2), {-1.26424112, -0.44239843, 0, 0.5, 3});
  expect(hardSwish(b, x), {-0.33333333, -0.20833333, 0, 0.29166667, 3});
  expect(shrinkage(b, x, 0.25, 0.4), {-1.75, -0.25, 0, 0.25, 2.75});
  expect(prelu(b, x, tensor(b, {1}, {0.1})), {-0.2, -0.05, 0, 0.5, 3});
  expect(thresholdedRelu(b, x, 1), {0, 0, 0, 0, 3});
  expect(clip(b, x, b.b.lit(DType::F32, -1), b.b.lit(DType::F32, 1)), {-1, -0.5, 0, 0.5, 1});
  expect(sign(b, x), {-1, -1, 0, 1, 1});
  expect(swiGLU(b, x, x), {0.47681168, 0.09438517, 0, 0.15561484, 8.57316713});
  const std::pair<const char *, std::vector<double>> byName[] = {
      {"relu", {0, 0, 0, 0.5, 3}},
      {"SoftPlus", {0.12692801, 0.47407698, 0.69314718, 0.97407698, 3.04858735}},
      {"elu", {-0.86466472, -0.39346934, 0, 0.5, 3}},
      {"softsign", {-2 / 3.0, -1 / 3.0, 0, 1 / 3.0, 0.75}},
      {"hardsigmoid", {0.1, 0.4, 0.5, 0.6, 1}},
  };
  for (const auto &[name, values] : byName) {
    const Activation *a = findActivation(name);
    ASSERT_TRUE(a) << name;
    expect(activation(b, *a, x, a->alpha, a->beta), values);
  }
  EXPECT_FALSE(findActivation("gelu2"));
  expectRefusal(b, swiGLU(b, x, tensor(b, {1}, {1})), "the inputs are [5] and [1], expected one shape");
}

} // namespace
} // namespace astra::compose

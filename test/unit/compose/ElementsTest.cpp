//===- ElementsTest.cpp: resizing, sampling, indexing, order, signals, losses ===//
// Keeps:    expected numbers were worked out with NumPy from the definitions, in f64.
#include "Compose.h"
#include "astra/Compose/ElementLoss.h"
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Loss.h"
#include "astra/Compose/Order.h"
#include "astra/Compose/Quantization.h"
#include "astra/Compose/Random.h"
#include "astra/Compose/Resize.h"
#include "astra/Compose/Sampling.h"
#include "astra/Compose/Scan.h"
#include "astra/Compose/Signal.h"
#include "astra/Compose/Slices.h"
#include "astra/IR/Index.h"

namespace astra::compose {
namespace {

class Elements : public testing::Test {
protected:
  Context c;
  Composer b{c};
  UOpRef numbers(std::vector<double> v, DType t = DType::F32) {
    int64_t count = v.size();
    return tensor(b, {count}, std::move(v), t);
  }
  UOpRef image() { return tensor(b, {1, 1, 2, 2}, {1, 2, 3, 4}); }
};

TEST_F(Elements, Resize) {
  UOpRef x = numbers({10, 20});
  expectValues(b, resizeByScales(b, x, {0}, {2.0}, {}), {4}, {10, 10, 20, 20});
  ResizeOptions linear;
  linear.mode = ResizeMode::Linear;
  expectValues(b, resizeToSizes(b, x, {0}, {b.idx(4)}, linear), {4}, {10, 12.5, 17.5, 20});
  linear.coordinates = Coordinates::AlignCorners;
  expectValues(b, resizeToSizes(b, x, {0}, {b.idx(3)}, linear), {3}, {10, 15, 20});
  expectRefusal(b, resizeByScales(b, x, {0}, {-1.0}, {}),
                "the scale -1.000000 of an extent [2] is not positive or too large");
  expectRefusal(b, resizeToSizes(b, x, {0}, {}, {}), "found 0 sizes for 1 axes");
}

TEST_F(Elements, Sampling) {
  UOpRef corners = tensor(b, {1, 1, 3, 2}, {-1, -1, 1, 1, 0, 0});
  GridSampleOptions options;
  options.alignCorners = true;
  expectValues(b, gridSample(b, image(), corners, options), {1, 1, 1, 3}, {1, 4, 2.5});
  UOpRef identity = tensor(b, {1, 2, 3}, {1, 0, 0, 0, 1, 0});
  Dims size = {b.idx(1), b.idx(1), b.idx(2), b.idx(2)};
  expectValues(b, affineGrid(b, identity, size, true), {1, 2, 2, 2}, {-1, -1, 1, -1, -1, 1, 1, 1});
  expectValues(b, gridSample(b, image(), affineGrid(b, identity, size, true), options), {1, 1, 2, 2}, {1, 2, 3, 4});
  UOpRef whole = tensor(b, {1, 4}, {0, 0, 2, 2}), first = numbers({0}, DType::I64);
  RoiAlignOptions one;
  one.samplingRatio = 2;
  expectValues(b, roiAlign(b, image(), whole, first, one), {1, 1, 1, 1}, {2.5});
  one.greatest = true;
  expectValues(b, roiAlign(b, image(), whole, first, one), {1, 1, 1, 1}, {4});
  expectValues(b, maxRoiPool(b, image(), tensor(b, {1, 5}, {0, 0, 0, 1, 1}), {{1, 2}, 1}), {1, 1, 1, 2}, {3, 4});
  UOpRef w = tensor(b, {1, 1, 1, 1}, {10}), still = tensor(b, {1, 2, 2, 2}, {0, 0, 0, 0, 0, 0, 0, 0}),
         right = tensor(b, {1, 2, 2, 2}, {0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5});
  expectValues(b, deformableConvolution(b, image(), w, still, nullptr, nullptr, {}), {1, 1, 2, 2}, {10, 20, 30, 40});
  expectValues(b, deformableConvolution(b, image(), w, right, nullptr, nullptr, {}), {1, 1, 2, 2}, {15, 10, 35, 20});
  expectRefusal(b, roiAlign(b, image(), whole, numbers({0, 0}, DType::I64), one),
                "the regions are [1, 4], expected 4 numbers for each of [2] images");
}

TEST_F(Elements, Indexing) {
  UOpRef x = tensor(b, {3, 2}, {1, 2, 3, 4, 5, 6}), index = numbers({2, -3}, DType::I64);
  expectValues(b, gather(b, x, index, 0), {2, 2}, {5, 6, 1, 2});
  expectValues(b, gatherElements(b, x, tensor(b, {1, 2}, {2, 0}, DType::I64), 0), {1, 2}, {5, 2});
  expectValues(b, gatherTuples(b, x, tensor(b, {2, 2}, {0, 1, 2, 0}, DType::I64)), {2}, {2, 5});
  UOpRef zeros = tensor(b, {3}, {0, 0, 0}), twice = numbers({1, 1}, DType::I64), ones = numbers({1, 1});
  expectValues(b, scatterElements(b, ScatterKind::Add, zeros, twice, ones, 0), {3}, {0, 2, 0});
  expectValues(b, scatterTuples(b, ScatterKind::Set, zeros, tensor(b, {1, 1}, {2}, DType::I64), numbers({7})), {3},
               {0, 0, 7});
  expectValues(b, slice(b, x, 0, b.idx(2), b.idx(0), -1), {2, 2}, {5, 6, 3, 4});
  expectValues(b, slice(b, x, 1, b.idx(-1), b.idx(9)), {3, 1}, {2, 4, 6});
  UOpRef from = b.b.litInt(DType::I64, 1), to = b.b.litInt(DType::I64, 3);
  EXPECT_EQ(valuesOf(b, sliceByData(b, x, 0, from, to)), (std::vector<double>{3, 4, 5, 6}));
  expectValues(b, oneHot(b, index, b.idx(3), b.b.lit(DType::F32, 0), b.b.lit(DType::F32, 5)), {2, 3},
               {0, 0, 5, 5, 0, 0});
  expectRefusal(b, gather(b, x, index, 2), "axis 2 is outside rank 2");
  expectRefusal(b, slice(b, x, 0, b.idx(0), b.idx(1), 0), "a slice with step 0");
  UOpRef any = idxSub(c, b.b.dim("n", 0, 4), b.idx(1));
  expectRefusal(b, slice(b, x, 0, any, b.idx(3)),
                "the bound [n - 1] of a slice may be negative or not, which is not supported",
                std::errc::not_supported);
}

TEST_F(Elements, Order) {
  UOpRef x = numbers({3, 1, 3, 2});
  FirstOfAxis r = topK(b, x, b.idx(2), 0);
  expectValues(b, r.values, {2}, {3, 3});
  expectValues(b, r.indices, {2}, {0, 2});
  expectValues(b, topK(b, x, b.idx(2), 0, /*largest=*/false).values, {2}, {1, 2});
  expectRefusal(b, topK(b, x, b.idx(5), 0).values, "k is [5], the axis has [4] elements");
  expectValues(b, cumulate(b, CumulateKind::Sum, x, 0, {}), {4}, {3, 4, 7, 9});
  expectValues(b, cumulate(b, CumulateKind::Sum, x, 0, {true, false}), {4}, {0, 3, 4, 7});
  expectValues(b, cumulate(b, CumulateKind::Prod, x, 0, {false, true}), {4}, {18, 6, 6, 2});
  EXPECT_EQ(valuesOf(b, compress(b, x, numbers({1, 0, 1}, DType::Bool), 0)), (std::vector<double>{3, 3}));
  EXPECT_EQ(valuesOf(b, compress(b, tensor(b, {2, 2}, {1, 2, 3, 4}), numbers({0, 1}, DType::Bool), 1)),
            (std::vector<double>{2, 4}));
  EXPECT_EQ(valuesOf(b, nonZero(b, tensor(b, {2, 2}, {0, 5, 6, 0}))), (std::vector<double>{0, 1, 1, 0}));
  Unique u = unique(b, x, std::nullopt);
  EXPECT_EQ(valuesOf(b, u.values), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(valuesOf(b, u.first), (std::vector<double>{1, 3, 0}));
  EXPECT_EQ(valuesOf(b, u.group), (std::vector<double>{2, 0, 2, 1}));
  EXPECT_EQ(valuesOf(b, u.counts), (std::vector<double>{1, 1, 2}));
  EXPECT_EQ(valuesOf(b, unique(b, x, std::nullopt, /*ascending=*/false).values), (std::vector<double>{3, 1, 2}));
}

TEST_F(Elements, OrderByKeys) {
  UOpRef first = numbers({2, 1, 2, 1}, DType::I32), second = numbers({5, 7, 6, 8});
  expectValues(b, orderBy(b, {{first}, {second, true}}, 0), {4}, {3, 1, 2, 0});
  expectValues(b, orderBy(b, {{first}}, 0), {4}, {1, 3, 0, 2});
}

TEST_F(Elements, Slices) {
  UOpRef x = tensor(b, {2, 3}, {1, 2, 3, 4, 5, 6}), index = tensor(b, {2, 2}, {2, 0, 1, 9}, DType::I64);
  expectValues(b, selectSlices(b, x, index, 1, 1), {2, 2}, {3, 1, 5, 6}); // 9 is moved inside
  expectValues(b, selectSlices(b, x, index, 1), {2, 2, 2}, {3, 1, 2, 3, 6, 4, 5, 6});
  expectRefusal(b, selectSlices(b, x, index, 0, 1), "axis 0 and 1 batch axes do not fit the operands");
  UOpRef bools = b.cast(numbers({1, 0, 1}), DType::Bool), on = b.cast(numbers({0, 1}), DType::Bool);
  SliceAxes axes;
  axes.dropped = axes.indexed = {0};
  axes.vector = 1;
  UOpRef starts = numbers({0, 1}, DType::I64);
  expectValues(b, scatterSlices(b, ScatterKind::Min, bools, starts, on, axes), {3}, {0, 0, 1});
  expectValues(b, scatterSlices(b, ScatterKind::Max, bools, starts, on, axes), {3}, {1, 1, 1});
}

TEST_F(Elements, FoldInOrder) { // 2 x + element, from 1: the order shows
  UOpRef x = tensor(b, {3, 2}, {1, 2, 3, 4, 5, 6});
  auto step = [&](llvm::ArrayRef<UOpRef> v) {
    return std::vector<UOpRef>{b.bin(Op::Add, b.bin(Op::Mul, v[0], 2), v[1])};
  };
  std::vector<UOpRef> r = foldInOrder(b, {x}, {b.b.lit(DType::F32, 1)}, step);
  ASSERT_EQ(r.size(), 1u);
  expectValues(b, r[0], {2}, {23, 30});
  auto two = [](llvm::ArrayRef<UOpRef> v) { return v.vec(); };
  expectRefusal(b, foldInOrder(b, {x}, {b.b.lit(DType::F32, 1)}, two)[0], "the function of a fold gives 2 values");
}

TEST_F(Elements, Quantization) {
  UOpRef x = numbers({-1, 0, 0.5, 300}), half = b.b.lit(DType::F32, 0.5), three = b.b.litInt(DType::U8, 3);
  UOpRef q = quantize(b, x, half, three, {});
  EXPECT_EQ(q->dtype, DType::U8);
  expectValues(b, q, {4}, {1, 3, 4, 255});
  expectValues(b, dequantize(b, q, half, three, {}), {4}, {-1, 0, 0.5, 126});
  QuantizationOptions blocks;
  blocks.axis = 0;
  blocks.block = 2;
  expectValues(b, dequantize(b, numbers({1, 2, 3, 4}, DType::I8), numbers({10, 100}), nullptr, blocks), {4},
               {10, 20, 300, 400});
  DynamicallyQuantized d = quantizeByRange(b, numbers({0, 127.5, 255}));
  expectValues(b, d.value, {3}, {0, 128, 255});
  expectValues(b, d.scale, {}, {1});
  Quantized m{tensor(b, {1, 2}, {5, 7}, DType::U8), half, b.b.litInt(DType::U8, 1)},
      v{tensor(b, {2, 1}, {2, -3}, DType::I8), half, b.b.litInt(DType::I8, 0)};
  expectValues(b, integerProduct(b, m, v), {1, 1}, {-10});
  expectValues(b, quantizedProduct(b, m, v, {nullptr, half, b.b.litInt(DType::I8, 1)}), {1, 1}, {-4});
  Quantized pixels{tensor(b, {1, 1, 2}, {5, 7}, DType::U8), half, b.b.litInt(DType::U8, 1)},
      w{tensor(b, {1, 1, 1}, {2}, DType::I8), half, b.b.litInt(DType::I8, 0)};
  expectValues(b, integerConvolution(b, pixels, w, {}), {1, 1, 2}, {8, 12});
  expectValues(b, quantizedConvolution(b, pixels, w, {nullptr, half, b.b.litInt(DType::I8, 1)}, nullptr, {}), {1, 1, 2},
               {5, 7});
  blocks.block = -1;
  expectRefusal(b, quantize(b, x, half, three, blocks), "option 'block_size' is -1, expected 0 to 2^32");
}

TEST_F(Elements, Signal) {
  UOpRef x = tensor(b, {1, 4, 1}, {1, 2, 3, 4}), spectrum = fourierTransform(b, x, 1, nullptr, {});
  expectValues(b, spectrum, {1, 4, 2}, {10, 0, -2, 2, -2, 0, -2, -2});
  expectValues(b, fourierTransform(b, x, 1, nullptr, {false, true}), {1, 3, 2}, {10, 0, -2, 2, -2, 0});
  expectValues(b, fourierTransform(b, spectrum, 1, nullptr, {true, false}), {1, 4, 2}, {1, 0, 2, 0, 3, 0, 4, 0});
  expectValues(b, shortTimeFourierTransform(b, x, b.idx(2), nullptr, b.idx(2)), {1, 2, 2, 2},
               {3, 0, -1, 0, 7, 0, -1, 0});
  expectValues(b, window(b, hannWindow, b.idx(4), true, DType::F32), {4}, {0, 0.5, 1, 0.5});
  expectRefusal(b, fourierTransform(b, x, 2, nullptr, {}), "axis 2 holds the parts of complex values");
  expectRefusal(b, melWeights(b, 0, 16, 8000, 0, 4000, DType::F32), "a size of 0 is not in 1..2^30");
  UOpRef mel = melWeights(b, 2, 16, 8000, 0, 4000, DType::F32);
  for (double v : valuesOf(b, mel)) EXPECT_TRUE(v >= 0 && v <= 1);
  EXPECT_EQ(dimsText(mel->shape), "[9, 2]");
}

TEST_F(Elements, Loss) {
  UOpRef logs =
      tensor(b, {2, 3}, {std::log(0.2), std::log(0.3), std::log(0.5), std::log(0.6), std::log(0.3), std::log(0.1)});
  UOpRef classes = numbers({2, 0}, DType::I64), weights = numbers({1, 5, 2});
  expectValues(b, negativeLogLikelihood(b, logs, classes, nullptr, {}), {}, {0.60198640});
  expectValues(b, negativeLogLikelihood(b, logs, classes, weights, {}), {}, {0.63237333});
  ClassLossOptions options;
  options.ignored = 0;
  expectValues(b, negativeLogLikelihood(b, logs, classes, nullptr, options), {}, {-std::log(0.5)});
  options.reduction = ClassLossOptions::Reduction::None;
  expectValues(b, negativeLogLikelihood(b, logs, classes, nullptr, options), {2}, {-std::log(0.5), 0});
  UOpRef scores = tensor(b, {2, 3}, {1, 2, 3, 4, 5, 6});
  expectValues(b, crossEntropy(b, scores, classes, nullptr, {}).loss, {}, {1.40760596});
  expectRefusal(b, negativeLogLikelihood(b, logs, classes, classes, {}),
                "the weights are [2], expected one for each class of [2, 3]");
}

TEST_F(Elements, LossesOfClasses) {
  UOpRef scores = tensor(b, {1, 2}, {0, 0}), weights = numbers({1, 3}), second = tensor(b, {1}, {1}, DType::I64);
  ClassLossOptions options;
  options.smoothing = 0.2;
  expectValues(b, crossEntropy(b, scores, second, weights, options).loss, {}, {2.8 / 3 * M_LN2});
  options.reduction = ClassLossOptions::Reduction::None;
  expectValues(b, crossEntropy(b, scores, second, weights, options).loss, {1}, {2.8 * M_LN2});
  options.ignored = 1;
  expectValues(b, crossEntropy(b, scores, second, weights, options).loss, {1}, {0});
  UOpRef three = tensor(b, {1, 3}, {1, 2, 3}), first = tensor(b, {1}, {0}, DType::I64);
  expectValues(b, multiMargin(b, three, first), {1}, {5.0 / 3});
  expectRefusal(b, multiMargin(b, b.cast(three, DType::F16), first), "scores of type f16, expected f32 or f64");
  // Two steps, blank and one class, each of probability 1/2: three of four paths spell the target (1).
  UOpRef logs = tensor(b, {2, 1, 2}, std::vector<double>(4, -M_LN2)), target = tensor(b, {1, 1}, {1}, DType::I64);
  TemporalLoss r = temporalLoss(b, logs, target);
  expectValues(b, r.losses, {1}, {-std::log(0.75)});
  expectValues(b, r.lengths, {1}, {1});
  expectRefusal(b, temporalLoss(b, logs, target, 2).losses, "option 'blank' is 2, expected the number of a class");
}

TEST_F(Elements, LossesOfElements) {
  UOpRef x = tensor(b, {4}, {0.25, 1, -3, 0.5}), y = tensor(b, {4}, {1, 1, 0.5, 0});
  expectValues(b, squaredError(b, x, y), {4}, {0.5625, 0, 12.25, 0.25});
  expectValues(b, absoluteError(b, x, y), {4}, {0.75, 0, 3.5, 0.5});
  expectValues(b, smoothAbsoluteError(b, x, y, 1), {4}, {0.28125, 0, 3, 0.125});
  expectValues(b, smoothAbsoluteError(b, x, y, 0), {4}, {0.75, 0, 3.5, 0.5});
  expectValues(b, huberLoss(b, x, y, 2), {4}, {0.28125, 0, 5, 0.125});
  UOpRef p = tensor(b, {3}, {0.25, 1, 0}), q = tensor(b, {3}, {1, 0, 0});
  expectValues(b, binaryCrossEntropy(b, p, q), {3}, {std::log(4.0), 100, 0});
  double soft = std::log1p(std::exp(-0.5)), far = std::log1p(std::exp(-3.0));
  expectValues(b, binaryCrossEntropyWithLogits(b, tensor(b, {2}, {0.5, -3}), tensor(b, {2}, {1, 0}), 2), {2},
               {2 * soft, far});
  expectValues(b, divergence(b, x, y), {4}, {-0.25, -1, 0.5 * std::log(0.5) + 1.5, 0});
  expectValues(b, divergence(b, x, y, true), {4}, {0.75 * std::exp(1.0), 0, 3.5 * std::exp(0.5), -0.5});
  expectValues(b, hingeEmbedding(b, x, tensor(b, {4}, {1, -1, -1, -1}), 2), {4}, {0.25, 1, 5, 1.5});
  expectValues(b, hinge(b, x), {4}, {0.25, 1, 0, 0.5});
  expectRefusal(b, squaredError(b, x, tensor(b, {2}, {1, 2})),
                "a loss needs a prediction and a target, f32 or f64, of one type and shape; found f32[4] and f32[2]");
  expectRefusal(b, huberLoss(b, x, tensor(b, {4}, {1, 2, 3, 4}, DType::I64)),
                "a loss needs a prediction and a target, f32 or f64, of one type and shape; found f32[4] and i64[4]");
}

TEST_F(Elements, Random) {
  Generator g = generatorOf(b, 7);
  UOpRef u = uniform(b, g, {b.idx(1000)}, DType::F32, 2, 4);
  double sum = 0;
  for (double v : valuesOf(b, u)) {
    EXPECT_TRUE(v >= 2 && v < 4);
    sum += v;
  }
  EXPECT_NEAR(sum / 1000, 3, 0.1);
  EXPECT_EQ(valuesOf(b, u), valuesOf(b, uniform(b, generatorOf(b, 7), {b.idx(1000)}, DType::F32, 2, 4)));
  EXPECT_NE(valuesOf(b, u), valuesOf(b, uniform(b, nextGenerator(b), {b.idx(1000)}, DType::F32, 2, 4)));
  UOpRef never = b.broadcastTo(b.b.lit(DType::F32, 0), {b.idx(8)});
  expectValues(b, bernoulli(b, g, never, DType::F32), {8}, std::vector<double>(8, 0));
  UOpRef low = numbers({2, -1}), high = numbers({2, 0}); // data: an interval of each
  EXPECT_EQ(
      valuesOf(b, uniformBetween(b, g, {b.idx(1000)}, DType::F32, b.b.lit(DType::F32, 2), b.b.lit(DType::F32, 4))),
      valuesOf(b, u));
  std::vector<double> between = valuesOf(b, uniformBetween(b, g, {b.idx(2)}, DType::F32, low, high));
  EXPECT_TRUE(between.at(0) == 2 && between.at(1) >= -1 && between.at(1) < 0);
  expectValues(b, normalAround(b, g, {b.idx(2)}, DType::F16, low, numbers({0, 0})), {2}, {2, -1});
  UOpRef weights = tensor(b, {1, 3}, {-1000, 0, -1000});
  expectValues(b, multinomial(b, g, weights, 4, DType::I64), {1, 4}, {1, 1, 1, 1});
  Dropped d = dropout(b, g, numbers({1, 2, 3}), b.b.lit(DType::F32, 0));
  expectValues(b, d.value, {3}, {1, 2, 3});
  double squares = 0;
  for (double v : valuesOf(b, normal(b, g, {b.idx(2000)}, DType::F64))) squares += v * v;
  EXPECT_NEAR(squares / 2000, 1, 0.15);
  expectRefusal(b, uniform(b, g, {b.idx(-1)}, DType::F32), "the shape [-1] is negative or has more than 2^40 elements");
}

} // namespace
} // namespace astra::compose

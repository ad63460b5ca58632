//===- LayersTest.cpp: activations, pools and norms as frameworks of networks have them ===//
// Keeps:    expected numbers were worked out with PyTorch 2.15 in f64.
#include "Compose.h"
#include "astra/Compose/Activation.h"
#include "astra/Compose/Convolution.h"
#include "astra/Compose/Elementary.h"
#include "astra/Compose/Linalg.h"
#include "astra/Compose/Normalization.h"
#include "astra/Compose/Order.h"
#include "astra/Compose/Pooling.h"
#include "astra/Compose/Random.h"
#include "astra/Compose/Recurrent.h"
#include "astra/Compose/Reduction.h"
#include "astra/Compose/Sequence.h"

namespace astra::compose {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class Layers : public testing::Test {
protected:
  Context c;
  Composer b{c};
  UOpRef numbers(std::vector<double> v, DType t = DType::F32) {
    int64_t count = int64_t(v.size());
    return tensor(b, {count}, std::move(v), t);
  }
  UOpRef ramp(std::vector<int64_t> dims) {
    int64_t count = 1;
    for (int64_t n : dims) count *= n;
    std::vector<double> v(count);
    for (int64_t i = 0; i < count; ++i) v[i] = double(i + 1);
    return tensor(b, std::move(dims), std::move(v));
  }
};

TEST_F(Layers, Activations) {
  UOpRef x = numbers({-2, -0.5, 0, 1.5, 30});
  expectValues(b, scaledElu(b, x, 2, 3, 0.5), {5}, {-3.792723353, -1.327195302, 0, 4.5, 90});
  expectValues(b, thresholdedSoftplus(b, x, 2, 10), {5}, {0.009074964, 0.156630844, 0.34657359, 1.524293676, 30});
  expectValues(b, thresholdedSoftplus(b, x), {5}, {0.126928011, 0.474076984, 0.693147181, 1.701413278, 30});
  expectValues(b, thresholdedSoftplus(b, numbers({1, 2}), 1, 1.5), {2}, {1.313261688, 2});
  expectValues(b, logSigmoid(b, x), {5}, {-2.126928011, -0.974076984, -0.693147181, -0.201413278, 0});
  EXPECT_EQ(valuesOf(b, logSigmoid(b, numbers({-1000}))), (std::vector<double>{-1000}));
  expectValues(b, tanhShrink(b, x), {5}, {-1.03597242, -0.037882843, 0, 0.594851746, 29});
  expectValues(b, glu(b, tensor(b, {1, 4}, {1, 2, 0.5, -1})), {1, 2}, {0.622459331, 0.537882843});
  expectRefusal(b, glu(b, numbers({1, 2, 3})), "the axis that is cut in two has 3 elements");
}

TEST_F(Layers, FunctionsOfNumbers) {
  UOpRef x = numbers({-2, -0.0, 0, 3, NAN}), y = numbers({1, NAN, 1, -5, NAN});
  EXPECT_EQ(valuesOf(b, signBit(b, x)), (std::vector<double>{1, 1, 0, 0, 0}));
  EXPECT_EQ(valuesOf(b, signOrZero(b, x)), (std::vector<double>{-1, 0, 0, 1, 0}));
  EXPECT_EQ(valuesOf(b, signOrZero(b, numbers({0, 200}, DType::U8))), (std::vector<double>{0, 1}));
  std::vector<double> most = valuesOf(b, maximumNumber(b, x, y)), least = valuesOf(b, minimumNumber(b, x, y));
  EXPECT_EQ((std::vector<double>(most.begin(), most.end() - 1)), (std::vector<double>{1, 0, 1, 3}));
  EXPECT_EQ((std::vector<double>(least.begin(), least.end() - 1)), (std::vector<double>{-2, 0, 0, -5}));
  EXPECT_TRUE(std::isnan(most.back()) && std::isnan(least.back()));
  UOpRef ones = numbers({1, 1, 0.1f}), threes = numbers({3, 3, 0.7f}), weight = numbers({0, 0.25, 1});
  EXPECT_EQ(valuesOf(b, interpolated(b, ones, threes, weight)), (std::vector<double>{1, 1.5, 0.7f}));
  expectValues(b, sinc(b, numbers({0, 0.5, 1, -1.5})), {4}, {1, 0.636619772, 0, -0.212206591});
  UOpRef z = b.make(Op::Complex, {numbers({0, 0.5}), numbers({0, 0.25})});
  expectValues(b, b.un(Op::Real, sinc(b, z)), {2}, {1, 0.67461787});
  expectValues(b, b.un(Op::Imag, sinc(b, z)), {2}, {0, -0.337308935});
}

TEST_F(Layers, Softmax) {
  UOpRef x = numbers({1, 2, 3}), g = numbers({1, 0, -2});
  expectValues(b, softmaxGradient(b, g, softmax(b, x, {0}), {0}), {3}, {0.201709118, 0.303573759, -0.505282878});
  expectValues(b, logSoftmaxGradient(b, g, logSoftmax(b, x, {0}), {0}), {3}, {1.090030573, 0.244728471, -1.334759044});
  UOpRef rows = tensor(b, {2, 3}, {1, 2, 3, -infinity, -infinity, -infinity});
  expectValues(b, safeSoftmax(b, rows, {1}), {2, 3}, {0.09003057, 0.24472847, 0.66524096, 0, 0, 0});
}

TEST_F(Layers, RunningExtremes) {
  FirstOfAxis most = runningExtreme(b, numbers({1, 3, 2, 3, NAN, 5}), 0, true);
  expectValues(b, most.indices, {6}, {0, 1, 1, 3, 4, 4});
  FirstOfAxis least = runningExtreme(b, tensor(b, {1, 4}, {2, 2, 5, 1}), 1, false);
  expectValues(b, least.values, {1, 4}, {2, 2, 2, 1});
  expectValues(b, least.indices, {1, 4}, {0, 1, 1, 3});
}

TEST_F(Layers, Distributions) {
  Generator g = generatorOf(b, 7);
  Dims four = {b.idx(4)};
  std::vector<double> u = valuesOf(b, uniform(b, g, four, DType::F64)), e, c, m, l;
  for (double v : u) {
    e.push_back(-std::log(1 - v));
    c.push_back(std::tan((v - 0.5) * M_PI));
    m.push_back(-std::log(-std::log(v)));
    l.push_back(std::log(v / (1 - v)));
  }
  expectValues(b, exponential(b, g, four, DType::F64), {4}, e);
  expectValues(b, cauchy(b, g, four, DType::F64), {4}, c);
  expectValues(b, gumbel(b, g, four, DType::F64), {4}, m);
  expectValues(b, logistic(b, g, four, DType::F64), {4}, l);
  EXPECT_EQ(gumbel(b, g, four, DType::F16)->dtype, DType::F16);
}

TEST_F(Layers, SearchOfRows) {
  UOpRef rows = tensor(b, {2, 3}, {1, 2, 3, 10, 20, 30}), values = tensor(b, {2, 2}, {0, 2, 20, 40});
  expectValues(b, searchSorted(b, rows, values, false), {2, 2}, {0, 1, 1, 3});
  expectValues(b, searchSorted(b, rows, values, true), {2, 2}, {0, 2, 2, 3});
  expectRefusal(b, searchSorted(b, rows, numbers({1}), true), "values [1] are searched in rows [2, 3]");
}

TEST_F(Layers, AdaptivePools) {
  expectValues(b, adaptiveAveragePool(b, ramp({1, 1, 7}), {3}), {1, 1, 3}, {2, 4, 6});
  expectValues(b, adaptiveAveragePool(b, ramp({1, 1, 3, 4}), {3, 2}), {1, 1, 3, 2}, {1.5, 3.5, 5.5, 7.5, 9.5, 11.5});
  MaxPoolResult line = adaptiveMaxPool(b, tensor(b, {1, 1, 7}, {1, 5, 5, 2, 7, 0, 7}), {3});
  expectValues(b, line.values, {1, 1, 3}, {5, 7, 7});
  expectValues(b, line.indices, {1, 1, 3}, {1, 4, 4});
  MaxPoolResult image = adaptiveMaxPool(b, ramp({1, 1, 3, 4}), {2, 2});
  expectValues(b, image.values, {1, 1, 2, 2}, {6, 8, 10, 12});
  expectValues(b, image.indices, {1, 1, 2, 2}, {5, 7, 9, 11});
  UOpRef any = b.b.param("any", DType::F32, {b.idx(1), b.b.dim("n", 1, 9)});
  EXPECT_EQ(dimsText(adaptiveAveragePool(b, any, {1})->shape), "[1, 1]");
  expectRefusal(b, adaptiveAveragePool(b, any, {2}),
                "an axis that an adaptive pool cuts into bins must be a constant, found n", std::errc::not_supported);
  expectRefusal(b, adaptiveAveragePool(b, ramp({3}), {-1}), "a pool of -1 bins, expected 0..65536");
}

TEST_F(Layers, Windows) {
  PoolOptions sums;
  sums.window.kernel = Ints{2, 2};
  sums.window.pads = Ints{1, 1, 1, 1};
  sums.divisor = 3;
  expectValues(b, averagePool(b, ramp({1, 1, 3, 3}), sums), {1, 1, 4, 4},
               {1.0 / 3, 1, 5.0 / 3, 1, 5.0 / 3, 4, 16.0 / 3, 3, 11.0 / 3, 8, 28.0 / 3, 5, 7.0 / 3, 5, 17.0 / 3, 3});
  WindowOptions w;
  w.kernel = Ints{2, 2};
  w.strides = Ints{1, 2};
  w.pads = Ints{0, 1, 0, 1};
  expectValues(b, imageToColumns(b, ramp({1, 1, 3, 3}), w), {1, 4, 4},
               {0, 2, 0, 5, 1, 3, 4, 6, 0, 5, 0, 8, 4, 6, 7, 9});
}

TEST_F(Layers, LayerNorms) {
  UOpRef x = ramp({2, 3}), scale = numbers({1, 2, 3}), g = tensor(b, {2, 3}, {1, 0, -1, 2, 1, 0});
  LayerNormalizationOptions options;
  options.epsilon = 1.0 / 3; // the deviations are 1
  LayerNormalized plain = layerNormalization(b, x, nullptr, nullptr, options);
  expectValues(b, plain.value, {2, 3}, {-1, 0, 1, -1, 0, 1});
  BatchNormalizationGradients r = layerNormalizationGradients(b, g, x, scale, plain.mean, plain.inverse, -1);
  expectValues(b, r.x, {2, 3}, {1.0 / 3, 2.0 / 3, -1, 0, 2.0 / 3, -2.0 / 3});
  expectValues(b, r.scale, {3}, {-3, 0, -1});
  expectValues(b, r.bias, {3}, {3, 1, -1});
  LayerNormalized rms = rmsNormalization(b, x, nullptr, {});
  expectValues(b, rms.inverse, {2, 1}, {0.462909554, 0.19738547});
  expectValues(b, rms.value, {2, 3}, {0.462909554, 0.925819108, 1.388728662, 0.78954188, 0.98692735, 1.18431282});
}

TEST_F(Layers, GroupNorms) {
  UOpRef x = tensor(b, {1, 2, 2}, {1, 3, 10, 30}), scale = numbers({1, 2}), g = tensor(b, {1, 2, 2}, {1, 0, 0, -1});
  GroupNormalizationOptions options;
  options.epsilon = 0;
  LayerNormalized y = groupNormalization(b, x, scale, nullptr, options);
  expectValues(b, y.value, {1, 2, 2}, {-0.87204144, -0.697633152, -0.174408288, 3.313757473});
  expectValues(b, y.mean, {1, 1}, {11});
  expectValues(b, y.inverse, {1, 1}, {0.087204144});
  BatchNormalizationGradients r = groupNormalizationGradients(b, g, x, scale, y.mean, y.inverse, 1);
  expectValues(b, r.x, {1, 2, 2}, {0.029427254, -0.041861305, 0.013843243, -0.001409192});
  expectValues(b, r.scale, {2}, {-0.87204144, -1.656878737});
  expectValues(b, r.bias, {2}, {1, -1});
  expectRefusal(b, groupNormalizationGradients(b, g, x, scale, y.mean, y.inverse, 3).x,
                "3 groups do not divide 2 channels");
  expectValues(b, instanceNormalization(b, x, nullptr, nullptr, 0), {1, 2, 2}, {-1, 1, -1, 1});
}

TEST_F(Layers, LogarithmOfAComplexDeterminant) {
  UOpRef z =
      b.make(Op::Complex, {tensor(b, {2, 2}, {1, 2, 0, 1}, DType::F64), tensor(b, {2, 2}, {1, 0, 3, -1}, DType::F64)});
  LogDeterminant d = logDeterminant(b, z);
  expectValues(b, b.un(Op::Real, d.sign), {}, {0.316227766});
  expectValues(b, b.un(Op::Imag, d.sign), {}, {-0.948683298});
  expectValues(b, d.logarithm, {}, {1.844439727});
  d = logDeterminant(b, b.broadcastTo(b.cast(b.b.lit(DType::F64, 0), z->dtype), {b.idx(2), b.idx(2)}));
  EXPECT_EQ(valuesOf(b, d.logarithm), (std::vector<double>{-infinity}));
  EXPECT_EQ(valuesOf(b, b.un(Op::Real, d.sign)), (std::vector<double>{0}));
}

TEST_F(Layers, Sequences) {
  expectValues(b, alibi(b, 2, b.idx(2), b.idx(3)), {1, 2, 2, 3},
               {-0.0625, 0, -0.0625, -0.125, -0.0625, 0, -0.00390625, 0, -0.00390625, -0.0078125, -0.00390625, 0});
  RotaryTables t = rotaryTables(b, b.idx(3), 4, 100, DType::F32);
  expectValues(b, t.cosines, {3, 2}, {1, 1, 0.540302306, 0.995004165, -0.416146837, 0.980066578});
  expectValues(b, t.sines, {3, 2}, {0, 0, 0.841470985, 0.099833417, 0.909297427, 0.198669331});
  expectRefusal(b, alibi(b, 3, b.idx(2), b.idx(3)), "heads is a power of two, not 3");
  expectRefusal(b, rotaryTables(b, b.idx(3), 5, 100, DType::F32).cosines, "5 columns cannot be rotated in pairs");
  UOpRef lstm = numbers({1, 2, 3, 4}), gru = ramp({6, 1});
  expectValues(b, gatesInOrder(b, RecurrentCell::LSTM, lstm), {4}, {1, 4, 2, 3});
  expectValues(b, gatesInOrder(b, RecurrentCell::GRU, gru), {6, 1}, {3, 4, 1, 2, 5, 6});
  expectRefusal(b, gatesInOrder(b, RecurrentCell::GRU, lstm), "4 rows are not those of 3 gates");
}

} // namespace
} // namespace astra::compose

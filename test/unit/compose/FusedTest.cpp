//===- FusedTest.cpp: what ONNX Runtime's and scikit-learn's models are made of
// Keeps:    expected numbers were worked out by hand from the definitions.
#include "Compose.h"
#include "astra/Compose/Bifurcation.h"
#include "astra/Compose/BlockQuantization.h"
#include "astra/Compose/Features.h"
#include "astra/Compose/FusedAttention.h"
#include "astra/Compose/FusedNormalization.h"
#include "astra/Compose/Mixture.h"
#include "astra/Compose/NGrams.h"
#include "astra/Compose/QuantizedLayers.h"
#include "astra/Compose/Scores.h"
#include "astra/Compose/Trees.h"

namespace astra::compose {
namespace {

class Fused : public testing::Test {
protected:
  Context c;
  Composer b{c};

  /// Weights [1, 16] of 4 bits: 0, 1, ... 15.
  UOpRef nibbles() {
    Payload p{DType::U8, {1, 1, 8}, {}};
    for (unsigned i = 0; i < 8; ++i) p.bytes.push_back(uint8_t(2 * i | (2 * i + 1) << 4));
    return b.constant(std::move(p));
  }
};

TEST_F(Fused, BlockProduct) {
  UOpRef x = tensor(b, {2, 16},
                    {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  BlockProductOptions options{16, 1, 4, 16};
  UOpRef scale = tensor(b, {1}, {0.5});
  expectValues(b, blockProduct(b, x, {nibbles(), scale, nullptr}, nullptr, nullptr, options), {2, 1}, {-4, 3.5});
  UOpRef zero = tensor(b, {1, 1}, {2}), bias = tensor(b, {1}, {10});
  expectValues(b, blockProduct(b, x, {nibbles(), scale, zero}, nullptr, bias, options), {2, 1}, {9, 16.5});
  Payload computed{DType::U8, {1, 1, 8}, std::vector<uint8_t>(8, 0x31)};
  UOpRef byte = b.bin(Op::Add, b.constant(std::move(computed)), 0x20); // 0x51: bytes that are not known
  expectValues(b, blockProduct(b, x, {byte, scale, nullptr}, nullptr, nullptr, options), {2, 1}, {-3.5, -1.5});
  options.bits = 5;
  expectRefusal(b, blockProduct(b, x, {nibbles(), scale, nullptr}, nullptr, nullptr, options),
                "option 'bits' is 5, supported are 2, 4 and 8", std::errc::not_supported);
}

TEST_F(Fused, SinkTakesProbability) {
  AttentionOperands operands{tensor(b, {1, 1, 1, 2}, {0, 0}), tensor(b, {1, 1, 2, 2}, {1, 2, 3, 4}),
                             tensor(b, {1, 1, 2, 2}, {3, 6, 9, 12})};
  operands.sink = tensor(b, {1}, {0});
  expectValues(b, attention(b, operands, {}).result, {1, 1, 1, 2}, {4, 6}); // thirds in place of halves
}

TEST_F(Fused, CacheIsFilledAndRead) {
  CachedAttentionOperands o;
  o.query = tensor(b, {1, 1, 1}, {0}), o.key = tensor(b, {1, 1, 1}, {5}), o.value = tensor(b, {1, 1, 1}, {9});
  o.pastKey = tensor(b, {1, 1, 4, 1}, {1, 0, 0, 0}), o.pastValue = tensor(b, {1, 1, 4, 1}, {3, 0, 0, 0});
  o.last = tensor(b, {1}, {1}, DType::I64), o.total = tensor(b, {1}, {2}, DType::I64);
  CachedAttentionOptions options;
  options.heads = options.keyHeads = 1;
  AttentionResult r = cachedAttention(b, o, options);
  expectValues(b, r.result, {1, 1, 1}, {6});
  expectValues(b, r.keys, {1, 1, 4, 1}, {1, 5, 0, 0});
  options.keyHeads = 2;
  expectRefusal(b, cachedAttention(b, o, options).result, "1 query heads are not a multiple of 2 key heads");
}

TEST_F(Fused, HiddenKeysHaveANumberAdded) {
  FusedAttentionOperands o;
  o.query = tensor(b, {1, 1, 1}, {0}), o.key = tensor(b, {1, 2, 1}, {1, 2}), o.value = tensor(b, {1, 2, 1}, {3, 5});
  o.mask = tensor(b, {1}, {1}, DType::I32);
  FusedAttentionOptions options;
  options.heads = 1;
  expectValues(b, fusedAttention(b, o, options).result, {1, 1, 1}, {3});
  o.mask = tensor(b, {1, 2}, {0, 0}, DType::I32); // all keys take part
  expectValues(b, fusedAttention(b, o, options).result, {1, 1, 1}, {4});
}

TEST_F(Fused, SumNormalization) {
  UOpRef x = tensor(b, {1, 2}, {1, 2}), skip = tensor(b, {2}, {1, 4}), scale = tensor(b, {2}, {1, 2});
  SumNormalized r = sumNormalization(b, x, skip, nullptr, scale, nullptr, {0, false});
  expectValues(b, r.sum, {1, 2}, {2, 6});
  expectValues(b, r.value, {1, 2}, {-1, 2});
  expectValues(b, sumNormalization(b, x, nullptr, nullptr, scale, nullptr, {0, true}).value, {1, 2},
               {0.63245553, 2.52982213});
}

TEST_F(Fused, QuantizedLayers) {
  UOpRef one = tensor(b, {}, {1}), two = tensor(b, {}, {2});
  Quantized x{tensor(b, {2}, {10, 20}, DType::U8), one, tensor(b, {}, {4}, DType::U8)}, to{nullptr, two, nullptr};
  expectValues(b, quantizedElementProduct(b, x, x, to), {2}, {18, 128});
  expectValues(b, quantizedFunction(b, x, x, to, [&](UOpRef p, UOpRef q) { return b.bin(Op::Add, p, q); }), {2},
               {6, 16});
  Quantized m{tensor(b, {1, 2}, {3, 4}, DType::I8), two, nullptr},
      w{tensor(b, {2, 1}, {5, 6}, DType::I8), one, nullptr};
  expectValues(b, scaledProduct(b, m, w, nullptr, tensor(b, {1}, {0.5}), {}), {1, 1}, {78.5});
}

TEST_F(Fused, Trees) {
  TreeEnsemble e;
  e.nodes = {{TreeNode::AtMost, true, 1, 0.5, 1, 2}, {}, {TreeNode::Equal, false, 0, 3, 3, 4}, {}, {}};
  e.roots = {0};
  e.votes = {{1, 0, 10}, {3, 0, 20}, {4, 0, 30}};
  UOpRef x = tensor(b, {4, 2}, {3, 0, 3, 1, 4, 1, 0, std::nan("")});
  expectValues(b, treeScores(b, x, e, TreeFold::Sum), {4, 1}, {10, 20, 30, 10});
  e.nodes[2].no = 3;
  expectRefusal(b, treeScores(b, x, e, TreeFold::Sum), "the nodes form no trees: node 3 is reached twice");
  e.nodes[2].no = 5;
  expectRefusal(b, treeScores(b, x, e, TreeFold::Sum), "the nodes form no trees: node 5 does not exist");
  // a stump that votes for the second of two classes: its weight is a probability
  TreeEnsemble stump;
  stump.nodes = {{TreeNode::AtMost, false, 0, 0.5, 1, 2}, {}, {}};
  stump.roots = {0};
  stump.votes = {{1, 1, 0.25}, {2, 1, 0.75}};
  stump.targets = 2;
  Classified r = treeClasses(b, tensor(b, {2, 1}, {0, 1}), stump, {}, {7, 9}, ScoreTransform::None);
  expectValues(b, r.label, {2}, {7, 9});
  expectValues(b, r.scores, {2, 2}, {0.75, 0.25, 0.25, 0.75});
  stump.targets = 1;
  expectRefusal(b, treeClasses(b, tensor(b, {1, 1}, {0}), stump, {}, {7}, ScoreTransform::None).label,
                "one class alone is not supported", std::errc::not_supported);
}

TEST_F(Fused, ScoresAndLabels) {
  UOpRef x = tensor(b, {2, 2}, {1, 2, 3, -4});
  expectValues(b, linearScores(b, x, {1, 1}, {0.5f}, 1), {2, 1}, {3.5, -0.5});
  expectValues(b, bestLabel(b, x, {7, 9}), {2}, {9, 7});
  expectValues(b, bothClasses(b, tensor(b, {1, 1}, {0.25}), false, ScoreTransform::None), {1, 2}, {0.75, 0.25});
  KernelOptions radial{KernelFunction::Radial, 0.5, 0, 0};
  expectValues(b, kernelValues(b, tensor(b, {1, 2}, {1, 2}), {1, 2, 1, 4}, 2, radial), {1, 2}, {1, 0.13533528});
  expectRefusal(b, linearScores(b, x, {1}, {}, 1), "1 coefficients do not fit 1 targets and 2 features");
  Classified r = classified(b, tensor(b, {2, 3}, {1, 5, 2, 7, 0, 3}), {10, 20, 30}, ScoreTransform::None);
  expectValues(b, r.label, {2}, {20, 10});
  expectValues(b, r.scores, {2, 3}, {1, 5, 2, 7, 0, 3});
  r = classified(b, tensor(b, {2, 1}, {0.25, -1}), {10, 20}, ScoreTransform::None); // one score of two labels
  expectValues(b, r.label, {2}, {20, 10});
  expectValues(b, r.scores, {2, 2}, {0.75, 0.25, 2, -1});
  PairwiseScores pair{tensor(b, {1, 1}, {3}), tensor(b, {1}, {0}, DType::I64)};
  r = classifiedByPairs(b, pair, {10, 20}, ScoreTransform::None);
  expectValues(b, r.label, {1}, {10});
  expectValues(b, r.scores, {1, 2}, {-3, 3});
}

TEST_F(Fused, NGrams) {
  NGramPool pool;
  pool.grams = {{1, {{2}}, {0}}, {2, {{2, 3}, {3, 5}}, {2, 1}}}; // the n-grams (2), (2, 3) and (3, 5)
  pool.columns = 3;
  UOpRef x = tensor(b, {2, 4}, {2, 3, 2, 5, 3, 2, 3, 2}, DType::I64);
  auto scores = [&](NGramScore s, llvm::ArrayRef<float> weights) { return nGramScores(b, x, pool, s, weights); };
  expectValues(b, scores(NGramScore::Count, {}), {2, 3}, {2, 0, 1, 2, 0, 1});
  expectValues(b, scores(NGramScore::WeightIfThere, {10, 20, 30}), {2, 3}, {10, 0, 30, 10, 0, 30});
  pool.skips = 1; // 3 . 5 in the first row
  expectValues(b, scores(NGramScore::WeightedCount, {10, 20, 30}), {2, 3}, {20, 20, 30, 20, 0, 30});
  expectValues(b, nGramScores(b, b.element(x, 0, 0), pool, NGramScore::Count, {}), {3}, {2, 1, 1});
  expectRefusal(b, scores(NGramScore::Count, {1}), "found 1 weights for 3 columns");
}

TEST_F(Fused, Mixture) {
  MixtureOperands o;
  o.x = tensor(b, {1, 1}, {2});
  o.scores = tensor(b, {1, 2}, {0, std::log(3.0)}); // parts 1/4 and 3/4
  o.first.weights = tensor(b, {2, 1, 1}, {3, 5});
  o.second.weights = tensor(b, {2, 1, 1}, {1, 2});
  MixtureOptions options;
  expectValues(b, mixture(b, o, options), {1, 1}, {0.75 * 2 * 5 * 2});
  options.routing.chosen = 2;
  expectValues(b, mixture(b, o, options), {1, 1}, {0.25 * 2 * 3 + 0.75 * 2 * 5 * 2});
  options.routing.chosen = 1;
  options.routing.normalized = true;
  o.second.bias = tensor(b, {2, 1}, {100, 1});
  expectValues(b, mixture(b, o, options), {1, 1}, {21});
  o.first.weights = tensor(b, {2, 1, 1}, {std::numeric_limits<double>::infinity(), 5}); // of the expert left out
  expectValues(b, mixture(b, o, options), {1, 1}, {21});
  o.gated.weights = tensor(b, {2, 1, 1}, {1, 4});
  options.activation = MixtureOptions::SwiGLU;
  options.beta = 1;
  options.limit = 6; // gate 10 becomes 6, the other factor 8 becomes 6
  expectValues(b, mixture(b, o, options), {1, 1}, {6 / (1 + std::exp(-6.0)) * 7 * 2 + 1});
  options.routing.chosen = 3;
  expectRefusal(b, mixture(b, o, options), "3 experts of a token are not within 1 and the number of experts");
}

TEST_F(Fused, ExpertWeights) {
  auto bytes = [&](std::vector<int64_t> dims, std::vector<uint8_t> data) {
    return b.constant(Payload{DType::U8, std::move(dims), std::move(data)});
  };
  UOpRef w = bytes({1, 2, 1}, {0x21, 0x43}), scale = tensor(b, {1, 2}, {1, 10});
  expectValues(b, expertWeights(b, {w, scale, nullptr}, 4, 0), {1, 2, 2}, {-7, -6, -50, -40});
  expectValues(b, expertWeights(b, {w, scale, bytes({1, 1}, {0x31})}, 4, 0), {1, 2, 2}, {0, 1, 0, 10});
}

TEST_F(Fused, Bifurcation) {
  auto tokens = [&](std::vector<double> numbers) { return tensor(b, {int64_t(numbers.size())}, numbers, DType::I64); };
  UOpRef source = tokens({3, 4, 5, 6, 4, 5, 7});
  Bifurcation r = bifurcation(b, source, tokens({1}), tokens({3}), tokens({6, 4, 9, 9, 9}), 1, 2);
  EXPECT_EQ(valuesOf(b, r.tokens), (std::vector<double>{1, 6, 4, 9}));
  expectValues(b, r.suffix, {1}, {-1}); // 9 is not there
  expectValues(b, bifurcation(b, source, tokens({3, 4}), tokens({0}), nullptr, 1, 1).suffix, {1},
               {-1}); // 4 is there twice
  expectValues(b, bifurcation(b, source, tokens({3, 4}), tokens({0}), nullptr, 1, 2).suffix, {1}, {2});
  expectRefusal(b, bifurcation(b, source, source, source, nullptr, 2, 1).suffix,
                "n-grams of 2 to 1 tokens: expected 1 or more, ascending");
}

TEST_F(Fused, Features) {
  UOpRef x = tensor(b, {2, 2}, {1, std::nan(""), 3, 4});
  expectValues(b, imputed(b, x, {7, 8}, std::nan("")), {2, 2}, {1, 8, 3, 4});
  expectValues(b, oneHotRows(b, tensor(b, {2}, {5, 6}, DType::I64), {6, 5}), {2, 2}, {0, 1, 1, 0});
  Payload keys{DType::I64, {2}, std::vector<uint8_t>(16, 0)}, values = keys;
  keys.bytes[0] = 3, keys.bytes[8] = 4, values.bytes[0] = 30, values.bytes[8] = 40;
  UOpRef labels = encodedLabels(b, tensor(b, {3}, {4, 5, 3}, DType::I64), keys, values, b.b.litInt(DType::I64, -1));
  expectValues(b, labels, {3}, {40, -1, 30});
}

} // namespace
} // namespace astra::compose

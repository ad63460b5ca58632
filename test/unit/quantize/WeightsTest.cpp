//===- WeightsTest.cpp: modules with weights of few bits --------------------===//
// Keeps:    weights are such that the codes have their values exactly: then every result has the bits that it had, so
//           that no element is in a wrong place.
#include "astra/Quantize/Weights.h"
#include "astra/Compose/Convolution.h"
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Product.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace astra::quantize {
namespace {

using compose::Composer;

/// A module with one entry of f32 inputs.
class Model {
public:
  Module m;
  Composer b{m.ctx()};

  Model() { m.entries.push_back({"main", {}, {}, {}}); }
  UOpRef input(std::vector<int64_t> dims, DType t = DType::F32) {
    int64_t i = int64_t(m.entries[0].inputs.size());
    UOpRef x = b.b.arg(i, t, shape(dims));
    m.entries[0].inputs.push_back({"x" + std::to_string(i), x});
    return x;
  }
  /// Whole numbers of `bits` bits; rows of 32 along `along` and all longer ones have the extremes.
  UOpRef weight(const char *name, std::vector<int64_t> dims, int64_t along, int bits, DType t = DType::F32) {
    int64_t step = 1, count = 1, most = (1 << (bits - 1)) - 1;
    for (size_t i = size_t(along) + 1; i < dims.size(); ++i) step *= dims[i];
    for (int64_t d : dims) count *= d;
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = i / step % dims[along], v = (i * 7 + i / 5) % (2 * most + 1) - most;
      if (at % 32 == 3) v = bits == 8 ? most : -most - 1;
      if (at % 32 == 30) v = most;
      float f = float(v);
      uint32_t word;
      std::memcpy(&word, &f, 4);
      if (t == DType::BF16) word >>= 16;
      for (unsigned k = 0; k < byteSize(t); ++k) bytes.push_back(uint8_t(word >> 8 * k));
    }
    Param p;
    p.value = b.b.param(name, t, shape(dims));
    p.data = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
    m.params.push_back(p);
    return p.value;
  }
  void output(UOpRef y) {
    ASSERT_FALSE(b.failed()) << b.failure();
    m.entries[0].outputs.push_back({"y" + std::to_string(m.entries[0].outputs.size()), y});
  }
  std::vector<Tensor> run() {
    EXPECT_FALSE(bool(verify(m, m.stage)));
    EvalInputs in;
    for (const Value &v : m.entries[0].inputs) {
      Tensor t{v.value->dtype, {}, {}};
      for (UOpRef d : v.value->shape) t.shape.push_back(*d->constIndex());
      for (int64_t i = 0; i < t.count(); ++i) {
        float f = float(i % 11) - 5 + float(i % 3) / 8;
        int64_t n = i * 3 % 5;
        auto *p = t.dtype == DType::F32 ? reinterpret_cast<uint8_t *>(&f) : reinterpret_cast<uint8_t *>(&n);
        t.bytes.insert(t.bytes.end(), p, p + byteSize(t.dtype));
      }
      in.inputs.push_back(std::move(t));
    }
    auto done = evalEntry(m, m.entries[0], in);
    if (!done) return ADD_FAILURE() << llvm::toString(done.takeError()), std::vector<Tensor>();
    return done->outputs;
  }
  std::vector<WeightRow> quantize(std::initializer_list<const char *> rules, int64_t fewest = 1,
                                  Activations activations = Activations::Float, std::map<UOpRef, Range> ranges = {}) {
    WeightOptions o;
    o.fewest = fewest, o.activations = activations, o.ranges = std::move(ranges);
    for (const char *r : rules) EXPECT_EQ(addRule(o, r), "");
    auto rows = quantizeWeights(m, o);
    if (!rows) return ADD_FAILURE() << llvm::toString(rows.takeError()), std::vector<WeightRow>();
    return *rows;
  }
  /// Nothing changes but the parameters.
  std::vector<WeightRow> quantizeExactly(std::initializer_list<const char *> rules) {
    std::vector<Tensor> before = run();
    std::vector<WeightRow> rows = quantize(rules);
    EXPECT_EQ(run(), before);
    return rows;
  }

private:
  compose::Dims shape(llvm::ArrayRef<int64_t> dims) {
    compose::Dims s;
    for (int64_t d : dims) s.push_back(b.idx(d));
    return s;
  }
};

struct Case {
  const char *scheme;
  int bits;
};
class Exactly : public testing::TestWithParam<Case> {};

TEST_P(Exactly, ProductsOfBothOrders) {
  for (bool transposed : {false, true}) {
    Model t;
    UOpRef x = t.input({3, 64});
    UOpRef w = transposed ? t.weight("w", {8, 64}, 1, GetParam().bits) : t.weight("w", {64, 8}, 0, GetParam().bits);
    t.output(product(t.b, x, transposed ? t.b.permute(w, {1, 0}) : w));
    auto rows = t.quantizeExactly({GetParam().scheme});
    ASSERT_EQ(rows.size(), 1u);
    ASSERT_TRUE(rows[0].scheme) << rows[0].why;
    EXPECT_STREQ(rows[0].scheme->text, GetParam().scheme);
    EXPECT_EQ(rows[0].error, 0);
    EXPECT_EQ(rows[0].before, 2048u);
    EXPECT_LT(rows[0].after, 800u);
    for (const Param &p : t.m.params) EXPECT_NE(p.value->str, "w");
    EXPECT_EQ(print(t.m).find("permute"), std::string::npos); // planes lie as the sum goes
  }
}

TEST_P(Exactly, ConvolutionsAndExperts) {
  Model t;
  UOpRef image = t.input({1, 32, 5, 4});
  compose::ConvolutionOptions o;
  t.output(convolution(t.b, image, t.weight("plain", {6, 32, 3, 3}, 1, GetParam().bits), nullptr, o));
  o.groups = 2;
  UOpRef wide = t.input({1, 64, 4, 4});
  t.output(convolution(t.b, wide, t.weight("groups", {4, 32, 3, 1}, 1, GetParam().bits), nullptr, o));
  UOpRef tokens = t.input({3, 2, 32});
  t.output(product(t.b, tokens, t.weight("experts", {3, 32, 8}, 1, GetParam().bits)));
  auto rows = t.quantizeExactly({GetParam().scheme});
  ASSERT_EQ(rows.size(), 3u);
  for (const WeightRow &r : rows) {
    ASSERT_TRUE(r.scheme) << r.name << ": " << r.why;
    EXPECT_STREQ(r.scheme->text, GetParam().scheme) << r.name;
    EXPECT_EQ(r.error, 0) << r.name;
  }
}

TEST_P(Exactly, TiedEmbeddings) {
  for (DType type : {DType::F32, DType::BF16}) {
    Model t;
    UOpRef table = t.weight("table", {9, 32}, 1, GetParam().bits, type), ids = t.input({2, 3}, DType::I64);
    UOpRef rows = t.b.cast(gather(t.b, table, ids, 0), DType::F32);
    t.output(product(t.b, rows, t.b.permute(t.b.cast(table, DType::F32), {1, 0})));
    auto done = t.quantizeExactly({GetParam().scheme});
    ASSERT_EQ(done.size(), 1u);
    EXPECT_TRUE(done[0].scheme) << done[0].why;
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, Exactly,
                         testing::Values(Case{"int8", 8}, Case{"q8_0", 8}, Case{"q4_0", 4}, Case{"q4_1", 4},
                                         Case{"int4:32", 4}),
                         [](auto &info) {
                           return std::string(info.param.scheme).substr(0, 4) + std::to_string(info.index);
                         });

TEST(QuantizeWeights, RulesAndFallbacks) {
  Model t;
  UOpRef x = t.input({2, 64});
  UOpRef h = product(t.b, x, t.weight("layer.0.w", {64, 256}, 0, 8));
  h = product(t.b, h, t.weight("layer.1.w", {256, 27}, 0, 8));
  t.output(product(t.b, h, t.weight("head", {27, 8}, 0, 8)));
  auto rows = t.quantize({"layer.0.*=float", "q4_k", "layer.*=int4:128"});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].why, "not asked for");
  EXPECT_STREQ(rows[1].scheme->text, "int4:128");
  EXPECT_STREQ(rows[2].scheme->text, "int8"); // rows of 27
  EXPECT_EQ(t.m.params.size(), 6u);
}

TEST(QuantizeWeights, WhatStays) {
  Model t;
  UOpRef x = t.input({2, 32}), square = t.weight("square", {32, 32}, 0, 4), out = t.weight("out", {32, 32}, 0, 4);
  UOpRef y = product(t.b, product(t.b, x, square), t.b.permute(square, {1, 0}));
  y = t.b.bin(Op::Add, product(t.b, y, out), t.b.un(Op::Neg, t.weight("added", {2, 32}, 1, 4)));
  t.output(product(t.b, y, t.weight("small", {32, 3}, 0, 4)));
  t.output(out);
  t.output(product(t.b, y, t.weight("large", {32, 64}, 0, 4)));
  auto rows = t.quantize({"q4_0"}, 1024);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].why, "products sum it along different axes");
  EXPECT_EQ(rows[1].why, "it is an output");
  EXPECT_EQ(rows[2].why, "it has fewer than 1024 elements");
  EXPECT_TRUE(rows[3].scheme);
}

std::vector<float> floats(const Tensor &t) {
  std::vector<float> x(t.bytes.size() / 4);
  std::memcpy(x.data(), t.bytes.data(), t.bytes.size());
  return x;
}

double errorOf(llvm::ArrayRef<float> x, llvm::ArrayRef<float> y) {
  double off = 0, all = 0;
  for (size_t i = 0; i < x.size(); ++i) off += std::pow(double(y[i]) - x[i], 2), all += std::pow(double(x[i]), 2);
  return std::sqrt(off / all);
}

/// The numbers of Model::run as bytes by hand.
std::vector<float> byHand(int64_t m, int64_t k, int64_t n, llvm::ArrayRef<int8_t> w, std::optional<Range> fixed) {
  std::vector<float> x, y;
  for (int64_t i = 0; i < m * k; ++i) x.push_back(float(i % 11) - 5 + float(i % 3) / 8);
  for (int64_t i = 0; i < m; ++i) {
    llvm::ArrayRef<float> row = llvm::ArrayRef(x).slice(i * k, k);
    Range r =
        fixed ? *fixed : Range{*std::min_element(row.begin(), row.end()), *std::max_element(row.begin(), row.end())};
    float scale = (r.most - r.least) / 255, zero = std::nearbyint(-r.least / scale);
    for (int64_t j = 0; j < n; ++j) {
      int32_t sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum +=
            (int(std::min(std::max(std::nearbyint(row[l] / scale) + zero, 0.0f), 255.0f)) - int(zero)) * w[l * n + j];
      y.push_back(float(sum) * (scale * 1.0f)); // the scale of whole numbers with the extreme 127
    }
  }
  return y;
}

TEST(QuantizeActivations, ProductsAreExactInIntegers) {
  for (std::optional<Range> fixed : {std::optional<Range>(), std::optional<Range>(Range{-3, 4.5f})}) {
    Model t;
    UOpRef x = t.input({3, 64});
    t.output(product(t.b, x, t.weight("w", {64, 8}, 0, 8)));
    std::vector<float> w = floats(Tensor{DType::F32, {64, 8}, *t.m.params[0].data});
    std::vector<int8_t> bytes(w.begin(), w.end());
    if (fixed) {
      WeightOptions o;
      o.fewest = 1;
      ASSERT_EQ(addRule(o, "int8"), "");
      auto asked = activationsOf(t.m, o);
      ASSERT_TRUE(bool(asked)) << llvm::toString(asked.takeError());
      EXPECT_EQ(*asked, std::vector<UOpRef>{x});
      EXPECT_EQ(t.m.params.size(), 1u); // the module is as it was
    }
    auto rows = t.quantize({"int8"}, 1, fixed ? Activations::Static : Activations::Dynamic,
                           fixed ? std::map<UOpRef, Range>{{x, *fixed}} : std::map<UOpRef, Range>());
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_TRUE(rows[0].bytes);
    EXPECT_EQ(floats(t.run()[0]), byHand(3, 64, 8, bytes, fixed));
  }
}

/// Windows, groups and batches: near what floats give, and no row depends on others.
TEST(QuantizeActivations, AllKindsOfContracts) {
  auto build = [](Model &t, int64_t batch) {
    compose::ConvolutionOptions o;
    o.window.pads = compose::Ints{1, 1, 1, 1};
    t.output(convolution(t.b, t.input({batch, 32, 5, 4}), t.weight("plain", {6, 32, 3, 3}, 1, 8), nullptr, o));
    o.groups = 2;
    t.output(convolution(t.b, t.input({batch, 64, 4, 4}), t.weight("groups", {4, 32, 3, 1}, 1, 8), nullptr, o));
    o.groups = 32;
    t.output(convolution(t.b, t.input({batch, 32, 4, 4}), t.weight("depthwise", {32, 1, 3, 3}, 2, 8), nullptr, o));
    t.output(product(t.b, t.input({3, batch, 32}), t.weight("experts", {3, 32, 8}, 1, 8)));
    t.output(product(t.b, t.input({batch, 2, 32}), t.weight("rows", {32, 16}, 0, 8)));
  };
  Model t, alone;
  build(t, 2), build(alone, 1);
  std::vector<Tensor> floating = t.run();
  auto rows = t.quantize({"int8"}, 1, Activations::Dynamic);
  alone.quantize({"int8"}, 1, Activations::Dynamic);
  for (const WeightRow &r : rows) EXPECT_TRUE(r.bytes) << r.name;
  std::vector<Tensor> found = t.run(), one = alone.run();
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].shape, floating[i].shape);
    EXPECT_LT(errorOf(floats(floating[i]), floats(found[i])), 0.012) << i;
    EXPECT_GT(errorOf(floats(floating[i]), floats(found[i])), 1e-6) << i;
    if (i != 3) // whose batch is not the first axis
      EXPECT_EQ(std::memcmp(one[i].bytes.data(), found[i].bytes.data(), one[i].bytes.size()), 0) << i;
  }
}

TEST(QuantizeActivations, Blocks) {
  for (auto [scheme, bytes] :
       {std::pair("q8_0", true), {"q4_0", true}, {"q4_1", true}, {"q4_k", false}, {"int4:32", false}}) {
    Model t;
    t.output(product(t.b, t.input({3, 2, 256}), t.weight("w", {256, 8}, 0, 4)));
    std::vector<Tensor> floating = t.run();
    auto rows = t.quantize({scheme}, 1, Activations::Dynamic);
    EXPECT_EQ(rows[0].bytes, bytes) << scheme;
    EXPECT_LT(errorOf(floats(floating[0]), floats(t.run()[0])), bytes ? 0.012 : 0.07) << scheme;
  }
}

TEST(QuantizeWeights, Refusals) {
  WeightOptions o;
  EXPECT_NE(addRule(o, "q9").find("'q9' is not FORMAT or PATTERN=FORMAT, of float, int8, int4:32"), std::string::npos);
  EXPECT_NE(addRule(o, "=q8_0"), "");
  EXPECT_NE(addRule(o, "float"), "");
  EXPECT_EQ(addRule(o, "q8_0"), "");
  EXPECT_NE(addRule(o, "q4_0").find("both are for all weights"), std::string::npos);
  for (const char *rule : {"nothing.*=q8_0", "[=q8_0"}) {
    Model t;
    t.output(product(t.b, t.input({2, 32}), t.weight("w", {32, 32}, 0, 8)));
    std::string before = print(t.m);
    WeightOptions only;
    ASSERT_EQ(addRule(only, rule), "");
    auto rows = quantizeWeights(t.m, only);
    ASSERT_FALSE(bool(rows));
    llvm::consumeError(rows.takeError());
    EXPECT_EQ(print(t.m), before);
  }
}

} // namespace
} // namespace astra::quantize

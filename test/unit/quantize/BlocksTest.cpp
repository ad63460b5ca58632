//===- BlocksTest.cpp: floats as codes, and what the codes stand for --------===//
// Keeps:    Q4_0 ... Q8_0 are compared bit for bit with gguf-py's, which test/weights/make.py wrote down; the variable
//           ASTRA_QUANTIZED names a larger file of that program.
#include "astra/Quantize/Blocks.h"
#include "astra/IR/Eval.h"
#include "astra/Import/WeightFile.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace astra::quantize {
namespace {

std::vector<float> floats(llvm::ArrayRef<uint8_t> bytes) {
  std::vector<float> x(bytes.size() / 4);
  std::memcpy(x.data(), bytes.data(), bytes.size());
  return x;
}

std::vector<float> normal(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x(n);
  for (float &v : x) { // the sum of uniform numbers, as exact as floats are
    int sum = 0;
    for (int i = 0; i < 8; ++i) sum += int(random() % 65536) - 32768;
    v = float(sum) / 1048576;
  }
  return x;
}

double errorOf(llvm::ArrayRef<float> x, llvm::ArrayRef<float> y) {
  double off = 0, all = 0;
  for (size_t i = 0; i < x.size(); ++i) off += std::pow(double(y[i]) - x[i], 2), all += std::pow(double(x[i]), 2);
  return std::sqrt(off / all);
}

class Schemes : public testing::TestWithParam<const Scheme *> {};

TEST_P(Schemes, BlocksAreThoseOfGgufPy) {
  if (GetParam()->kind != Scheme::Ggml || GetParam()->ggml == WeightFormat::Q4_K) return;
  const char *other = std::getenv("ASTRA_QUANTIZED");
  auto file = WeightFile::open(other ? other : ASTRA_QUANTIZED_VECTORS);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  std::string name = astra::info(GetParam()->ggml).text;
  const WeightTensor *given = file->find("floats"), *blocks = file->find(name);
  ASSERT_TRUE(given && blocks);
  auto q = quantized(*GetParam(), given->dims, 1, floats(given->bytes));
  ASSERT_TRUE(q);
  std::vector<compose::Payload> planes;
  for (Plane &p : q->planes) planes.push_back(std::move(p.payload));
  auto bytes = compose::joinBlocks(GetParam()->ggml, given->dims, planes);
  ASSERT_TRUE(bool(bytes)) << llvm::toString(bytes.takeError());
  ASSERT_EQ(bytes->size(), blocks->bytes.size());
  size_t wrong = 0;
  for (size_t i = 0; i < bytes->size(); ++i) wrong += (*bytes)[i] != blocks->bytes[i];
  EXPECT_EQ(wrong, 0u);
}

TEST_P(Schemes, PlanesAreThoseOfTheFormat) {
  if (GetParam()->kind != Scheme::Ggml) return;
  std::vector<float> x = normal(3 * 512, 1);
  auto q = quantized(*GetParam(), {3, 512}, 1, x);
  ASSERT_TRUE(q);
  std::vector<compose::Payload> planes;
  for (Plane &p : q->planes) planes.push_back(p.payload);
  auto bytes = compose::joinBlocks(GetParam()->ggml, {3, 512}, planes);
  ASSERT_TRUE(bool(bytes)) << llvm::toString(bytes.takeError());
  EXPECT_EQ(bytes->size(), *weightBytes(GetParam()->ggml, {3, 512}));
  // The values that were said to be those of the planes are.
  Context c;
  compose::Composer b(c);
  UOpRef values = compose::weightValues(b, compose::storeWeight(b, "w", GetParam()->ggml, {3, 512}, *bytes));
  EvalInputs in;
  for (const Param &p : b.params) {
    Tensor t{p.value->dtype, {}, *p.data};
    for (UOpRef d : p.value->shape) t.shape.push_back(*d->constIndex());
    in.params[p.value->str.str()] = std::move(t);
  }
  auto found = evalNodes({values}, in, {});
  ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
  EXPECT_EQ(std::memcmp(found->front().bytes.data(), q->values.data(), q->values.size() * 4), 0);
}

/// Of normal numbers, relative to their own size.
TEST_P(Schemes, ErrorsAreOfTheirBits) {
  std::vector<float> x = normal(64 * 512, 2);
  auto q = quantized(*GetParam(), {64, 512}, 1, x);
  ASSERT_TRUE(q);
  const std::pair<llvm::StringRef, double> most[] = {{"int8", 0.008},  {"int4:32", 0.088}, {"int4:128", 0.110},
                                                     {"q8_0", 0.0055}, {"q5_0", 0.046},    {"q5_1", 0.0413},
                                                     {"q4_0", 0.091},  {"q4_1", 0.085},    {"q4_k", 0.075}};
  for (auto [name, bound] : most)
    if (name == GetParam()->text) {
      EXPECT_LT(errorOf(x, q->values), bound);
      EXPECT_GT(errorOf(x, q->values), bound * 0.85);
    }
}

TEST_P(Schemes, RowsOfSpecialNumbers) {
  auto one = [&](std::vector<float> x) {
    x.resize(256, x.back());
    return quantized(*GetParam(), {1, 256}, 1, x);
  };
  auto zeros = one({0.0f, -0.0f});
  ASSERT_TRUE(zeros);
  for (float v : zeros->values) EXPECT_EQ(v, 0.0f);
  for (float v : {1.0f, -1.0f, 0.25f}) {
    auto same = one({v});
    ASSERT_TRUE(same);
    for (float found : same->values) EXPECT_NEAR(found, v, std::fabs(v) * 0.02);
  }
  EXPECT_TRUE(one({1e-42f, -1e-43f})); // inverses of scales are infinite
  EXPECT_TRUE(one({1e-30f, 2e-30f}));
  EXPECT_FALSE(one({NAN, 1}));
  EXPECT_FALSE(one({1, INFINITY}));
  EXPECT_EQ(bool(one({3e38f, -3e38f})), GetParam()->kind == Scheme::Channels);
  EXPECT_FALSE(quantized(*GetParam(), {2, 0}, 1, {}));
}

TEST_P(Schemes, RowsAreApart) {
  std::vector<float> x = normal(4 * 256, 3), last(x.end() - 256, x.end());
  auto all = quantized(*GetParam(), {4, 256}, 1, x), alone = quantized(*GetParam(), {1, 256}, 1, last);
  ASSERT_TRUE(all && alone);
  EXPECT_TRUE(std::equal(alone->values.begin(), alone->values.end(), all->values.end() - 256));
}

std::vector<const Scheme *> all() {
  std::vector<const Scheme *> out;
  for (const Scheme &s : schemes()) out.push_back(&s);
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, Schemes, testing::ValuesIn(all()), [](auto &info) {
  std::string name = info.param->text;
  for (char &c : name)
    if (c == ':') c = '_';
  return name;
});

TEST(SchemeTable, Fallbacks) {
  auto fit = [](const char *name, int64_t columns) { return std::string(fitting(*schemeNamed(name), columns).text); };
  EXPECT_EQ(fit("q4_k", 512), "q4_k");
  EXPECT_EQ(fit("q4_k", 576), "q5_0");
  EXPECT_EQ(fit("q4_k", 27), "int8");
  EXPECT_EQ(fit("int4:128", 64), "int4:32");
  EXPECT_EQ(fit("int4:128", 60), "int8");
  EXPECT_EQ(fit("int8", 1), "int8");
  EXPECT_EQ(schemeNamed("q9"), nullptr);
}

} // namespace
} // namespace astra::quantize

//===- BlockTest.cpp: blocks as planes, and the values of planes ------------===//
// Keeps:    values are compared bit for bit with gguf-py's, which test/weights/make.py wrote down; the variable
//           ASTRA_WEIGHT_BLOCKS names a larger file of that program.
#include "astra/Compose/WeightBlocks.h"
#include "astra/IR/Eval.h"
#include "astra/Import/WeightFile.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace astra::compose {
namespace {

std::vector<WeightFormat> blockFormats() {
  std::vector<WeightFormat> all;
  for (unsigned i = 0; i < numWeightFormats; ++i)
    if (info(WeightFormat(i)).isBlocked()) all.push_back(WeightFormat(i));
  return all;
}

std::vector<uint8_t> randomBytes(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(n);
  for (uint8_t &b : bytes) b = uint8_t(random());
  return bytes;
}

/// The evaluator's value of x over the parameters that b has made.
Tensor evaluated(Composer &b, UOpRef x) {
  llvm::Expected<UOpRef> value = composed(b, x);
  if (!value) return ADD_FAILURE() << llvm::toString(value.takeError()), Tensor();
  EvalInputs in;
  for (const Param &p : b.params) {
    Tensor t{p.value->dtype, {}, *p.data};
    for (UOpRef d : p.value->shape) t.shape.push_back(*d->constIndex());
    in.params[p.value->str.str()] = std::move(t);
  }
  llvm::Expected<std::vector<Tensor>> found = evalNodes({*value}, in, {});
  if (!found) return ADD_FAILURE() << llvm::toString(found.takeError()), Tensor();
  canonicalizeNaN(found->front());
  return found->front();
}

class Blocks : public testing::TestWithParam<WeightFormat> {};

TEST_P(Blocks, PlanesHaveEveryBitOnce) {
  const WeightFormatInfo &f = astra::info(GetParam());
  std::vector<int64_t> dims = {3, 2, 5 * int64_t(f.elements)};
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::vector<uint8_t> bytes = randomBytes(*weightBytes(GetParam(), dims), seed);
    std::vector<Payload> planes = splitBlocks(GetParam(), dims, bytes);
    auto again = joinBlocks(GetParam(), dims, planes);
    ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
    EXPECT_EQ(*again, bytes);
    size_t total = 0;
    for (const Payload &p : planes) {
      EXPECT_EQ(tensorBytes(p.dtype, p.dims), p.bytes.size());
      total += p.bytes.size();
    }
    EXPECT_LE(total, bytes.size() + 30 * 4); // 4 bytes more for 6-bit scales of 256 elements
  }
  // One bit alone is one bit of one plane.
  std::vector<int64_t> one = {f.elements};
  for (unsigned bit = 0; bit < f.bytes * 8; ++bit) {
    std::vector<uint8_t> bytes(f.bytes);
    bytes[bit / 8] = uint8_t(1u << bit % 8);
    unsigned set = 0;
    for (const Payload &p : splitBlocks(GetParam(), one, bytes))
      for (uint8_t byte : p.bytes) set += unsigned(__builtin_popcount(byte));
    EXPECT_EQ(set, 1u) << "bit " << bit;
  }
}

TEST_P(Blocks, ValuesAreThoseOfGgufPy) {
  const char *other = std::getenv("ASTRA_WEIGHT_BLOCKS");
  auto file = WeightFile::open(other ? other : ASTRA_WEIGHT_VECTORS);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  std::string name = astra::info(GetParam()).text;
  const WeightTensor *blocks = file->find(name + ".blocks"), *values = file->find(name + ".values");
  ASSERT_TRUE(blocks && values);
  Context c;
  Composer b(c);
  Tensor found = evaluated(b, weightValues(b, storeWeight(b, "w", GetParam(), values->dims, blocks->bytes)));
  ASSERT_EQ(found.dtype, DType::F32);
  EXPECT_EQ(found.shape, values->dims);
  ASSERT_EQ(found.bytes.size(), values->bytes.size());
  size_t wrong = 0;
  for (size_t i = 0; i < found.bytes.size(); i += 4)
    wrong += std::memcmp(found.bytes.data() + i, values->bytes.data() + i, 4) != 0;
  EXPECT_EQ(wrong, 0u);
}

TEST_P(Blocks, ProductsAndRowsAreOfTheValues) {
  int64_t k = 2 * int64_t(astra::info(GetParam()).elements), n = 3;
  Context c;
  Composer b(c);
  std::vector<uint8_t> bytes = randomBytes(*weightBytes(GetParam(), {n, k}), 7);
  StoredWeight w = storeWeight(b, "w", GetParam(), {n, k}, bytes);
  Payload given{DType::F32, {2, k}, {}}, which{DType::I64, {2, 2}, {}};
  for (int64_t i = 0; i < 2 * k; ++i) {
    float v = float(i % 7) - 3;
    given.bytes.insert(given.bytes.end(), reinterpret_cast<uint8_t *>(&v), reinterpret_cast<uint8_t *>(&v) + 4);
  }
  for (int64_t i : {2, 0, 1, 2})
    which.bytes.insert(which.bytes.end(), reinterpret_cast<uint8_t *>(&i), reinterpret_cast<uint8_t *>(&i) + 8);
  UOpRef x = b.constant(given), index = b.constant(which), values = weightValues(b, w);
  Payload dense{DType::F32, {n, k}, evaluated(b, values).bytes};
  StoredWeight plain = storeWeight(b, "plain", WeightFormat::F32, {n, k}, dense.bytes);
  EXPECT_EQ(evaluated(b, weightProduct(b, x, w)), evaluated(b, weightProduct(b, x, plain)));
  Tensor rows = evaluated(b, weightRows(b, index, w));
  EXPECT_EQ(rows, evaluated(b, weightRows(b, index, plain)));
  EXPECT_EQ(rows.shape, (std::vector<int64_t>{2, 2, k}));
}

/// The same sums by hand, of values whose products and sums are exact in f32 where the order is not fixed here.
TEST_P(Blocks, ProductsOfBytes) {
  int64_t k = 3 * int64_t(astra::info(GetParam()).elements), n = 4, m = 3, blocks = k / 32;
  Context c;
  Composer b(c);
  std::vector<uint8_t> bytes = randomBytes(*weightBytes(GetParam(), {n, k}), 11);
  for (size_t at = 0; at < bytes.size(); at += astra::info(GetParam()).bytes) // scales of 1.5 and 0.75, and minima
    for (unsigned i : {1u, 3u})
      if (i == 1 || GetParam() == WeightFormat::Q4_1 || GetParam() == WeightFormat::Q5_1)
        bytes[at + i - 1] = 0, bytes[at + i] = i == 1 ? 0x3e : 0x3a;
  StoredWeight w = storeWeight(b, "w", GetParam(), {n, k}, bytes);
  Payload given{DType::F32, {m, k}, {}};
  std::vector<float> x;
  for (int64_t i = 0; i < m * k; ++i) x.push_back(i / 32 % 5 == 4 ? 0 : float((i * 37) % 101 - 50) / 8);
  given.bytes.resize(x.size() * 4);
  std::memcpy(given.bytes.data(), x.data(), given.bytes.size());
  auto product = composed(b, weightProductOfBytes(b, b.constant(given), w));
  bool supported =
      llvm::any_of(planesOf(GetParam()), [](auto &p) { return llvm::StringRef(p.suffix) == ".d" && p.elements == 32; });
  ASSERT_EQ(bool(product), supported);
  if (!product) {
    EXPECT_NE(llvm::toString(product.takeError()).find("is not multiplied by activations of 8 bits"),
              std::string::npos);
    return;
  }
  bool hasMinimum = GetParam() == WeightFormat::Q4_1 || GetParam() == WeightFormat::Q5_1;
  Tensor values = evaluated(b, weightValues(b, w)), found = evaluated(b, *product);
  auto value = [&](int64_t i) {
    float v;
    std::memcpy(&v, values.bytes.data() + 4 * i, 4);
    return v;
  };
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = -0.0f, minima = -0.0f;
      for (int64_t block = 0; block < blocks; ++block) {
        float most = 0;
        for (int64_t t = 0; t < 32; ++t) most = std::max(most, std::abs(x[size_t(i * k + block * 32 + t)]));
        float e = most / 127, inverse = e == 0 ? 0 : 1 / e;
        int32_t p = 0, all = 0;
        for (int64_t t = 0; t < 32; ++t) {
          int32_t q = int32_t(std::nearbyint(x[size_t(i * k + block * 32 + t)] * inverse));
          p += q * int32_t((value(j * k + block * 32 + t) - (hasMinimum ? 0.75f : 0)) / 1.5f);
          all += q;
        }
        sum = std::fma(float(p), e * 1.5f, sum);
        minima = std::fma(e * float(all), 0.75f, minima);
      }
      float y = hasMinimum ? sum + minima : sum, got;
      std::memcpy(&got, found.bytes.data() + 4 * (i * n + j), 4);
      EXPECT_EQ(got, y) << i << ", " << j;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Blocks, testing::ValuesIn(blockFormats()),
                         [](auto &p) { return std::string(astra::info(p.param).text); });

TEST(WeightFormat, Sizes) {
  EXPECT_EQ(weightBytes(WeightFormat::Q4_1, {3, 64}), 3u * 2 * 20);
  EXPECT_EQ(weightBytes(WeightFormat::Q4_1, {3, 33}), std::nullopt);
  EXPECT_EQ(weightBytes(WeightFormat::Q4_1, {}), std::nullopt);
  EXPECT_EQ(weightBytes(WeightFormat::BF16, {}), 2u);
  EXPECT_EQ(weightBytes(WeightFormat::F32, {int64_t(1) << 40, int64_t(1) << 40}), std::nullopt);
  EXPECT_EQ(weightBytes(WeightFormat::F32, {-1}), std::nullopt);
  EXPECT_EQ(weightFormatOfGgml(12), WeightFormat::Q4_K);
  EXPECT_EQ(weightFormatOfGgml(uint32_t(-1)), std::nullopt);
}

TEST(WeightBlocks, Refusals) {
  std::vector<Payload> planes = splitBlocks(WeightFormat::Q4_K, {256}, randomBytes(144, 1));
  planes[1].bytes[0] |= 0x80; // a scale of 6 bits
  auto joined = joinBlocks(WeightFormat::Q4_K, {256}, planes);
  ASSERT_FALSE(bool(joined));
  EXPECT_EQ(llvm::toString(joined.takeError()),
            "planes of Q4_K: '.s' has numbers of more bits than blocks have room for");
  planes.pop_back();
  joined = joinBlocks(WeightFormat::Q4_K, {256}, planes);
  EXPECT_EQ(llvm::toString(joined.takeError()), "planes of Q4_K: 5 are expected, there are 4");
  Context c;
  Composer b(c);
  StoredWeight w = storeWeight(b, "w", WeightFormat::Q8_0, {2, 32}, randomBytes(68, 1));
  UOpRef x = b.constant({DType::F32, {1, 31}, std::vector<uint8_t>(124)});
  auto refused = composed(b, weightProduct(b, x, w));
  EXPECT_EQ(llvm::toString(refused.takeError()),
            "extents 31 and 32 of the input's last axis and the weight's are not equal");
}

} // namespace
} // namespace astra::compose

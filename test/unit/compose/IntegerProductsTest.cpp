//===- IntegerProductsTest.cpp: products of dequantized values --------------===//
// Keeps:    what becomes integers, and what stays because it would not be exact or is something else; values agree
//           with those of the graph before within roundings.
#include "astra/Compose/IntegerProducts.h"
#include "Compose.h"
#include "astra/Compose/Quantization.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {
namespace {

class IntegerProductsTest : public testing::Test {
protected:
  Module m;
  Composer b{m.ctx()};

  UOpRef bytes(std::vector<int64_t> dims, unsigned from, DType t) {
    Payload p{t, dims, {}};
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    for (int64_t i = 0; i < count; ++i) p.bytes.push_back(uint8_t(from + 37 * i));
    return b.constant(std::move(p));
  }
  UOpRef scaleOf(double s) { return b.b.lit(DType::F32, s); }
  /// The value after integerProducts, and whether a contract of this type is in it.
  UOpRef after(UOpRef x) {
    m.entries = {{"main", {}, {{"y", x}}, {}}};
    integerProducts(m, b.params);
    return m.entries[0].outputs[0].value;
  }
  static bool has(UOpRef x, Op op, DType t) {
    return llvm::any_of(topoSort({x}), [&](UOpRef n) { return n->op == op && n->dtype == t; });
  }
};

TEST_F(IntegerProductsTest, ProductAndQuantization) {
  UOpRef zero = b.b.litInt(DType::U8, 7);
  UOpRef x = dequantize(b, bytes({3, 8}, 5, DType::U8), scaleOf(0.5), zero, {});
  UOpRef w = dequantize(b, bytes({8, 2}, 9, DType::I8), scaleOf(0.25), nullptr, {});
  UOpRef product = b.b.matmul(x, w), y = after(product);
  EXPECT_TRUE(has(y, Op::Contract, DType::I32));
  EXPECT_FALSE(has(y, Op::Contract, DType::F32));
  expectValues(b, y, {3, 2}, valuesOf(b, product));
  UOpRef sum = b.bin(Op::Add, product, b.b.splat(scaleOf(3), product->shape));
  UOpRef q = quantize(b, sum, scaleOf(16), b.b.litInt(DType::I8, -3), {});
  UOpRef z = after(q);
  EXPECT_FALSE(has(z, Op::Contract, DType::F32));
  expectValues(b, z, {3, 2}, valuesOf(b, q));
}

TEST_F(IntegerProductsTest, SumsThatMightWrapStay) {
  constexpr int64_t length = 1 << 17; // of 255 * 128: half of it stays below 2^31
  UOpRef x = b.b.arg(0, DType::U8, {b.idx(1), b.idx(length)}), w = b.b.arg(1, DType::I8, {b.idx(length), b.idx(1)});
  auto product = [&](int64_t n) {
    UOpRef left = b.b.shrink(x, {b.idx(0), b.idx(0)}, {b.idx(1), b.idx(n)});
    UOpRef right = b.b.shrink(w, {b.idx(0), b.idx(0)}, {b.idx(n), b.idx(1)});
    return b.b.matmul(dequantize(b, left, scaleOf(0.5), nullptr, {}), dequantize(b, right, scaleOf(0.5), nullptr, {}));
  };
  EXPECT_TRUE(has(after(product(length)), Op::Contract, DType::F32));
  EXPECT_FALSE(has(after(product(length / 2)), Op::Contract, DType::F32));
}

TEST_F(IntegerProductsTest, ScalesAlongTheSumStay) {
  UOpRef x = dequantize(b, bytes({3, 8}, 5, DType::U8), scaleOf(0.5), nullptr, {});
  QuantizationOptions rows;
  rows.axis = 0;
  UOpRef scales = b.cast(tensor(b, {8}, {1, 2, 3, 4, 5, 6, 7, 8}), DType::F32);
  UOpRef w = dequantize(b, bytes({8, 2}, 9, DType::I8), scales, nullptr, rows), product = b.b.matmul(x, w);
  EXPECT_EQ(after(product), product);
}

TEST_F(IntegerProductsTest, QuantizedAgainIsWhatItWas) {
  UOpRef zero = b.b.litInt(DType::I8, -9), x = bytes({2, 8}, 5, DType::I8);
  UOpRef moved = b.permute(dequantize(b, x, scaleOf(0.5), zero, {}), {1, 0});
  EXPECT_EQ(after(quantize(b, moved, scaleOf(0.5), zero, {})), b.permute(x, {1, 0}));
  UOpRef other = quantize(b, moved, scaleOf(0.25), zero, {}),
         shifted = quantize(b, moved, scaleOf(0.5), b.b.litInt(DType::I8, -8), {});
  EXPECT_TRUE(has(after(other), Op::RoundEven, DType::F32));
  EXPECT_TRUE(has(after(shifted), Op::RoundEven, DType::F32));
}

} // namespace
} // namespace astra::compose

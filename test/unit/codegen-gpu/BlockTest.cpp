//===- BlockTest.cpp: products whose operands threads share, against Eval ---===//
// Products, transposed and batched ones, convolutions, epilogues, sums longer than a block of 512, sizes with edges and
// sizes known at run time alone, on warps of 32 and waves of 64, with threads in several orders.
#include "RemoveBarrier.h"
#include "RunGraph.h"

using namespace astra;
using namespace astra::test;

namespace {

struct Product {
  const char *name, *text;
  std::vector<int64_t> dims = {}; // one value of each
  bool shares = true;             // its operands
};

const Product products[] = {
    {"whole", R"(
  entry @main(%x : f32[128, 48], %w : f32[48, 64]) -> (%y : f32[128, 64]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
  })"},
    {"edges", R"(
  entry @main(%x : f32[75, 37], %w : f32[37, 66]) -> (%y : f32[75, 66]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
  })"},
    {"odd", R"(
  entry @main(%x : f32[33, 21], %w : f32[21, 35]) -> (%y : f32[33, 35]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
  })"},
    {"long", R"(
  entry @main(%x : f32[34, 1100], %w : f32[1100, 36]) -> (%y : f32[34, 36]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
  })"},
    {"longWhole", R"(
  entry @main(%x : f32[32, 1056], %w : f32[1056, 36]) -> (%y : f32[32, 36]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
  })"},
    {"transposed", R"(
  entry @main(%x : f32[48, 40], %w : f32[72, 48]) -> (%y : f32[40, 72]) {
    %y = contract %x[k, i], %w[j, k] -> [i, j] sum [k]
  })"},
    {"batched", R"(
  entry @main(%q : f32[2, 3, 40, 16], %k : f32[2, 3, 40, 16]) -> (%y : f32[2, 3, 40, 40]) {
    %y = contract %q[b, h, i, d], %k[b, h, j, d] -> [b, h, i, j] sum [d]
  })"},
    {"values", R"(
  entry @main(%p : f32[2, 3, 40, 40], %v : f32[2, 40, 3, 16]) -> (%y : f32[2, 40, 3, 16]) {
    %0 = contract %p[b, h, i, j], %v[b, j, h, d] -> [b, i, h, d] sum [j]
    %y = detach %0
  })"},
    {"epilogue", R"(
  entry @main(%x : f32[50, 32], %w : f32[32, 44], %r : f32[50, 44], %b : f32[44]) -> (%y : f32[50, 44]) {
    %0 = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
    %1 = reshape %b [1, 44]
    %2 = expand %1 [50, 44]
    %3 = add %0, %2
    %4 = add %3, %r
    %5 = const 0.0 : f32
    %6 = reshape %5 [1, 1]
    %7 = expand %6 [50, 44]
    %8 = lt %4, %7
    %y = select %8, %7, %4
  })"},
    {"runtime",
     R"(
  dim n in 0..70
  dim k in 0..600
  entry @main(%x : f32[n, k], %w : f32[k, 40]) -> (%y : f32[n, 40]) {
    %y = contract %x[i, l], %w[l, j] -> [i, j] sum [l]
  })",
     {67, 530}},
    {"empty",
     R"(
  dim n in 0..70
  dim k in 0..600
  entry @main(%x : f32[n, k], %w : f32[k, 40]) -> (%y : f32[n, 40]) {
    %y = contract %x[i, l], %w[l, j] -> [i, j] sum [l]
  })",
     {9, 0}},
    {"convolution", R"(
  entry @main(%x : f32[2, 9, 10, 32], %w : f32[3, 3, 32, 40]) -> (%y : f32[2, 7, 8, 40]) {
    %y = contract %x[n, h + r, w + s, c], %w[r, s, c, o] -> [n, h: 7, w: 8, o] sum [r, s, c]
  })"},
    {"firstLayer", R"(
  entry @main(%x : f32[1, 21, 21, 3], %w : f32[7, 7, 3, 16]) -> (%y : f32[1, 8, 8, 16]) {
    %y = contract %x[n, 2*h + r, 2*w + s, c], %w[r, s, c, o] -> [n, h: 8, w: 8, o] sum [r, s, c]
  })"},
    {"transpose", R"(
  entry @main(%x : f32[35, 70]) -> (%y : f32[70, 35]) {
    %y = permute %x perm=[1, 0]
  })"},
    {"turnedSum",
     R"(
  dim n in 0..200
  entry @main(%x : f16[3, 40, n], %z : f32[n, 3, 40]) -> (%y : f32[n, 3, 40]) {
    %0 = permute %x perm=[2, 0, 1]
    %1 = cast %0 : f32[n, 3, 40]
    %2 = sqrt %z
    %y = add %1, %2
  })",
     {67}},
    {"rotateSix", R"(
  entry @main(%x : f32[4, 3, 2, 6, 5, 9]) -> (%y : f32[9, 4, 3, 2, 6, 5]) {
    %y = permute %x perm=[5, 0, 1, 2, 3, 4]
  })"},
    {"reverseSix", R"(
  entry @main(%x : f64[3, 4, 5, 4, 3, 4]) -> (%y : f64[4, 3, 4, 5, 4, 3]) {
    %y = permute %x perm=[5, 4, 3, 2, 1, 0]
  })"},
    {"rotateThree", R"(
  entry @main(%x : i16[40, 33, 35]) -> (%y : i16[35, 40, 33]) {
    %y = permute %x perm=[2, 0, 1]
  })"},
    {"turnedFew", R"(
  entry @main(%x : f32[333, 3], %z : f32[3, 333]) -> (%y : f32[3, 333]) {
    %0 = permute %x perm=[1, 0]
    %y = add %0, %z
  })"},
    {"turnedRuntime",
     R"(
  dim n in 0..20
  dim m in 0..300
  entry @main(%x : f32[5, m, n]) -> (%y : f32[n, 5, m]) {
    %y = permute %x perm=[2, 0, 1]
  })",
     {13, 131}},
    {"turnedPadded", R"(
  entry @main(%x : i8[45, 50]) -> (%y : i8[55, 49]) {
    %0 = pad %x [2, 3] [2, 2] value=7
    %y = permute %0 perm=[1, 0]
  })"},
    {"doubles", R"(
  entry @main(%x : f64[40, 24], %w : f64[24, 34]) -> (%y : f64[40, 34]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
  })"},
    {"halves", R"(
  entry @main(%x : f16[40, 24], %w : f16[24, 40]) -> (%y : f16[40, 40]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
  })"},
    {"integers", R"(
  entry @main(%x : i32[40, 24], %w : i32[24, 40]) -> (%y : i32[40, 40]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
  })"},
};

class GpuBlocks : public testing::TestWithParam<std::tuple<Product, const GpuTarget *>> {};
INSTANTIATE_TEST_SUITE_P(All, GpuBlocks, testing::Combine(testing::ValuesIn(products), testing::ValuesIn(flavours())),
                         [](const auto &i) {
                           return std::string(std::get<0>(i.param).name) +
                                  (std::get<1>(i.param)->flavour == GpuFlavour::CUDA ? "Cuda" : "Hip");
                         });

TEST_P(GpuBlocks, KeepTheirBits) {
  auto [product, target] = GetParam();
  GraphOnGpu g(product.text, *target);
  ASSERT_EQ(g.wrong, "");
  unsigned sharing = 0;
  for (const GpuLaunch &k : g.module->kernels) sharing += k.shared > 0;
  EXPECT_EQ(sharing > 0, product.shares) << g.plans();
  for (uint64_t seed : {1, 2}) EXPECT_EQ(g.difference(product.dims, seed), "") << g.plans();
}

// Tiles of every shape, two and one place in shared memory, where the edges cut all of them.
TEST(GpuTiles, KeepTheirBits) {
  const char *text = R"(
    dim n in 1..200
    entry @main(%x : f32[n, 40], %w : f32[40, 150]) -> (%y : f32[n, 150]) {
      %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
    })";
  struct {
    unsigned rows, vectors, tall, threads, deep, pipeline;
  } tiles[] = {
      {8, 2, 16, 256, 16, 2}, {8, 2, 16, 256, 32, 1}, {8, 1, 8, 128, 16, 2}, {4, 1, 1, 64, 8, 2}, {2, 1, 16, 64, 8, 1}};
  for (const GpuTarget *target : flavours())
    for (auto &t : tiles) {
      GraphOnGpu g(text, *target, true, [&](Plan &p) {
        p.mr = t.rows, p.unroll = t.vectors, p.mc = t.tall, p.threads = t.threads, p.kc = t.deep;
        p.pipeline = t.pipeline;
      });
      ASSERT_EQ(g.wrong, "");
      for (int64_t n : {1, 130, 133}) EXPECT_EQ(g.difference({n}, 5), "") << g.plans();
    }
}

// Every barrier is needed, and the emulator notices that it is gone.
TEST(GpuTiles, NoBarrierIsForNothing) {
  const char *text = R"(
    entry @main(%x : f32[64, 64], %w : f32[64, 64]) -> (%y : f32[64, 64]) {
      %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
    })";
  for (const GpuTarget *target : flavours())
    for (unsigned pipeline : {1, 2}) {
      GraphOnGpu g(text, *target, true, [&](Plan &p) { p.pipeline = pipeline; });
      ASSERT_EQ(g.wrong, "");
      ASSERT_EQ(g.difference({}, 1), "");
      EXPECT_EQ(eachBarrierRemoved(g, {}), pipeline == 1 ? 2u : 1u);
    }
}

} // namespace

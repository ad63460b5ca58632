//===- AccessTest.cpp: how kernels meet memory, from their index expressions ===//
// Checks, for kernels of every form at sizes of real networks: loads and stores of the main loops are of neighbours, no
// more than two words of one bank meet in arrays that threads share, and no thread sums more than some hundreds of
// elements of a reduction alone.
#include "RunGraph.h"

using namespace astra;
using namespace astra::test;

namespace {

struct Shape {
  const char *name, *text;
};

const Shape shapes[] = {
#define PRODUCT(name, m, k, n)                                                                                         \
  {name, "entry @main(%x : f32[" #m ", " #k "], %w : f32[" #k ", " #n "]) -> (%y : f32[" #m ", " #n "]) {\n"           \
         "%y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]\n}"}
    PRODUCT("matmul256", 256, 256, 256),
    PRODUCT("matmul1024", 1024, 1024, 1024),
    PRODUCT("ffn", 128, 768, 3072),
    {"xTransposed", R"(entry @main(%x : f32[512, 256], %w : f32[512, 128]) -> (%y : f32[256, 128]) {
       %y = contract %x[k, i], %w[k, j] -> [i, j] sum [k]
     })"},
    {"wTransposed", R"(entry @main(%x : f32[256, 512], %w : f32[128, 512]) -> (%y : f32[256, 128]) {
       %y = contract %x[i, k], %w[j, k] -> [i, j] sum [k]
     })"},
    {"scores", R"(entry @main(%q : f32[128, 12, 64], %k : f32[128, 12, 64]) -> (%y : f32[12, 128, 128]) {
       %y = contract %q[i, h, d], %k[j, h, d] -> [h, i, j] sum [d]
     })"},
    {"values", R"(entry @main(%p : f32[12, 128, 128], %v : f32[128, 12, 64]) -> (%y : f32[128, 12, 64]) {
       %y = contract %p[h, i, j], %v[j, h, d] -> [i, h, d] sum [j]
     })"},
    {"doubles", R"(entry @main(%x : f64[2048, 2048], %w : f64[2048, 2048]) -> (%y : f64[2048, 2048]) {
       %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
     })"},
    {"transpose", R"(entry @main(%x : f32[128, 256]) -> (%y : f32[256, 128]) {
       %y = permute %x perm=[1, 0]
     })"},
    {"heads", R"(entry @main(%x : f32[128, 12, 64]) -> (%y : f32[12, 64, 128]) {
       %y = permute %x perm=[1, 2, 0]
     })"},
    {"conv3x3", R"(entry @main(%x : f32[1, 16, 16, 64], %w : f32[3, 3, 64, 64]) -> (%y : f32[1, 14, 14, 64]) {
       %y = contract %x[n, h + r, w + s, c], %w[r, s, c, o] -> [n, h: 14, w: 14, o] sum [r, s, c]
     })"},
    {"conv1x1", R"(entry @main(%x : f32[1, 14, 14, 256], %w : f32[256, 64]) -> (%y : f32[1, 14, 14, 64]) {
       %y = contract %x[n, h, w, c], %w[c, o] -> [n, h, w, o] sum [c]
     })"},
};

class GpuAccesses : public testing::TestWithParam<std::tuple<Shape, const GpuTarget *>> {};
INSTANTIATE_TEST_SUITE_P(All, GpuAccesses, testing::Combine(testing::ValuesIn(shapes), testing::ValuesIn(flavours())),
                         [](const auto &i) {
                           return std::string(std::get<0>(i.param).name) +
                                  (std::get<1>(i.param)->flavour == GpuFlavour::CUDA ? "Cuda" : "Hip");
                         });

TEST_P(GpuAccesses, AreOfNeighbours) {
  auto [shape, target] = GetParam();
  GraphOnGpu g(shape.text, *target, /*build=*/false);
  ASSERT_EQ(g.wrong, "");
  for (const GpuKernel &k : g.kernels) {
    unsigned seen = 0;
    for (const GpuAccess &a : gpuAccesses(k, *target)) {
      ++seen;
      std::string where = k.kernel->plan + (a.write ? "\nwrite of " : "\nread of ") +
                          (a.buffer < 0 ? "a shared array" : "buffer " + std::to_string(a.buffer)) + ", " +
                          std::to_string(a.loops) + " loops around, " + std::to_string(a.bytes) + " bytes a thread, " +
                          std::to_string(a.sectors) + " sectors";
      EXPECT_LE(a.waste, 2.0) << where;
      EXPECT_LE(a.conflict, 2u) << where;
    }
    EXPECT_GT(seen, 1u);
    EXPECT_LE(longestFold(k), 512) << k.kernel->plan;
  }
}

} // namespace

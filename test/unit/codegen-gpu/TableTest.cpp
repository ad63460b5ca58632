//===- TableTest.cpp: what kernels take of a GPU ----------------------------===//
// Prints, for a product, the layers of ResNet-50 and attention on sm_90 and gfx942: registers, shared memory, spills,
// occupancy. Checks that nothing spills and that every kernel can run at all.
#include "RunGraph.h"

using namespace astra;
using namespace astra::test;

namespace {

std::string product(int64_t m, int64_t k, int64_t n) {
  auto s = [](int64_t v) { return std::to_string(v); };
  return "entry @main(%x : f32[" + s(m) + ", " + s(k) + "], %w : f32[" + s(k) + ", " + s(n) + "]) -> (%y : f32[" +
         s(m) + ", " + s(n) + "]) {\n%y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]\n}";
}
/// Of a batch of one, channels last, relu behind it.
std::string convolution(int64_t size, int64_t stride, int64_t in, int64_t out, int64_t kernel) {
  auto s = [](int64_t v) { return std::to_string(v); };
  std::string shape = "[1, " + s(size) + ", " + s(size) + ", " + s(out) + "]", wide = s((size - 1) * stride + kernel);
  std::string by = stride == 1 ? "" : s(stride) + "*";
  return "entry @main(%x : f32[1, " + wide + ", " + wide + ", " + s(in) + "], %w : f32[" + s(kernel) + ", " +
         s(kernel) + ", " + s(in) + ", " + s(out) + "]) -> (%y : f32" + shape + ") {\n%0 = contract %x[n, " + by +
         "h + r, " + by + "v + s, c], %w[r, s, c, o] -> [n, h: " + s(size) + ", v: " + s(size) +
         ", o] sum [r, s, c]\n%1 = const 0.0 : f32\n%2 = reshape %1 [1, 1, 1, 1]\n%3 = expand %2 " + shape +
         "\n%4 = lt %0, %3\n%y = select %4, %3, %0\n}";
}

TEST(GpuTable, WhatKernelsTake) {
  if (ptxasPath().empty()) GTEST_SKIP() << "ptxas is not installed";
  std::vector<std::pair<std::string, std::string>> work = {{"matmul 1024", product(1024, 1024, 1024)},
                                                           {"conv 7x7/2 3-64 @112", convolution(112, 2, 3, 64, 7)},
                                                           {"conv 1x1 64-64 @56", convolution(56, 1, 64, 64, 1)},
                                                           {"conv 3x3 64 @56", convolution(56, 1, 64, 64, 3)},
                                                           {"conv 1x1 64-256 @56", convolution(56, 1, 64, 256, 1)},
                                                           {"conv 3x3 128 @28", convolution(28, 1, 128, 128, 3)},
                                                           {"conv 1x1 256-512/2 @28", convolution(28, 2, 256, 512, 1)},
                                                           {"conv 3x3 256 @14", convolution(14, 1, 256, 256, 3)},
                                                           {"conv 1x1 1024-256 @14", convolution(14, 1, 1024, 256, 1)},
                                                           {"conv 3x3 512 @7", convolution(7, 1, 512, 512, 3)},
                                                           {"conv 1x1 512-2048 @7", convolution(7, 1, 512, 2048, 1)},
                                                           {"attention 12 x 128 x 64", R"(
        entry @main(%q : f32[128, 12, 64], %k : f32[128, 12, 64], %v : f32[128, 12, 64]) -> (%y : f32[128, 12, 64]) {
          %s = contract %q[i, h, d], %k[j, h, d] -> [h, i, j] sum [d]
          %m = reduce %s kind=max order=exact axes=[2]
          %m1 = reshape %m [12, 128, 1]
          %m2 = expand %m1 [12, 128, 128]
          %d = sub %s, %m2
          %e = exp %d
          %t = reduce %e kind=sum order=lane64 axes=[2]
          %t1 = reshape %t [12, 128, 1]
          %t2 = expand %t1 [12, 128, 128]
          %p = div %e, %t2
          %y = contract %p[h, i, j], %v[j, h, d] -> [i, h, d] sum [j]
        })"}};
  printf("| work | kernel | target | threads | registers | shared | stack | spills | occupancy "
         "|\n|---|---|---|---|---|---|---|---|---|\n");
  for (auto &[name, text] : work)
    for (const GpuTarget *target : flavours()) {
      GraphOnGpu g(text, *target, false);
      ASSERT_EQ(g.wrong, "") << name;
      auto m = lowerGpu(g.lowered->ctx(), g.kernels, *target, g.schedule->dims);
      ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
      auto built = buildGpu(*m);
      ASSERT_TRUE(bool(built)) << llvm::toString(built.takeError());
      for (auto [k, use] : llvm::zip(g.kernels, built->kernels)) {
        unsigned occupancy = gpuOccupancy(*target, k.threads, use.registers, use.shared);
        printf("| %s | %s | %s | %u | %u | %llu | %llu | %llu | %u %% |\n", name.c_str(), k.name.c_str(), target->name,
               k.threads, use.registers, (unsigned long long)use.shared, (unsigned long long)use.stack,
               (unsigned long long)use.spills, occupancy);
        EXPECT_EQ(use.spills, 0u) << name;
        EXPECT_GT(occupancy, 0u) << name;
      }
    }
}

} // namespace

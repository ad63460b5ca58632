//===- RowsTest.cpp: reductions over rows, emulated, against Eval -----------===//
// Rows of lengths around 64 and 4096, types of every width, several passes over a row, by a warp or by the warps of a
// block, of 32 threads and of 64, with threads in several orders; rows that are read once and kept.
#include "Layers.h"
#include "RemoveBarrier.h"
#include "RunGraph.h"

using namespace astra;
using namespace astra::test;

namespace {

constexpr const char *source = R"(
  dim m in 0..5
  entry @main(%x : f32[m, n], %d : f64[m, n], %h : f16[m, n], %i : i64[m, n], %b : i8[m, n]) -> (%s : f32[m], %t : f64[m], %u : f16[m], %v : f32[m], %w : i64[m], %k : i8[m], %p : f32[m], %y : f32[m, n], %c : f32[n]) {
    %s = reduce %x kind=sum order=lane64 axes=[1]
    %t = reduce %d kind=sum order=lane64 axes=[1]
    %u = reduce %h kind=sum order=lane64 axes=[1]
    %v = reduce %x kind=max order=exact axes=[1]
    %w = reduce %i kind=sum order=exact axes=[1]
    %k = reduce %b kind=min order=exact axes=[1]
    %p = reduce %x kind=prod order=lane64 axes=[1]
    %v0 = detach %v
    %v1 = reshape %v0 [m, 1]
    %v2 = expand %v1 [m, n]
    %e = sub %x, %v2
    %f = exp %e
    %g = reduce %f kind=sum order=lane64 axes=[1]
    %g1 = reshape %g [m, 1]
    %g2 = expand %g1 [m, n]
    %y = div %f, %g2
    %c = reduce %x kind=sum order=lane64 axes=[0]
  })";

class GpuRows : public testing::TestWithParam<std::tuple<const char *, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Chips, GpuRows,
                         testing::Combine(testing::Values("cuda:sm_90", "hip:gfx942", "hip:gfx1100"),
                                          testing::Values(4096, 20000)),
                         [](const auto &i) {
                           return llvm::StringRef(std::get<0>(i.param)).split(':').second.str() + "_" +
                                  std::to_string(std::get<1>(i.param));
                         });

TEST_P(GpuRows, KeepTheirBits) {
  auto [name, most] = GetParam();
  const GpuTarget &target = *gpuTargetNamed(name);
  GraphOnGpu graph("dim n in 0.." + std::to_string(most) + source, target);
  ASSERT_EQ(graph.wrong, "");
  unsigned byWarps = 0;
  for (const GpuKernel &k : graph.kernels) byWarps += k.group == (most > 4096 ? k.threads : target.warp);
  EXPECT_GE(byWarps, 7u) << graph.plans();
  uint64_t seed = 7;
  for (auto [rows, n] : {std::pair<int64_t, int64_t>{3, 0},
                         {2, 1},
                         {5, 31},
                         {2, 63},
                         {1, 64},
                         {4, 65},
                         {2, 1000},
                         {0, 9},
                         {2, 4095},
                         {3, 4096},
                         {2, 4097},
                         {1, 12345}})
    if (n <= most) {
      EXPECT_EQ(graph.difference({n, rows}, ++seed), "") << "rows " << rows << " of " << n;
    }
}

// Rows of which a warp has several, with values that several passes over a row need.
TEST_P(GpuRows, ShortOnesKeepTheirBits) {
  GraphOnGpu graph(R"(dim n in 0..31
    entry @main(%x : f32[5, n], %z : f32[n]) -> (%a : i64[5], %b : i64, %y : f32[5, n]) {
      %s = sinh %x
      %a = argreduce %s kind=argmin axis=1
      %t = sinh %z
      %b = argreduce %t kind=argmax axis=0
      %m = reduce %s kind=max order=exact axes=[1]
      %m1 = reshape %m [5, 1]
      %m2 = expand %m1 [5, n]
      %e = sub %s, %m2
      %f = exp %e
      %g = reduce %f kind=sum order=lane64 axes=[1]
      %g1 = reshape %g [5, 1]
      %g2 = expand %g1 [5, n]
      %y = div %f, %g2
    })",
                   *gpuTargetNamed(std::get<0>(GetParam())));
  ASSERT_EQ(graph.wrong, "");
  for (int64_t n : {0, 1, 6, 31}) EXPECT_EQ(graph.difference({n}, 3), "") << "rows of " << n;
}

// Rows of one length that are read once, by accesses as wide as that length allows: of 16, 8 and 4 bytes, with and
// without a rest; by some lanes of a warp, by a block with some chunks of a sum or one, and too long for both.
class GpuRowsOnce : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Chips, GpuRowsOnce,
                         testing::Values("cuda:sm_80", "cuda:sm_90", "hip:gfx90a", "hip:gfx942", "hip:gfx1100"),
                         [](const auto &i) { return llvm::StringRef(i.param).split(':').second.str(); });

std::string logSumExp(int64_t rows, int64_t length) { // of what a mask is added to
  std::string n = std::to_string(length), m = std::to_string(rows), all = m + ", " + n + "]";
  return "entry @main(%a : f32[" + all + ", %k : f16[" + all + ") -> (%l : f32[" + m + "], %y : f32[" + all + R"() {
      %c = cast %k : f32[)" +
         all + R"(
      %x = add %a, %c
      %m = reduce %x kind=max order=exact axes=[1]
      %m1 = reshape %m [)" +
         m + ", 1]\n%m2 = expand %m1 [" + all + R"(
      %d = sub %x, %m2
      %e = exp %d
      %l = reduce %e kind=sum order=lane64 axes=[1]
      %g = log %l
      %g1 = reshape %g [)" +
         m + ", 1]\n%g2 = expand %g1 [" + all + R"(
      %y = sub %d, %g2
    })";
}

TEST_P(GpuRowsOnce, KeepTheirBits) {
  const GpuTarget &target = *gpuTargetNamed(GetParam());
  unsigned once = 0;
  for (int64_t n : {3, 66, 96, 130, 516, 1001, 4096, 4100, 8194, 40000})
    for (const std::string &text : {softmax(5, n), norm(3, n, true), norm(2, n, false), logSumExp(3, n)}) {
      if (n > 9000 && text != softmax(5, n)) continue;
      GraphOnGpu g(text, target);
      ASSERT_EQ(g.wrong, "") << n;
      EXPECT_EQ(g.difference({}, uint64_t(n)), "") << g.plans();
      once += g.plans().find("; width ") != std::string::npos;
    }
  EXPECT_GE(once, 30u);
}

// A thread that reads what another keeps before that is there, or after, is noticed.
TEST_P(GpuRowsOnce, NoBarrierIsForNothing) {
  const GpuTarget &target = *gpuTargetNamed(GetParam());
  for (const std::string &text : {softmax(2, 1500), norm(2, 4500, true)}) {
    GraphOnGpu g(text, target);
    ASSERT_EQ(g.wrong, "");
    ASSERT_NE(g.plans().find("; width "), std::string::npos) << g.plans();
    EXPECT_GE(eachBarrierRemoved(g, {}), 2u) << g.plans();
  }
}

} // namespace

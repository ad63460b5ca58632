//===- ThinTest.cpp: products of few results, emulated, against Eval --------===//
// Products of one row and of a few, of either layout, dots, decode attention, matrix times vector, batch-1
// convolutions: sums of one chain of 512 and of several, which threads share, of lengths that cut the last one, known
// at run time alone or zero; masks in the operands; types of every width; other plans; and each with every barrier
// removed, which must fail.
#include "Layers.h"
#include "RemoveBarrier.h"
#include "RunGraph.h"

using namespace astra;
using namespace astra::test;

namespace {

struct Thin {
  const char *name;
  std::string text;
  std::vector<std::vector<int64_t>> dims = {{}}; // values of each dim, call by call
  const char *plan = "; split-k ";               // what a plan must have where warps are of 32
};

const Thin products[] = {
    {"row",
     one("%x : f32[1, 1300], %w : f32[1300, 50]", "f32[1, 50]", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"rowTurned",
     one("%x : f32[1, 1300], %w : f32[70, 1300]", "f32[1, 70]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]")},
    {"rowOdd",
     one("%x : f32[1, 1543], %w : f32[33, 1543]", "f32[1, 33]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]")},
    {"rowShort",
     one("%x : f32[1, 100], %w : f32[90, 100]", "f32[1, 90]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]"),
     {{}},
     "; kc "},
    {"rows",
     one("%x : f32[7, 1030], %w : f32[1030, 45]", "f32[7, 45]", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"rowsTurned",
     one("%x : f32[3, 2048], %w : f32[45, 2048]", "f32[3, 45]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]")},
    {"symbolic",
     "dim m in 0..8\ndim k in 0..3000\n" +
         one("%x : f32[m, k], %w : f32[k, 40]", "f32[m, 40]", "contract %x[i, l], %w[l, j] -> [i, j] sum [l]"),
     {{1, 2561}, {3, 512}, {8, 513}, {2, 1}, {1, 0}, {0, 600}}},
    {"symbolicTurned",
     "dim k in 0..3000\ndim n in 0..100\n" +
         one("%x : f32[1, k], %w : f32[n, k]", "f32[1, n]", "contract %x[i, l], %w[j, l] -> [i, j] sum [l]"),
     {{1024, 77}, {1, 5}, {0, 3}, {1537, 64}, {3000, 1}}},
    {"dot", one("%x : f32[5000], %z : f32[5000]", "f32", "contract %x[k], %z[k] -> [] sum [k]")},
    {"dotLong", one("%x : f32[140003], %z : f32[140003]", "f32", "contract %x[k], %z[k] -> [] sum [k]")},
    {"dotSymbolic",
     "dim n in 0..10000\n" + one("%x : f32[n], %z : f32[n]", "f32", "contract %x[k], %z[k] -> [] sum [k]"),
     {{0}, {1}, {511}, {9999}}},
    {"dots", one("%x : f32[37, 1100], %z : f32[37, 1100]", "f32[37]", "contract %x[b, k], %z[b, k] -> [b] sum [k]")},
    {"dotsShort",
     one("%x : f64[100, 33], %z : f64[100, 33]", "f64[100]", "contract %x[b, k], %z[b, k] -> [b] sum [k]"),
     {{}},
     "; kc "},
    {"matrixVector", one("%x : f32[99, 1040], %z : f32[1040]", "f32[99]", "contract %x[i, k], %z[k] -> [i] sum [k]")},
    {"vectorMatrix", one("%x : f32[1040, 99], %z : f32[1040]", "f32[99]", "contract %x[k, i], %z[k] -> [i] sum [k]")},
    {"matrixColumn",
     one("%x : f32[99, 1040], %z : f32[1040, 1]", "f32[99, 1]", "contract %x[i, k], %z[k, j] -> [i, j] sum [k]")},
    {"scores",
     "dim t in 1..1500\n" + one("%q : f32[1, 3, 1, 64], %k : f32[1, 3, t, 64]", "f32[1, 3, 1, t]",
                                "contract %q[b, h, i, d], %k[b, h, j, d] -> [b, h, i, j] sum [d]"),
     {{1}, {70}, {513}},
     "; kc "},
    {"values",
     "dim t in 1..1500\n" + one("%p : f32[1, 3, 1, t], %v : f32[1, 3, t, 64]", "f32[1, 3, 1, 64]",
                                "contract %p[b, h, i, j], %v[b, h, j, d] -> [b, h, i, d] sum [j]"),
     {{1}, {70}, {513}, {1500}}},
    {"pointwise", one("%x : f32[1, 7, 7, 960], %w : f32[960, 40]", "f32[1, 7, 7, 40]",
                      "contract %x[n, h, w, c], %w[c, o] -> [n, h, w, o] sum [c]")},
    {"window", one("%x : f32[1, 5, 5, 1100], %w : f32[3, 3, 1100, 10]", "f32[1, 3, 3, 10]",
                   "contract %x[n, h + r, w + s, c], %w[r, s, c, o] -> [n, h: 3, w: 3, o] sum [r, s, c]")},
    {"windowBeyond",
     one("%x : f32[1, 5, 5, 600], %w : f32[3, 3, 600, 10]", "f32[1, 5, 5, 10]",
         "contract %x[n, h + r - 1, w + s - 1, c], %w[r, s, c, o] -> [n, h: 5, w: 5, o] sum [r, s, c]")},
    {"depthwise",
     one("%x : f32[1, 9, 9, 96], %w : f32[3, 3, 96]", "f32[1, 7, 7, 96]",
         "contract %x[n, h + r, w + s, c], %w[r, s, c] -> [n, h: 7, w: 7, c] sum [r, s]"),
     {{}},
     "threads 64"},
    {"depthwisePlanes",
     one("%x : f32[1, 40, 9, 9], %w : f32[40, 3, 3]", "f32[1, 40, 7, 7]",
         "contract %x[n, c, h + r, w + s], %w[c, r, s] -> [n, c, h: 7, w: 7] sum [r, s]"),
     {{}},
     "threads "},
    {"padded", R"(
  entry @main(%x : f32[1, 1000], %w : f32[40, 1040]) -> (%y : f32[1, 40]) {
    %0 = pad %x [0, 17] [0, 23] value=2.5
    %y = contract %0[i, k], %w[j, k] -> [i, j] sum [k]
  })"},
    {"gathered", R"(
  entry @main(%t : f32[30, 1200], %i : i64[2], %w : f32[1200, 40]) -> (%y : f32[2, 40]) {
    %0 = gather %t, %i axis=0
    %y = contract %0[i, k], %w[k, j] -> [i, j] sum [k]
  })"},
    {"inDomain", one("%x : f32[4, 1100], %w : f32[1100, 40]", "f32[4, 40]",
                     "contract %x[i, k], %w[k, j] -> [i, j] sum [k] where k <= 300*i + 200")},
    {"epilogue", R"(
  entry @main(%x : f32[2, 1500], %w : f32[40, 1500], %b : f32[40]) -> (%y : f32[2, 40]) {
    %0 = contract %x[i, k], %w[j, k] -> [i, j] sum [k]
    %1 = reshape %b [1, 40]
    %2 = expand %1 [2, 40]
    %3 = add %0, %2
    %y = sqrt %3
  })"},
    {"doubles",
     one("%x : f64[1, 1300], %w : f64[50, 1300]", "f64[1, 50]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]")},
    {"halves",
     one("%x : f16[1, 1300], %w : f16[50, 1300]", "f16[1, 50]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]")},
    {"shortFloats", R"(
  entry @main(%x : f32[1, 1300], %w : f32[50, 1300]) -> (%y : bf16[1, 50]) {
    %0 = cast %x : bf16[1, 1300]
    %1 = cast %w : bf16[50, 1300]
    %y = contract %0[i, k], %1[j, k] -> [i, j] sum [k]
  })"},
    {"integers",
     one("%x : i32[1, 1300], %w : i32[50, 1300]", "i32[1, 50]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]")},
    {"bytes", R"(
  entry @main(%x : i8[1, 1300], %w : i8[50, 1300]) -> (%y : i32[1, 50]) {
    %0 = cast %x : i32[1, 1300]
    %1 = cast %w : i32[50, 1300]
    %y = contract %0[i, k], %1[j, k] -> [i, j] sum [k]
  })"},
};

class GpuThin : public testing::TestWithParam<std::tuple<Thin, const GpuTarget *>> {};
INSTANTIATE_TEST_SUITE_P(All, GpuThin, testing::Combine(testing::ValuesIn(products), testing::ValuesIn(flavours())),
                         [](const auto &i) {
                           return std::string(std::get<0>(i.param).name) +
                                  (std::get<1>(i.param)->flavour == GpuFlavour::CUDA ? "Cuda" : "Hip");
                         });

TEST_P(GpuThin, KeepTheirBits) {
  auto [thin, target] = GetParam();
  GraphOnGpu g(thin.text, *target);
  ASSERT_EQ(g.wrong, "");
  if (target->warp == 32) {
    EXPECT_NE(g.plans().find(thin.plan), std::string::npos) << g.plans();
  }
  for (auto &dims : thin.dims) EXPECT_EQ(g.difference(dims, 3), "") << g.plans() << testing::PrintToString(dims);
}

// Any number of chains, rows and columns of a thread, under any label.
TEST(GpuThinPlans, KeepTheirBits) {
  std::string row =
      one("%x : f32[1, 1300], %w : f32[50, 1300]", "f32[1, 50]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]");
  std::string dots = one("%x : f32[37, 5, 1100], %z : f32[37, 1100]", "f32[37, 5]",
                         "contract %x[b, i, k], %z[b, k] -> [b, i] sum [k]");
  std::string window = one("%x : f32[1, 5, 5, 1100], %w : f32[3, 3, 1100, 10]", "f32[1, 3, 3, 10]",
                           "contract %x[n, h + r, w + s, c], %w[r, s, c, o] -> [n, h: 3, w: 3, o] sum [r, s, c]");
  struct {
    const std::string &text;
    const char *plan;
  } plans[] = {
      {row, "contract: n 1; m 0; mr 1; vector 1; nr 1; threads 64; split-k 64; mc 1; kc 8; pipeline 2"},
      {row, "contract: n 1; m 0; mr 2; vector 4; nr 2; threads 128; split-k 4; mc 2; kc 8; pipeline 1"},
      {row, "contract: n 1; m 0; mr 4; vector 1; nr 4; threads 128; split-k 2; mc 4; kc 16; pipeline 2"},
      {row, "contract: n 0; m 1; mr 2; vector 2; nr 1; threads 64; split-k 2; mc 16; kc 4; pipeline 2"},
      {row, "contract: m 1; mr 4; vector 1; nr 1; threads 64; split-k 4; mc 16; kc 16; pipeline 2"},
      {row, "contract: n 1; m; mr 1; vector 4; nr 1; threads 128; split-k 2; mc 1; kc 2; pipeline 1"},
      {dots, "contract: n 0; m 1; mr 2; vector 1; nr 2; threads 128; split-k 4; mc 4; kc 4; pipeline 2"},
      {dots, "contract: n 0; m; mr 1; vector 4; nr 1; threads 64; split-k 2; mc 1; kc 16; pipeline 1"},
      {dots, "contract: n 1; m; mr 1; vector 2; nr 1; threads 64; split-k 16; mc 1; kc 16; pipeline 2"},
      {dots, "contract: m; mr 1; vector 1; nr 1; threads 64; split-k 64; mc 1; kc 32; pipeline 2"},
      {window, "contract: n 3; m 0 1 2; mr 2; vector 4; nr 1; threads 64; split-k 2; mc 4; kc 16; pipeline 2"},
      {window, "contract: n 3; m 2; mr 1; vector 4; nr 1; threads 64; split-k 16; mc 1; kc 16; pipeline 2"},
  };
  for (const GpuTarget *target : flavours())
    for (auto &[text, plan] : plans) {
      GraphOnGpu chosen(text, *target, false);
      Plan p = llvm::cantFail(parsePlan(plan));
      for (const KernelSpec &k : chosen.schedule->kernels)
        if (k.rootOp) {
          EXPECT_EQ(llvm::toString(checkGpuPlan(k, p, *target)), "");
        }
      GraphOnGpu g(text, *target, true, [&](Plan &q) {
        if (q.kind == PlanKind::Contract) q = p;
      });
      ASSERT_EQ(g.wrong, "") << plan;
      EXPECT_NE(g.plans().find(plan), std::string::npos) << g.plans();
      EXPECT_EQ(g.difference({}, 2), "") << plan;
    }
}

// A thread that goes on too early is noticed, wherever it is.
TEST(GpuThinPlans, NoBarrierIsForNothing) {
  for (const GpuTarget *target : flavours())
    for (const Thin &thin : products) {
      if (!llvm::is_contained({"rowTurned", "dot", "rows"}, llvm::StringRef(thin.name))) continue;
      GraphOnGpu g(thin.text, *target);
      ASSERT_EQ(g.wrong, "");
      ASSERT_EQ(g.difference({}, 1), "");
      EXPECT_GE(eachBarrierRemoved(g, {}), 2u) << thin.name;
    }
}

} // namespace

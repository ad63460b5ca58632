//===- RingTest.cpp: operands that come by asynchronous copies ---------------===//
// Takes:    products under plans with `stages`.
// Checks:   the evaluator's bytes, also where edges cut tiles, sums and vectors; that the emulator objects to each wait
//           and barrier that is missing or waits for less, and to each group that is not closed; which plans are
//           refused.
#include "RemoveBarrier.h"
#include <gtest/gtest.h>

using namespace astra;
using namespace astra::test;

namespace {

const GpuTarget &hopper() { return *gpuTargetNamed("cuda:sm_90"); }

std::function<void(Plan &)> under(std::string plan) {
  return [plan](Plan &p) {
    if (p.kind == PlanKind::Contract) p = llvm::cantFail(parsePlan(plan));
  };
}

struct Case {
  const char *text, *plan;
  std::vector<std::vector<int64_t>> dims;
};

const char *const product = R"(
  dim n in 1..140
  entry @main(%x : f32[n, 600], %w : f32[600, 70]) -> (%y : f32[n, 70]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
  })";
// Neighbours of both operands are points; rows of whole vectors.
const char *const turned = R"(
  dim n in 1..140
  entry @main(%x : f32[96, 64], %w : f32[n, 96]) -> (%y : f32[64, n]) {
    %y = contract %x[k, i], %w[j, k] -> [i, j] sum [k]
  })";
// Steps that are cut off at a length which nobody knows; an epilogue.
const char *const cut = R"(
  dim n in 0..75
  entry @main(%x : f32[40, n], %w : f32[n, 64], %b : f32[64]) -> (%y : f32[40, 64]) {
    %p = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
    %c = reshape %b [1, 64]
    %d = expand %c [40, 64]
    %y = add %p, %d
  })";
const char *const wide = R"(
  dim n in 1..40
  entry @main(%x : f64[n, 72], %w : f64[72, 36]) -> (%y : f64[n, 36]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
  })";
// Padding: taps outside are zeros that are multiplied.
const char *const window = R"(
  dim n in 1..3
  entry @main(%x : f32[n, 8, 6, 6], %w : f32[16, 8, 3, 3]) -> (%y : f32[n, 16, 6, 6]) {
    %y = contract %x[b, c, h + kh - 1, v + kw - 1], %w[o, c, kh, kw] -> [b, o, h: 6, v: 6] sum [c, kh: 3, kw: 3]
  })";

const Case cases[] = {
    {product, "contract: n 1; m 0; mr 2; vector 4; nr 1; threads 64; mc 8; kc 16; unroll-k 8; stages 2", {{1}, {33}}},
    {product, "contract: n 1; m 0; mr 8; vector 4; nr 2; row-block 2; threads 64; mc 8; kc 8; stages 4", {{7}, {140}}},
    {product, "contract: n 1; m 0; mr 4; vector 4; nr 1; threads 128; mc 8; kc 16; unroll-k 16; stages 3", {{130}}},
    {product, "contract: n 1; m 0; mr 2; vector 4; nr 2; threads 64; mc 8; kc 16; spill-sums 1; stages 3", {{33}}},
    {product,
     "contract: n 1; m 0; mr 2; vector 4; nr 1; threads 64; split-k 2; mc 4; kc 8; spill-sums 1; stages 2",
     {{9}}},
    {product,
     "contract: n 1; m 0; mr 8; vector 4; nr 4; row-block 2; threads 256; mc 16; kc 16; spill-sums 1; stages 3",
     {{133}}},
    {turned, "contract: n 0; m 1; mr 2; vector 1; nr 4; threads 64; mc 8; kc 4; stages 5", {{67}}},
    {turned, "contract: n 0; m 1; mr 2; vector 4; nr 1; threads 64; mc 8; kc 8; stages 3", {{3}, {140}}},
    {cut, "contract: n 1; m 0; mr 2; vector 4; nr 1; threads 64; mc 8; kc 8; stages 3", {{0}, {1}, {8}, {17}, {75}}},
    {wide, "contract: n 1; m 0; mr 2; vector 2; nr 2; threads 64; mc 8; kc 8; stages 4", {{1}, {40}}},
    {product, "contract: n 1; m 0; mr 2; vector 4; nr 1; threads 64; split-k 2; mc 4; kc 8; stages 3", {{9}}},
    {window, "contract: n 1; m 0 2 3; mr 2; vector 4; nr 1; threads 64; mc 8; kc 8; stages 3", {{2}}},
};

TEST(GpuRings, KeepTheirBits) {
  for (const Case &t : cases) {
    GraphOnGpu g(t.text, hopper(), true, under(t.plan));
    ASSERT_EQ(g.wrong, "") << t.plan;
    for (const KernelSpec &spec : g.schedule->kernels)
      if (spec.rootOp && spec.rootOp->op == Op::Contract)
        EXPECT_EQ(llvm::toString(checkGpuPlan(spec, llvm::cantFail(parsePlan(t.plan)), hopper())), "");
    EXPECT_NE(g.module->bitcode.find("cp.async"), std::string::npos) << t.plan;
    for (const auto &dims : t.dims) EXPECT_EQ(g.difference(dims, 3), "") << t.plan << ", dim " << dims[0];
  }
}

// What keeps copies and readers apart is removed or weakened in turn: the emulator notices each.
TEST(GpuRings, NoFenceIsForNothing) {
  const char *text = R"(
    entry @main(%x : f32[40, 80], %w : f32[80, 32]) -> (%y : f32[40, 32]) {
      %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
    })";
  unsigned caught = 0;
  for (const char *ring : {"kc 16; stages 2", "kc 16; unroll-k 16; stages 3", "kc 8; stages 4", "kc 8; stages 5"}) {
    GraphOnGpu g(text, hopper(), true,
                 under(std::string("contract: n 1; m 0; mr 2; vector 4; nr 1; threads 64; mc 8; ") + ring));
    ASSERT_EQ(g.wrong, "");
    ASSERT_EQ(g.difference({}, 1), "") << ring;
    caught += eachFenceSpoiled(g, {});
  }
  EXPECT_GE(caught, 20u);
}

TEST(GpuRings, AreRefusedWhereTheyCannotBe) {
  auto refusal = [](const GpuTarget &t, const char *steps) {
    GraphOnGpu g(product, t, false);
    EXPECT_EQ(g.wrong, "");
    std::string plan = std::string("contract: n 1; m 0; mr 2; vector 4; nr 1; threads 64; ") + steps;
    std::string said = llvm::toString(checkGpuPlan(g.schedule->kernels[0], llvm::cantFail(parsePlan(plan)), t));
    return said.substr(said.rfind("': ") == said.npos ? 0 : said.rfind("': ") + 3);
  };
  EXPECT_EQ(refusal(hopper(), "mc 8; kc 8; stages 3"), "");
  EXPECT_EQ(refusal(hopper(), "mc 8; kc 8; stages 1"), "stages 1; expected 2..8");
  EXPECT_EQ(refusal(hopper(), "mc 8; kc 8; stages 9"), "stages 9; expected 2..8");
  EXPECT_EQ(refusal(hopper(), "mc 8; kc 8; pipeline 2; stages 3"), "stages 3 with pipeline 2; expected 1 of a ring");
  EXPECT_EQ(refusal(hopper(), "stages 3"), "stages 3 without mc: there is no shared tile");
  for (const char *name : {"cuda:sm_75", "hip:gfx942"})
    EXPECT_EQ(refusal(*gpuTargetNamed(name), "mc 8; kc 8; stages 3"),
              std::string("stages 3; ") + name + " has no asynchronous copies");
}

} // namespace

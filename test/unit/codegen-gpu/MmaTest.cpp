//===- MmaTest.cpp: tiles of mma.sync, their operands by ldmatrix ------------===//
// Takes:    products of matrix units for sm_80 and sm_90, laid out along the sum.
// Checks:   the evaluator's bytes, also where edges cut tiles, lines, parts of lines and steps; that operands come by
//           ldmatrix, in lines of which no two parts meet in a bank; that each barrier is needed; the swizzle.
#include "../../../lib/Codegen/GPU/Mma.h"
#include "RemoveBarrier.h"
#include <gtest/gtest.h>
#include <set>

using namespace astra;
using namespace astra::test;

namespace {

struct Case {
  const char *text, *target, *plan; // "": the chosen one
  std::vector<std::vector<int64_t>> dims;
};

// Sums that end in a part of 16 bytes, so that words come one by one.
const char *const product = R"(
  dim n in 1..140
  entry @main(%x : f32[n, 333], %w : f32[333, 40]) -> (%y : f32[n, 40]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k] order="hopper16 bf16"
  })";
const char *const halves = R"(
  dim n in 1..140
  entry @main(%x : f16[n, 96], %w : f16[35, 96], %b : f16[35]) -> (%y : f16[n, 35]) {
    %p = contract %x[i, k], %w[j, k] -> [i, j] sum [k] order="hopper16 f16"
    %c = reshape %b [1, 35]
    %d = expand %c [n, 35]
    %y = add %p, %d
  })";
const char *const batch = R"(
  dim n in 1..70
  entry @main(%t : f32[3, 70, n], %u : f32[3, 33, 70]) -> (%y : f32[3, n, 33]) {
    %y = contract %t[b, k, i], %u[b, j, k] -> [b, i, j] sum [k] order="hopper16 bf16"
  })";
const char *const tf32 = R"(
  dim n in 1..70
  entry @main(%x : f32[n, 72], %w : f32[72, 24]) -> (%y : f32[n, 24]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k] order="hopper8-tf32 tf32"
  })";
const char *const eights = R"(
  dim n in 1..140
  entry @main(%x : f32[n, 128], %w : f32[128, 40]) -> (%y : f32[n, 40]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k] order="ampere8 bf16"
  })";
const char *const fours = R"(
  dim n in 1..70
  entry @main(%x : f32[n, 75], %w : f32[75, 24]) -> (%y : f32[n, 24]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k] order="ampere4-tf32 tf32"
  })";

const Case cases[] = {
    {product, "cuda:sm_90", "", {{16}, {140}}},
    {product, "cuda:sm_90", "mr 4; vector 2; nr 4; threads 64; mc 16; kc 32; unroll-k 2; stages 2", {{65}}},
    {product, "cuda:sm_90", "mr 1; vector 2; nr 2; threads 64; mc 16; kc 16; pipeline 1", {{33}}},
    {halves, "cuda:sm_90", "mr 2; vector 2; nr 4; threads 128; mc 32; kc 16; stages 3", {{17}, {140}}},
    {halves, "cuda:sm_90a", "mr 4; vector 2; nr 2; threads 32; mc 8; kc 32; pipeline 2", {{70}}},
    {batch, "cuda:sm_90", "", {{70}, {1}}},
    {tf32, "cuda:sm_90", "", {{70}}},
    {eights, "cuda:sm_80", "", {{140}}},
    {eights,
     "cuda:sm_80",
     "mr 4; vector 2; nr 8; row-block 2; threads 64; mc 16; kc 16; unroll-k 4; stages 3",
     {{1}, {129}}},
    {eights, "cuda:sm_80", "mr 2; vector 2; nr 2; threads 64; mc 16; kc 8; stages 4", {{40}}},
    {fours, "cuda:sm_80", "", {{70}}},
};

std::function<void(Plan &)> under(const char *steps) {
  if (!*steps) return nullptr;
  return [plan = std::string("contract: n 1; m 0; ") + steps](Plan &p) {
    if (p.kind == PlanKind::Contract) p = llvm::cantFail(parsePlan(plan));
  };
}

TEST(GpuMma, KeepsItsBits) {
  for (const Case &t : cases) {
    GraphOnGpu g(t.text, *gpuTargetNamed(t.target), true, under(t.plan));
    ASSERT_EQ(g.wrong, "") << t.text << t.plan;
    EXPECT_NE(g.module->bitcode.find("llvm.nvvm.ldmatrix."), std::string::npos) << t.text << t.plan;
    unsigned byLines = 0;
    for (const GpuKernel &k : g.kernels) {
      if (k.lines.empty()) continue;
      ++byLines;
      EXPECT_EQ(k.lines.size(), 2u) << t.text << g.plans();
      for (const GpuAccess &a : gpuAccesses(k, *gpuTargetNamed(t.target)))
        if (a.buffer < 0) EXPECT_EQ(a.conflict, 1u) << t.text << g.plans() << (a.write ? " write" : " read");
    }
    EXPECT_GE(byLines, 1u) << t.text << g.plans();
    for (const auto &dims : t.dims) EXPECT_EQ(g.difference(dims, 3), "") << t.text << g.plans() << ", dim " << dims[0];
  }
}

TEST(GpuMma, NoFenceIsForNothing) {
  const std::pair<const char *, const char *> ways[] = {
      {"cuda:sm_90", "mr 2; vector 2; nr 4; threads 64; mc 16; kc 16; stages 3"},
      {"cuda:sm_80", "mr 4; vector 2; nr 2; threads 32; mc 8; kc 8; stages 4"},
  };
  for (auto [target, plan] : ways) {
    std::string unit = target == ways[0].first ? "hopper16" : "ampere8"; // one size, so one kernel
    std::string text = "entry @main(%x : f32[33, 96], %w : f32[96, 24]) -> (%y : f32[33, 24]) {\n"
                       "%y = contract %x[i, k], %w[k, j] -> [i, j] sum [k] order=\"" +
                       unit + " bf16\"\n}";
    GraphOnGpu g(text, *gpuTargetNamed(target), true, under(plan));
    ASSERT_EQ(g.wrong, "");
    EXPECT_EQ(g.difference({}, 1), "");
    EXPECT_GE(eachFenceSpoiled(g, {}), 4u) << g.plans();
  }
}

TEST(GpuMma, PartsOfALineChangePlaces) {
  for (unsigned line : {8u, 16u, 32u}) {
    std::set<uint64_t> all;
    for (uint64_t place = 0; place < 16 * line; ++place) {
      uint64_t now = gpu::swizzled(place, line);
      EXPECT_EQ(now / line, place / line);
      EXPECT_EQ(now % 4, place % 4);
      all.insert(now);
    }
    EXPECT_EQ(all.size(), 16 * line);
    for (uint64_t first = 0; first < 8; ++first) // any eight lines one behind another
      for (uint64_t part = 0; part < line; part += 4) {
        std::set<uint64_t> banks;
        for (uint64_t l = 0; l < 8; ++l) banks.insert(gpu::swizzled((first + l) * line + part, line) / 4 % 8);
        EXPECT_EQ(banks.size(), 8u) << line;
      }
  }
}

} // namespace

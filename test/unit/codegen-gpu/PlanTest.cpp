//===- PlanTest.cpp: plans for GPUs that come from outside -------------------===//
// Checks:   what a GPU's plan prints is read again and accepted; a plan of random numbers is refused with a sentence,
//           or the kernel under it keeps its bits.
#include "RunGraph.h"
#include <random>

using namespace astra;
using namespace astra::test;

namespace {

constexpr const char *source = R"(
  dim n in 0..64
  param @w : f32[40, 96] = splat 0.5
  entry @main(%x : f32[2, n, 40], %z : f32[256, 40], %v : f32[40, 96], %d : f32[1, 11, 11, 4], %f : f32[3, 3, 4, 8], %a : f32[1, 1100], %b : f32[30, 1100]) -> (%p : f32[2, n, 96], %q : f32[2, n], %r : f32[2, n], %s : f32[256, 96], %t : f32[2, n, 40], %u : f32[40, 256], %o : f32[40], %c : f32[1, 5, 5, 8], %e : f32[1, 30]) {
    %p = contract %x[h, i, k], @w[k, j] -> [h, i, j] sum [k]
    %q = reduce %x kind=sum order=lane64 axes=[2]
    %r = reduce %x kind=max order=exact axes=[2]
    %s = contract %z[i, k], %v[k, j] -> [i, j] sum [k]
    %t = cumulate %x kind=sum axis=2
    %u = permute %z perm=[1, 0]
    %o = reduce %z kind=sum order=lane64 axes=[0]
    %c = contract %d[b, 2*h + r, 2*w + s, i], %f[r, s, i, o] -> [b, h: 5, w: 5, o] sum [r, s, i]
    %e = contract %a[i, k], %b[j, k] -> [i, j] sum [k]
  })";

std::string refusal(const KernelSpec &k, llvm::StringRef plan, const GpuTarget &t) {
  auto p = parsePlan(plan);
  if (!p) return llvm::toString(p.takeError());
  std::string sentence = llvm::toString(checkGpuPlan(k, *p, t));
  size_t colon = sentence.find("': ");
  return colon == sentence.npos ? sentence : sentence.substr(colon + 3);
}

class GpuPlans : public testing::TestWithParam<const GpuTarget *> {};
INSTANTIATE_TEST_SUITE_P(Flavours, GpuPlans, testing::ValuesIn(flavours()), [](const auto &i) {
  return std::string(i.param->flavour == GpuFlavour::CUDA ? "cuda" : "hip");
});

TEST_P(GpuPlans, ChosenOnesAreReadAgain) {
  GraphOnGpu g(source, *GetParam(), false);
  ASSERT_EQ(g.wrong, "");
  for (auto [spec, kernel] : llvm::zip(g.schedule->kernels, g.storage)) {
    auto again = parsePlan(text(kernel.plan));
    ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
    EXPECT_EQ(text(*again), text(kernel.plan));
    EXPECT_EQ(refusal(spec, text(kernel.plan), *GetParam()), "") << spec.name;
  }
}

// Chains that threads share: what is not possible is said.
TEST(GpuPlanSentences, OfChains) {
  const GpuTarget &t = *gpuTargetNamed("cuda:sm_90");
  GraphOnGpu g(R"(entry @main(%a : f32[1, 1100], %b : f32[30, 1100]) -> (%e : f32[1, 30]) {
      %e = contract %a[i, k], %b[j, k] -> [i, j] sum [k]
    })",
               t, false);
  ASSERT_EQ(g.wrong, "");
  const KernelSpec &k = g.schedule->kernels[0];
  std::string tile = "contract: n 1; m 0; mr 1; vector 1; nr 1; threads 64; ";
  EXPECT_EQ(refusal(k, tile + "split-k 2; mc 1; kc 8; pipeline 2", t), "");
  EXPECT_EQ(refusal(k, tile + "split-k 3; mc 1; kc 8; pipeline 2", t), "split-k 3; expected a power of two of chains");
  EXPECT_EQ(refusal(k, tile + "split-k 32; mc 4; kc 8; pipeline 2", t),
            "split-k 32 times mc 4; a block has 64 threads");
  EXPECT_EQ(refusal(k, "contract: n 2; m 0; mr 1; vector 1; nr 1; threads 64; mc 1; kc 8; pipeline 2", t),
            "n 2 is no kept label; they are 0..1");
  EXPECT_EQ(refusal(k, "contract: m 1; mr 1; vector 1; nr 1; threads 64; mc 1; kc 8; pipeline 2", t), "");
  EXPECT_EQ(refusal(k, tile + "mc 1; kc 8; unroll-k 4; pipeline 2", t), "");
  EXPECT_EQ(refusal(k, tile + "mc 1; kc 8; unroll-k 16; pipeline 2", t),
            "unroll-k 16; of a tile that threads share a power of two is expected, at most kc");
  EXPECT_EQ(refusal(k, tile + "split-k 2", t),
            "the kernel has no contract along whose labels lanes can run; expected map, rows or columns");
}

/// Another plan of the same kind: some of its numbers changed.
Plan altered(Plan p, const GpuTarget &t, std::mt19937 &random) {
  auto one = [&](std::initializer_list<unsigned> of) { return of.begin()[random() % of.size()]; };
  for (unsigned changes = 1 + random() % 3; changes--;) switch (random() % 15) {
    case 0: p.threads = t.warp * one({1, 2, 3, 4, 8, 16}); break;
    case 1: p.lanes = one({1, 2, 3, 4, 8, t.warp}); break;
    case 2: p.unroll = one({1, 2, 3, 4}); break;
    case 3: p.merge = p.across = one({0, 1, 2, 3}); break;
    case 4: p.mr = one({1, 2, 3, 4, 5, 8}); break;
    case 5: p.warp = one({0, 32, 64}); break;
    case 6: p.mc = one({0, 1, 2, 3, 4, 8, 16, 32}), p.kc = one({0, 4, 8, 16, 32, 64}); break;
    case 7: p.pipeline = one({0, 1, 2, 3}), p.stages = one({0, 0, 1, 2, 3}); break;
    case 8: p.transpose = one({0, 8, 16, 24, 32, 64}), p.threads = one({256, 512, 1024}); break;
    case 9: p.mapTile = p.rowBlock = p.chainBlocks = one({0, 3, 16}); break;
    case 10: p.kind = PlanKind(random() % 4); break;
    case 11: p.split = one({0, 2, 3, 4, 8, 64, 128}), p.threads = t.warp * one({2, 4, 8, 16}); break;
    case 12: p.nLabel = int64_t(random() % 3) - 1, p.mLabels = {int64_t(random() % 2)}; break;
    case 13:
      p.unrollK = one({0, 1, 2, 3, 4, 8, 16}), p.spillSums = one({0, 0, 1, 2}),
      p.mapTile = p.rowBlock = one({0, 1, 2, 3});
      break;
    case 14: p.width = one({0, 1, 2, 3, 4, 8}), p.lanes = one({2, 4, 8, 16, t.warp}); break;
    }
  return p;
}

TEST_P(GpuPlans, WhatIsAcceptedKeepsItsBits) {
  const GpuTarget &t = *GetParam();
  const char *rounds = std::getenv("ASTRA_PLAN_ROUNDS"), *first = std::getenv("ASTRA_PLAN_SEED");
  unsigned count = rounds ? atoi(rounds) : 12, begin = first ? atoi(first) : 1, accepted = 0, refused = 0;
  GraphOnGpu chosen(source, t, false);
  ASSERT_EQ(chosen.wrong, "");
  for (unsigned round = begin; round < begin + count; ++round) {
    std::mt19937 random(round);
    size_t number = 0;
    GraphOnGpu g(source, t, true, [&](Plan &p) {
      const KernelSpec &spec = chosen.schedule->kernels[number++];
      for (unsigned tries = 0; tries < 20; ++tries) {
        Plan other = altered(p, t, random);
        std::string why = refusal(spec, text(other), t);
        // Large blocks are for GPUs: the emulator would take most of its time for the few of them.
        unsigned points = other.mc * other.mr + (other.mc ? other.threads / other.mc : 0) * other.lanes * other.unroll;
        bool large = uint64_t(points) * other.kc * 4 * std::max(other.stages, 2u) > 48 * 1024;
        if (!why.empty() || large) {
          ++refused;
          continue;
        }
        ++accepted;
        p = llvm::cantFail(parsePlan(text(other)));
        return;
      }
    });
    // A tile of what is too much for the chip is known only once it is lowered.
    if (g.wrong.find("bytes of shared memory a block on") != g.wrong.npos ||
        g.wrong.find("bytes of its own") != g.wrong.npos)
      continue;
    ASSERT_EQ(g.wrong, "") << "ASTRA_PLAN_SEED=" << round << "\n" << g.plans();
    for (int64_t n : {0, 1, 37})
      ASSERT_EQ(g.difference({n}, round), "") << "ASTRA_PLAN_SEED=" << round << "\n" << g.plans();
  }
  EXPECT_GT(accepted, count * 3);
  EXPECT_GT(refused, count);
}

// The order of tiles and the steps of a turn, with bands that do and do not go into the rows of tiles.
TEST_P(GpuPlans, BandsOfTilesKeepTheirBits) {
  std::string product = "dim n in 1..90\nentry @main(%x : f32[n, 600], %w : f32[600, 70]) -> (%y : f32[n, 70]) {\n%y = "
                        "contract %x[i, k], %w[k, j] -> [i, j] sum [k]\n}";
  for (const char *plan : {"row-block 2; threads 64; mc 8; kc 16; unroll-k 8; pipeline 2",
                           "row-block 3; threads 64; mc 8; kc 16; unroll-k 16; pipeline 2",
                           "row-block 64; threads 64; mc 8; kc 8; unroll-k 2; pipeline 1"}) {
    GraphOnGpu g(product, *GetParam(), true, [&](Plan &p) {
      p = llvm::cantFail(parsePlan(std::string("contract: n 1; m 0; mr 2; vector 1; nr 1; ") + plan));
    });
    ASSERT_EQ(g.wrong, "");
    for (int64_t n : {1, 33, 90}) EXPECT_EQ(g.difference({n}, 7), "") << plan << ", n " << n;
  }
}

} // namespace

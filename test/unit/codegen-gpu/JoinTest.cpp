//===- JoinTest.cpp: fused chains of kernels as one, emulated, against Eval --===//
// Attention of known lengths: scores, their softmax and the product with the values in one kernel, whose rows are in
// shared memory. Heads, groups of heads, masks, domains, lengths that fill no tile; each barrier removed, which must
// fail; and what is launched one by one as before.
#include "RemoveBarrier.h"
#include "RunGraph.h"

using namespace astra;
using namespace astra::test;

namespace {

struct Attention {
  const char *name;
  int64_t heads, groups, rows, keys, depth, width; // groups: heads that have the same keys
  bool masked = false, causal = false;
};

const Attention joined[] = {
    {"heads", 2, 1, 32, 96, 16, 16},
    {"masked", 3, 1, 24, 100, 20, 24, true},
    {"causal", 1, 1, 64, 64, 32, 32, false, true},
    {"maskedCausal", 2, 1, 16, 130, 8, 40, true, true},
    {"groups", 4, 2, 16, 80, 16, 16},
    {"chains", 1, 1, 8, 1030, 8, 12},
    {"few", 1, 1, 8, 3, 4, 4},
};

std::string text(const Attention &a, const std::string &rows = "") {
  auto n = [](int64_t v) { return std::to_string(v); };
  std::string i = rows.empty() ? n(a.rows) : rows, keys = "[" + n(a.heads / a.groups) + ", " + n(a.keys) + ", ",
              outer = "[" + n(a.heads / a.groups) + ", " + n(a.groups) + ", " + i + ", ", all = outer + n(a.keys) + "]",
              where = a.causal ? " where i3 <= i2" : "", x = a.masked ? "%x" : "%s";
  std::string t = "entry @main(%q : f32" + outer + n(a.depth) + "], %k : f32" + keys + n(a.depth) + "], %v : f32" +
                  keys + n(a.width) + "]" + (a.masked ? ", %b : f32[" + i + ", " + n(a.keys) + "]" : "") +
                  ") -> (%y : f32" + outer + n(a.width) + "]) {\n";
  t += "%s = contract %q[h, g, i, d], %k[h, j, d] -> [h, g, i, j] sum [d]\n";
  if (a.masked)
    t += "%b1 = reshape %b [1, 1, " + i + ", " + n(a.keys) + "]\n%b4 = expand %b1 " + all + "\n%x = add %s, %b4\n";
  t += "%m = reduce " + x + " kind=max order=exact axes=[3]" + where + "\n%m1 = reshape %m " + outer +
       "1]\n%m2 = expand %m1 " + all + "\n%d = sub " + x + ", %m2\n%e = exp %d\n";
  t += "%z = reduce %e kind=sum order=lane64 axes=[3]" + where + "\n%z1 = reshape %z " + outer +
       "1]\n%z2 = expand %z1 " + all + "\n%p = div %e, %z2\n";
  return t + "%y = contract %p[h, g, i, j], %v[h, j, e] -> [h, g, i, e] sum [j]" + (a.causal ? " where j <= i" : "") +
         "\n}";
}

class GpuJoins : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Chips, GpuJoins, testing::Values("cuda:sm_80", "cuda:sm_90", "hip:gfx90a", "hip:gfx942"),
                         [](const auto &i) { return llvm::StringRef(i.param).split(':').second.str(); });

TEST_P(GpuJoins, KeepTheirBits) {
  const GpuTarget &target = *gpuTargetNamed(GetParam());
  for (const Attention &a : joined) {
    GraphOnGpu g(text(a), target);
    ASSERT_EQ(g.wrong, "") << a.name;
    bool fits = a.keys < 1000 || mostShared(target) > (64 << 10);
    EXPECT_EQ(g.plans().find("; join ") != std::string::npos, fits) << a.name << "\n" << g.plans();
    for (uint64_t seed : {1, 2}) EXPECT_EQ(g.difference({}, seed), "") << a.name << "\n" << g.plans();
  }
}

// Of more keys than a thread keeps: rows of a warp, which reads them again in each pass.
TEST_P(GpuJoins, LongRowsLieInSharedMemory) {
  const GpuTarget &target = *gpuTargetNamed(GetParam());
  if (target.flavour == GpuFlavour::HIP) GTEST_SKIP() << "64 KiB have room for no such tile";
  for (const Attention &a : {Attention{"long", 1, 1, 8, 3000, 4, 4}, Attention{"chunk", 1, 1, 8, 4096, 8, 8, true}}) {
    GraphOnGpu g(text(a), target);
    ASSERT_EQ(g.wrong, "") << a.name;
    EXPECT_NE(g.plans().find("; join "), std::string::npos) << a.name << "\n" << g.plans();
    EXPECT_EQ(g.difference({}, 1), "") << a.name << "\n" << g.plans();
  }
}

TEST_P(GpuJoins, NoBarrierIsForNothing) {
  for (const Attention &a : {joined[0], Attention{"turns", 1, 1, 16, 300, 16, 8}}) { // several tiles of scores too
    GraphOnGpu g(text(a), *gpuTargetNamed(GetParam()));
    ASSERT_EQ(g.wrong, "");
    EXPECT_NE(g.plans().find("; join "), std::string::npos) << g.plans();
    EXPECT_GE(eachBarrierRemoved(g, {}), 4u) << g.plans();
  }
}

// Rows that are no whole number of tiles, or that nobody knows: as before.
TEST_P(GpuJoins, OthersAreLaunchedOneByOne) {
  const GpuTarget &target = *gpuTargetNamed(GetParam());
  Attention a{"", 1, 1, 9, 70, 8, 8};
  GraphOnGpu odd(text(a), target), symbolic("dim t in 1..40\n" + text(a, "t"), target);
  for (GraphOnGpu *g : {&odd, &symbolic}) {
    ASSERT_EQ(g->wrong, "");
    EXPECT_EQ(g->plans().find("; join "), std::string::npos) << g->plans();
  }
  EXPECT_EQ(odd.difference({}, 1), "");
  EXPECT_EQ(symbolic.difference({24}, 1), "");
}

} // namespace

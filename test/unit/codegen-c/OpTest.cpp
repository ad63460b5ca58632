//===- OpTest.cpp: every elementwise op on every type, against Eval --------===//
// Visits the op table: each op that is elementwise and no function, each dtype that its type rule takes, edge values of
// all operands against each other, several numbers of lanes, every target. Bytes are equal, up to the payload of a NaN.
#include "OpCases.h"

using namespace astra;
using namespace astra::test;

namespace {

class Lanes : public testing::TestWithParam<int64_t> {
protected:
  void SetUp() override {
    all.addAll(GetParam());
    ASSERT_GT(all.cases.size(), 300u);
    for (Case &k : all.cases) {
      Job reference = k.job;
      ASSERT_EQ(evaluate(reference, {}), "") << k.name;
      k.expected = std::move(reference.buffers.back());
      canonicalize(k.expected, k.result);
      jobs.push_back(k.job);
    }
  }
  Cases all;
  std::vector<Job> jobs;
};
INSTANTIATE_TEST_SUITE_P(Widths, Lanes, testing::Values(1, 4, 16, 64));

TEST_P(Lanes, EveryOpOnEveryType) {
  for (const Target &t : allTargets()) {
    if (!canRun(t)) continue;
    // Levels on request differ from those below them in one instruction, of one width.
    if (t.onRequest && GetParam() != 16 && !getenv("ASTRA_NIGHTLY")) continue;
    std::vector<Job> mine = jobs;
    ASSERT_EQ(run(all.c, mine, t, {}), "");
    compare(all, mine, t.name);
  }
}

// The same text, other compilers and levels, machines without a fused multiply-add included.
TEST_P(Lanes, GccAndClangAgree) {
  if (!canRun(*targetNamed("cpu:x86-64-v3"))) GTEST_SKIP() << "this machine does not run x86-64-v3";
  if (GetParam() > 4 || (GetParam() == 1 && !getenv("ASTRA_NIGHTLY"))) GTEST_SKIP() << "vectors of 4 show it";
  for (const char *compiler : {"gcc", "clang-22"})
    for (const char *level : {"-O0", "-O3"})
      for (const char *machine : {"-march=x86-64", "-march=x86-64-v3"}) {
        std::vector<Job> mine = jobs;
        ASSERT_EQ(runCompiled(all.c, mine, compiler, {level, machine}, {}), "") << compiler << " " << level;
        compare(all, mine, std::string(compiler) + " " + level + " " + machine);
      }
}

} // namespace

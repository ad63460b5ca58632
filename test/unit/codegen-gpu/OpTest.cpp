//===- OpTest.cpp: every elementwise op on every type, emulated, against Eval ===//
#include "OpCases.h"
#include "RunGpu.h"

using namespace astra;
using namespace astra::test;

namespace {

class GpuOps : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Widths, GpuOps, testing::Values(1, 4));

TEST_P(GpuOps, EveryOpOnEveryType) {
  Cases all;
  all.addAll(GetParam());
  ASSERT_GT(all.cases.size(), 300u);
  std::vector<Job> jobs;
  for (Case &k : all.cases) {
    Job reference = k.job;
    ASSERT_EQ(evaluate(reference, {}), "") << k.name;
    k.expected = std::move(reference.buffers.back());
    canonicalize(k.expected, k.result);
    jobs.push_back(k.job);
  }
  for (const GpuTarget *t : flavours()) {
    std::vector<Job> mine = jobs;
    EmulatedRun run;
    ASSERT_EQ(emulate(all.c, mine, *t, {}, run), "");
    compare(all, mine, t->name);
    EXPECT_GT(run.threads, 0u);
  }
}

} // namespace

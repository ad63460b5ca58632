//===- FuzzTest.cpp: random kernels, emulated, against Eval ----------------===//
#include "FuzzKernel.h"
#include "RunGpu.h"

using namespace astra;
using namespace astra::test;

namespace {

std::vector<uint8_t> canonical(std::vector<uint8_t> bytes, DType t) {
  if (t != DType::F32) return bytes;
  Tensor x{t, {int64_t(bytes.size() / 4)}, std::move(bytes)};
  canonicalizeNaN(x);
  return std::move(x.bytes);
}

TEST(GpuFuzz, RandomKernelsOnBothFlavours) {
  Context c;
  UOpRef n = Builder(c).dim("n", 0, 40);
  std::vector<Job> jobs;
  std::vector<std::vector<std::vector<uint8_t>>> expected;
  const char *count = getenv("ASTRA_FUZZ_KERNELS"), *first = getenv("ASTRA_FUZZ_SEED");
  uint32_t kernels = count ? atoi(count) : 40, seed = first ? atoi(first) : 1;
  for (uint32_t i = 0; i < kernels; ++i) {
    Job j = FuzzKernel(c, n, seed + i).make(i % 5 == 0 ? 0 : i % 9);
    Job reference = j;
    ASSERT_EQ(evaluate(reference, {n}), "") << "seed " << seed + i;
    expected.push_back(std::move(reference.buffers));
    jobs.push_back(std::move(j));
  }
  for (const GpuTarget *t : flavours()) {
    std::vector<Job> mine = jobs;
    EmulatedRun run{seed, 0};
    ASSERT_EQ(emulate(c, mine, *t, {n}, run), "");
    for (size_t i = 0; i < jobs.size(); ++i)
      for (unsigned b : {3u, 4u}) {
        DType type = jobs[i].kernel.buffers[b].dtype;
        EXPECT_TRUE(canonical(mine[i].buffers[b], type) == canonical(expected[i][b], type))
            << t->name << " seed " << seed + i << ": buffer " << b << " differs (ASTRA_FUZZ_SEED=" << seed + i
            << " ASTRA_FUZZ_KERNELS=1)";
      }
  }
}

} // namespace

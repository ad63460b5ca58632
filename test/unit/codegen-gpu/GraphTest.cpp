//===- GraphTest.cpp: random graphs, every kernel emulated, against Eval ----===//
// Takes:    seeds: ASTRA_RANDOM_COUNT of them (200 unless set; 5,000 under ASTRA_NIGHTLY) from ASTRA_RANDOM_SEED on.
// Checks:   the schedule of each, every launch in the emulator in place of the evaluator, gives the bytes of the
//           evaluator on the graph, on both flavours.
#include "Executed.h"
#include "RandomGraph.h"
#include "RunGpu.h"
#include "RunSchedule.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Rewrite/Rewrite.h"

using namespace astra;
using namespace astra::test;

namespace {

uint64_t setting(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

llvm::Error rewriteModule(Module &m) {
  RewriteOptions options;
  auto roots = rewrite(m.ctx(), m.roots(), graphRules, options);
  if (!roots) return roots.takeError();
  auto it = roots->begin();
  for (Value &v : m.entries[0].outputs) v.value = *it++;
  for (StateUpdate &u : m.entries[0].updates) u.value = *it++;
  return llvm::Error::success();
}

struct Counts {
  uint64_t kernels = 0, launches = 0, threads = 0;
};

/// What differs, or nothing.
std::string difference(const RandomCase &r, const GpuTarget &target, uint64_t seed, Counts &counts) {
  EvalOptions options;
  options.function = evalFunction;
  auto want = evalEntry(r.module, r.entry(), r.inputs, options);
  if (!want) return "the evaluator refuses: " + llvm::toString(want.takeError());
  Module m = r.module;
  if (auto e = runNumerics(m)) return llvm::toString(std::move(e));
  if (auto e = rewriteModule(m)) return llvm::toString(std::move(e));
  auto s = schedule(m);
  if (!s) return llvm::toString(s.takeError());
  std::vector<Kernel> storage;
  auto kernels = gpuKernels(m.ctx(), *s, target, storage);
  if (!kernels) return llvm::toString(kernels.takeError());
  auto module = lowerGpu(m.ctx(), *kernels, target, s->dims);
  if (!module) return llvm::toString(module.takeError());
  auto emulator = Emulator::build(*module);
  if (!emulator) return llvm::toString(emulator.takeError());
  counts.kernels += kernels->size();
  EmulatedRun run{seed, 0};
  ScheduleRun scheduled(m, *s, *targetNamed("cpu:x86-64-v3"), true);
  scheduled.execute = [&](uint32_t k, llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> views,
                          llvm::ArrayRef<int64_t> dims, int64_t items) {
    std::vector<EmulatedBuffer> buffers;
    for (size_t i = 0; i < views.size(); ++i) buffers.push_back({views[i], storage[k].buffers[i].write});
    ++counts.launches;
    return emulator->launch(k, buffers, dims, items, run);
  };
  scheduled.useKernels(storage);
  auto got = scheduled.run(0, r.inputs);
  counts.threads += run.threads;
  if (!got) return llvm::toString(got.takeError());
  for (size_t i = 0; i < want->outputs.size(); ++i)
    if (got->outputs[i] != want->outputs[i]) return "output " + std::to_string(i) + " differs";
  for (const StateUpdate &u : r.entry().updates)
    if (got->states[u.state] != want->states[u.state]) return "state " + u.state + " differs";
  return "";
}

class GpuGraphs : public testing::TestWithParam<const GpuTarget *> {};
INSTANTIATE_TEST_SUITE_P(Flavours, GpuGraphs, testing::ValuesIn(flavours()), [](const auto &i) {
  return std::string(i.param->flavour == GpuFlavour::CUDA ? "cuda" : "hip");
});

TEST_P(GpuGraphs, KeepTheirBits) {
  uint64_t first = setting("ASTRA_RANDOM_SEED", 0),
           count = setting("ASTRA_RANDOM_COUNT", std::getenv("ASTRA_NIGHTLY") ? 5000 : 200), failures = 0;
  Counts counts;
  for (uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    std::string what = difference(randomCase(seed), *GetParam(), seed, counts);
    if (what.empty()) continue;
    ++failures;
    ADD_FAILURE() << what << "\nASTRA_RANDOM_SEED=" << seed
                  << " ASTRA_RANDOM_COUNT=1 build/bin/unit-codegen-gpu --gtest_filter='Flavours/*'";
  }
  noteExecuted(*GetParam(), counts.kernels, counts.launches, counts.threads);
  EXPECT_GT(counts.threads, 0u);
}

} // namespace

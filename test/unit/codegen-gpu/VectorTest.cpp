//===- VectorTest.cpp: the committed vectors, emulated ---------------------------===//
// Takes:    test/vectors/*.vec, made without Astra: every op of the op table on every dtype that it takes. Of 100 cases
//           a module, ASTRA_VECTORS_EVERY'th module (each, unless set).
// Checks:   the kernels of each, on both flavours, give the expected bytes.
#include "../eval/VectorFile.h"
#include "Executed.h"
#include "RunGpu.h"
#include "RunSchedule.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Rewrite/Rewrite.h"

using namespace astra;
using namespace astra::test;

namespace {

class GpuVectors : public testing::TestWithParam<std::tuple<const char *, const GpuTarget *>> {
protected:
  const GpuTarget &target = *std::get<1>(GetParam());
  unsigned checked = 0;

  llvm::Error prepare(Module &m, llvm::ArrayRef<VectorCase> cases) {
    for (const VectorCase &v : cases) {
      auto node = v.node(m.ctx());
      if (!node) return node.takeError();
      Entry e{"e" + std::to_string(m.entries.size()), {}, {{"y", *node}}, {}};
      Builder b(m.ctx());
      for (const Tensor &t : v.inputs) {
        llvm::SmallVector<UOpRef> shape;
        for (int64_t d : t.shape) shape.push_back(b.idx(d));
        e.inputs.push_back({"x" + std::to_string(e.inputs.size()), b.arg(e.inputs.size(), t.dtype, shape)});
      }
      m.entries.push_back(std::move(e));
    }
    if (auto e = runNumerics(m)) return e;
    RewriteOptions options;
    auto roots = rewrite(m.ctx(), m.roots(), graphRules, options);
    if (!roots) return roots.takeError();
    auto it = roots->begin();
    for (Entry &e : m.entries)
      for (Value &v : e.outputs) v.value = *it++;
    return llvm::Error::success();
  }

  llvm::Error check(llvm::ArrayRef<VectorCase> cases) {
    Module m;
    if (auto e = prepare(m, cases)) return e;
    auto s = schedule(m);
    if (!s) return s.takeError();
    std::vector<Kernel> storage;
    auto kernels = gpuKernels(m.ctx(), *s, target, storage);
    if (!kernels) return kernels.takeError();
    auto module = lowerGpu(m.ctx(), *kernels, target, s->dims);
    if (!module) return module.takeError();
    auto emulator = Emulator::build(*module);
    if (!emulator) return emulator.takeError();
    EmulatedRun run{1, 0};
    uint64_t launches = 0;
    for (size_t i = 0; i < cases.size(); ++i) {
      ScheduleRun scheduled(m, *s, *targetNamed("cpu:x86-64-v3"), true);
      scheduled.execute = [&](uint32_t k, llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> views,
                              llvm::ArrayRef<int64_t> dims, int64_t items) {
        std::vector<EmulatedBuffer> buffers;
        for (size_t b = 0; b < views.size(); ++b) buffers.push_back({views[b], storage[k].buffers[b].write});
        ++launches;
        return emulator->launch(k, buffers, dims, items, run);
      };
      scheduled.useKernels(storage);
      auto got = scheduled.run(i, {cases[i].inputs, {}, {}, {}});
      if (!got) return llvm::createStringError(cases[i].line + "\n" + llvm::toString(got.takeError()));
      Tensor want = cases[i].want, found = got->outputs[0];
      canonicalizeNaN(want), canonicalizeNaN(found);
      EXPECT_TRUE(found == want) << cases[i].line << "\n" << VectorFile::difference(found, want, cases[i].inputs);
      ++checked;
    }
    noteExecuted(target, kernels->size(), launches, run.threads);
    return llvm::Error::success();
  }
};

TEST_P(GpuVectors, AreGivenByteForByte) {
  VectorFile file(std::string(ASTRA_VECTORS "/") + std::get<0>(GetParam()) + ".vec");
  const char *setting = std::getenv("ASTRA_VECTORS_EVERY");
  unsigned every = setting ? atoi(setting) : 1, number = 0;
  std::vector<VectorCase> batch;
  for (bool more = true; more;) {
    auto v = file.next();
    more = v.has_value();
    if (v) batch.push_back(std::move(*v));
    if (batch.empty() || (more && batch.size() < 100)) continue;
    if (number++ % every == 0)
      if (auto e = check(batch)) ADD_FAILURE() << batch[0].line << " ...\n" << llvm::toString(std::move(e));
    batch.clear();
  }
  EXPECT_GT(checked, 0u);
}
INSTANTIATE_TEST_SUITE_P(All, GpuVectors,
                         testing::Combine(testing::Values("floats", "integers", "conversions", "leaves", "movement",
                                                          "reductions", "cumulations", "contractions", "indexing",
                                                          "random", "complexes"),
                                          testing::ValuesIn(flavours())),
                         [](const auto &i) {
                           return std::string(std::get<0>(i.param)) +
                                  (std::get<1>(i.param)->flavour == GpuFlavour::CUDA ? "_cuda" : "_hip");
                         });

} // namespace

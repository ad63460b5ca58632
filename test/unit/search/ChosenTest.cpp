//===- ChosenTest.cpp: chosen plans are plans that can be given -------------===//
// Checks:   for every module of test/e2e and several targets: what --emit=plan prints is read again, is the same text,
//           and is accepted as a plan from outside. Else a tuning file of chosen plans would be refused.
#include "astra/Codegen/GPU.h"
#include "astra/IR/Text.h"
#include "astra/Pipeline/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <filesystem>
#include <set>

using namespace astra;

namespace {

/// The module's kernels, as they are scheduled where a GPU is among the targets, or is not.
llvm::Expected<Schedule> scheduled(Module &m, llvm::StringRef text, const std::string &name, bool gpu) {
  auto parsed = parse(text, name);
  if (!parsed) return parsed.takeError();
  m = std::move(*parsed);
  PassOptions options;
  for (const Pass &p : passes())
    if (p.standard)
      if (llvm::Error e = p.run(m, options)) return std::move(e);
  return schedule(m, {FoldLevel::Small, gpu});
}

void expectGivable(const KernelSpec &k, const Plan &p, const char *target,
                   llvm::function_ref<llvm::Error(const KernelSpec &, const Plan &)> check) {
  auto again = parsePlan(text(p));
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(text(*again), text(p)) << target;
  EXPECT_EQ(llvm::toString(check(k, *again)), "") << target;
}

} // namespace

TEST(ChosenPlans, AreAcceptedWhereTheyAreGiven) {
  std::set<std::filesystem::path> files;
  for (const char *folder : {"cases", "modules"})
    for (auto &entry : std::filesystem::directory_iterator(std::filesystem::path(ASTRA_E2E) / folder))
      if (entry.path().extension() == ".uop") files.insert(entry.path());
  EXPECT_GT(files.size(), 80u);
  unsigned plans = 0;
  for (const auto &file : files) {
    SCOPED_TRACE(file.filename().string());
    auto text = llvm::MemoryBuffer::getFile(file.string());
    ASSERT_TRUE(bool(text));
    for (bool gpu : {false, true}) {
      Module m;
      auto s = scheduled(m, (*text)->getBuffer(), file.string(), gpu);
      ASSERT_TRUE(bool(s)) << llvm::toString(s.takeError());
      for (const KernelSpec &k : s->kernels)
        if (gpu)
          for (const char *name : {"cuda:sm_90", "hip:gfx942"}) {
            const GpuTarget &t = *gpuTargetNamed(name);
            auto check = [&](const KernelSpec &k, const Plan &p) { return checkGpuPlan(k, p, t); };
            expectGivable(k, chooseGpuPlan(m.ctx(), k, t), name, check), ++plans;
          }
        else
          for (const Target &t : allTargets()) expectGivable(k, choosePlan(m.ctx(), k, t), t.name, checkPlan), ++plans;
    }
  }
  EXPECT_GT(plans, 2000u);
}

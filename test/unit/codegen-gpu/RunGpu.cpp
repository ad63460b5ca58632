//===- RunGpu.cpp: jobs in the emulator ------------------------------------===//
#include "RunGpu.h"
#include "Executed.h"
#include "llvm/ADT/DenseMap.h"

using namespace astra;
using namespace astra::test;

std::string astra::test::emulate(Context &c, std::vector<Job> &jobs, const GpuTarget &target,
                                 llvm::ArrayRef<UOpRef> dims, EmulatedRun &run) {
  llvm::DenseMap<UOpRef, size_t> numbers; // equal kernels once
  std::vector<GpuKernel> kernels;
  for (Job &j : jobs) {
    auto [it, fresh] = numbers.try_emplace(j.kernel.sink, kernels.size());
    if (!fresh) continue;
    auto l = linearize(c, j.kernel);
    if (!l) return llvm::toString(l.takeError());
    kernels.push_back({"kernel" + std::to_string(kernels.size()), &j.kernel, std::move(*l), 64, 1});
  }
  auto module = lowerGpu(c, kernels, target, dims);
  if (!module) return llvm::toString(module.takeError());
  auto emulator = Emulator::build(*module);
  if (!emulator) return llvm::toString(emulator.takeError());
  uint64_t before = run.threads;
  for (Job &j : jobs) {
    auto items = idxEvaluate(itemCount(c, j.kernel.sink), [&](UOpRef x) -> std::optional<int64_t> {
      for (size_t i = 0; i < dims.size(); ++i)
        if (dims[i] == x) return j.dims[i];
      return std::nullopt;
    });
    std::vector<EmulatedBuffer> buffers;
    for (size_t i = 0; i < j.buffers.size(); ++i) buffers.push_back({j.buffers[i], j.kernel.buffers[i].write});
    if (auto e = emulator->launch(numbers[j.kernel.sink], buffers, j.dims, items.value_or(0), run))
      return llvm::toString(std::move(e));
  }
  noteExecuted(target, kernels.size(), jobs.size(), run.threads - before);
  return "";
}

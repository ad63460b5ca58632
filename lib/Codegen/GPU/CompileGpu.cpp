//===- CompileGpu.cpp: all kernels of a schedule for one GPU ---------------===//
// Takes:    a schedule, a target, where ptxas is.
// Gives:    code and text of the GPU, and what the manifest says of each kernel.
// Keeps:    the order of kernels; bytes depend on the schedule, the target and the toolchain alone.
#include "astra/Codegen/Cost.h"
#include "astra/Codegen/GPU.h"
#include "astra/Codegen/Lower.h"
#include <chrono>

using namespace astra;

llvm::Expected<CompiledGpu> astra::compileGpu(Context &c, const Schedule &s, const GpuTarget &target,
                                              const std::string &ptxas, const Plans &plans) {
  CompiledGpu out{&target, {}, {}, {}, {}, {}, {}, {}};
  if (auto e = verifyProgram(c, s, false, out.proved)) return e;
  auto kernels = gpuKernels(c, s, target, out.kernels, plans);
  if (!kernels) return kernels.takeError();
  for (const GpuKernel &k : *kernels) out.proved += k.proved;
  const GpuSpeeds *speeds = speedsOf(target);
  for (auto [k, spec] : llvm::zip_equal(*kernels, s.kernels)) {
    out.items.push_back(itemsOf(c, k));
    out.costs.push_back(speeds && !spec.mostRows ? costOf(c, k, target, *speeds, mostOf) : std::nullopt);
  }
  auto module = lowerGpu(c, *kernels, target, s.dims);
  if (!module) return module.takeError();
  out.module = std::move(*module);
  auto binary = buildGpu(out.module, false, ptxas);
  if (!binary) return binary.takeError();
  out.binary = std::move(*binary);
  if (target.flavour == GpuFlavour::CUDA && !out.binary.code.empty()) {
    auto version = ptxasVersion(ptxas);
    if (!version) return version.takeError();
    out.ptxasVersion = std::move(*version);
  }
  return out;
}

llvm::Expected<std::vector<GpuTime>> astra::timeGpuKernels(Context &c, const Schedule &s, const GpuTarget &target,
                                                           const std::string &ptxas, const Plans &plans) {
  auto now = std::chrono::steady_clock::now;
  auto since = [&](auto begin) { return std::chrono::duration<double, std::milli>(now() - begin).count(); };
  std::vector<GpuTime> out;
  for (const KernelSpec &spec : s.kernels) {
    Kernel storage;
    auto begin = now();
    auto given = plans.find(spec.name);
    auto kernel = gpuKernel(c, spec, given != plans.end() ? given->second : chooseGpuPlan(c, spec, target), storage);
    if (!kernel) return kernel.takeError();
    double plan = since(begin);
    begin = now();
    auto module = lowerGpu(c, *kernel, target, s.dims);
    if (!module) return module.takeError();
    double lower = since(begin);
    auto binary = buildGpu(*module, false, ptxas);
    if (!binary) return binary.takeError();
    out.push_back({spec.name, plan, lower, binary->backEnd, binary->tool});
  }
  return out;
}

//===- GpuPlan.cpp: plans for GPUs, and kernels under them -----------------===//
// Takes:    a kernel's graph and a target.
// Gives:    a plan that binds its items to threads.
// Keeps:    determinism: no measurement, no randomness. Bits: a plan never changes them.
#include "astra/Codegen/GPU.h"
#include "astra/Codegen/Lower.h"

using namespace astra;

Plan astra::chooseGpuPlan(Context &, const KernelSpec &spec, const GpuTarget &) {
  Plan p;
  UOpRef heavy = spec.heavy;
  bool reduces = heavy && (heavy->op == Op::Reduce || heavy->op == Op::Contract);
  p.kind = reduces ? PlanKind::Columns : PlanKind::Map;
  p.merge = spec.outputs[0].layout.dims.size();
  p.threads = 256;
  return p;
}

llvm::Expected<std::vector<GpuKernel>> astra::gpuKernels(Context &c, const Schedule &s, const GpuTarget &target,
                                                         std::vector<Kernel> &storage) {
  std::vector<GpuKernel> out;
  storage.reserve(storage.size() + s.kernels.size());
  for (const KernelSpec &spec : s.kernels) {
    Plan plan = chooseGpuPlan(c, spec, target);
    storage.push_back(expandKernel(c, lowerKernel(c, spec, plan)));
    auto l = linearize(c, storage.back());
    if (!l) return l.takeError();
    out.push_back({spec.name, &storage.back(), std::move(*l), plan.threads, 1});
  }
  return out;
}

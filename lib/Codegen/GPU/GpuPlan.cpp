//===- GpuPlan.cpp: plans for GPUs, and kernels under them -----------------===//
// Takes:    a kernel's graph and a target.
// Gives:    a plan that binds its items to threads.
// Keeps:    determinism: no measurement, no randomness. Bits: a plan never changes them.
//
// The forms and their numbers are the CPU's (Plan.cpp) for a machine with registers of 16 bytes, which is what a thread
// loads at once; then lanes and blocks become threads:
//   map       an item is one vector, so that neighbouring threads read neighbouring vectors
//   columns   an item is one element: neighbouring threads have neighbouring columns
//   rows      the lanes of a row are the threads of a warp
//   contract  an item is a register tile
#include "astra/Codegen/GPU.h"
#include "astra/Codegen/Lower.h"

using namespace astra;

/// A thread, as the planner for CPUs sees it.
static const Target aThread{"", Arch::X86_64, 0, 16, 64, false, 16 * 1024, 64 * 1024, {}, {}};

Plan astra::chooseGpuPlan(Context &c, const KernelSpec &spec, const GpuTarget &target) {
  Plan p = choosePlan(c, spec, aThread);
  p.threads = 256;
  p.block = p.stage = 0;
  switch (p.kind) {
  case PlanKind::Map: p.unroll = 1; break;
  case PlanKind::Columns: p.lanes = p.unroll = 1; break;
  case PlanKind::Rows:
    p.lanes = p.warp = target.warp;
    p.unroll = 1;
    break;
  case PlanKind::Contract: // values of a tile are a thread's registers
    p.unroll = 1;
    p.rows = std::min(p.rows, 8u);
    break;
  }
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
    out.push_back({spec.name, &storage.back(), std::move(*l), plan.threads, plan.warp ? plan.warp : 1});
  }
  return out;
}

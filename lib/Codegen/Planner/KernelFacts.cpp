//===- KernelFacts.cpp: what is decoded of a kernel once ---------------------===//
// Takes:    a kernel's graph.
// Gives:    its facts, and summaries of its lowerings.
#include "KernelFacts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

uint64_t astra::times(uint64_t count, int64_t extent) {
  return llvm::SaturatingMultiply<uint64_t>(count, std::clamp<int64_t>(extent, 1, mostCounted));
}

uint64_t astra::mostBytes(UOpRef x) {
  uint64_t bytes = std::max(1u, byteSize(x->dtype));
  for (UOpRef e : x->shape) bytes = times(bytes, e->hi);
  return bytes;
}

KernelFacts::KernelFacts(Context &c, const KernelSpec &spec)
    : c(c), spec(spec), out(spec.outputs[0]), points(storedPoints(spec)), root(spec.rootOp), contract(spec.contract),
      laneBytes(std::max(1u, byteSize(points->dtype))), ops(0), readBytes(0) {
  if (out.layout.dims.size() && spec.grid.empty()) extents = memory = memoryExtents(c, out.layout, points->shape);
  if (root && root->op == Op::Reduce) {
    reduce = llvm::cantFail(decodeReduce(root->ints));
    laneBytes = std::min(laneBytes, std::max(1u, byteSize(root->dtype)));
  }
  for (UOpRef n : topoSort(out.value)) ops += has(n->op, Elementwise);
  for (const Placed &in : spec.inputs) readBytes = llvm::SaturatingAdd(readBytes, mostBytes(in.value));
}

const AccessSummary &KernelFacts::under(const Plan &plan) {
  auto [at, isNew] = asked.try_emplace(text(plan));
  if (isNew) at->second = summarize(lowerKernel(c, spec, plan), plan);
  return at->second;
}

std::optional<PlanCost> KernelFacts::cost(const Plan &plan, const Target &target,
                                          llvm::function_ref<std::optional<int64_t>(UOpRef)> dims) {
  Kernel k = expandKernel(c, lowerKernel(c, spec, plan));
  llvm::Expected<Linear> order = linearize(c, k);
  if (!order) {
    llvm::consumeError(order.takeError());
    return std::nullopt;
  }
  auto cost = costOf(k, *order, target, dims);
  if (!cost) return std::nullopt;
  return PlanCost{*cost, topoSort(k.sink).size()};
}

//===- GpuPlan.cpp: plans for GPUs, and kernels under them -----------------===//
// Takes:    a kernel's graph and a target.
// Gives:    a plan that binds its items to threads.
// Keeps:    determinism: no measurement, no randomness. Bits: a plan never changes them.
//
// The forms and their numbers are the CPU's (Plan.cpp) for a machine with registers of 16 bytes, which is what a thread
// loads at once; then lanes and blocks become threads:
//   map       an item is one vector, so that neighbouring threads read neighbouring vectors; or, where an operand lies
//             across, a tile that all threads of a block turn
//   columns   an item is one element: neighbouring threads have neighbouring columns
//   rows      the lanes of a row are the threads of a warp
//   contract  an item is a block: its threads have a register tile each and share the operands' blocks; where that
//             does not pay (one row) or cannot be (quotients in the indices) an item is a register tile
#include "CheckGpuPlan.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

/// A thread, as the planner for CPUs sees it.
static const Target aThread{"", Arch::X86_64, 0, 16, 64, false, 16 * 1024, 64 * 1024, {}, {}};

namespace {
/// Tiles of a block: rows and vectors of a thread, threads one below another and all of them.
struct Tile {
  unsigned rows, vectors, tall, threads;
  double speed; // of a multiply-add, by how often what was read from shared memory is used
};
constexpr Tile tiles[] = {{8, 2, 16, 256, 1.0}, {8, 1, 8, 128, 0.85}, {4, 1, 8, 128, 0.65}, {4, 1, 8, 64, 0.65},
                          {4, 1, 4, 64, 0.6},   {4, 1, 2, 64, 0.55},  {4, 1, 1, 64, 0.5},   {2, 1, 1, 64, 0.4}};
constexpr int64_t units = 128; // that a launch should have a block for: of the large chips about so many
constexpr double least = 2048; // elements of a tile that take as long as waiting for memory does
} // namespace

/// Whether the block of a contract is worth sharing its operands, and how large it is.
static bool shareOperands(const KernelSpec &spec, const GpuTarget &target, Plan &p) {
  UOpRef r = spec.heavy;
  ContractSpec s = llvm::cantFail(decodeContract(r->ints));
  llvm::SmallVector<bool> inOther(s.kept + s.reduced), inLanes(s.kept + s.reduced);
  auto has = [&](const auto &forms, int64_t label) {
    return llvm::any_of(
        forms, [&](const AffineForm &f) { return llvm::any_of(f.terms, [&](auto t) { return t.first == label; }); });
  };
  bool laneInB = has(s.b, p.nLabel);
  p.mLabels.clear(); // in the output's memory order
  for (const MemoryDim &d : spec.outputs[0].layout.dims)
    if (d.axis != p.nLabel && d.axis < s.kept && !has(laneInB ? s.b : s.a, d.axis) &&
        !llvm::is_contained(p.mLabels, d.axis))
      p.mLabels.push_back(d.axis);
  if (!unsharable(spec, p).empty()) return false;
  int64_t m = 1, n = std::max<int64_t>(r->shape[p.nLabel]->hi, 1), others = 1, steps = 1;
  constexpr int64_t large = 4096; // what may be anything
  auto size = [&](UOpRef e) { return std::clamp<int64_t>(e->hi, 1, e->isConst() ? int64_t(1) << 40 : large); };
  for (int64_t l = 0; l < s.kept; ++l)
    if (l != p.nLabel) (llvm::is_contained(p.mLabels, l) ? m : others) *= size(r->shape[l]);
  for (UOpRef e : r->indices().slice(s.kept, s.reduced)) steps *= size(e);
  if (spec.mostRows) m = std::min(m, spec.mostRows);
  n = size(r->shape[p.nLabel]);
  if (m < 2 || steps < 8 || double(m) * n * others < least / 2) return false;
  double best = 0;
  p.deep = 16;
  p.pipeline = 2;
  for (const Tile &t : tiles) {
    int64_t wide = t.threads / t.tall * t.vectors * p.lanes, down = t.tall * t.rows;
    int64_t bytes = std::max(1u, byteSize(r->dtype)), apart = 8 * (16 / std::min<int64_t>(bytes, 16)); // at most
    if (uint64_t(p.pipeline * p.deep * (wide + down + 2 * apart) * bytes) > target.sharedBytes) continue;
    int64_t blocks = ((n + wide - 1) / wide) * ((m + down - 1) / down) * others;
    double turns = double((blocks + units - 1) / units), useful = double(n) * m * others / units;
    double score = useful / std::max(turns * wide * down / t.speed, least);
    if (score > best * 1.05)
      best = score, p.rows = t.rows, p.unroll = t.vectors, p.tall = t.tall, p.threads = t.threads;
  }
  return best > 0;
}

/// Whether some operand lies across, so that tiles of it are worth turning, and along which dim.
static bool turns(Context &c, const KernelSpec &spec, Plan &p) {
  constexpr int64_t side = 32;
  const Placed &out = spec.outputs[0];
  if (spec.inPlace || spec.heavy || serialAxis(spec) >= 0 || storedPoints(spec) != out.value) return false;
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  if (extents.size() < 2 || extents.back()->hi < side / 2) return false;
  Plan turned;
  turned.turn = side, turned.threads = side * side;
  for (turned.merge = 0; turned.merge + 1 < extents.size(); ++turned.merge) {
    if (extents[turned.merge]->hi < side / 2) continue;
    Kernel k = lowerKernel(c, spec, turned);
    if (llvm::none_of(topoSort({k.sink}), [](UOpRef n) { return n->op == Op::Stage; })) continue;
    p = turned;
    return true;
  }
  return false;
}

Plan astra::chooseGpuPlan(Context &c, const KernelSpec &spec, const GpuTarget &target) {
  Plan p = choosePlan(c, spec, aThread);
  p.threads = 256;
  p.block = p.stage = 0;
  switch (p.kind) {
  case PlanKind::Map:
    p.unroll = 1;
    turns(c, spec, p);
    break;
  case PlanKind::Columns: p.lanes = p.unroll = 1; break;
  case PlanKind::Rows:
    p.lanes = p.warp = target.warp;
    p.unroll = 1;
    break;
  case PlanKind::Contract: // values of a tile are a thread's registers
    if (shareOperands(spec, target, p)) break;
    p = choosePlan(c, spec, aThread);
    p.threads = 256, p.block = p.stage = 0;
    p.unroll = 1;
    p.rows = std::min(p.rows, 8u);
    break;
  }
  return p;
}

llvm::Expected<GpuKernel> astra::gpuKernel(Context &c, const KernelSpec &spec, const Plan &plan, Kernel &storage) {
  storage = expandKernel(c, lowerKernel(c, spec, plan));
  auto l = linearize(c, storage);
  if (!l) return l.takeError();
  unsigned group = plan.warp ? plan.warp : plan.tall || plan.turn ? plan.threads : 1;
  return GpuKernel{spec.name, &storage, std::move(*l), plan.threads, group, plan.pipeline};
}

llvm::Expected<std::vector<GpuKernel>> astra::gpuKernels(Context &c, const Schedule &s, const GpuTarget &target,
                                                         std::vector<Kernel> &storage, const Plans &plans) {
  auto check = [&](const KernelSpec &spec, const Plan &p) { return checkGpuPlan(spec, p, target); };
  if (auto e = checkPlans(s.kernels, plans, check)) return e;
  std::vector<GpuKernel> out;
  storage.reserve(storage.size() + s.kernels.size());
  for (const KernelSpec &spec : s.kernels) {
    storage.emplace_back();
    auto given = plans.find(spec.name);
    Plan plan = given != plans.end() ? given->second : chooseGpuPlan(c, spec, target);
    auto k = gpuKernel(c, spec, plan, storage.back());
    if (!k) return k.takeError();
    out.push_back(std::move(*k));
  }
  return out;
}

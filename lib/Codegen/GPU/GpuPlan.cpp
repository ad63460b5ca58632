//===- GpuPlan.cpp: plans for GPUs, and kernels under them -----------------===//
// Takes:    a kernel's graph and a target.
// Gives:    a plan that binds its items to threads.
// Keeps:    determinism: no measurement, no randomness. Bits: a plan never changes them.
//
// The forms and their numbers are the CPU's (Plan.cpp) for a machine with registers of 16 bytes, which is what a thread
// loads at once; then lanes and blocks become threads:
//   map       an item is one vector, so that neighbouring threads read neighbouring vectors, or one element where they
//             are no vectors; or, where an operand lies across, a tile that all threads of a block turn
//   columns   an item is one element: neighbouring threads have neighbouring columns; where that are too few threads an
//             item is some columns, and several threads share each
//   rows      the lanes of a row are the threads of a warp, or some of them for a short row; the warps of a block
//             share a long one
//   contract  an item is a block: its threads have a register tile each and share the operands' blocks; where that
//             does not pay (one row) or cannot be (quotients in the indices) an item is a register tile
#include "../Rows.h"
#include "../Value.h"
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

/// Of what may be anything: not more than so much.
static int64_t likely(UOpRef e) {
  constexpr int64_t large = 4096;
  return std::clamp<int64_t>(e->hi, 1, e->isConst() ? int64_t(1) << 40 : large);
}
static int64_t likely(llvm::ArrayRef<UOpRef> extents) {
  int64_t n = 1;
  for (UOpRef e : extents) n = std::min(n * likely(e), int64_t(1) << 40);
  return n;
}
/// A power of two: the greatest that is not greater, or the least that is not less.
static int64_t powerBelow(int64_t n) { return int64_t(llvm::bit_floor(uint64_t(std::max<int64_t>(n, 1)))); }
static int64_t powerAbove(int64_t n) { return int64_t(llvm::bit_ceil(uint64_t(std::max<int64_t>(n, 1)))); }

/// Whether some operand lies across, so that tiles of it are worth turning, and along which dim. A tile goes along all
/// dims behind that one.
static bool turns(Context &c, const KernelSpec &spec, Plan &p) {
  constexpr int64_t side = 32, least = 256; // elements along a side; of a tile
  const Placed &out = spec.outputs[0];
  if (spec.inPlace || spec.heavy || serialAxis(spec) >= 0 || storedPoints(spec) != out.value) return false;
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  for (unsigned across = 0; across + 1 < extents.size(); ++across) {
    if (extents[across]->hi < 3 || likely(llvm::ArrayRef(extents).drop_front(across + 1)) < side / 2) continue;
    Plan turned;
    turned.merge = across;
    int64_t high = std::min(side, powerAbove(extents[across]->hi));
    turned.turn = std::max(side, least / high), turned.threads = turned.turn * high;
    Kernel k = lowerKernel(c, spec, turned);
    if (llvm::none_of(topoSort({k.sink}), [](UOpRef n) { return n->op == Op::Stage; })) continue;
    p = turned;
    return true;
  }
  return false;
}

/// Whether all that a map's vectors read and write is 16 bytes at most of neighbours, from a multiple of that on.
static bool goesByVectors(Context &c, const KernelSpec &spec, const Plan &p) {
  Kernel k = lowerKernel(c, spec, p);
  if (k.sink->src.empty()) return true; // no element to store
  for (UOpRef x : topoSort(k.sink->src[0])) {
    if (x->op != Op::Load && x->op != Op::Store) continue;
    UOpRef at = x->src.back(), lane = nullptr;
    std::vector<UOpRef> below =
        topoSort(x->op == Op::Load ? llvm::ArrayRef(x->src) : llvm::ArrayRef(x->src).drop_front(2));
    for (UOpRef n : below)
      if (n->op == Op::Range && RangeKind(n->ints[1]) == RangeKind::Vector) lane = n;
    if (!lane) continue;
    int64_t bytes = std::max(1u, byteSize(x->op == Op::Load ? x->dtype : x->src[1]->dtype));
    bool gated = x->ntensors > (x->op == Op::Load ? 1 : 2);
    if (bytes * p.lanes > 16 || (gated && dependsOn(x->tensors().back(), lane))) return false;
    for (const IndexTerm &t : terms(at))
      if (t.atoms.size() == 1 && t.atoms[0] == lane ? t.coefficient != 1 : llvm::any_of(t.atoms, [&](UOpRef a) {
            return dependsOn(a, lane);
          }))
        return false;
    if (alignmentOf(idxSubstitute(c, at, {lane}, {c.index(0)})) < p.lanes) return false;
  }
  return true;
}

/// Vectors of a map, as wide as go together; else a thread has one element, so that neighbours still read neighbours.
static void chooseVectors(Context &c, const KernelSpec &spec, Plan &p) {
  unsigned rank = spec.outputs[0].layout.dims.size();
  p.unroll = 1;
  if (serialAxis(spec) >= 0 || storedPoints(spec) != spec.outputs[0].value) return;
  for (; p.lanes > 1; p.lanes /= 2)
    for (unsigned merge : {p.merge, rank}) {
      Plan tried = p;
      tried.merge = merge;
      if (!goesByVectors(c, spec, tried)) continue;
      p = tried;
      return;
    }
  p.merge = rank;
}

/// The axis that a kernel's reduction goes along, null where it is no lane64 or exact one along one axis.
static UOpRef reducedExtent(const KernelSpec &spec) {
  if (!spec.heavy || spec.heavy->op != Op::Reduce) return nullptr;
  ReduceSpec s = llvm::cantFail(decodeReduce(spec.heavy->ints));
  bool free = s.order == ReduceOrder::Lane64 || s.order == ReduceOrder::Exact;
  return free && s.axes.size() == 1 ? spec.heavy->src[0]->shape[s.axes[0]] : nullptr;
}

/// The threads of a row: some lanes of a warp, a warp, or several of them.
static void shareRows(const KernelSpec &spec, const GpuTarget &target, Plan &p) {
  p.kind = PlanKind::Rows;
  p.lanes = p.warp = target.warp;
  p.unroll = 1;
  UOpRef n = reducedExtent(spec);
  if (!n) return;
  int64_t rows = likely(spec.heavy->shape);
  if (n->hi < target.warp) p.lanes = std::max<int64_t>(powerAbove(n->hi), 2);
  while (p.threads > target.warp && rows * p.lanes < units * p.threads) p.threads /= 2;
  constexpr int64_t chunk = 4096, fewWarps = 8; // where the row may be short after all, or is written too
  if (n->hi <= chunk) return;
  bool exact = llvm::cantFail(decodeReduce(spec.heavy->ints)).order == ReduceOrder::Exact;
  int64_t warps = powerBelow((n->hi - 1) / chunk + 1);
  if (writesRows(spec) || exact) warps = std::max(warps, fewWarps);
  if (!n->isConst()) warps = std::min(warps, fewWarps);
  p.spread = std::min<int64_t>(warps, target.threads / target.warp);
  p.threads = p.spread * target.warp;
}

/// Whether an element of a reduction along an outer axis is worth several threads, and how many.
static void shareColumns(Context &c, const KernelSpec &spec, const GpuTarget &target, Plan &p) {
  constexpr int64_t busy = 1 << 17, chunk = 4096; // threads that keep a chip busy
  constexpr int64_t wide = 32, narrow = 8;        // columns of a block, which are read as neighbours
  constexpr int64_t own = 4, few = 256;           // elements that a thread should have; that are not many
  const Placed &out = spec.outputs[0];
  UOpRef n = reducedExtent(spec);
  if (!n || spec.inPlace || storedPoints(spec) != out.value) return;
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  int64_t inner = likely(llvm::ArrayRef(extents).take_back(p.merge)), results = likely(extents);
  bool exact = llvm::cantFail(decodeReduce(spec.heavy->ints)).order == ReduceOrder::Exact;
  int64_t spread = std::min(powerAbove(busy / results), powerBelow(n->hi / own));
  if (inner < wide && n->hi < few) return;
  if (inner >= wide && spread < 2) return;
  int64_t columns = std::min(wide, powerAbove(inner));
  auto blocks = [&] { return (inner + columns - 1) / columns * (results / inner); };
  while (columns > narrow && blocks() < units) columns /= 2;
  int64_t teams = exact && n->isConst() ? n->hi / (64 * own) : (n->hi - 1) / chunk + 1;
  spread = std::max<int64_t>(spread, 64 / columns); // a block is two warps at least
  spread = std::min({spread, 64 * powerBelow(teams), int64_t(target.threads) / columns});
  p.spread = spread, p.threads = spread * columns;
}

/// Of a kernel's accesses under a plan the worst: how many times more it takes than it needs.
static double worstWaste(Context &c, const KernelSpec &spec, const GpuTarget &target, const Plan &p) {
  Kernel storage;
  double worst = 0;
  if (auto k = gpuKernel(c, spec, p, storage))
    for (const GpuAccess &a : gpuAccesses(*k, target)) worst = std::max(worst, a.waste);
  else
    llvm::consumeError(k.takeError());
  return worst;
}

/// By columns or by rows, as a CPU goes; but the other way where threads would read far apart.
static void reduction(Context &c, const KernelSpec &spec, const GpuTarget &target, Plan &p, bool byColumns) {
  constexpr double bearable = 2, better = 0.75;
  auto planned = [&](bool columns) {
    Plan q = p;
    q.kind = columns ? PlanKind::Columns : PlanKind::Rows;
    if (columns)
      q.lanes = q.unroll = 1, shareColumns(c, spec, target, q);
    else
      shareRows(spec, target, q);
    return q;
  };
  Plan chosen = planned(byColumns);
  if (reducedExtent(spec) && spec.outputs[0].layout.dims.size() && !writesRows(spec)) {
    double waste = worstWaste(c, spec, target, chosen);
    if (waste > bearable) {
      Plan other = planned(!byColumns);
      if (worstWaste(c, spec, target, other) < better * waste) chosen = other;
    }
  }
  p = chosen;
}

Plan astra::chooseGpuPlan(Context &c, const KernelSpec &spec, const GpuTarget &target) {
  Plan p = choosePlan(c, spec, aThread);
  p.threads = 256;
  p.block = p.stage = 0;
  switch (p.kind) {
  case PlanKind::Map:
    if (!turns(c, spec, p)) chooseVectors(c, spec, p);
    break;
  case PlanKind::Columns: reduction(c, spec, target, p, true); break;
  case PlanKind::Rows: reduction(c, spec, target, p, false); break;
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
  unsigned group = plan.tall || plan.turn || plan.spread ? plan.threads : plan.warp ? plan.lanes : 1;
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

//===- GpuPlan.cpp: plans for GPUs, and kernels under them -----------------===//
// Takes:    a kernel's graph and a target.
// Gives:    a plan that binds its items to threads.
// Keeps:    determinism: no measurement, no randomness. Bits: a plan never changes them.
//
// The forms and their numbers are the CPU's (Planner) for a machine with registers of 16 bytes, which is what a
// thread loads at once; then lanes and blocks become threads:
//   map       an item is one vector, so that neighbouring threads read neighbouring vectors, or one element where they
//             are no vectors; or, where an operand lies across, a tile that all threads of a block turn
//   columns   an item is one element: neighbouring threads have neighbouring columns; where that are too few threads an
//             item is some columns, and several threads share each
//   rows      the lanes of a row are the threads of a warp, or some of them for a short row; the warps of a block
//             share a long one
//   contract  an item is a block: its threads have a register tile each and share the operands' blocks, and the sums of
//             few results (ProductPlan.cpp); where that does not pay (a short sum of which nothing is used twice) or
//             cannot be (quotients in the indices) an item is a register tile
#include "../KeptTiles.h"
#include "../Rows.h"
#include "../Value.h"
#include "Barriers.h"
#include "CheckGpuPlan.h"
#include "JoinGpu.h"
#include "Mma.h"
#include "ProductPlan.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

/// A thread as the planner sees it, the same on all of these GPUs: 16 bytes are what it loads at once, 64 times that
/// its registers. The caches are no chip's: what a tile is chosen by, as if more than 64 KiB came from far.
static constexpr Executor aThread{.isThread = true,
                                  .vectorBytes = 16,
                                  .vectorRegisters = 64,
                                  .maskedBytes = 16,
                                  .l1Bytes = 16 * 1024,
                                  .l2Bytes = 64 * 1024,
                                  .l3Bytes = 0};

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
  constexpr int64_t few = 5;                // of which neighbours are read together all the same
  const Placed &out = spec.outputs[0];
  if (spec.inPlace || spec.rootOp || serialAxis(spec) >= 0 || storedPoints(spec) != out.value) return false;
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  for (unsigned across = 0; across + 1 < extents.size(); ++across) {
    int64_t behind = likely(llvm::ArrayRef(extents).drop_front(across + 1)), here = extents[across]->hi;
    bool narrow = behind < side / 2; // then the tile is longer across
    if (here < 3 || (narrow && (behind < few || here < side))) continue;
    Plan turned;
    turned.across = across;
    int64_t high = std::min(side, powerAbove(here));
    turned.transpose = narrow ? powerAbove(behind) : std::max(side, least / high);
    turned.threads = turned.transpose * (narrow ? least / turned.transpose : high);
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
    UOpRef at = x->indices()[0], lane = nullptr;
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
  if (!spec.rootOp || spec.rootOp->op != Op::Reduce) return nullptr;
  ReduceSpec s = llvm::cantFail(decodeReduce(spec.rootOp->ints));
  bool free = s.order == ReduceOrder::Lane64 || s.order == ReduceOrder::Exact;
  return free && s.axes.size() == 1 ? spec.rootOp->src[0]->shape[s.axes[0]] : nullptr;
}

/// Reads each row once, by as wide accesses as its elements allow: by some lanes of a warp, which keep it in registers,
/// or by the threads of a block. False where it is too long for that, or of no known length.
static bool keepRows(const KernelSpec &spec, const GpuTarget &target, Plan &p) {
  constexpr int64_t atOnce = 16, usual = 16; // bytes of an access; elements of a thread
  constexpr uint64_t mostOfThread = 256;     // bytes of registers
  constexpr int64_t busy = 1 << 17;          // threads that keep a chip busy
  UOpRef n = reducedExtent(spec);
  Shape row = rowsOf(spec);
  if (!n || !n->isConst() || n->hi < 2 || row.empty() || spec.inPlace || target.flavour == GpuFlavour::Metal)
    return false;
  int64_t length = n->hi, rows = likely(spec.rootOp->shape), widest = 1;
  auto widen = [&](const Placed &x) {
    if (!x.value->shape.empty() && x.value->shape.back() == n)
      widest = std::max<int64_t>(widest, byteSize(x.value->dtype));
  };
  for (const Placed &x : spec.inputs) widen(x);
  for (const Placed &x : spec.outputs) widen(x);
  int64_t width = std::max<int64_t>(atOnce / widest, 1);
  while (length % width) width /= 2;
  auto bytesOf = [](const llvm::DenseSet<UOpRef> &values) {
    uint64_t bytes = 0;
    for (UOpRef x : values) bytes += std::max(1u, byteSize(x->dtype));
    return bytes;
  };
  auto each = [&](int64_t threads) { return llvm::alignTo(uint64_t(length), uint64_t(threads * width)) / threads; };
  int64_t lanes =
      std::min<int64_t>({64 / width, target.warp, std::max<int64_t>(powerAbove((length + width - 1) / width), 2)});
  if (KeptRow kept = keptInRow(spec, false); length <= laneChunk && each(lanes) * bytesOf(kept.own) <= mostOfThread) {
    p.lanes = lanes, p.width = width;
    while (p.threads > target.warp && rows * p.lanes < units * p.threads) p.threads /= 2;
    return true;
  }
  KeptRow kept = keptInRow(spec, true);
  if (kept.all().empty()) return false; // a single pass: chunks are dealt to warps
  int64_t threads = std::max<int64_t>(powerAbove((length + usual - 1) / usual), 2 * target.warp);
  while (rows * threads < busy && each(threads) > uint64_t(width)) threads *= 2;
  threads = std::min<int64_t>(threads, target.threads);
  uint64_t shared = each(threads) * threads * bytesOf(kept.shared),
           room = std::max(mostShared(target) / 3, mostCachedShared);
  if (each(threads) * bytesOf(kept.own) > mostOfThread || each(threads) > mostOfThread / 4 || shared > room)
    return false;
  p.width = width, p.threads = threads, p.split = threads / target.warp;
  return true;
}

/// The threads of a row: some lanes of a warp, a warp, or several of them.
static void shareRows(const KernelSpec &spec, const GpuTarget &target, Plan &p) {
  p.kind = PlanKind::Rows;
  p.lanes = p.warp = target.warp;
  p.unroll = 1;
  UOpRef n = reducedExtent(spec);
  if (!n || keepRows(spec, target, p)) return;
  int64_t rows = likely(spec.rootOp->shape);
  if (n->hi < target.warp) p.lanes = std::max<int64_t>(powerAbove(n->hi), 2);
  while (p.threads > target.warp && rows * p.lanes < units * p.threads) p.threads /= 2;
  constexpr int64_t fewWarps = 8; // where the row may be short after all, or is written too
  if (n->hi <= laneChunk) {       // what several passes need: by registers, else by warps that share memory for it
    constexpr unsigned full = 50, usual = 64; // of a hundred warps; registers of a thread
    int64_t registers = n->isConst() ? mostCachedOwn : 1, each = mostCachedOwn * target.warp;
    int64_t warps = std::clamp<int64_t>(powerAbove((n->hi + each - 1) / each), 2, target.threads / target.warp);
    uint64_t bytes = cachedBytes(spec, fewWarps * target.warp);
    if (n->hi <= registers * target.warp || !bytes || bytes > mostCachedShared) return;
    while (warps < fewWarps && gpuOccupancy(target, warps * target.warp, usual, bytes) < full) warps *= 2;
    p.split = warps, p.threads = p.split * target.warp;
    return;
  }
  bool exact = llvm::cantFail(decodeReduce(spec.rootOp->ints)).order == ReduceOrder::Exact;
  int64_t warps = powerBelow((n->hi - 1) / laneChunk + 1);
  if (writesRows(spec) || exact) warps = std::max(warps, fewWarps);
  if (!n->isConst()) warps = std::min(warps, fewWarps);
  p.split = std::min<int64_t>(warps, target.threads / target.warp);
  p.threads = p.split * target.warp;
}

/// Whether an element of a reduction along an outer axis is worth several threads, and how many.
static void shareColumns(Context &c, const KernelSpec &spec, const GpuTarget &target, Plan &p) {
  constexpr int64_t busy = 1 << 17;        // threads that keep a chip busy
  constexpr int64_t wide = 32, narrow = 8; // columns of a block, which are read as neighbours
  constexpr int64_t own = 4, few = 256;    // elements that a thread should have; that are not many
  const Placed &out = spec.outputs[0];
  UOpRef n = reducedExtent(spec);
  if (!n || spec.inPlace || storedPoints(spec) != out.value) return;
  auto extents = memoryExtents(c, out.layout, out.value->shape);
  int64_t inner = likely(llvm::ArrayRef(extents).take_back(p.merge)), results = likely(extents);
  bool exact = llvm::cantFail(decodeReduce(spec.rootOp->ints)).order == ReduceOrder::Exact;
  int64_t spread = std::min(powerAbove(busy / results), powerBelow(n->hi / own));
  if (inner < wide && n->hi < few) return;
  if (inner >= wide && spread < 2) return;
  int64_t columns = std::min(wide, powerAbove(inner));
  auto blocks = [&] { return (inner + columns - 1) / columns * (results / inner); };
  while (columns > narrow && blocks() < units) columns /= 2;
  int64_t teams = exact && n->isConst() ? n->hi / (64 * own) : (n->hi - 1) / laneChunk + 1;
  spread = std::max<int64_t>(spread, 64 / columns); // a block is two warps at least
  spread = std::min({spread, 64 * powerBelow(teams), int64_t(target.threads) / columns});
  p.split = spread, p.threads = spread * columns;
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

constexpr double bearable = 2, better = 0.75; // waste; what another plan's must be of it

/// By columns or by rows, as a CPU goes; but the other way where threads would read far apart.
static void reduction(Context &c, const KernelSpec &spec, const GpuTarget &target, Plan &p, bool byColumns) {
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

/// A tile of a thread: not so many elements that there are too few threads, one where vectors would lie apart.
static void threadTile(Context &c, const KernelSpec &spec, const GpuTarget &target, Plan &p) {
  p.unroll = 1; // values of a tile are a thread's registers
  p.mr = std::min(p.mr, 8u);
  int64_t results = likely(spec.rootOp->shape);
  auto few = [&] { return results / (int64_t(p.mr) * p.lanes) < units * p.threads; };
  while (few() && p.threads > target.warp && p.threads > 64) p.threads /= 2;
  while (few() && p.mr > 1) p.mr = (p.mr + 1) / 2;
  if (few() || worstWaste(c, spec, target, p) > bearable) p.lanes = 1;
}

/// A product: tiles of a block, or, where its operands cannot be shared or need not be, of a thread.
static bool product(Context &c, const KernelSpec &spec, const GpuTarget &target, Plan &p) {
  constexpr int64_t longSum = 64; // steps that are worth being on their way before they are used
  if (!spec.rootOp || spec.rootOp->op != Op::Contract || spec.inPlace) return false;
  bool byThread = p.kind == PlanKind::Contract;
  Plan shared = p;
  bool shares = shareOperands(c, spec, target, shared);
  const ContractSpec &s = *spec.contract;
  bool inBoth = hasLabel(s.a, p.nLabel) && hasLabel(s.b, p.nLabel),
       oneRow = llvm::all_of(shared.mLabels, [&](int64_t l) { return spec.rootOp->shape[l]->hi <= 1; }),
       shortSum = likely(spec.rootOp->indices().slice(s.kept, s.reduced)) < longSum;
  bool reused = !byThread || !(inBoth || (oneRow && shortSum));
  if (!shares || !reused) {
    if (byThread) threadTile(c, spec, target, p);
    if (!shares) return byThread;
    double waste = worstWaste(c, spec, target, p); // only where threads would read far apart
    if (waste <= bearable || worstWaste(c, spec, target, shared) >= better * waste) return true;
  }
  p = shared;
  return true;
}

Plan astra::chooseGpuPlan(Context &c, const KernelSpec &spec, const GpuTarget &target) {
  Plan p = choosePlanByRules(c, spec, aThread);
  if (!spec.grid.empty()) { // a program is a warp
    p.lanes = p.warp = target.warp, p.unroll = p.mr = 1;
    // What a program keeps its threads share: a block has one.
    bool keeps = !keptTiles(c, spec, spec.outputs[0].value->src[0], {p.lanes, true, 1}).empty();
    p.threads = keeps ? p.warp : 4 * target.warp;
    return p;
  }
  p.threads = 256;
  if (product(c, spec, target, p)) return p;
  switch (p.kind) {
  case PlanKind::Map:
    if (!turns(c, spec, p)) chooseVectors(c, spec, p);
    break;
  case PlanKind::Columns: reduction(c, spec, target, p, true); break;
  case PlanKind::Rows: reduction(c, spec, target, p, false); break;
  case PlanKind::Contract:
  case PlanKind::Programs: break; // done above
  }
  return p;
}

llvm::Expected<GpuKernel> astra::gpuKernel(Context &c, const KernelSpec &spec, const Plan &plan, Kernel &storage) {
  storage = expandKernel(c, lowerKernel(c, spec, plan));
  AccessCount proved;
  auto l = linearizeInside(c, storage, spec.known, proved);
  if (!l) return l.takeError();
  unsigned group = plan.mc || plan.transpose || plan.split ? plan.threads : plan.warp ? plan.lanes : 1;
  unsigned threads = plan.threads + (plan.warpGroups ? groupThreads : 0);
  bool byLines = plan.mc && !plan.warpGroups && spec.rootOp && spec.rootOp->op == Op::Contract && spec.contract->unit &&
                 plan.lanes == 2; // mma.sync
  auto lines = byLines ? gpu::linesOf(c, *l, plan.kc) : llvm::DenseMap<UOpRef, unsigned>();
  GpuKernel out{spec.name, &storage,    std::move(*l),       threads,     group, plan.pipeline,
                proved,    plan.stages, plan.spillSums != 0, plan.unrollK};
  out.perBlock = std::max(plan.tiles, 1u), out.lines = std::move(lines);
  return out;
}

llvm::Expected<std::vector<GpuKernel>> astra::gpuKernels(Context &c, const Schedule &s, const GpuTarget &target,
                                                         std::vector<Kernel> &storage, const Plans &plans) {
  auto check = [&](const KernelSpec &spec, const Plan &p) { return checkGpuPlan(spec, p, target); };
  if (auto e = checkPlans(s.kernels, plans, check)) return e;
  std::vector<GpuKernel> out;
  storage.reserve(storage.size() + s.kernels.size());
  auto givenTo = [&](const KernelSpec &spec) {
    auto it = plans.find(spec.name);
    return it == plans.end() ? nullptr : &it->second;
  };
  Plans joined; // of kernels with followers that a block computes together, and of these
  for (const KernelSpec &spec : s.kernels) {
    if (spec.followers.empty()) continue;
    std::vector<Plan> chosen = planJoined(spec, target);
    const Plan *own = givenTo(spec);
    bool given = own || llvm::any_of(spec.followers, [&](const Follower &f) { return givenTo(f.spec); });
    if (own ? !own->join : given || chosen.empty()) continue; // one by one
    auto add = [&](const KernelSpec &k, size_t number) {
      const Plan *p = givenTo(k);
      joined[k.name] = p ? *p : number < chosen.size() ? chosen[number] : chooseGpuPlan(c, k, target);
    };
    add(spec, 0);
    for (auto [i, f] : llvm::enumerate(spec.followers)) add(f.spec, i + 1);
  }
  for (const KernelSpec &spec : s.kernels) {
    storage.emplace_back();
    auto together = joined.find(spec.name);
    if (together != joined.end() && !spec.followers.empty()) {
      std::vector<Plan> all{together->second};
      for (const Follower &f : spec.followers) all.push_back(joined.find(f.spec.name)->second);
      auto k = joinedGpuKernel(c, spec, all, s.dims, storage.back());
      if (!k) return k.takeError();
      out.push_back(std::move(*k));
      continue;
    }
    const Plan *given = givenTo(spec);
    Plan plan = together != joined.end() ? together->second : given ? *given : chooseGpuPlan(c, spec, target);
    auto k = gpuKernel(c, spec, plan, storage.back());
    // Lanes that would go along two axes at once: a thread is a program.
    if (k && !given && together == joined.end() && !spec.grid.empty() &&
        !gpu::Threads().find(*k, target.warp).empty()) {
      plan.lanes = plan.warp = 1, plan.threads = 64;
      k = gpuKernel(c, spec, plan, storage.back());
    }
    if (!k) return k.takeError();
    if (together != joined.end()) { // the kernel that it follows has done it
      storage.back().sink = c.make(Op::Sink, {});
      auto nothing = linearize(c, storage.back());
      if (!nothing) return nothing.takeError();
      k->linear = std::move(*nothing);
    }
    out.push_back(std::move(*k));
  }
  return out;
}

UOpRef astra::itemsOf(Context &c, const GpuKernel &k) { return k.tiles ? k.tiles : itemCount(c, k.kernel->sink); }

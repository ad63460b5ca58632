//===- JoinGpu.cpp: a kernel and its followers as one kernel of a GPU -------===//
// Takes:    a kernel with followers (attention: scores, their softmax, the product with the values; decision 0070).
// Gives:    plans for all of them and the kernel whose items are tiles of rows: a block computes the scores of some
//           rows, then the rows, then the product, and what passes between these lies in memory that its threads share.
// Keeps:    bits: the steps are those of a CPU (Joint.cpp), each lowered as the whole kernel is.
// Does not: join where a row is no such length that threads keep it, where the rows are no whole number of tiles, or
//           where a tile does not fit: then each kernel is launched by itself.
#include "JoinGpu.h"
#include "../Joint.h"
#include "../Rows.h"
#include "CheckGpuPlan.h"
#include "ProductPlan.h"
#include "astra/Codegen/Accesses.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

static constexpr unsigned blockThreads = 256, vector = 4;
static constexpr uint64_t mostOwn = 64; // elements of a row that a thread keeps

/// A product of the tile: lanes along the results' neighbours, `down` threads one below another along the rows.
static Plan ofProduct(const KernelSpec &spec, int64_t rows, int64_t down, unsigned steps) {
  Plan p;
  const ContractSpec &s = *spec.contract;
  p.kind = PlanKind::Contract, p.nLabel = spec.vectorIndex;
  p.lanes = vector, p.threads = blockThreads;
  const auto &lanesOperand = hasLabel(s.b, p.nLabel) ? s.b : s.a;
  for (const MemoryDim &d : spec.outputs[0].layout.dims)
    if (d.axis != p.nLabel && d.axis < s.kept && !hasLabel(lanesOperand, d.axis)) p.mLabels.push_back(d.axis);
  p.mc = unsigned(down), p.mr = unsigned(rows / down);
  p.kc = steps, p.pipeline = 2;
  return p;
}

/// Bytes of shared memory that its operands' blocks take, at most.
static uint64_t operandBytes(const Plan &p) {
  constexpr unsigned apart = 2 * 8 * vector; // elements between the steps of operands that are turned
  return 2 * sizeof(float) * p.kc * uint64_t(p.mc * p.mr + p.threads / p.mc * p.lanes * p.unroll + apart);
}

/// Rows of so many elements: read once by some lanes of a warp, which keep them; longer ones by a warp, in each pass
/// again from the shared memory in which they lie.
static Plan ofRows(const GpuTarget &target, int64_t length) {
  Plan p;
  p.kind = PlanKind::Rows, p.threads = blockThreads, p.warp = p.lanes = target.warp, p.merge = 2;
  if (length > 32 * int64_t(mostOwn)) return p;
  p.width = length <= 16 * int64_t(mostOwn) ? vector : vector / 2;
  while (length % p.width) p.width /= 2;
  p.lanes = std::min(64 / p.width, target.warp);
  return p;
}

std::vector<Plan> astra::planJoined(const KernelSpec &spec, const GpuTarget &target) {
  if (target.flavour == GpuFlavour::Metal || spec.followers.size() != 2 || spec.vectorIndex < 0) return {};
  const KernelSpec &softmax = spec.followers[0].spec, &last = spec.followers[1].spec;
  Shape shape = spec.outputs[0].value->shape;
  for (UOpRef e : llvm::ArrayRef(shape).take_back(2))
    if (!e->isConst() || e->hi < 1) return {};
  int64_t columns = shape.back()->hi, rows = shape[shape.size() - 2]->hi, others = 1;
  for (UOpRef e : shape.drop_back(2)) others = std::min(others * std::max<int64_t>(e->hi, 1), int64_t(1) << 30);
  bool isFloat32 = llvm::all_of(llvm::ArrayRef(spec.outputs).drop_back(),
                                [](const Placed &p) { return p.value->dtype == DType::F32; });
  if (!isFloat32 || spec.rootOp->dtype != DType::F32 || last.rootOp->dtype != DType::F32 || last.vectorIndex < 0 ||
      rowsOf(softmax).empty() || !writesRows(softmax))
    return {};
  for (const KernelSpec *k : {&spec, &last})
    if (k->contract->unit) return {};
  Plan middle = ofRows(target, columns);
  if (middle.width) {
    uint64_t each = llvm::alignTo(uint64_t(columns), uint64_t(middle.lanes) * middle.width) / middle.lanes;
    if (each > mostOwn || keptInRow(softmax, false).own.empty()) return {};
  }
  UOpRef n = last.rootOp->shape[last.vectorIndex];
  if (!n->isConst()) return {};
  int64_t deep = std::clamp<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(n->hi, vector)), 1, 64);
  // As many rows as leave a unit a second block, else as fit; for the operands of a tile are read once for all its
  // rows.
  for (unsigned blocks : {2, 1})
    for (unsigned steps : {16, 8})
      for (int64_t tile : {64, 32, 16, 8, 4}) {
        if (rows % tile || (blocks > 1 && tile < 32)) continue;
        if (tile > 16 && others * (rows / tile) < units) continue;
        if (tile < 8 && middle.width) continue;                         // only where there is no room for more
        int64_t high = tile >= 64 ? 8 : std::min<int64_t>(tile / 4, 4); // rows of a thread
        Plan first = ofProduct(spec, tile, tile / high, steps),
             product = ofProduct(last, tile, std::min<int64_t>(tile, blockThreads / deep), steps);
        if (!unsharable(spec, first, target).empty() || !unsharable(last, product, target).empty()) return {};
        uint64_t bytes = uint64_t(tile) * rowBytes(spec.outputs[0]) + operandBytes(first) + operandBytes(product);
        if (bytes > mostShared(target) || blocks * (bytes + target.blockShared) > target.unitShared) continue;
        first.join = unsigned(tile);
        return {first, middle, product};
      }
  return {};
}

llvm::Expected<GpuKernel> astra::joinedGpuKernel(Context &c, const KernelSpec &spec, llvm::ArrayRef<Plan> plans,
                                                 llvm::ArrayRef<UOpRef> dims, Kernel &storage) {
  auto fail = [&](const llvm::Twine &why) { return refusePlan(spec, plans[0], why); };
  for (const Plan &p : plans) {
    bool products = &p != &plans[1];
    if (plans.size() != 3 || p.threads != plans[0].threads || p.split || p.stages || p.spillSums ||
        (products ? p.kind != PlanKind::Contract || !p.mc : p.kind != PlanKind::Rows || !(p.width || p.warp)))
      return fail(text(plans[0], &Plan::join) + " with '" + text(p) +
                  "'; expected for the three kernels of the chain " +
                  "contract with mc, rows of a warp, contract with mc, of as many threads, none of them with " +
                  "split-k, cooperative, stages or spill-sums");
  }
  storage = expandKernel(c, lowerKernel(c, spec, plans[0]));
  GpuKernel out{spec.name, &storage, {}, plans[0].threads, plans[0].threads};
  // joinRows asks for as many rows as a plan's row-block has.
  std::vector<Plan> forRows(plans.begin(), plans.end());
  forRows[0].rowBlock = plans[0].join;
  auto keep = [&](Kernel k) -> const Kernel * {
    out.ofSteps.push_back(std::make_shared<Kernel>(std::move(k)));
    return out.ofSteps.back().get();
  };
  auto lower = [&](const KernelSpec &part, const Plan &plan, const RowTile &tile) -> llvm::Expected<TileRegion::Step> {
    Plan own = plan;
    own.rowBlock = 0;
    RowTile whole = tile; // all of each row: a thread keeps elements of known places
    whole.columns = spec.outputs[0].value->shape.back();
    const Kernel *k = keep(expandKernel(c, lowerKernel(c, part, own, &whole)));
    auto l = linearize(c, *k);
    if (!l) return l.takeError();
    return TileRegion::Step{{}, k, std::move(*l), {}};
  };
  auto joint = joinRows(c, spec, forRows, dims, lower);
  if (!joint) return joint.takeError();
  if (joint->regions.size() != 1)
    return fail(text(plans[0], &Plan::join) + "; expected a number that divides the rows");
  LinearKernel whole{spec.name, &storage, {}, std::move(joint->regions)};
  if (auto e = verifyRegions(c, whole, spec.known, keep, out.proved)) return e;
  TileRegion &region = whole.regions[0];
  out.tile = region.tile, out.tiles = region.tiles;
  for (auto [number, step] : llvm::enumerate(region.steps)) {
    const Plan &p = plans[number];
    unsigned group = p.kind == PlanKind::Contract ? p.threads : p.lanes;
    GpuKernel part{spec.name + ".shared.step" + std::to_string(number),
                   step.kernel,
                   std::move(step.linear),
                   p.threads,
                   group,
                   p.pipeline};
    part.unrollK = p.unrollK;
    // A thread reads its elements of a row before it writes those of the next step's: these lie in the same place.
    for (const TileRegion::Argument &a : step.arguments) part.arguments.push_back({a.local, a.local ? 0 : a.number});
    out.steps.push_back(std::move(part));
  }
  out.rowBytes = plans[0].join * rowBytes(spec.outputs[0]);
  return out;
}

//===- Candidates.cpp: the plans beside a plan -----------------------------===//
// Takes:    see Candidates.h.
// Gives:    the rows of `moves` in order, each applied to the plan; then other row labels, then other forms.
// Keeps:    moves are data: one that helps is a row more.
#include "astra/Codegen/Candidates.h"
#include "astra/Codegen/Lower.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

namespace {

enum class By : uint8_t { Set, Add, Less, Times, Over };
struct Change {
  unsigned Plan::*field;
  By by;
  unsigned number;
};
struct Move {
  std::initializer_list<PlanKind> of;
  std::initializer_list<Change> changes;
  bool isRanked = false; // as CandidatesFor::Ranking
};

using K = PlanKind;
const Change noTile{&Plan::mapTile, By::Set, 0}, noSteps{&Plan::columnSteps, By::Set, 0},
    noBlocks{&Plan::chainBlocks, By::Set, 0};
constexpr bool ranked = true;
const Move moves[] = {
    // tiles: what 32 registers hold, and what 16 do
    {{K::Contract}, {{&Plan::mr, By::Set, 14}, {&Plan::unroll, By::Set, 2}}},
    {{K::Contract}, {{&Plan::mr, By::Set, 9}, {&Plan::unroll, By::Set, 3}}},
    {{K::Contract}, {{&Plan::mr, By::Set, 8}, {&Plan::unroll, By::Set, 3}}},
    {{K::Contract}, {{&Plan::mr, By::Set, 6}, {&Plan::unroll, By::Set, 4}}},
    {{K::Contract}, {{&Plan::mr, By::Set, 12}, {&Plan::unroll, By::Set, 2}}},
    {{K::Contract}, {{&Plan::mr, By::Set, 7}, {&Plan::unroll, By::Set, 4}}},
    {{K::Contract}, {{&Plan::mr, By::Set, 6}, {&Plan::unroll, By::Set, 2}}},
    {{K::Contract}, {{&Plan::mr, By::Set, 4}, {&Plan::unroll, By::Set, 3}}},
    {{K::Contract}, {{&Plan::mr, By::Set, 4}, {&Plan::unroll, By::Set, 6}}},
    {{K::Contract}, {{&Plan::mr, By::Set, 12}, {&Plan::unroll, By::Set, 1}}},
    {{K::Contract}, {{&Plan::mr, By::Set, 1}, {&Plan::unroll, By::Set, 8}}},
    {{K::Contract}, {{&Plan::mr, By::Set, 1}, {&Plan::unroll, By::Set, 4}}},
    // where operands and sums lie
    {{K::Contract}, {{&Plan::packB, By::Set, 32}, {&Plan::mc, By::Set, 0}, {&Plan::kc, By::Set, 0}}},
    {{K::Contract}, {{&Plan::packB, By::Set, 0}, {&Plan::mc, By::Set, 16}, {&Plan::kc, By::Set, 256}}},
    {{K::Contract}, {{&Plan::packB, By::Set, 0}, {&Plan::mc, By::Set, 8}, {&Plan::kc, By::Set, 512}}},
    {{K::Contract}, {{&Plan::tail, By::Set, tailOverlapped}}},
    {{K::Contract}, {{&Plan::packB, By::Set, 0}, {&Plan::mc, By::Set, 0}, {&Plan::kc, By::Set, 0}}},
    {{K::Contract}, {{&Plan::packB, By::Times, 2}}},
    {{K::Contract}, {{&Plan::packB, By::Over, 2}}},
    {{K::Contract}, {{&Plan::mc, By::Times, 2}}},
    {{K::Contract}, {{&Plan::mc, By::Over, 2}}},
    {{K::Contract}, {{&Plan::kc, By::Times, 2}}},
    {{K::Contract}, {{&Plan::kc, By::Over, 2}}},
    {{K::Columns}, {{&Plan::unrollK, By::Set, 8}}},
    {{K::Columns}, {{&Plan::unrollK, By::Set, 0}}},
    {{K::Columns}, {{&Plan::unrollK, By::Set, 64}, {&Plan::columnSteps, By::Set, 16}, {&Plan::tail, By::Set, 0}}},
    {{K::Columns}, {{&Plan::unrollK, By::Set, 64}, noSteps, {&Plan::tail, By::Set, tailMasked}}},
    {{K::Columns}, {{&Plan::unrollK, By::Set, 0}, noSteps, noBlocks}},
    // the order of items
    {{K::Contract}, {{&Plan::rowBlock, By::Set, 0}}},
    {{K::Contract}, {{&Plan::rowBlock, By::Set, 1}}},
    {{K::Contract}, {{&Plan::rowBlock, By::Set, 16}}},
    // prefetches and non-temporal stores
    {{K::Contract, K::Columns}, {{&Plan::prefetch, By::Set, 24}}},
    {{K::Contract, K::Columns}, {{&Plan::prefetch, By::Set, 8}}},
    {{K::Rows}, {{&Plan::prefetch, By::Set, 1}}},
    {{K::Map, K::Rows}, {{&Plan::nonTemporal, By::Set, 1}}},
    {{K::Map, K::Rows}, {{&Plan::nonTemporal, By::Set, 0}}},
    {{K::Contract}, {{&Plan::prefetchPanel, By::Set, 1}}},
    {{K::Contract}, {{&Plan::prefetchPanel, By::Set, 0}}},
    {{K::Contract, K::Rows, K::Columns}, {{&Plan::prefetch, By::Set, 0}}},
    // vectors a step
    {{K::Map, K::Rows, K::Columns, K::Contract}, {{&Plan::unroll, By::Times, 2}}, ranked},
    {{K::Map, K::Rows, K::Columns, K::Contract}, {{&Plan::unroll, By::Over, 2}}, ranked},
    {{K::Map, K::Rows, K::Columns, K::Contract}, {{&Plan::lanes, By::Over, 2}}},
    {{K::Map, K::Rows, K::Columns, K::Contract}, {{&Plan::lanes, By::Times, 2}}, ranked},
    {{K::Map, K::Rows, K::Columns}, {{&Plan::lanes, By::Over, 2}, {&Plan::unroll, By::Times, 2}}},
    {{K::Map, K::Rows, K::Columns}, {{&Plan::lanes, By::Times, 2}, {&Plan::unroll, By::Over, 2}}},
    {{K::Map, K::Rows, K::Columns}, {{&Plan::lanes, By::Set, 1}, {&Plan::unroll, By::Set, 1}}},
    {{K::Map, K::Rows, K::Columns}, {{&Plan::merge, By::Add, 1}}, ranked},
    {{K::Map, K::Rows, K::Columns}, {{&Plan::merge, By::Less, 1}}, ranked},
    {{K::Map, K::Columns}, {{&Plan::merge, By::Less, 1}, {&Plan::unroll, By::Set, 1}}, ranked},
    {{K::Map}, {{&Plan::mapTile, By::Set, 64}, {&Plan::unroll, By::Set, 1}}},
    {{K::Map}, {{&Plan::mapTile, By::Set, 16}, {&Plan::unroll, By::Set, 1}}},
    {{K::Map}, {{&Plan::mapTile, By::Set, 64}, {&Plan::unroll, By::Set, 8}}},
    {{K::Map}, {{&Plan::mapTile, By::Times, 2}}},
    {{K::Map}, {{&Plan::mapTile, By::Over, 2}}},
    {{K::Map}, {noTile}},
    {{K::Map, K::Columns}, {{&Plan::tail, By::Set, tailMasked}, noTile, noSteps, noBlocks}, ranked},
    {{K::Map, K::Columns}, {{&Plan::tail, By::Set, tailOverlapped}, noTile, noSteps, noBlocks}, ranked},
    {{K::Map, K::Columns, K::Contract}, {{&Plan::tail, By::Set, 0}}, ranked},
    {{K::Map, K::Columns},
     {{&Plan::tail, By::Set, tailMasked}, noTile, noSteps, noBlocks, {&Plan::merge, By::Set, 1}},
     ranked},
    // kernels of users: rows and vectors of a tile at once
    {{K::Programs}, {{&Plan::unroll, By::Times, 2}}},
    {{K::Programs}, {{&Plan::unroll, By::Over, 2}}},
    {{K::Programs}, {{&Plan::unroll, By::Set, 1}}},
    {{K::Programs}, {{&Plan::lanes, By::Over, 2}}},
    {{K::Programs}, {{&Plan::lanes, By::Times, 2}}},
    {{K::Programs}, {{&Plan::lanes, By::Over, 2}, {&Plan::unroll, By::Times, 2}}},
    {{K::Programs}, {{&Plan::lanes, By::Times, 2}, {&Plan::unroll, By::Over, 2}}},
    {{K::Programs}, {{&Plan::mr, By::Times, 2}}},
    {{K::Programs}, {{&Plan::mr, By::Over, 2}}},
    {{K::Programs}, {{&Plan::mr, By::Add, 1}}},
    {{K::Programs}, {{&Plan::mr, By::Less, 1}}},
    {{K::Programs}, {{&Plan::mr, By::Times, 2}, {&Plan::unroll, By::Over, 2}}},
    {{K::Programs}, {{&Plan::mr, By::Over, 2}, {&Plan::unroll, By::Times, 2}}},
    // tiles beside this one
    {{K::Contract}, {{&Plan::mr, By::Add, 1}}},
    {{K::Contract}, {{&Plan::mr, By::Less, 1}}},
    {{K::Contract}, {{&Plan::mr, By::Add, 2}}},
    {{K::Contract}, {{&Plan::mr, By::Less, 2}}},
    {{K::Contract}, {{&Plan::unroll, By::Add, 1}}},
    {{K::Contract}, {{&Plan::unroll, By::Less, 1}}},
    {{K::Contract}, {{&Plan::mr, By::Over, 2}, {&Plan::unroll, By::Times, 2}}},
    {{K::Contract}, {{&Plan::mr, By::Times, 2}, {&Plan::unroll, By::Over, 2}}},
};

} // namespace

static unsigned apply(By by, unsigned v, unsigned number) {
  switch (by) {
  case By::Set: return number;
  case By::Add: return v + number;
  case By::Less: return v > number ? v - number : 0;
  case By::Times: return v * number;
  case By::Over: return v / number;
  }
  llvm_unreachable("all ways are above");
}

/// More sums at once than there are registers gain nothing; non-temporal stores are those of whole lines.
static bool holds(const Plan &p, const KernelSpec &spec, const Target &target) {
  if (p.nonTemporal && !storesLines(target)) return false;
  if (p.kind != PlanKind::Contract) return true;
  unsigned bytes = p.lanes * std::max(1u, byteSize(spec.rootOp->dtype));
  return p.mr * p.unroll * std::max(1u, bytes / target.vectorBytes) <= target.vectorRegisters;
}

/// The same tile along other rows: the innermost labels of the output's memory order that the lanes' operand lacks.
static void otherRows(const KernelSpec &spec, const Plan &plan, std::vector<Plan> &out) {
  const ContractSpec &s = *spec.contract;
  auto mentions = [](const auto &forms, int64_t label) {
    return llvm::any_of(forms, [&](const AffineForm &f) {
      return llvm::any_of(f.terms, [&](const auto &t) { return t.first == label; });
    });
  };
  const auto &lanes = mentions(s.b, plan.nLabel) ? s.b : s.a;
  llvm::SmallVector<int64_t> rows;
  for (const MemoryDim &d : spec.outputs[0].layout.dims)
    if (d.axis != plan.nLabel && d.axis < s.kept && !mentions(lanes, d.axis)) rows.push_back(d.axis);
  for (size_t k = 0; k <= rows.size(); ++k) {
    Plan p = plan;
    auto taken = llvm::ArrayRef(rows).take_back(k);
    p.mLabels.assign(taken.begin(), taken.end());
    if (k == 0) p.mr = 1, p.packB = p.mc = p.kc = 0;
    out.push_back(std::move(p));
  }
}

/// Reductions along rows instead of columns and the other way round, each from a common start.
static void otherForms(const KernelSpec &spec, const Plan &plan, const Target &target, std::vector<Plan> &out) {
  unsigned rank = spec.outputs[0].layout.dims.size(),
           width = std::max(1u, target.vectorBytes / std::max(1u, byteSize(spec.rootOp->dtype)));
  auto add = [&](PlanKind kind, unsigned merge, unsigned unroll) {
    Plan p;
    p.kind = kind, p.merge = merge, p.lanes = width, p.unroll = unroll;
    out.push_back(p);
  };
  if (plan.kind != PlanKind::Rows)
    for (unsigned unroll : {1, 4}) add(PlanKind::Rows, rank, unroll);
  if (plan.kind != PlanKind::Columns)
    for (unsigned merge = 1; merge <= rank; ++merge) add(PlanKind::Columns, merge, 1);
}

std::vector<Plan> astra::candidates(const KernelSpec &spec, const Plan &plan, const Target &target, CandidatesFor use) {
  bool all = use == CandidatesFor::Measuring;
  std::vector<Plan> found;
  for (const Move &m : moves) {
    if (!llvm::is_contained(m.of, plan.kind) || !(all || m.isRanked)) continue;
    Plan p = plan;
    for (const Change &c : m.changes) p.*c.field = apply(c.by, p.*c.field, c.number);
    found.push_back(std::move(p));
  }
  if (all && plan.kind == PlanKind::Contract) otherRows(spec, plan, found);
  if (all && spec.rootOp && (spec.rootOp->is(Op::Reduce) || spec.rootOp->is(Op::Contract)))
    otherForms(spec, plan, target, found);
  std::string own = text(plan);
  std::erase_if(found, [&](const Plan &p) {
    if (text(p) == own || !holds(p, spec, target)) return true;
    llvm::Error refused = checkPlan(spec, p);
    bool bad = bool(refused);
    llvm::consumeError(std::move(refused));
    return bad;
  });
  return found;
}

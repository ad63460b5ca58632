//===- CheckGpuPlan.cpp: which plans a GPU can have --------------------------===//
// Takes:    a kernel, a plan from outside, a GPU.
// Gives:    nothing where the kernel can be lowered under the plan, else a sentence: what was found, what was expected.
// Does not: count what the kernel takes of the GPU (checkLaunch, once it is lowered).
#include "CheckGpuPlan.h"
#include "../Rows.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

static constexpr unsigned mostStages = 8; // of a ring
static constexpr unsigned mostTiles = 64; // of a block

std::string astra::unsharable(const KernelSpec &spec, const Plan &p, const GpuTarget &t) {
  const ContractSpec &s = *spec.contract;
  for (const auto *forms : {&s.a, &s.b})
    for (const AffineForm &f : *forms)
      if (f.divisor != 1) return "an index is divided";
  UnitStep step{s.unit, s.inputs, 0};
  if (s.unit && !unitInstruction(t, step) && (!p.warpGroups || warpGroupType(t, step).empty()))
    return std::string("a step of ") + s.unit->text + " is in primitives on " + t.name +
           ", which a thread does by itself";
  if (s.unit && (p.nLabel < 0 || (hasLabel(s.a, p.nLabel) && hasLabel(s.b, p.nLabel))))
    return std::string("no label of columns belongs to one operand alone, as ") + s.unit->text + " has them";
  if (!s.outside.empty()) return "taps some of which are outside are no steps of a shared tile";
  bool laneInB = hasLabel(s.b, p.nLabel);
  for (int64_t l : p.mLabels)
    if (hasLabel(laneInB ? s.b : s.a, l)) return "label " + std::to_string(l) + " of m is one of the lanes' operand";
  return "";
}

/// Whether both operands are lines along the sum, of labels as the tile walks them, for the warp groups of a GPU; else
/// what they lack.
std::string astra::unfitForGroups(const KernelSpec &spec, const Plan &p, const GpuTarget &t) {
  const ContractSpec &s = *spec.contract;
  if (!s.unit || warpGroupType(t, {s.unit, s.inputs, 0}).empty())
    return std::string("warp groups of ") + t.name + " do no step of this sum";
  if (!s.domain.empty() || !s.outside.empty() || spec.inPlace || spec.mostRows ||
      storedPoints(spec) != spec.outputs[0].value || spec.outputs[0].value->op == Op::Pad)
    return "not all of the product is computed";
  int64_t words = 1;
  for (UOpRef e : spec.rootOp->indices().slice(s.kept, s.reduced)) {
    if (!e->constIndex() || *e->constIndex() < 1 || *e->constIndex() > int64_t(1) << 28)
      return "the length of the sum is not fixed";
    if ((words *= *e->constIndex()) > int64_t(1) << 28) return "the sum is too long";
  }
  llvm::SmallVector<int64_t, 4> batch;
  for (bool inB : {false, true}) {
    const auto &forms = inB ? s.b : s.a;
    UOpRef x = spec.rootOp->src[inB];
    const Placed *in = spec.input(x);
    if (!in || !in->begin.empty() || !in->layout.isPermuted() ||
        llvm::ArrayRef(in->allocated) != llvm::ArrayRef<UOpRef>(x->shape))
      return "an operand is computed where it is read";
    for (auto [form, extent] : llvm::zip_equal(forms, x->shape))
      if (!form.isLabel() || extent != spec.rootOp->indices()[form.terms[0].first])
        return "an index is more than a label";
    llvm::SmallVector<int64_t, 6> labels, own(p.mLabels.begin(), p.mLabels.end());
    for (const MemoryDim &d : in->layout.dims) labels.push_back(forms[d.axis].terms[0].first);
    if (hasLabel(forms, p.nLabel)) own = {p.nLabel};
    for (int64_t l = s.kept; l < s.kept + s.reduced; ++l) own.push_back(l);
    if (labels.size() < own.size() || llvm::ArrayRef(labels).take_back(own.size()) != llvm::ArrayRef(own))
      return "an operand's lines do not go along the sum";
    for (int64_t l : llvm::ArrayRef(labels).drop_back(own.size()))
      if (l >= s.kept || l == p.nLabel || llvm::is_contained(p.mLabels, l))
        return "an operand's labels lie in another order";
  }
  return "";
}

/// The numbers of a plan for warp groups; empty where they fit together.
static std::string wrongGroups(const Plan &p) {
  auto found = [&](unsigned Plan::*field) { return text(p, field); };
  constexpr unsigned mostGroups = 2, boxWords = 32, mostColumns = 256, mostSums = 128, mostLines = 256;
  if (p.warpGroups > mostGroups) return found(&Plan::warpGroups) + "; expected 1 or 2";
  if (p.threads != p.warpGroups * groupThreads || p.mc * 4 != p.threads)
    return found(&Plan::threads) + " with " + found(&Plan::mc) + "; each group has 128, four side by side";
  if (p.lanes != 2 || p.unroll < 2 || 8 * p.unroll > mostColumns)
    return found(&Plan::lanes) + " with " + found(&Plan::unroll) + "; expected 2, and 2 to 32";
  if (p.mr < 2 || p.mr * p.unroll * p.lanes > mostSums || p.mc * p.mr > mostLines)
    return found(&Plan::mr) + "; a thread has two rows of each 64 of its group, 128 sums, a block 256 rows at most";
  if (p.kc != boxWords || p.stages < 2)
    return found(&Plan::kc) + " with " + found(&Plan::stages) + "; expected 32, and a ring";
  if (p.split || p.spillSums || p.unrollK) return "a ring of boxes has no split-k, spill-sums or unroll-k";
  return "";
}

llvm::Error astra::checkGpuPlan(const KernelSpec &spec, const Plan &p, const GpuTarget &t) {
  auto bad = [&](const llvm::Twine &why) { return refusePlan(spec, p, why); };
  auto found = [&](unsigned Plan::*field) { return text(p, field); };
  if (!p.threads) return bad(llvm::Twine("no threads; ") + t.name + " expects so many of a block");
  if (p.threads % t.warp || p.threads > t.threads)
    return bad(found(&Plan::threads) + "; " + t.name + " expects a multiple of " + llvm::Twine(t.warp) + ", at most " +
               llvm::Twine(t.threads));
  if (p.packB) return bad(found(&Plan::packB) + " is of CPUs; threads share memory with mc and kc");
  if (p.tail) return bad(found(&Plan::tail) + " is of CPUs; neighbouring threads have neighbouring elements");
  if (p.nonTemporal) return bad(found(&Plan::nonTemporal) + " is of CPUs; their caches are not asked to keep results");
  if (p.prefetchPanel)
    return bad(found(&Plan::prefetchPanel) + " is of CPUs; other warps run while one waits for memory");
  if (p.prefetch) return bad(found(&Plan::prefetch) + " is of CPUs; other warps run while one waits for memory");
  if (auto e = checkForm(spec, p)) return e;
  if (p.warp && p.warp != t.warp)
    return bad(found(&Plan::warp) + "; warps of " + t.name + " have " + llvm::Twine(t.warp));
  if (p.warp && (p.lanes < 2 || p.lanes > p.warp || (p.split && p.lanes < p.warp)))
    return bad(found(&Plan::lanes) + " with " + found(&Plan::warp) +
               "; the lanes of a row are the warp's threads, expected " +
               (p.split ? "as many" : "so many or a part of them"));
  if (p.split && p.kind == PlanKind::Contract) {
    if (!p.mc) return bad(found(&Plan::split) + " without mc: there is no shared tile");
    if (!llvm::isPowerOf2_32(p.split) || p.split < 2)
      return bad(found(&Plan::split) + "; expected a power of two of chains");
    if (uint64_t(p.mc) * p.split > p.threads)
      return bad(found(&Plan::split) + " times " + found(&Plan::mc) + "; a block has " + llvm::Twine(p.threads) +
                 " threads");
  } else if (p.split) {
    bool rows = p.kind == PlanKind::Rows, reduces = spec.rootOp && spec.rootOp->op == Op::Reduce;
    if (!llvm::isPowerOf2_32(p.split) || p.split < 2 || !llvm::isPowerOf2_32(p.threads))
      return bad(found(&Plan::split) + " with " + found(&Plan::threads) + "; expected powers of two");
    if (rows && (!p.warp || p.split * p.warp != p.threads))
      return bad(found(&Plan::split) + " with " + found(&Plan::threads) + "; warps of " + llvm::Twine(t.warp) +
                 " share a row, expected as many as the block has");
    if (!rows && (!reduces || spec.inPlace || storedPoints(spec) != spec.outputs[0].value))
      return bad(found(&Plan::split) + "; only a reduction that writes its whole output is shared");
    if (!rows && (p.split > p.threads || p.lanes != 1 || p.unroll != 1))
      return bad(found(&Plan::split) + "; expected at most the block's threads, vector 1 and unroll 1");
  }
  if (p.width) {
    constexpr uint64_t most = 16, mostOwn = 64; // elements of an access, of a thread
    Shape row = rowsOf(spec);
    if (!p.warp || row.empty() || !row.back()->isConst() || row.back()->hi < 1 || spec.inPlace)
      return bad(found(&Plan::width) + "; only of rows of one known length that a warp or a block reads");
    if (t.flavour == GpuFlavour::Metal) return bad(found(&Plan::width) + "; rows are read once by NVIDIA and AMD");
    if (!llvm::isPowerOf2_32(p.width) || p.width > most || (!p.split && p.lanes * p.width > 64))
      return bad(found(&Plan::width) + " with " + found(&Plan::lanes) + "; expected a power of two up to " +
                 llvm::Twine(most) + ", of a warp's row at most 64 elements at once");
    uint64_t step = uint64_t(p.split ? p.threads : p.lanes) * p.width;
    bool keeps = !keptInRow(spec, p.split != 0).all().empty();
    if (keeps && llvm::divideCeil(row.back()->hi, step) * p.width > mostOwn)
      return bad(found(&Plan::width) + "; a thread keeps at most " + llvm::Twine(mostOwn) + " elements of a row");
    if (!p.split && row.back()->hi > laneChunk)
      return bad(found(&Plan::width) + "; rows of more than " + llvm::Twine(laneChunk) + " elements are a block's");
  }
  if (p.transpose) {
    const Placed &out = spec.outputs[0];
    unsigned rank = out.layout.dims.size();
    bool plain = !spec.inPlace && !spec.rootOp && serialAxis(spec) < 0 && storedPoints(spec) == out.value;
    if (!plain)
      return bad(found(&Plan::transpose) + "; only a map without sums that writes its whole output has tiles");
    if (p.transpose > p.threads || !llvm::isPowerOf2_32(p.transpose) || !llvm::isPowerOf2_32(p.threads))
      return bad(found(&Plan::transpose) + " with " + found(&Plan::threads) +
                 "; a thread is an element of the tile, expected powers of two, threads the greater");
    if (p.across + 1 >= rank || p.mapTile)
      return bad(found(&Plan::across) + "; it is the other dim of the tile, expected one of 0 to " +
                 llvm::Twine(int(rank) - 2) + ", and no tile");
  }
  if (p.join) {
    if (spec.followers.empty() || !p.mc || p.split || p.stages || p.spillSums)
      return bad(found(&Plan::join) + "; only a kernel of a fused chain, with mc, no split-k, stages and spill-sums, " +
                 "takes rows through the chain");
    UOpRef rows = spec.outputs[0].value->shape.drop_back().back();
    if (!rows->isConst() || rows->hi % p.join)
      return bad(found(&Plan::join) + "; expected a number that divides the rows");
  }
  if (p.unrollK && (!p.mc || !llvm::isPowerOf2_32(p.unrollK) || p.unrollK > p.kc))
    return bad(found(&Plan::unrollK) + "; of a tile that threads share a power of two is expected, at most kc");
  if (p.spillSums > 1 || (p.spillSums && !p.mc))
    return bad(found(&Plan::spillSums) + "; expected 0, or 1 of a tile that threads share");
  if (p.stages) {
    if (!p.mc) return bad(found(&Plan::stages) + " without mc: there is no shared tile");
    if (!t.copiesAsync) return bad(found(&Plan::stages) + "; " + t.name + " has no asynchronous copies");
    if (p.stages < 2 || p.stages > mostStages)
      return bad(found(&Plan::stages) + "; expected 2.." + llvm::Twine(mostStages));
    if (p.pipeline != 1)
      return bad(found(&Plan::stages) + " with " + found(&Plan::pipeline) + "; expected 1 of a ring");
  }
  if (p.tiles && (!p.warpGroups || !llvm::isPowerOf2_32(p.tiles) || p.tiles < 2 || p.tiles > mostTiles))
    return bad(found(&Plan::tiles) + "; of warp groups a power of two is expected, 2 to " + llvm::Twine(mostTiles));
  if (p.warpGroups && !p.mc) return bad(found(&Plan::warpGroups) + " without mc: there is no shared tile");
  if (!p.mc) return p.kc ? bad(found(&Plan::kc) + " without mc: there is no shared tile") : llvm::Error::success();
  for (unsigned Plan::*field : {&Plan::mc, &Plan::kc, &Plan::mr, &Plan::unroll, &Plan::threads})
    if (!llvm::isPowerOf2_32(p.*field))
      return bad(found(field) + "; of a tile that threads share a power of two is expected");
  if (p.warpGroups) {
    std::string why = wrongGroups(p);
    if (why.empty()) why = unfitForGroups(spec, p, t);
    return why.empty() ? llvm::Error::success() : bad(found(&Plan::warpGroups) + " is not possible: " + why);
  }
  if (p.mc > p.threads) return bad(found(&Plan::mc) + "; a block has " + llvm::Twine(p.threads) + " threads");
  const ContractSpec &s = *spec.contract;
  if (s.unit && (p.split || p.kc % (s.unit->block / matrixInputsInWord(s.inputs))))
    return bad(found(&Plan::kc) + " and " + found(&Plan::split) + "; a chain of " + s.unit->text +
               " is one thread's, its steps are whole in shared memory");
  if (p.pipeline != 1 && p.pipeline != 2) return bad(found(&Plan::pipeline) + "; expected 1 or 2");
  std::string why = unsharable(spec, p, t);
  return why.empty() ? llvm::Error::success() : bad(found(&Plan::mc) + " is not possible: " + why);
}

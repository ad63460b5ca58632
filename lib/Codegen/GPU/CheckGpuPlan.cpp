//===- CheckGpuPlan.cpp: which plans a GPU can have --------------------------===//
// Takes:    a kernel, a plan from outside, a GPU.
// Gives:    nothing where the kernel can be lowered under the plan, else a sentence: what was found, what was expected.
// Does not: count what the kernel takes of the GPU (checkLaunch, once it is lowered).
#include "CheckGpuPlan.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Contract.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace astra;

static constexpr unsigned mostStages = 8; // of a ring

std::string astra::unsharable(const KernelSpec &spec, const Plan &p, const GpuTarget &t) {
  ContractSpec s = llvm::cantFail(decodeContract(spec.rootOp->ints));
  for (const auto *forms : {&s.a, &s.b})
    for (const AffineForm &f : *forms)
      if (f.divisor != 1) return "an index is divided";
  if (s.unit && !unitInstruction(t, {s.unit, s.inputs, 0}))
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
  if (p.transpose) {
    const Placed &out = spec.outputs[0];
    unsigned rank = out.layout.dims.size();
    bool plain = !spec.inPlace && !spec.rootOp && serialAxis(spec) < 0 && storedPoints(spec) == out.value;
    if (!plain)
      return bad(found(&Plan::transpose) + "; only a map without sums that writes its whole output has tiles");
    if (p.transpose > p.threads || !llvm::isPowerOf2_32(p.transpose) || !llvm::isPowerOf2_32(p.threads))
      return bad(found(&Plan::transpose) + " with " + found(&Plan::threads) +
                 "; a thread is an element of the tile, expected powers of two, threads the greater");
    if (p.merge + 1 >= rank || p.block)
      return bad(found(&Plan::merge) + "; it is the other dim of the tile, expected one of 0 to " +
                 llvm::Twine(int(rank) - 2) + ", and no tile");
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
  if (!p.mc) return p.kc ? bad(found(&Plan::kc) + " without mc: there is no shared tile") : llvm::Error::success();
  for (unsigned Plan::*field : {&Plan::mc, &Plan::kc, &Plan::mr, &Plan::unroll, &Plan::threads})
    if (!llvm::isPowerOf2_32(p.*field))
      return bad(found(field) + "; of a tile that threads share a power of two is expected");
  if (p.mc > p.threads) return bad(found(&Plan::mc) + "; a block has " + llvm::Twine(p.threads) + " threads");
  ContractSpec s = llvm::cantFail(decodeContract(spec.rootOp->ints));
  if (s.unit && (p.split || p.kc % (s.unit->block / matrixInputsInWord(s.inputs))))
    return bad(found(&Plan::kc) + " and " + found(&Plan::split) + "; a chain of " + s.unit->text +
               " is one thread's, its steps are whole in shared memory");
  if (p.pipeline != 1 && p.pipeline != 2) return bad(found(&Plan::pipeline) + "; expected 1 or 2");
  std::string why = unsharable(spec, p, t);
  return why.empty() ? llvm::Error::success() : bad(found(&Plan::mc) + " is not possible: " + why);
}

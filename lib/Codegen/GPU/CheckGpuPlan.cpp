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

std::string astra::unsharable(const KernelSpec &spec, const Plan &p) {
  ContractSpec s = llvm::cantFail(decodeContract(spec.rootOp->ints));
  for (const auto *forms : {&s.a, &s.b})
    for (const AffineForm &f : *forms)
      if (f.divisor != 1) return "an index is divided";
  if (!s.outside.empty()) return "taps some of which are outside are no steps of a shared tile";
  bool laneInB = hasLabel(s.b, p.nLabel);
  for (int64_t l : p.mLabels)
    if (hasLabel(laneInB ? s.b : s.a, l)) return "label " + std::to_string(l) + " of m is one of the lanes' operand";
  return "";
}

llvm::Error astra::checkGpuPlan(const KernelSpec &spec, const Plan &p, const GpuTarget &t) {
  auto bad = [&](const llvm::Twine &why) { return refusePlan(spec, p, why); };
  auto found = [](const char *step, unsigned n) { return (llvm::Twine(step) + " " + llvm::Twine(n)).str(); };
  if (!p.threads) return bad(llvm::Twine("no threads; ") + t.name + " expects so many of a block");
  if (p.threads % t.warp || p.threads > t.threads)
    return bad(found("threads", p.threads) + "; " + t.name + " expects a multiple of " + llvm::Twine(t.warp) +
               ", at most " + llvm::Twine(t.threads));
  if (p.stage) return bad(found("stage", p.stage) + " is of CPUs; threads share memory with tall and deep");
  if (p.line) return bad(found("line", p.line) + " is of CPUs; neighbouring threads have neighbouring elements");
  if (p.past) return bad(found("past", p.past) + " is of CPUs; their caches are not asked to keep results");
  if (p.next) return bad(found("next", p.next) + " is of CPUs; other warps run while one waits for memory");
  if (p.ahead) return bad(found("ahead", p.ahead) + " is of CPUs; other warps run while one waits for memory");
  if (auto e = checkForm(spec, p)) return e;
  if (p.warp && p.warp != t.warp)
    return bad(found("warp", p.warp) + "; warps of " + t.name + " have " + llvm::Twine(t.warp));
  if (p.warp && (p.lanes < 2 || p.lanes > p.warp || (p.spread && p.lanes < p.warp)))
    return bad(found("vector", p.lanes) + " with " + found("warp", p.warp) +
               "; the lanes of a row are the warp's threads, expected " +
               (p.spread ? "as many" : "so many or a part of them"));
  if (p.spread && p.kind == PlanKind::Contract) {
    if (!p.tall) return bad(found("spread", p.spread) + " without tall: there is no shared tile");
    if (!llvm::isPowerOf2_32(p.spread) || p.spread < 2)
      return bad(found("spread", p.spread) + "; expected a power of two of chains");
    if (uint64_t(p.tall) * p.spread > p.threads)
      return bad(found("spread", p.spread) + " times " + found("tall", p.tall) + "; a block has " +
                 llvm::Twine(p.threads) + " threads");
  } else if (p.spread) {
    bool rows = p.kind == PlanKind::Rows, reduces = spec.rootOp && spec.rootOp->op == Op::Reduce;
    if (!llvm::isPowerOf2_32(p.spread) || p.spread < 2 || !llvm::isPowerOf2_32(p.threads))
      return bad(found("spread", p.spread) + " with " + found("threads", p.threads) + "; expected powers of two");
    if (rows && (!p.warp || p.spread * p.warp != p.threads))
      return bad(found("spread", p.spread) + " with " + found("threads", p.threads) + "; warps of " +
                 llvm::Twine(t.warp) + " share a row, expected as many as the block has");
    if (!rows && (!reduces || spec.inPlace || storedPoints(spec) != spec.outputs[0].value))
      return bad(found("spread", p.spread) + "; only a reduction that writes its whole output is shared");
    if (!rows && (p.spread > p.threads || p.lanes != 1 || p.unroll != 1))
      return bad(found("spread", p.spread) + "; expected at most the block's threads, vector 1 and unroll 1");
  }
  if (p.turn) {
    const Placed &out = spec.outputs[0];
    unsigned rank = out.layout.dims.size();
    bool plain = !spec.inPlace && !spec.rootOp && serialAxis(spec) < 0 && storedPoints(spec) == out.value;
    if (!plain) return bad(found("turn", p.turn) + "; only a map without sums that writes its whole output has tiles");
    if (p.turn > p.threads || !llvm::isPowerOf2_32(p.turn) || !llvm::isPowerOf2_32(p.threads))
      return bad(found("turn", p.turn) + " with " + found("threads", p.threads) +
                 "; a thread is an element of the tile, expected powers of two, threads the greater");
    if (p.merge + 1 >= rank || p.block)
      return bad(found("merge", p.merge) + "; it is the other dim of the tile, expected one of 0 to " +
                 llvm::Twine(int(rank) - 2) + ", and no block");
  }
  if (!p.tall)
    return p.deep ? bad(found("deep", p.deep) + " without tall: there is no shared tile") : llvm::Error::success();
  for (auto [name, n] :
       {std::pair{"tall", p.tall}, {"deep", p.deep}, {"rows", p.rows}, {"unroll", p.unroll}, {"threads", p.threads}})
    if (!llvm::isPowerOf2_32(n))
      return bad(found(name, n) + "; of a tile that threads share a power of two is expected");
  if (p.tall > p.threads) return bad(found("tall", p.tall) + "; a block has " + llvm::Twine(p.threads) + " threads");
  if (p.pipeline != 1 && p.pipeline != 2) return bad(found("pipeline", p.pipeline) + "; expected 1 or 2");
  std::string why = unsharable(spec, p);
  return why.empty() ? llvm::Error::success() : bad(found("tall", p.tall) + " is not possible: " + why);
}

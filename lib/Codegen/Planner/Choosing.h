//===- Choosing.h: what the files that choose and check plans share ---------===//
#pragma once
#include "KernelFacts.h"
#include "Thresholds.h"

namespace astra {

/// The heuristic plan of a kernel whose lanes can run along a label of its contract; false, and `p` is not to be used,
/// where there is none.
bool contractPlan(KernelFacts &f, const Executor &target, Plan &p);

/// A row of Exceptions.def.
struct PlanException {
  const char *name, *why;
};
/// Why no cost ranks a plan that rules chose, or null.
const PlanException *exceptionOf(const Plan &p);

/// Of a plan and the candidates beside it the one whose cost is least, where that is much less; else the plan. Asks
/// for no exception.
Plan cheapest(KernelFacts &f, const Target &target, const Plan &p);

/// Why the operand of the lanes cannot be packed under this plan, or "".
std::string unpackable(const KernelSpec &spec, const ContractSpec &s, bool laneInB, const Plan &p);

/// Lanes of vectors of which the last of a line of n begins earlier, so that none is masked: where vectors are narrow a
/// masked store takes longer than several others. 0: it is masked, as with AVX-512, whose masks cost nothing, or where
/// the line may be shorter than a vector. One element that is left takes no mask, whatever begins where.
unsigned lanesThatMove(const Executor &t, UOpRef n, unsigned width);

/// Of any number in a plan; steps of a sum that columns take together.
inline constexpr int64_t mostNumber = 4096;
inline constexpr unsigned mostUnrollK = 16;
/// Bytes of what an item copies, or of the sums of the blocks of a chain: what a worker may have as scratch.
inline constexpr int64_t mostScratch = int64_t(16) << 20;

/// Bytes of one row of all that passes between the kernels of a fused chain.
uint64_t passedBytes(const KernelSpec &spec);

/// The most blocks that the chain of a contract has, where they can be lanes of a vector: it is of floats, over one
/// label without a domain, and the operands are indexed by labels alone; else 0.
int64_t blocksOf(UOpRef contract);

/// Whether so many elements of a result with strided access exceed the L3. What is read shares it unless results are
/// stored non-temporally.
inline bool exceedsL3(const Executor &t, int64_t elements, unsigned bytes) {
  return elements > int64_t(t.l3Bytes / (storesLines(t) && bytes > 1 ? 2 * bytes : bytes));
}

/// Whether a result with strided access is stored non-temporally, where a vector is a line: from a part of the L3 on.
inline bool isLargeTranspose(const Executor &t, int64_t elements, unsigned bytes) {
  return storesLines(t) && bytes >= threshold::wideElement
             ? elements >= int64_t(t.l3Bytes / (threshold::largePart * bytes))
             : exceedsL3(t, elements, bytes);
}

/// The kernel lowered as one element, each of whose memory dims is a loop of its own: `loops` has them, outermost
/// first.
Kernel lowerByDims(Context &c, const KernelSpec &spec, llvm::SmallVectorImpl<UOpRef> &loops);

/// An in-register transpose for a map with strided access to an operand; false, and `p` is as it was, where there is
/// none or they do not pay.
bool chooseRegisterTranspose(KernelFacts &f, const Executor &target, Plan &p);

/// Lines of a few elements for a map with strided access to an operand; false, and `p` is as it was, where there is
/// none.
bool chooseInterleaved(KernelFacts &f, const Executor &target, Plan &p);

/// Rows of a gather along the innermost axis taken together; else `p` stays.
void chooseGather(KernelFacts &f, const Executor &target, Plan &p);

/// Steps taken together for a contract by columns with strided access along its lanes, `line` of them in a line; else
/// `p` stays.
void chooseSteps(KernelFacts &f, const Executor &target, UOpRef line, Plan &p);

/// Blocks of a chain as lanes for few long sums; else `p` stays.
void chooseBlocks(KernelFacts &f, const Executor &target, Plan &p);

} // namespace astra

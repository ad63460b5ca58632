//===- ContractPlan.h: what Plan.cpp and ContractPlan.cpp share ------------===//
#pragma once
#include "astra/Codegen/Plan.h"
#include "astra/IR/Contract.h"

namespace astra {

/// The heuristic plan of a kernel whose lanes can run along a label of its contract; false, and `p` is not to be used,
/// where there is none.
bool contractPlan(Context &c, const KernelSpec &spec, const Target &target, Plan &p);

/// Why the operand of the lanes cannot lie in fast memory under this plan, or "".
std::string unstageable(const KernelSpec &spec, const ContractSpec &s, bool laneInB, const Plan &p);

/// Lanes of vectors of which the last of a line of n begins earlier, so that none is masked: where vectors are narrow a
/// masked store takes longer than several others. 0: it is masked, as with AVX-512, whose masks cost nothing, or where
/// the line may be shorter than a vector. One element that is left takes no mask, whatever begins where.
unsigned lanesThatMove(const Target &t, UOpRef n, unsigned width);

/// Bytes of all that a kernel reads, at the extents' bounds.
uint64_t readBytes(const KernelSpec &spec);

/// What a lowering costs beside its arithmetic: loads that are not of neighbouring lanes, and divisions in addresses.
unsigned slowness(Context &c, const KernelSpec &spec, const Plan &plan);

} // namespace astra

//===- KernelFacts.h: a kernel as planning sees it --------------------------===//
// Gives:    what is decoded of a kernel once; what its lowerings under plans say, each made and traversed once; costs,
//           which are counted anew, as nobody asks twice.
// Keeps:    facts are the same for every target.
#pragma once
#include "AccessSummary.h"
#include "astra/Codegen/Cost.h"
#include "astra/Codegen/Lower.h"
#include "astra/IR/Contract.h"
#include <map>

namespace astra {

/// Of what products of extents are worth: more is as much.
inline constexpr int64_t mostCounted = int64_t(1) << 40;

/// A count times an extent of which at least 1 and no more than mostCounted are counted.
uint64_t times(uint64_t count, int64_t extent);

/// Bytes of a value, at the bounds of its extents.
uint64_t mostBytes(UOpRef x);

/// What a plan costs, and the kernel's nodes.
struct PlanCost {
  KernelCost cost;
  size_t nodes;
};

class KernelFacts {
public:
  KernelFacts(Context &c, const KernelSpec &spec);

  Context &c;
  const KernelSpec &spec;
  const Placed &out;                           // the first output
  UOpRef points;                               // the value at whose points it is stored
  llvm::ArrayRef<UOpRef> extents;              // of the points in the order of memory
  UOpRef root;                                 // spec.rootOp
  const std::optional<ContractSpec> &contract; // spec.contract
  std::optional<ReduceSpec> reduce;            // what a root that is a reduction says
  unsigned laneBytes; // of what lanes hold: the result's, or a reduction's own where they are less
  unsigned ops;       // elementwise ones of the result
  uint64_t readBytes; // of all that the kernel reads, at the extents' bounds

  /// The kernel under a plan.
  const AccessSummary &under(const Plan &plan);
  /// Its cost under a plan, at these values of dims; nothing where an extent is not known at them.
  std::optional<PlanCost> cost(const Plan &plan, const Target &target,
                               llvm::function_ref<std::optional<int64_t>(UOpRef)> dims);

private:
  std::vector<UOpRef> memory;
  std::map<std::string, AccessSummary> asked; // by the plan's text
};

} // namespace astra

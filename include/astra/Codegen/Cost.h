//===- Cost.h: what a kernel takes of a core --------------------------------===//
// Takes:    a kernel in order, the target that it was lowered for, values of the dims.
// Gives:    cycles of one core for a launch, by what takes them, from the target's row of MachineTable.def.
// Keeps:    a function of its arguments alone: the same numbers on every machine.
// Does not: know what a C compiler makes of the kernel, nor of threads that share caches and memory. Memory is as if
//           the launch before had left in the caches what fits there.
#pragma once
#include "astra/Codegen/Linear.h"
#include "astra/Codegen/Target.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <array>
#include <optional>
#include <string>

namespace astra {

/// What one core of a row of MachineTable.def does in a cycle; vectors are the target's.
struct Speeds {
  const char *name;
  bool ranks; // whether costs of this row choose plans
  double fma, loads, stores, latency, issue, masked, l2, l3, memory;
  const char *source;
};
llvm::ArrayRef<Speeds> allSpeeds();
/// The row of the core that a target is planned for, if the target has its widest vectors, else that of its level.
const Speeds &speedsOf(const Target &t);

/// What runs beside each other, a launch takes as long as the longest of them; but masked stores, which nothing hides.
enum class CostTerm : uint8_t { Instructions, Arithmetic, Chains, Divisions, Loads, Stores, L2, L3, Memory, Masks };
inline constexpr size_t numCostTerms = 10;
const char *costTermName(CostTerm t);

struct KernelCost {
  std::array<double, numCostTerms> cycles{}; // by CostTerm
  int64_t items = 0;                         // of the launch
  double &operator[](CostTerm t) { return cycles[size_t(t)]; }
  double operator[](CostTerm t) const { return cycles[size_t(t)]; }
  /// The term that takes longest; of equal ones the first.
  CostTerm bound() const;
  double total() const;
  /// What no plan of the kernel takes less than: memory's part.
  double least() const { return (*this)[CostTerm::Memory]; }
  /// How many times an even share is what the busiest of so many cores has.
  double imbalance(unsigned cores) const;
};

/// The upper bound of a dim, at which a bundle says what kernels take.
std::optional<int64_t> mostOf(UOpRef dim);
/// What an elementwise op of a value takes, in fmas of as many elements.
double fmasOf(UOpRef x);

/// The cost of a launch of all items; nothing where an extent is not known at these dims, as one that data decide.
std::optional<KernelCost> costOf(const Kernel &k, const Linear &l, const Target &t,
                                 llvm::function_ref<std::optional<int64_t>(UOpRef)> dims);

} // namespace astra

//===- Search.h: better plans, found by measuring --------------------------===//
// Takes:    a schedule, a CPU target that this machine runs, a time.
// Gives:    plans that are clearly faster than the heuristic's, in a tuning.
// Keeps:    bits: the result of every plan is compared with that of the heuristic's. Which plans are found depends on
//           the machine and the clock; what is compiled under a tuning does not.
// Does not: search for GPUs; run whole models, or kernels in threads: a kernel is run alone, on one thread, over
//           made-up inputs.
#pragma once
#include "astra/Codegen/Tuning.h"
#include "astra/IR/Module.h"
#include <functional>

namespace astra {

struct SearchOptions {
  double seconds = 0;                                    // from when the heuristic's plans are compiled; a round more
  unsigned jobs = 1;                                     // compilers at once
  std::string cache;                                     // as CompileOptions::cache
  std::function<void(const std::string &what)> progress; // may be empty
};

/// A kernel that has another plan now.
struct FasterKernel {
  std::string name, plan;
  double before, after; // seconds of a launch
};
struct SearchReport {
  unsigned kernels = 0; // of the schedule's entries
  unsigned skipped = 0; // of them: no extents at which they run, or too large
  unsigned plans = 0;   // that were measured
  std::vector<FasterKernel> faster;
  double before = 0, after = 0; // seconds of the kernels that one call of each entry launches, one after another
};

/// Whether this machine runs code for the target.
bool hostRuns(const Target &target);
/// The best CPU target that this machine runs; null: none.
const Target *nativeTarget();
/// The kind of core that this machine's first CPU is, or null: a row of MachineTable.def.
const Core *nativeCore();

/// Starts from what `tuning` has for the target, else from the heuristic's plans, and puts there what it finds; a
/// kernel whose fastest plan is the heuristic's leaves the tuning. An error leaves the tuning as it was.
llvm::Expected<SearchReport> searchPlans(const Module &m, const Schedule &schedule, const Target &target,
                                         const SearchOptions &options, Tuning &tuning);

} // namespace astra

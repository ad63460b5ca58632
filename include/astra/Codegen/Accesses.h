//===- Accesses.h: every kernel stays in its buffers -------------------------===//
// Takes:    a kernel in order, what is known of the dims where it runs; a schedule.
// Gives:    a proof that each load and store lies within the allocated elements of its buffer, and each index of
//           a stage within its array, for all values of the dims, all items and all threads, gates included; that each
//           buffer of a launch is as large as its kernel takes it to be, and each slot as large as what is stored in
//           it. A load or store without a proof and without a counterexample gets a test at run time (decision 0090).
// Keeps:    nothing of the bounds that index nodes carry, which the simplifier used: it derives its own from ops and
//           sources (Inequalities.h).
// Does not: look at values in memory: an index that is read from memory can be anything, unless a gate tests it.
#pragma once
#include "astra/Codegen/EmitC.h"
#include "astra/Schedule/Program.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <chrono>

namespace astra {

/// What was proved, for --time-passes and tests.
struct AccessCount {
  uint64_t kernels = 0, accesses = 0;
  uint64_t tested = 0; // loads and stores that are tested at run time, being neither proved nor found to be wrong
  double milliseconds = 0;
  AccessCount &operator+=(const AccessCount &o) {
    kernels += o.kernels, accesses += o.accesses, tested += o.tested;
    milliseconds += o.milliseconds;
    return *this;
  }
};

/// Adds the time until it goes.
struct AccessTimer {
  AccessCount &count;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  ~AccessTimer() {
    count.milliseconds += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }
};

/// What is known where a kernel runs, beside the bounds of its dims: each of these is not negative.
using NotNegative = std::vector<UOpRef>;

/// Refuses an access that is not proved, as an internal error that names the kernel, the access, and dims and items for
/// which it lies outside, where some are found.
llvm::Error verifyAccesses(const Kernel &k, const Linear &l, const NotNegative &facts, AccessCount &count);
/// A kernel in order. A load or store that is not proved gets a gate that its elements exist, in the kernel too, unless
/// a point is found where they do not: that is refused as above. The gate changes no bit where the access is inside.
llvm::Expected<Linear> linearizeInside(Context &c, Kernel &k, const NotNegative &facts, AccessCount &count);
/// The same of what the items of a kernel call (Joint.h), and that what lies in a worker's memory has its place there.
/// keep: gives a kernel that got gates a place.
llvm::Error verifyRegions(Context &c, LinearKernel &k, const NotNegative &facts,
                          llvm::function_ref<const Kernel *(Kernel)> keep, AccessCount &count);
/// Every launch's and copy's buffers are large enough, in every entry. joins: the target computes a kernel and its
/// followers at once, a CPU, so that what passes between them has no buffer.
llvm::Error verifyProgram(Context &c, const Schedule &s, bool joins, AccessCount &count);

} // namespace astra

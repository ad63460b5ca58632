//===- Tuning.h: plans by what a kernel computes ---------------------------===//
// Takes:    the text of a tuning file, kernels.
// Gives:    the plans that the file has for these kernels on one target; the file again.
// Keeps:    a kernel is known by its content: the graph, shapes, dtypes, layouts and bounds of dims; not by the names
//           of kernels and dims, so that one that recurs in another model is found. Kernels that are not in the file
//           have no plan from it, and what the file has of other kernels and targets stays as it is.
// Does not: measure anything (Search.h).
//
//   astra-tuning 1
//   0a61bd20ff0c52e4a1f8d1c07a7b6cc2 cpu:x86-64-v4 contract: n 1; m 0; mr 14; vector 16; nr 2
#pragma once
#include "astra/Codegen/Plan.h"

namespace astra {

/// 32 hexadecimal digits that say what a kernel computes and where its operands lie. Two dims that first occur within
/// one polynomial of a shape are told apart by name; all else is the same under other names.
std::string contentHash(const KernelSpec &spec);

struct TunedPlan {
  Plan plan;
  std::string origin; // "FILE:LINE", for diagnostics; empty for one that was measured
};
/// By content hash and name of the target.
using Tuning = std::map<std::pair<std::string, std::string>, TunedPlan>;

/// Adds what a tuning file has; a later file's plan replaces that of an earlier one. An error is "FILE:LINE: SENTENCE"
/// and leaves `out` as it was.
llvm::Error readTuning(llvm::StringRef text, llvm::StringRef fileName, Tuning &out);
/// The file, sorted by hash and target.
std::string text(const Tuning &tuning);

/// The plans of these kernels on a target, by kernel name. A plan that `check` refuses is an error with its line.
llvm::Expected<Plans> tunedPlans(llvm::ArrayRef<KernelSpec> kernels, llvm::StringRef target, const Tuning &tuning,
                                 llvm::function_ref<llvm::Error(const KernelSpec &, const Plan &)> check);

} // namespace astra

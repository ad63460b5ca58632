//===- Verify.h: what a stage allows ---------------------------------------===//
// Gives:    checks of modules and kernels beyond the type rules, which every node has passed when it was made.
// Keeps:    rule sets as tables; the first rule broken is named with the place it was broken at.
// Does not: check values; the evaluator and the runtime do that.
#pragma once
#include "astra/IR/Module.h"
#include "llvm/Support/Error.h"

namespace astra {

/// Graph or Numbers. Names unique; dims, parameters and states declared; data of the right size; entries closed over
/// their inputs; functions closed and called with what they take; state updates of the state's type.
llvm::Error verify(const Module &m, Stage stage);

/// Refuses a module in which two programs of a kernel store one element, for sizes within the bounds of their dims: it
/// names both, the element and the sizes. Gives a sentence for each result of a kernel of which neither that nor the
/// opposite is shown. For modules that come as text; the kernel language shows it of its own before it makes them.
llvm::Expected<std::vector<std::string>> verifyPrograms(const Module &m);

/// Kernel or Expanded: a `sink` of stores. Ranges have one node per axis number, fold ranges are closed, a store
/// depends on at most one parallel range.
llvm::Error verifyKernel(UOpRef sink, Stage stage);

} // namespace astra

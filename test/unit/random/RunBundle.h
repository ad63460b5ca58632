//===- RunBundle.h: modules as bundles, run through the C API --------------===//
// Takes:    a module, a target, calls in the evaluator's terms.
// Gives:    what the bundle's entries compute: in this process, or under an emulator for another architecture.
#pragma once
#include "astra/Bundle/Writer.h"
#include "astra/Codegen/Target.h"
#include "astra/IR/Eval.h"
#include "guard/Check.h"

namespace astra::test {

/// Whether code for the target runs here.
bool canRun(const Target &target);

/// The numerics stage and all rewriting of the graph.
llvm::Error prepare(Module &m);

/// Writes a bundle to a file.
llvm::Error writeBundleTo(BundleParts &parts, llvm::StringRef path);

/// The bundle of a module that is prepared, with code for one target, written to `path`.
llvm::Error writeBundleOf(Module &m, const Target &target, llvm::StringRef path);

struct BundleCall {
  const Entry *entry;
  const EvalInputs *in;
};
struct BundleResult {
  std::string refusal; // empty: none
  EvalResult result;
};
/// Each call in a session of its own; new states have constant shapes. An error when the bundle does not open.
llvm::Expected<std::vector<BundleResult>> runCalls(llvm::StringRef path, const Target &target, unsigned threads,
                                                   const Module &m, llvm::ArrayRef<BundleCall> calls);

/// Every entry at the corners of its dims, with buffers that end and that begin at guard pages (test/guard/Check.h).
llvm::Expected<guard::CheckResult> runGuarded(llvm::StringRef path, const Target &target,
                                              const guard::CheckOptions &options = {});

} // namespace astra::test

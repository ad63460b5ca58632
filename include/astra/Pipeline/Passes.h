//===- Passes.h: the passes over modules, by name --------------------------===//
// Gives:    one table that astra-opt runs from; the rows marked standard are the road from a front door to the
//           scheduler, in order.
#pragma once
#include "astra/Distribute/Distribute.h"
#include "astra/IR/Verify.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/WrittenKernels.h"

namespace astra {

struct PassOptions {
  RewriteOptions rewrite; // the rule limit spans all passes
  uint64_t bucket = usualBucket;
  bool forGpus = false;             // code for GPUs will be made: `stack` adds what folds there
  std::vector<std::string> kernels; // of the table of written kernels, which `kernels` takes
  std::vector<KernelUse> used;      // filled by it
};

struct Pass {
  const char *name;
  bool standard;
  std::optional<Stage> gives; // the stage of the module from here on; nothing: as before
  llvm::Error (*run)(Module &m, PassOptions &options);
  llvm::Error (*check)(const Module &m); // what holds after it, beside verify(); null if nothing more
  const char *meaning;
};
llvm::ArrayRef<Pass> passes();
const Pass *passNamed(llvm::StringRef name);

} // namespace astra

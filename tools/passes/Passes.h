//===- Passes.h: the passes over modules, by name ---------------------------===//
// Gives:    one table that astra-opt runs from; the rows marked standard are the road from a front door to the
//           scheduler, in order.
#pragma once
#include "astra/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

namespace astra {

struct PassOptions {
  uint64_t ruleLimit = UINT64_MAX;    // rules applied over all passes together, at most
  llvm::raw_ostream *trace = nullptr; // one line per rule applied
};

struct Pass {
  const char *name;
  bool standard;
  llvm::Error (*run)(Module &m, PassOptions &options);
  llvm::Error (*check)(const Module &m); // what holds after it, beside verify(): null if nothing more
  const char *meaning;
};
llvm::ArrayRef<Pass> passes();
const Pass *passNamed(llvm::StringRef name);

} // namespace astra

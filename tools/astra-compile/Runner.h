//===- Runner.h: a module, compiled for this machine and called -------------===//
// Takes:    a module as a front door or the quantizer gave it; arrays.
// Gives:    what its entries give, and how long they took.
// Keeps:    states of one session from call to call.
// Does not: choose the arrays (Measure.h).
#pragma once
#include "Host.h"
#include "Npy.h"
#include "astra/Pipeline/Pipeline.h"

namespace astra {

class Runner {
public:
  /// Compiled as `like` says, for this machine alone.
  static llvm::Expected<std::unique_ptr<Runner>> make(Module m, const PipelineOptions &like);
  ~Runner();

  struct Result {
    std::vector<tool::Npy> outputs;
    double seconds = 0;
  };
  /// Inputs in the entry's order.
  llvm::Expected<Result> call(llvm::StringRef entry, llvm::ArrayRef<const tool::Npy *> inputs);

private:
  tool::Handles handles;
  tool::Checked check;
};

} // namespace astra

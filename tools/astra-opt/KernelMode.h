//===- KernelMode.h: astra-opt at the level of kernels ---------------------===//
#pragma once
#include "astra/Codegen/Target.h"
#include "astra/IR/Module.h"
#include "astra/Rewrite/Rewrite.h"

namespace astra {

/// Leaves the road behind the scheduler: every kernel of `m`, lowered for `target`, as a listing. `m` must be past the
/// numerics stage.
llvm::Expected<std::string> kernelListings(Module &m, const Target &target);

struct KernelRequest {
  std::vector<std::string> passes; // rewrite, expand
  std::string emit = "listing";    // listing, linear or c
  const Target *target = nullptr;  // of c
  bool verifyEach = false, roundTrip = false;
  RewriteOptions rewrite;
};
/// Enters the road at one kernel: a listing that ends in a sink. Gives the text asked for.
llvm::Expected<std::string> runKernel(llvm::StringRef text, llvm::StringRef fileName, KernelRequest &request);

} // namespace astra

//===- EvalMode.h: astra-opt --eval -----------------------------------------===//
#pragma once
#include "astra/IR/Module.h"
#include "llvm/Support/Error.h"

namespace astra {

struct EvalRequest {
  std::string entry;                                              // empty: the only one
  std::vector<std::string> inputs, states, params, dims, outputs; // NAME=VALUE
};
/// Evaluates an entry and prints its outputs and changed states, one a line. NAME=VALUE for tensors: a .npy file, or
/// literals separated by commas, after [EXTENTS]: where the declared shape is symbolic. `m` must have no function ops.
llvm::Error evaluate(const Module &m, const EvalRequest &request, llvm::raw_ostream &out);

} // namespace astra

//===- IndexProgram.h: a symbolic integer at many points --------------------===//
#pragma once
#include "astra/IR/UOp.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <vector>

namespace astra {

/// What idxEvaluate (Index.h) computes, in an order that is found once.
class IndexProgram {
public:
  explicit IndexProgram(UOpRef x);
  std::optional<int64_t> at(llvm::function_ref<std::optional<int64_t>(UOpRef)> value) const;

private:
  struct Step {
    UOpRef node;
    std::optional<int64_t> known;
    size_t left = 0, right = 0; // the steps of its operands; its own number where there are none
  };
  std::vector<Step> steps;
};

} // namespace astra

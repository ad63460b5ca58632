//===- EvalFunctions.h: function ops for the reference evaluator -----------===//
// Gives:    the hook of EvalOptions::function, so that graphs can be evaluated before the numerics stage too.
// Keeps:    the value is that of the program that the stage puts in the op's place, evaluated.
#pragma once
#include "astra/IR/Eval.h"

namespace astra {

/// The value of the Function op `node` at `sources`; an error if `node` is no function or is of a type that the
/// numerics stage refuses.
llvm::Expected<Tensor> evalFunction(UOpRef node, llvm::ArrayRef<Tensor> sources);

} // namespace astra

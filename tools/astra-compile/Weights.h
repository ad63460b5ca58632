//===- Weights.h: a model with other weights ----------------------------------===//
#pragma once
#include "astra/IR/Module.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace astra {

/// Replaces parameters, and first values of states, by the tensors of the same names in a .safetensors file, as
/// astra-train writes it. Refuses a tensor that the model has no place for, another dtype or shape, and a file without
/// a parameter that is trained (f32, f64) unless one of the patterns in `kept` matches its name.
llvm::Error setWeights(Module &m, const std::string &path, llvm::ArrayRef<std::string> kept);

} // namespace astra

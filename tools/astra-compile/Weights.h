//===- Weights.h: a model with other weights ----------------------------------===//
#pragma once
#include "Safetensors.h"
#include "astra/IR/Module.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace astra {

/// Replaces parameters, and first values of states, by the tensors of the same names in a .safetensors file, which is
/// used up, as astra-train writes it. Gives a note, or "": what a training keeps beside its weights (all states of a
/// session, `astra-run --save-states`) is left out. Refuses a tensor that the model has no place for, another dtype or
/// shape, and a file without a weight of f32 or f64 unless it is a scalar or one of the patterns in `kept` matches its
/// name.
llvm::Expected<std::string> setWeights(Module &m, const std::string &path, tool::Safetensors &file,
                                       llvm::ArrayRef<std::string> kept);

} // namespace astra

//===- Weights.h: a model with other weights ----------------------------------===//
#pragma once
#include "astra/IR/Module.h"
#include "astra/Import/WeightFile.h"

namespace astra {

/// Replaces parameters, and first values of states, by the tensors of the same names in a weight file, as astra-train
/// writes it, or another program. Blocks replace the parameters that their planes are (Compose/WeightBlocks.h). Gives a
/// note, or "": what a training keeps beside its weights (all states of a session, `astra-run --save-states`) is left
/// out. Refuses a tensor that the model has no place for, another dtype or shape, and a file without a weight of f32 or
/// f64 unless it is a scalar or one of the patterns in `kept` matches its name.
llvm::Expected<std::string> setWeights(Module &m, const WeightFile &file, llvm::ArrayRef<std::string> kept);

} // namespace astra

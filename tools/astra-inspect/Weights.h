//===- Weights.h: weight files as text and JSON -----------------------------===//
#pragma once
#include "astra/Import/WeightFile.h"
#include "llvm/Support/raw_ostream.h"

namespace astra::tool {

/// Metadata, where arrays and long strings are cut short, a line for each tensor, and sums by format.
void printWeights(llvm::raw_ostream &out, const WeightFile &file);
/// All of it, whole arrays too.
void printWeightsJSON(llvm::raw_ostream &out, const WeightFile &file);

} // namespace astra::tool

//===- Quantize.h: a model of fewer bits ------------------------------------===//
#pragma once
#include "Compile.h"

namespace astra {

/// Carries out --quantize on the model, fills the report's rows, and notes the sums.
llvm::Error quantizeModel(const Job &job, Module &m, Report &report, std::vector<std::string> &notes);
/// The rows as a table, with their sums.
std::string quantizeTable(const Report &report);

} // namespace astra

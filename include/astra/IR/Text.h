//===- Text.h: the .uop text form ------------------------------------------===//
// Gives:    printing of modules, nodes, types and symbolic integers; parsing with diagnostics that carry a caret.
// Printing what was parsed gives the same text,
//           parsing what was printed gives the same graph.
#pragma once
#include "astra/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace astra {

/// "f32[n, 64]"; a scalar is "f32".
std::string typeText(DType t, Shape shape);
/// "n*4 + 1".
std::string indexText(UOpRef x);

} // namespace astra

//===- FoldParams.h: what depends on parameters alone is computed once -----===//
#pragma once
#include "astra/Schedule/Program.h"
#include "llvm/ADT/DenseMap.h"

namespace astra {

/// A value of the module's graph that a parameter of the compiler's own stands for.
struct FoldedParam {
  UOpRef value, param;
  Bytes data;      // row-major, NaNs canonical
  bool fromParams; // else from constants alone
};
/// In the order of the graph; none when the level is None. Nothing of the module changes.
std::vector<FoldedParam> foldParams(const Module &m, FoldLevel level);

} // namespace astra

//===- Complex.h: complex values become two real ones ----------------------===//
// Takes:    a verified module.
// Gives:    an equal module in which complex values are left at the border alone: arguments of entries, parameters and
//           states under `real` and `imag`, outputs and new states made by `complex` (a tap may stand over it).
// Keeps:    what Ops.def says of complex types; types and names at the border; modules without complex values as they
//           are. A tap of a complex value inside becomes two, NAME.re and NAME.im.
// Does not: lower the real ops that it makes (Lower.cpp).
#pragma once
#include "astra/IR/Module.h"

namespace astra::numerics {

void splitComplex(Module &m);

/// Whether the node may stand in a module after the split.
bool isSplit(UOpRef n);

/// Every function that `roots` call, directly or through another one, callees first.
std::vector<UOpRef> functionsOf(llvm::ArrayRef<UOpRef> roots);

} // namespace astra::numerics

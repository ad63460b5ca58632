//===- Holes.h: transposed convolutions by remainders of their strides -----===//
#pragma once
#include "astra/IR/Module.h"

namespace astra {

/// Rewrites, bit for bit, contracts that read an operand at quotients, where that saves more than kernels do by
/// themselves (decision 0088). Before what depends on parameters alone is folded, so that weights lie as they are read.
/// Leaves those in the bodies of control ops, which the scheduler rewrites when it inlines them.
void splitHoles(Module &m);

} // namespace astra

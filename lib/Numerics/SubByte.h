//===- SubByte.h: sub-byte values become values of a byte or more ----------===//
// Takes:    a verified module without complex values inside.
// Gives:    an equal module in which i2, u2, i4, u4 and f4e2m1 are left at the border alone: arguments of entries,
//           parameters and states under a cast, outputs and new states made by a cast (a tap may stand over it).
// Keeps:    what Ops.def says of casts; types and names at the border; modules without such values as they are.
// Does not: say how they lie in memory (lib/Schedule).
#pragma once
#include "astra/IR/Module.h"

namespace astra::numerics {

void widenSubByte(Module &m);

/// Whether the node may stand in a module after that.
bool isWidened(UOpRef n);

} // namespace astra::numerics

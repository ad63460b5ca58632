//===- Lower.h: one node into primitives -----------------------------------===//
// Takes:    a node whose sources are in primitives already.
// Gives:    an equal value in primitives, or the node itself.
// Keeps:    one row per op that is not a primitive (Lower.cpp); programs come from Functions.h and Threefry.h.
// Does not: walk the graph (Numerics.cpp).
#pragma once
#include "astra/IR/Builder.h"

namespace astra::numerics {

bool isNarrow(DType t); // f16 and bf16: computed in f32, then rounded once (N12)

/// True if the node may stay as it is after the stage.
bool isPrimitive(UOpRef n);

/// The value of `n` in primitives.
UOpRef lower(Builder &b, UOpRef n);

} // namespace astra::numerics

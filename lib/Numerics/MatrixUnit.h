//===- MatrixUnit.h: what a matrix unit adds, as words ---------------------===//
#pragma once
#include "astra/IR/Builder.h"

namespace astra::numerics {

/// Whether a matrix unit adds a contract's values, not yet their words.
bool isToBecomeWords(UOpRef contract);
/// A contract of f32 that a matrix unit adds, as one of words.
UOpRef lowerMatrixUnit(Builder &b, UOpRef contract);

} // namespace astra::numerics

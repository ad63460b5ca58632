//===- MatrixUnit.h: what a matrix unit adds, in primitives ----------------===//
#pragma once
#include "astra/IR/Builder.h"

namespace astra::numerics {

/// Whether a contract names a matrix unit.
bool usesMatrixUnit(UOpRef contract);
/// A contract of f32 that a matrix unit adds, as primitives that give its bits.
UOpRef lowerMatrixUnit(Builder &b, UOpRef contract);

} // namespace astra::numerics

//===- MatrixUnit.h: the products of a module as a matrix unit adds them ---===//
// Takes:    a module before the numerics stage, and a row of MatrixUnits.def.
// Gives:    the same module whose sums of products name the unit (N4.8); which units its contracts name.
// Keeps:    what names a unit already.
// Does not: touch sums that are no `contract`, nor contracts that sum nothing.
#pragma once
#include "astra/IR/Builder.h"
#include "astra/IR/MatrixUnits.h"
#include "astra/IR/Module.h"

namespace astra {

struct UnitUse {
  unsigned named = 0, strict = 0; // sums of products of floats that name a unit from here on, and that do not
};
/// Of f16 and bf16 operands, and of f32 ones that were widened from a type which the unit takes, the unit's input is
/// that type; f32 operands otherwise become the row's `plain` type. All others stay as they are.
UnitUse useMatrixUnit(Module &m, const MatrixUnit &unit);

/// A step of a unit in primitives, on scalars: an addend of f32, and the words of both operands.
UOpRef unitStepGraph(Builder &b, const UnitStep &step, UOpRef addend, llvm::ArrayRef<UOpRef> words);

/// "strict", or "device:" and the names of all units that contracts of the module name, and of `asked` where it is not
/// null, with commas in the table's order.
std::string numericsOf(const Module &m, const MatrixUnit *asked = nullptr);

} // namespace astra

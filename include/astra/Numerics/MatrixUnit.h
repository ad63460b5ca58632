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
/// What sums of products become.
struct UnitChoice {
  const MatrixUnit *unit = nullptr;      // null: they stay as they are
  std::optional<MatrixInput> plain = {}; // what f32 operands that were no narrower are rounded to
};
/// "strict", "device:UNIT", whose plain type is the row's, or "device:UNIT:TYPE". Else a sentence.
llvm::Expected<UnitChoice> numericsNamed(llvm::StringRef text);

/// Of f16 and bf16 operands, and of f32 ones that were widened from a type which the unit takes, the unit's input is
/// that type; f32 operands otherwise are of the plain type, and so are both where the unit does not take the two types
/// together. All others stay as they are.
UnitUse useMatrixUnit(Module &m, const UnitChoice &choice);

/// The contract in an order of its text form (N4.8): "UNIT TYPE", "UNIT TYPE TYPE", or "UNIT" alone, whose types are
/// those that `useMatrixUnit` gives. Else a sentence.
llvm::Expected<UOpRef> orderedBy(Context &c, UOpRef contract, llvm::StringRef order);

/// A step of a unit in primitives, on scalars: an addend of f32, and the words of both operands.
UOpRef unitStepGraph(Builder &b, const UnitStep &step, UOpRef addend, llvm::ArrayRef<UOpRef> words);

/// "strict", or "device:" and the names of all units that contracts of the module name, and of `asked` where it is not
/// null, with commas in the table's order.
std::string numericsOf(const Module &m, const MatrixUnit *asked = nullptr);

} // namespace astra

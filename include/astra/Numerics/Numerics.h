//===- Numerics.h: the numerics stage, where bits are decided --------------===//
// Takes:    a verified module.
// Gives:    the module in the primitives of numerics clause N1: no function ops, no arithmetic in f16 or bf16, no
//           random op, complex values as their two real parts (complex at the border alone: arguments, parameters,
//           states, outputs); canonical NaNs at outputs and states.
// Keeps:    types, names, and the orders of summation stamped when ops were built. What a node becomes depends on its
//           op, attribute, dtype and shape alone.
// Does not: optimise (Rewrite), or expand ops whose meaning in Ops.def is exact as it stands (min, max, integer
//           division, shifts, cumulate, sorting): the emitters implement those.
#pragma once
#include "astra/IR/Module.h"

namespace astra {

/// Rewrites every entry, state update, equation and function body of `m` in place, and makes the states' first values
/// canonical. Who sets a state later makes its NaNs canonical too: entries rely on it. Refuses nothing that
/// the type rules accept: the error is for contracts to come.
llvm::Error runNumerics(Module &m);

/// The rules that hold after the stage; an error names the first node that breaks one.
llvm::Error verifyNumerics(const Module &m);

} // namespace astra

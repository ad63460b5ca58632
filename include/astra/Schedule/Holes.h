//===- Holes.h: transposed convolutions by remainders of their strides -----===//
// A contract that reads an operand at a quotient, x[(i + c - p)/d], sums holes: all but a part in d of its taps. What
// leaves them out is decided here, in this order: a kernel by itself, where it takes apart the remainders of each
// stride (or taps are few beside them, LegalizeHoles.cpp); else the graph is rewritten, where it can be; else gates
// test each product.
#pragma once
#include "astra/IR/Contract.h"
#include "astra/IR/Module.h"

namespace astra {

/// Whether a contract reads an operand at a quotient.
bool hasHoles(const ContractSpec &s);

/// The holes that a kernel leaves out by itself: kept labels go by steps, each combination of their remainders in a
/// part of the kernel.
struct Remainders {
  llvm::SmallVector<int64_t, 6> steps;                // of the kept labels; 1: all in one part
  llvm::SmallVector<const AffineForm *, 4> quotients; // forms of `s` that a part may know the remainders of
};
/// `lanes`: a kept label that cannot be stepped; -1: none.
Remainders remaindersOf(const ContractSpec &s, int64_t lanes);

/// Rewrites, bit for bit, contracts that read an operand at quotients, where that saves more than kernels do by
/// themselves (decision 0088). Before what depends on parameters alone is folded, so that weights lie as they are read.
/// Leaves those in the bodies of control ops, which the scheduler rewrites when it inlines them.
void splitHoles(Module &m);

} // namespace astra

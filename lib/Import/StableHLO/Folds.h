//===- Folds.h: what a region on scalars computes --------------------------===//
// Takes:    regions of reductions, scatters and sorts.
// Gives:    the fold that a region is; the keys that a comparator compares.
// Keeps:    regions are known by the graphs that they become, not by how they are written.
#pragma once
#include "Lowering.h"

namespace astra::stablehlo {

enum class Fold { Unknown, Sum, Prod, Max, Min, And, Or, Difference, First, Second };

/// Of result j of a region on 2 n scalars, as a function of scalars j and n + j. Empty after a failure.
std::vector<Fold> foldsOf(Statement &s, unsigned region, size_t n);

/// What plain folds can be; nothing for others.
std::optional<ReduceKind> reduceKind(Fold f);
/// The elementwise op of a fold.
Op opOf(ReduceKind kind);
/// Whether folding with `init` changes nothing but the sign of a zero.
bool changesNothing(compose::Composer &b, ReduceKind kind, UOpRef init);

/// One key of an order: a function of scalars of one side, as a graph over the probes of the comparator.
struct Key {
  UOpRef of; // of the scalars of the left side
  bool descending;
};
/// The keys that a comparator of n operands compares, the first one first. Nothing, and a failure, where it does
/// something else.
std::optional<std::vector<Key>> keysOf(Statement &s, unsigned region, size_t n);

/// A graph of elementwise ops with values in place of its leaves.
UOpRef substituted(compose::Composer &b, UOpRef graph, llvm::ArrayRef<std::pair<UOpRef, UOpRef>> leaves);

} // namespace astra::stablehlo

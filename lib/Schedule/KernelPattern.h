//===- KernelPattern.h: where a graph has what another one computes -----------===//
// Takes:    a value of a pattern's Context, whose arguments and dims stand for anything of their type; a node of a
//           graph.
// Gives:    what they stand for, if the node is that value; values of the pattern's Context over it.
#pragma once
#include "astra/IR/Builder.h"
#include "llvm/ADT/DenseMap.h"

namespace astra {

/// Leaves of a pattern, and what they are in the graph.
using Bindings = llvm::DenseMap<UOpRef, UOpRef>;

struct PatternMatch {
  Bindings leaves;                     // arguments and dims
  llvm::SmallVector<UOpRef, 32> inner; // nodes of the graph that the pattern computes itself, but for the root
};

/// Whether `root` is `pattern` under some bindings: found by walking both, and shown by building the pattern from them,
/// since equal nodes are one. Nothing is matched whose dims are outside of the bounds of those of the pattern, or
/// depend on data.
std::optional<PatternMatch> matchPattern(Builder &b, UOpRef pattern, UOpRef root);

/// A value of the pattern's Context in the graph; null where it has no type there. Grids of custom ops count within the
/// bounds of their extents.
UOpRef instantiate(Builder &b, UOpRef value, Bindings leaves);

/// A custom op that reads what its operands are made of by movement and casts alone, and has literals of its own.
UOpRef readingInPlace(Builder &b, UOpRef custom);

/// The one result of a custom op, which stores it cast to another type; null where it has several, or other elements
/// than those that programs store may be seen.
UOpRef storedAs(Builder &b, UOpRef proj, DType type);

} // namespace astra

//===- Modes.h: both modes, inside ----------------------------------------===//
// Gives:    the sweeps without the checks of the border and with null for zero; what control ops need of each other.
#pragma once
#include "Activity.h"

namespace astra::autograd {

/// Control ops that others take the place of: result i of the old one is result `number[i]` of `now`.
struct Replacement {
  UOpRef now;
  llvm::SmallVector<int64_t, 8> number;
};
struct Graph {
  Graph(Context &c, Origins *origins) : c(c), origins(origins) {}
  Context &c;
  Origins *origins; // may be null
  llvm::DenseMap<UOpRef, Replacement> replaced;
};

/// The roots with the nodes of `made` exchanged for what they stand for there, and results of control ops as `g` says.
/// Null stays null.
std::vector<UOpRef> rebuild(const Graph &g, llvm::ArrayRef<UOpRef> roots,
                            llvm::DenseMap<UOpRef, UOpRef> made = llvm::DenseMap<UOpRef, UOpRef>());

/// Null where a cotangent is null and where a derivative is zero; outputs may be of any type. Values and derivatives
/// are rebuilt.
llvm::Expected<Derivatives> backward(Context &c, llvm::ArrayRef<UOpRef> outputs, llvm::ArrayRef<UOpRef> cotangents,
                                     llvm::ArrayRef<UOpRef> wrt, Origins *origins, llvm::ArrayRef<UOpRef> beside = {},
                                     unsigned segments = 1);
llvm::Expected<Derivatives> forward(Context &c, llvm::ArrayRef<UOpRef> outputs, llvm::ArrayRef<UOpRef> wrt,
                                    llvm::ArrayRef<UOpRef> tangents, Origins *origins,
                                    llvm::ArrayRef<UOpRef> beside = {});

/// The cotangents of a control op's tensor sources, from those of its results (Control.cpp).
llvm::Expected<std::vector<UOpRef>> backwardCall(Graph &g, UOpRef n, const Activity::Call &call,
                                                 llvm::ArrayRef<UOpRef> results);
/// Replaces n by an op that gives the tangents of its results too, from those of its tensor sources, as results of the
/// numbers returned; -1 where there is none.
llvm::Expected<llvm::SmallVector<int64_t, 8>> forwardCall(Graph &g, UOpRef n, const Activity::Call &call,
                                                          llvm::ArrayRef<UOpRef> sources);

/// Of a `with_gradient`: the cotangents of its sources but the first, and the tangent of its result from those of its
/// sources; null for zero. `now`: the same node, perhaps computed again.
std::vector<UOpRef> customCotangents(Graph &g, UOpRef now, UOpRef mine);
llvm::Expected<UOpRef> customTangent(Graph &g, UOpRef n, llvm::ArrayRef<UOpRef> d);

/// The most trips that a `while` can take; null where the condition does not show it (Trips.cpp).
UOpRef tripBound(Context &c, UOpRef n);
/// A `while` as a `scan` over the bound of its trips, with the same carried values: a step in which the condition is
/// false changes nothing (Trips.cpp). Refused where the condition shows no bound.
llvm::Expected<UOpRef> boundedScan(Graph &g, UOpRef n);

} // namespace astra::autograd

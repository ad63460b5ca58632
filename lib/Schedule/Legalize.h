//===- Legalize.h: the rewrites of Legalize.cpp, one per op ----------------===//
// Each takes a node whose sources are legal and gives an equal one, bit for bit (itself when it is legal already).
#pragma once
#include "astra/IR/Builder.h"

namespace astra {

/// x with a new axis of extent n at `axis`, every element repeated along it.
UOpRef repeatAt(Builder &b, UOpRef x, unsigned axis, UOpRef n);
/// y with `axis` as the two of `shape`; what is repeated stays so.
UOpRef splitAxis(Builder &b, UOpRef y, int64_t axis, Shape shape);
inline llvm::SmallVector<UOpRef, 6> shapeOf(UOpRef x) { return {x->shape.begin(), x->shape.end()}; }

UOpRef legalizeReduce(Builder &b, UOpRef r);
UOpRef legalizeContract(Builder &b, UOpRef r);
/// A contract with holes by legal ones without, as other ops; null where there are none, or they stay.
UOpRef withoutHoles(Builder &b, UOpRef r);
UOpRef legalizeArgReduce(Builder &b, UOpRef r);
UOpRef legalizeArgSort(Builder &b, UOpRef r);
/// The same by counting what comes before each element, which is values of one kernel.
UOpRef argSortByRank(Builder &b, UOpRef r);
/// Whether a reader of a sort reads its first few, which are minima.
bool readsByMinima(UOpRef n);
/// How many of the first of a sort hold what n takes of it, where they are found sooner than all is sorted; else 0.
int64_t firstOfSortRead(UOpRef n);
/// The first `count` along the axis of a sort whose legal source is x, as firstOfSortRead allows them.
UOpRef firstOfSort(Builder &b, UOpRef sort, UOpRef x, int64_t count);
UOpRef legalizeScatter(Builder &b, UOpRef r);
/// Of a result of a custom op: LegalizeCustom.cpp.
UOpRef legalizeProj(Builder &b, UOpRef r);
UOpRef legalizeCompact(Builder &b, UOpRef r);
UOpRef legalizeCumulate(Builder &b, UOpRef r);
UOpRef legalizePart(Builder &b, UOpRef r);
UOpRef legalizeComplex(Builder &b, UOpRef r);
UOpRef legalizeCast(Builder &b, UOpRef r);
UOpRef legalizeGather(Builder &b, UOpRef r);
UOpRef legalizeElementwise(Builder &b, UOpRef n);

/// An argument, parameter or state of a sub-byte type as the u8 tensor that it lies in.
UOpRef bytesOf(Context &c, UOpRef leaf);

/// An argument, parameter or state as kernels see it: a complex one is real, with the two parts of an element as a last
/// axis; one of a sub-byte type is bytes, each row of it some; any other is itself.
UOpRef inMemory(Context &c, UOpRef leaf);

} // namespace astra

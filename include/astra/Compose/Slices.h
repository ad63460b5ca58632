//===- Slices.h: many slices of a tensor, at places that are data -----------===//
// Takes:    starts, integers that hold index vectors along one axis; which axes of the operand they are of.
// Gives:    one gather, or scatter, from the operand with the indexed axes as one.
// Keeps:    the bits of what is moved.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// How index vectors and slices lie, in StableHLO's words.
struct SliceAxes {
  Ints slice;         // axes of the result (of the updates) that are a slice's
  Ints dropped;       // axes of the operand, of extent 1 in a slice, that the result lacks
  Ints operandBatch;  // axes of the operand that go with ...
  Ints startsBatch;   // ... these axes of the starts
  Ints indexed;       // of each number of an index vector the axis of the operand
  int64_t vector = 0; // the axis of the starts along which vectors lie; their rank: each is one number
};

/// Slices of the sizes given. A start is moved so that its slice stays inside.
UOpRef gatherSlices(Composer &b, UOpRef x, UOpRef starts, const SliceAxes &axes, llvm::ArrayRef<UOpRef> sizes);

/// What lies at `index` along an axis; the first `batch` axes of both go together. An index outside is moved inside.
UOpRef selectSlices(Composer &b, UOpRef x, UOpRef index, int64_t axis, int64_t batch = 0);

/// x with slices of it combined with updates, in row-major order of the starts. A slice that leaves x is dropped as a
/// whole. Of bools the lesser of two is `and`, the greater `or`.
UOpRef scatterSlices(Composer &b, ScatterKind kind, UOpRef x, UOpRef starts, UOpRef updates, const SliceAxes &axes);

/// x with a part of the size given read, or replaced, at i64 scalars.
UOpRef readAt(Composer &b, UOpRef x, llvm::ArrayRef<UOpRef> starts, llvm::ArrayRef<UOpRef> sizes);
UOpRef writeAt(Composer &b, UOpRef x, UOpRef part, llvm::ArrayRef<UOpRef> starts);

} // namespace astra::compose

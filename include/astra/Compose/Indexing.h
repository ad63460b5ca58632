//===- Indexing.h: gather, scatter, slices ---------------------------------===//
// Takes:    indices of an integer type that are data; slices whose axes and steps are known.
// Keeps:    a negative index counts from the back. An index outside of the extent reads 0, or is dropped.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// The indices with `extent` added to negative ones.
UOpRef fromFront(Composer &b, UOpRef index, UOpRef extent);

/// x with an axis replaced by the index's axes: NumPy's take.
UOpRef gather(Composer &b, UOpRef x, UOpRef index, int64_t axis);
/// Element by element, along one axis: NumPy's take_along_axis. The other axes of the index may be shorter.
UOpRef gatherElements(Composer &b, UOpRef x, UOpRef index, int64_t axis);
/// index [batch..., places..., k]: tuples that index the axes of x behind `batchAxes` common ones. [batch...,
/// places..., the axes that are not indexed].
UOpRef gatherTuples(Composer &b, UOpRef x, UOpRef index, int64_t batchAxes = 0);

/// x with elements of `update` put, added, multiplied ... where the index says, in row-major order of the update.
UOpRef scatterElements(Composer &b, ScatterKind kind, UOpRef x, UOpRef index, UOpRef update, int64_t axis);
/// index [places..., k] of the first k axes, update [places..., the axes that are not indexed].
UOpRef scatterTuples(Composer &b, ScatterKind kind, UOpRef x, UOpRef index, UOpRef update);

/// x[start : end : step] along an axis; bounds are symbolic integers of one sign, cut to the axis as NumPy does.
UOpRef slice(Composer &b, UOpRef x, int64_t axis, UOpRef start, UOpRef end, int64_t step = 1);
/// Bounds that are data, i64 scalars: elements at start + i * step, whose number is a data dim, at most what the axis
/// has.
UOpRef sliceByData(Composer &b, UOpRef x, int64_t axis, UOpRef start, UOpRef end, int64_t step = 1);

/// `on` where the index along the new axis of extent `depth` is the element, else `off`, scalars of one type.
UOpRef oneHot(Composer &b, UOpRef index, UOpRef depth, UOpRef off, UOpRef on, int64_t axis = -1);

} // namespace astra::compose

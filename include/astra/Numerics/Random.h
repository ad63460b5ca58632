//===- Random.h: distributions over random bits (clause N13) ---------------===//
// Takes:    u32 scalars seed and stream id, a shape.
// Gives:    graphs over the `random` op: uniform, normal and integer values.
// Keeps:    element i of a result depends on seed, stream and i alone, whatever the shape that holds it.
// Does not: choose stream ids: two uses of one id give the same numbers.
#pragma once
#include "astra/IR/Builder.h"

namespace astra {

/// Uniform in [0, 1), of f32 (24 bits of one word) or f64 (53 bits of two words).
UOpRef randomUniform(Builder &b, UOpRef seed, UOpRef stream, DType t, Shape shape);

/// Normal with mean 0 and deviation 1, of f32 or f64: sqrt(-2 log(1 - u)) * cos(2 pi v), u and v being uniform elements
/// 2i and 2i + 1 (G. Box and M. Muller).
UOpRef randomNormal(Builder &b, UOpRef seed, UOpRef stream, DType t, Shape shape);

/// u32 in [low, high), low < high: low + the high word of bits * (high - low).
UOpRef randomInteger(Builder &b, UOpRef seed, UOpRef stream, uint32_t low, uint32_t high, Shape shape);

} // namespace astra

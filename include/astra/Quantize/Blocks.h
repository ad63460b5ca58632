//===- Blocks.h: from floats to codes of few bits and their scales ----------===//
// Takes:    rows of floats.
// Gives:    planes: dense arrays of codes, scales and zero points, and the values that they stand for.
// Keeps:    a function of each row alone. Q4_0 to Q8_0 have the bits of gguf-py, which are those of llama.cpp's
//           reference; Q4_K has llama.cpp's form and a search of Astra's own.
// Does not: choose which weights to quantize (Weights.h), or make graphs.
#pragma once
#include "astra/Compose/WeightBlocks.h"

namespace astra::quantize {

/// How a weight is stored: a row of the table in Blocks.cpp.
struct Scheme {
  enum Kind : uint8_t { Channels, Blocks, Ggml };
  const char *text; // "int8", "int4:32", "q4_0"
  Kind kind;
  WeightFormat ggml;    // of Ggml
  int64_t block;        // elements of a row that share a scale; 0: all
  const char *fallback; // the scheme for rows that are not whole blocks; null: rows of any length will do
  const char *meaning;  // for --help and the docs
};
llvm::ArrayRef<Scheme> schemes();
/// The scheme of this name, or null.
const Scheme *schemeNamed(llvm::StringRef text);
/// The scheme itself or the first of its fallbacks whose blocks fill rows of this length.
const Scheme &fitting(const Scheme &scheme, int64_t columns);

/// A plane and what it is called behind the weight's name.
struct Plane {
  const char *suffix;
  compose::Payload payload;
};

struct Quantized {
  std::vector<Plane> planes;
  std::vector<float> values; // what the planes stand for, by the formula that graphs compute
};

/// `dims` are those of the tensor, whose last axis the blocks run along; a channel (Channels) has the last `summed`
/// axes. Null where a scale is beyond what its type holds, or an element is no finite number.
///   Channels  .q i8, .d f32 [dims but the summed ones]: d = greatest magnitude / 127, q = x / d rounded to even.
///   Blocks    .q u4, .d f16, .z u4 [..., k / block]: value (q - z) * d; d = (most - least) / 15 of the block's range
///             widened to hold 0, z = -least / d and q = x / d + z rounded to even, by d as it is stored.
///   Ggml      the planes of the format (compose::planesOf).
std::optional<Quantized> quantized(const Scheme &scheme, llvm::ArrayRef<int64_t> dims, unsigned summed,
                                   llvm::ArrayRef<float> x);

} // namespace astra::quantize

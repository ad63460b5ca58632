//===- BlockQuantization.h: weights of few bits, scaled block by block -----===//
// Takes:    integers of 2, 4 or 8 bits in bytes, the lowest bits first; a scale for each block of an axis; zero points
//           packed likewise, or as floats, or none.
// Gives:    (q - zero) * scale in f32, and what is made of it: a product, rows of a table.
// Keeps:    where the bytes are known, a parameter of 2 or 4 bits is the same bytes: nothing is unpacked in memory. f16
//           and bf16 compute in f32 and round once (N4).
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct BlockQuantized {
  UOpRef value = nullptr; // u8
  UOpRef scale = nullptr; // of a float type
  UOpRef zero = nullptr;  // u8, or of a float type; null: half of the range
};

struct BlockProductOptions {
  int64_t columns = 0, rows = 0; // K and N: the weights are [N, K]
  int64_t bits = 4, block = 32;  // elements of a row that share a scale: a power of two, 16 or more
};

/// x [..., K] times the transposed weights, whose bytes are [N, blocks, block * bits / 8]: [..., N], of x's type. The
/// last block of a row may be filled up. `groups`, integers [K], says the block of each column; null: in order. `bias`
/// is [N], or null.
UOpRef blockProduct(Composer &b, UOpRef x, const BlockQuantized &weights, UOpRef groups, UOpRef bias,
                    const BlockProductOptions &options);

/// Matrices of several experts, in f32: bytes [experts, out, in * bits / 8]; scales [experts, out], with zero points
/// packed along the last axis of [experts, out]; or, for each block of `block` elements, scales [experts, out, blocks],
/// with zero points packed along their last axis.
UOpRef expertWeights(Composer &b, const BlockQuantized &weights, int64_t bits, int64_t block);

struct BlockGatherOptions {
  int64_t gatherAxis = 0, quantizeAxis = 1;
  int64_t bits = 4;    // of what is packed in u8
  int64_t block = 128; // a power of two, 16 or more; 0, of narrow floats: the whole axis
};

/// Rows of a table that is quantized along an axis, of the scale's type: of u8, packed along the last axis; of 4-bit
/// integers or narrow floats, as they are.
UOpRef blockGather(Composer &b, const BlockQuantized &table, UOpRef index, const BlockGatherOptions &options);

} // namespace astra::compose

//===- Sequence.h: ops along a sequence's axis -----------------------------===//
// Takes:    parts of sequences that are turned round, rotated, filtered, updated or accumulated.
// Gives:    picks by computed indices, elementwise products, one contract for the causal convolution, a scan for linear
//           attention.
// Keeps:    f16 and bf16 products in f32, rounded once (N4); moved elements keep their bits.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// The first lengths[i] elements of sequence i in reverse; the rest stays. lengths is an integer per sequence.
UOpRef reverseSequence(Composer &b, UOpRef x, UOpRef lengths, int64_t batchAxis, int64_t timeAxis);

struct RotaryOptions {
  bool interleaved = false; // pairs lie side by side, not in two halves
  int64_t heads = 0;        // of an operand of rank 3
  int64_t columns = 0;      // that are rotated, the first ones; 0: all
};
/// positions [1], that of the first element, as [batch, sequence] of x; what has two axes already is itself.
UOpRef positionsFrom(Composer &b, UOpRef positions, UOpRef x);
/// x [batch, heads, sequence, size] or [batch, sequence, heads * size]: pairs (a, b) become (a cos - b sin, a sin + b
/// cos). cosines and sines are of x's type, [batch, sequence, columns / 2], or tables [positions, columns / 2] that
/// `positions` [batch, sequence], integers, index.
UOpRef rotaryEmbedding(Composer &b, UOpRef x, UOpRef cosines, UOpRef sines, UOpRef positions,
                       const RotaryOptions &options);

struct RotaryTables {
  UOpRef cosines = nullptr, sines = nullptr; // [positions, size / 2]
};
/// Of position p and pair i the angle p * base^(-2 i / size) (Su et al., arXiv 2104.09864), computed in f64 and rounded
/// once.
RotaryTables rotaryTables(Composer &b, UOpRef positions, int64_t size, double base, DType type);
/// What ALiBi (Press et al., arXiv 2108.12409) adds to scores: -slope * distance, [1, heads, queries, keys] in f32. The
/// slope of head h is 2^(-8 (h + 1) / heads), the number of heads a power of two; the last query is at the last key.
UOpRef alibi(Composer &b, int64_t heads, UOpRef queries, UOpRef keys);

/// A cache whose rows along an axis are replaced by those of update, from row first[i] of batch element i on (null: 0).
/// circular: modulo the extent; else a row outside of the cache is dropped.
UOpRef updatedCache(Composer &b, UOpRef cache, UOpRef update, UOpRef first, int64_t axis, bool circular);

struct CausalConvolution {
  UOpRef value = nullptr; // [N, C, T]
  UOpRef state = nullptr; // [N, C, K - 1]: the last elements, for the next call
};
/// A depthwise convolution of x [N, C, T] with w [C, 1, K] over the state before it; null: zeros. bias [C] may be null.
/// swish: y sigmoid(y) of the result.
CausalConvolution causalConvolution(Composer &b, UOpRef x, UOpRef w, UOpRef bias, UOpRef state, bool swish);

struct LinearAttentionOperands {
  UOpRef query = nullptr;          // [batch, T, heads * key size]
  UOpRef key = nullptr;            // [batch, T, kv heads * key size]
  UOpRef value = nullptr;          // [batch, T, kv heads * value size]
  UOpRef state = nullptr;          // [batch, kv heads, key size, value size]; null: zeros
  UOpRef decay = nullptr;          // logarithms [batch, T, kv heads * (key size or 1)]; null: none
  UOpRef beta = nullptr;           // [batch, T, kv heads or 1]: how far the state is corrected; null: it is not
  int64_t heads = 1, keyHeads = 1; // the former a multiple of the latter
  double scale = 0;                // of the result; 0: 1 / sqrt(key size)
};
struct LinearAttention {
  UOpRef value = nullptr; // [batch, T, heads * value size]
  UOpRef state = nullptr;
};
LinearAttention linearAttention(Composer &b, const LinearAttentionOperands &operands);

} // namespace astra::compose

//===- FusedAttention.h: attention as fused operators have it --------------===//
// Takes:    projections with heads side by side in the last axis, joined or apart; biases; padding masks of integers;
//           caches in which a sequence's rows are counted.
// Gives:    operands of Attention.h, and its result as the query lies: [batch, sequence, heads * size].
// Keeps:    what Attention.h keeps. A key that a mask hides has a number added to its score, -10000 say, as these
//           operators have it: it takes part where every key of a row is hidden.
#pragma once
#include "astra/Compose/Attention.h"

namespace astra::compose {

struct FusedAttentionOperands {
  UOpRef query = nullptr; // [batch, S, heads * size]; alone: [batch, S, heads, 3, size]
  UOpRef key = nullptr;   // [batch, L, heads * size], or [batch, heads, L, size]; without a value: [batch, L, heads, 2,
                          // size]
  UOpRef value = nullptr; // as the key
  UOpRef bias = nullptr;  // added to the three projections, [their hidden sizes' sum]; null: none
  UOpRef mask = nullptr;  // integers: above 0 is seen, [batch, keys] or [batch, S, keys]; [batch]: numbers of keys that
                          // are seen, [2 batch]: ends, then beginnings; null: all are
  UOpRef scoreBias = nullptr;                    // added to the scores; broadcasts to [batch, heads, S, keys]
  UOpRef pastKey = nullptr, pastValue = nullptr; // [batch, heads, past, size]
};

struct FusedAttentionOptions {
  int64_t heads = 0;
  std::optional<double> scale;
  double hidden = -10000; // what a hidden key's score gets
  bool causal = false;
};

/// `scores` of the result are masked; `keys` and `values` are [batch, heads, keys, size].
AttentionResult fusedAttention(Composer &b, const FusedAttentionOperands &operands,
                               const FusedAttentionOptions &options);

/// One step, S = 1, with caches [batch, heads, rows, size] of which `past` rows, an integer, are filled: the next one
/// is written. The mask is [batch, keys], of the caches' rows or the first of them.
AttentionResult bufferedAttention(Composer &b, const FusedAttentionOperands &operands, UOpRef past,
                                  const FusedAttentionOptions &options);

struct JoinedProjection {
  UOpRef query = nullptr, key = nullptr, value = nullptr;
};
/// x [batch, S, I] times the weights [I, sum of sizes], plus the bias or null, cut along the last axis.
JoinedProjection joinedProjection(Composer &b, UOpRef x, UOpRef weights, UOpRef bias, llvm::ArrayRef<int64_t> sizes);
/// What is joined already, in three parts of one size.
JoinedProjection thirds(Composer &b, UOpRef x);

/// A cache [2, ...] of keys and values in one, or null, apart; and two joined.
std::pair<UOpRef, UOpRef> splitCache(Composer &b, UOpRef cache);
UOpRef joinedCache(Composer &b, UOpRef keys, UOpRef values);

struct CachedAttentionOperands {
  UOpRef query = nullptr;                        // [batch, S, heads * size]; alone: those of keys and values behind it
  UOpRef key = nullptr, value = nullptr;         // [batch, S, key heads * size]
  UOpRef pastKey = nullptr, pastValue = nullptr; // [batch, key heads, P, size]: a cache, filled in part; null: none
  UOpRef last = nullptr;                         // integers [batch]: how many keys a sequence has with the new, less 1
  UOpRef total = nullptr; // an integer, the greatest of those numbers. Where it follows from shapes, the caches of the
                          // result have max(P, total) rows, else P, or S without a cache
  UOpRef cosines = nullptr, sines = nullptr; // [positions, columns / 2]: query and key are rotated; null: they are not
  UOpRef positions = nullptr;                // integers [batch, S]; null: the keys before, and on
  UOpRef scoreBias = nullptr;                // broadcasts to [batch, heads, S, keys]
  UOpRef sink = nullptr;                     // [heads]: a score more in each row's sum
  UOpRef queryNorm = nullptr, keyNorm = nullptr; // [size]: scales of an RMS norm of each head, before it is rotated
};

struct CachedAttentionOptions {
  int64_t heads = 0, keyHeads = 0;
  std::optional<double> scale;
  double softcap = 0;
  bool causal = true, interleaved = false;
  bool zeroSink = false; // a score of 0 more in each row's sum
  int64_t window = -1;   // how many keys before its own a query attends to; -1: all
  double epsilon = 1e-6; // of the norms
};

/// Where `total` is S, a sequence has no keys in the cache yet, and rows behind its number of keys are padding, whose
/// results mean nothing. `keys` and `values` of the result are the caches with the new rows.
AttentionResult cachedAttention(Composer &b, const CachedAttentionOperands &operands,
                                const CachedAttentionOptions &options);

} // namespace astra::compose

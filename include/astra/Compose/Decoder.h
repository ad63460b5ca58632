//===- Decoder.h: parts of a language model that keeps keys and values -----===//
// Takes:    rows of new tokens of several sequences, each with its own number of tokens before, and caches.
// Gives:    caches with the new rows, attention over them, positions and rotations.
// Keeps:    no sum depends on how the rows came: keys are counted from the beginning of a sequence, those that a query
//           may not see weigh exactly 0, and a sum of zeros is +0.0. So the same tokens give the same bits in one call
//           or in many, in any batch, in caches of any capacity.
// Does not: keep a row that is padding, or one outside of the capacity: the caller sees to it that counts fit.
#pragma once
#include "astra/Compose/Composer.h"
#include "astra/Compose/Sequence.h"

namespace astra::compose {

/// Where the new rows of sequences belong. For all layers of a model one.
struct CachePlace {
  UOpRef batch = nullptr, rows = nullptr; // extents: of sequences, and of new rows of each
  UOpRef positions = nullptr;             // i64 [batch, rows]: those of the new rows, from 0
  UOpRef kept = nullptr;                  // the same, -1 where a row is padding
  UOpRef used = nullptr;                  // an extent, 1 to the capacity: what any sequence has with the new rows
  UOpRef first = nullptr, most = nullptr; // i64: the least position of a new row that is kept; `used`
  int64_t capacity = 0;
};
/// lengths and counts: integers [batch]; a sequence has lengths[i] rows before, and the first counts[i] of the `rows`
/// new ones are its own. lengths[i] + counts[i] is at most the capacity.
CachePlace cachePlace(Composer &b, UOpRef lengths, UOpRef counts, UOpRef rows, int64_t capacity);

/// Keys or values of a layer, of f32, f16 or i8: keys [batch, heads, size * capacity], in which an element of all rows
/// lies together; values [batch, heads, capacity * size], row by row. Only of i8: a scale for each row.
struct RowCache {
  UOpRef elements = nullptr, scales = nullptr; // scales: f32 [batch, heads, capacity]
};
/// The cache with x [batch, heads, rows, size] put in its place. Of i8 a row is kept as round(x / s), s = max |x| /
/// 127, ties to even, and s; one that is not finite becomes NaNs.
RowCache withKeys(Composer &b, const RowCache &cache, UOpRef x, const CachePlace &place);
RowCache withValues(Composer &b, const RowCache &cache, UOpRef x, const CachePlace &place);
/// The same for one number of a token: cache [batch, capacity], x [batch, rows].
UOpRef withTokens(Composer &b, UOpRef cache, UOpRef x, const CachePlace &place);

struct CacheAttentionOptions {
  double scale = 1;    // of the scores
  double softcap = 0;  // above 0: scores become softcap tanh(score / softcap)
  int64_t window = -1; // how many keys a query sees, its own the last; -1: all before it
};
/// query [batch, heads, rows, size], of f32; the caches with the new rows, of a number of heads that divides that of
/// the query: [batch * rows, heads * size]. Scales of keys multiply scores, those of values the weights.
UOpRef cacheAttention(Composer &b, UOpRef query, const RowCache &keys, const RowCache &values, const CachePlace &place,
                      const CacheAttentionOptions &options);

/// cos and sin of position times frequency, [positions, frequencies] each, times a factor: what rotates. They follow
/// from constants.
RotaryTables rotaryTables(Composer &b, llvm::ArrayRef<float> frequencies, int64_t positions, double factor);

struct RoutingOptions {
  int64_t chosen = 1;      // experts of a token
  bool normalized = false; // weights of the chosen ones have the sum 1
};
/// Which experts tokens go to, and what they count for: the `chosen` greatest of the softmax of scores [rows, experts],
/// the first of equals. The rows of all tokens, `chosen` of each, are in the order of their experts.
struct Routes {
  UOpRef weights = nullptr; // [rows, chosen], by the number of the expert
  UOpRef slots = nullptr;   // i64 [rows, chosen]: where the row of a token is
  UOpRef tokens = nullptr;  // i64 [most rows * chosen]: of which token a row is; 0 behind them
  UOpRef counts = nullptr;  // i64 [experts]: how many rows an expert has
  UOpRef begins = nullptr;  // i64 [experts]: the first of them
};
/// How many shares [rows, experts] of a row are ahead of each: greater, or equal and before it.
UOpRef ranksOf(Composer &b, UOpRef shares);
Routes routes(Composer &b, UOpRef scores, const RoutingOptions &options);
/// For each token the sum of its weights times what its experts make of x [rows, width]. `expert` is given rows and
/// gives as many; those of an expert have an extent that may be 0: what nobody has chosen is not computed. No row
/// depends on another.
UOpRef mixedExperts(Composer &b, UOpRef x, const Routes &routes,
                    llvm::function_ref<UOpRef(UOpRef rows, int64_t expert)> expert);

/// x with every NaN the canonical one (N6): what a state holds. A state that is read in the entry that sets it is
/// then computed once.
UOpRef canonicalNaNs(Composer &b, UOpRef x);

} // namespace astra::compose

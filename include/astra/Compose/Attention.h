//===- Attention.h: scaled dot product attention ---------------------------===//
// Takes:    queries, keys and values [batch, heads, sequence, size], or [batch, sequence, heads * size] with the
//           numbers of heads; of float types, key and query of one.
// Gives:    two contracts and a softmax between them; no key or value is repeated for grouped queries.
// Keeps:    f16 and bf16 in f32 throughout, rounded once (N4). A query that may attend to no key gives zeros, whatever
//           its scores are: masked scores are replaced by -inf, not added to.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct AttentionOperands {
  UOpRef query = nullptr, key = nullptr, value = nullptr;
  UOpRef mask = nullptr;    // bool: may attend; a number: added. Broadcasts to [batch, heads, query, key]; null: none
  UOpRef pastKey = nullptr; // [batch, kv heads, past, size]: put before the new ones; both or none
  UOpRef pastValue = nullptr;
  UOpRef validKeys = nullptr; // integers [batch]: how many keys are no padding; null: all
  UOpRef sink = nullptr;      // [heads]: a score more in each row's softmax, whose probability is dropped; null: none
};

struct AttentionOptions {
  std::optional<int64_t> heads, keyHeads; // of queries; of keys, which they are a multiple of. Needed for rank 3
  std::optional<double> scale;            // of the scores; 1 / sqrt(size) unless given
  double softcap = 0;                     // above 0: scores become softcap tanh(score / softcap)
  bool causal = false;                    // a query attends to no key behind its own
  int64_t left = -1, right = -1;          // how many keys before and behind its own it attends to; -1: all
  bool padMask = true;                    // keys that a shorter mask lacks at its end are not attended to
  std::optional<DType> softmaxType;       // in which scores are read and probabilities given; the query's unless given
  enum class Shown { Scores, Capped, Masked, Probabilities } shown = Shown::Scores; // what `scores` of the result is
};

struct AttentionResult {
  UOpRef result = nullptr;                 // as the query lies, with the size of the values; of its type
  UOpRef keys = nullptr, values = nullptr; // keys and values with the past ones before them
  UOpRef scores = nullptr;                 // [batch, heads, query, key], of the query's type
};

AttentionResult attention(Composer &b, const AttentionOperands &operands, const AttentionOptions &options);

/// softmax(f(scores)) changed by g, times the values; operands of rank 4. The functions keep type and shape; softmax is
/// the plain one: a row of -inf gives NaN.
UOpRef modifiedAttention(Composer &b, const AttentionOperands &operands, const AttentionOptions &options,
                         llvm::function_ref<UOpRef(UOpRef)> scores, llvm::function_ref<UOpRef(UOpRef)> probabilities);

} // namespace astra::compose

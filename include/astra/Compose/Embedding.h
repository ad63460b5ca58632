//===- Embedding.h: bags of rows of a table, and gradients -----------------===//
// Takes:    a table [rows, d] of a float type, integers [n] that index its rows, bags of neighbouring indices.
// Gives:    a fold of each bag's rows [bags, d]; gradients of the table and of the weights.
// Keeps:    f16 and bf16 are summed in f32 and rounded once; sums go in the order of the indices.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

enum class BagMode { Sum, Mean, Max };

struct Bags {
  UOpRef indices = nullptr;
  UOpRef offsets = nullptr; // [bags], ascending from 0: where each begins
  UOpRef weights = nullptr; // [n], or null: what each row is multiplied by
  BagMode mode = BagMode::Sum;
  int64_t padding = -1; // an index that does not count; below 0: none
};

struct EmbeddingBag {
  UOpRef value = nullptr; // of an empty bag: zeros
  UOpRef bag = nullptr;   // i64 [n]: the bag of each index
  UOpRef sizes = nullptr; // i64 [bags]: how many indices of each count
  UOpRef rows = nullptr;  // i64 [bags, d] of maxima: the row that each comes from, the first; else null
};
EmbeddingBag embeddingBag(Composer &b, UOpRef table, const Bags &bags);

/// The gradient [rows, d] of the table from that of its picked rows [n, d]. byFrequency: each is divided by how often
/// its index occurs.
UOpRef embeddingGradient(Composer &b, UOpRef gradient, UOpRef indices, UOpRef rows, int64_t padding, bool byFrequency);
/// The same from that of sums or means of bags.
UOpRef embeddingBagGradient(Composer &b, UOpRef gradient, const Bags &bags, UOpRef rows, bool byFrequency);
/// The same from that of maxima, by `rows` and `sizes` of embeddingBag.
UOpRef embeddingMaximaGradient(Composer &b, UOpRef gradient, UOpRef maxima, UOpRef sizes, UOpRef rows);
/// The gradient [n] of the weights of sums.
UOpRef embeddingWeightsGradient(Composer &b, UOpRef gradient, UOpRef table, const Bags &bags);

} // namespace astra::compose

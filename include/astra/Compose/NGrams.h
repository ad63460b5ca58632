//===- NGrams.h: n-grams counted in sequences of integers ------------------===//
// Takes:    tokens, rows of an integer type; a pool of n-grams, which is known while building.
// Gives:    for each length of an n-gram and each distance of its tokens, comparisons of shifted rows with the pool,
//           added up along the row as exact integers; one scatter to the columns of the result.
// Keeps:    n-grams of length 1 counted once, whatever may be skipped.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct NGramPool {
  /// The n-grams of one length, no two of them the same: tokens[k] are their k-th tokens.
  struct OfLength {
    int64_t length;
    std::vector<std::vector<int64_t>> tokens;
    std::vector<int64_t> columns; // of the result, one for each n-gram
  };
  std::vector<OfLength> grams;
  int64_t columns = 0; // of the result, all
  int64_t skips = 0;   // tokens that may be skipped between two of an n-gram
};

/// What stands in a column: how often the n-gram is there, whether it is there, times the column's weight.
enum class NGramScore { Count, WeightIfThere, WeightedCount };

/// x [rows, tokens] or [tokens] to f32 [rows, columns] or [columns]. Weights are one for each column; none: 1.
UOpRef nGramScores(Composer &b, UOpRef x, const NGramPool &pool, NGramScore score, llvm::ArrayRef<float> weights);

} // namespace astra::compose

//===- Shuffle.h: the order of the rows in an epoch ---------------------------===//
// Takes:    a seed, the number of the epoch (the first is 1), the number of rows.
// Gives:    a permutation that is a function of these alone: Fisher and Yates' shuffle, whose i-th draw is element i of
//           randint in [0, rows - i) of numerics clause N13, with the seed and 2^31 + epoch as its key. Streams of that
//           half are no node's of a model.
#pragma once
#include "astra/Numerics/Threefry.h"
#include <numeric>
#include <utility>
#include <vector>

namespace astra::tool {

template <typename T> using Scalar = T;

inline void shuffle(uint32_t seed, uint32_t epoch, std::vector<uint32_t> &order) {
  std::iota(order.begin(), order.end(), 0u);
  uint64_t rows = order.size();
  for (uint64_t i = 0; i + 1 < rows; ++i) {
    uint64_t pair = i >> 1;
    numerics::Threefry<Scalar> words(seed, 0x80000000u + epoch, uint32_t(pair), uint32_t(pair >> 32));
    uint32_t word = i & 1 ? words.x1 : words.x0;
    std::swap(order[i], order[i + (uint64_t(word) * (rows - i) >> 32)]);
  }
}

} // namespace astra::tool

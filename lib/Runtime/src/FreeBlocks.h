//===- FreeBlocks.h: free memory of a pool by size -------------------------===//
// Takes:    blocks that nobody uses; their sizes are multiples of 64.
// Gives:    the smallest that is large enough, in logarithmic time.
// Keeps:    bins in the order of size, with a bit for each that is not empty: one for each size below 64 KiB, then 32
//           for each power of two. A bin is a treap: a search tree by size, then segment, then place in it, and a
//           heap by a number drawn when the block was made, which gives it the height of a random tree. So what is
//           taken depends on what was asked for, and not on where the system puts segments. No allocation, no
//           recursion.
// Does not: lock, split or merge (Pool.cpp).
#pragma once

#include "Base.h"
#include <cstddef>

namespace astra::rt {

/// A part of a segment, which is memory that a device gave at once. The parts of a segment are linked by address. The
/// first 64 bytes, a line of the cache, are all that a request, a search and a free of a block that calls never had
/// see.
struct alignas(64) Block {
  void *memory;
  uint64_t bytes;
  Block *left, *right;        ///< while it is free
  Block *before, *behind;     ///< in its segment; null at the ends
  uint32_t priority;          ///< while it is free
  std::atomic<uint32_t> refs; ///< buffers, and calls in flight
  uint32_t buffers;           ///< of them; with pool.mutex locked
  bool isFree;
  uint8_t numUses;  ///< more than kMostUses: not known; with runtime.order locked
  uint16_t segment; ///< how many segments the pool had taken before its own, of 65,536

  astra_pool *pool;

  // While only calls have it.
  Block *beforeBusy, *behindBusy;

  // The last tasks that have had it since it was taken, of each stream; with runtime.order locked.
  struct Use {
    uint32_t stream;
    uint64_t tick;
  };
  static constexpr uint32_t kMostUses = 4;
  Use uses[kMostUses];

  /// It is a whole segment.
  bool isWhole() const { return !before && !behind; }
};
static_assert(offsetof(Block, pool) == 64);

class FreeBlocks {
public:
  void insert(Block *block) {
    uint64_t bin = binOf(block->bytes);
    Block **link = &roots[bin];
    while (*link && (*link)->priority >= block->priority) link = next(*link, block);
    Block *rest = *link, **low = &block->left, **high = &block->right;
    while (rest)
      if (isBefore(rest, block))
        *low = rest, low = &rest->right, rest = rest->right;
      else
        *high = rest, high = &rest->left, rest = rest->left;
    *low = *high = nullptr;
    *link = block;
    bits[bin / 64] |= uint64_t(1) << bin % 64;
  }
  void remove(Block *block) {
    Block **link = &roots[binOf(block->bytes)];
    while (*link != block) link = next(*link, block);
    take(link);
  }
  /// Removes the block at a link that bestFit gave.
  Block *take(Block **link) {
    Block *block = *link, *low = block->left, *high = block->right;
    while (low && high)
      if (low->priority >= high->priority)
        *link = low, link = &low->right, low = low->right;
      else
        *link = high, link = &high->left, high = high->left;
    *link = low ? low : high;
    uint64_t bin = binOf(block->bytes);
    if (!roots[bin]) bits[bin / 64] &= ~(uint64_t(1) << bin % 64);
    return block;
  }
  /// Where the smallest of at least `bytes` hangs; of several the one of the oldest segment, there at the lowest
  /// address. Null if there is none.
  Block **bestFit(uint64_t bytes) {
    uint64_t bin = binOf(bytes);
    Block **best = leastOf(&roots[bin], bytes);
    if (best || ++bin == kBins) return best;
    uint64_t word = bin / 64, left = bits[word] >> bin % 64 << bin % 64;
    while (!left && ++word < kWords) left = bits[word];
    return left ? leastOf(&roots[word * 64 + uint64_t(__builtin_ctzll(left))], bytes) : nullptr;
  }
  /// One of the largest bin; null if there is none.
  Block *large() const {
    for (uint64_t word = kWords; word-- > 0;)
      if (bits[word]) return roots[word * 64 + 63 - uint64_t(__builtin_clzll(bits[word]))];
    return nullptr;
  }

private:
  static constexpr uint64_t kExact = 1024, kUnit = 64, kBins = kExact + (64 - 16) * 32, kWords = kBins / 64;

  static uint64_t binOf(uint64_t bytes) {
    if (bytes < kExact * kUnit) return bytes / kUnit;
    auto log = uint64_t(63 - __builtin_clzll(bytes));
    return kExact + (log - 16) * 32 + (bytes >> (log - 5)) % 32;
  }
  static bool isBefore(const Block *a, const Block *b) {
    if (a->bytes != b->bytes) return a->bytes < b->bytes;
    return a->segment != b->segment ? a->segment < b->segment : a->memory < b->memory;
  }
  static Block **next(Block *at, const Block *to) { return isBefore(to, at) ? &at->left : &at->right; }
  static Block **leastOf(Block **link, uint64_t bytes) {
    Block **best = nullptr;
    while (Block *block = *link)
      if (block->bytes >= bytes)
        best = link, link = &block->left;
      else
        link = &block->right;
    return best;
  }

  uint64_t bits[kWords] = {};
  Block *roots[kBins] = {};
};

} // namespace astra::rt

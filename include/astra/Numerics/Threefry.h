//===- Threefry.h: the random bits of numerics clause N13 ------------------===//
// Takes:    key words (seed, stream id) and counter words (low, high), of any class V<uint32_t> (see Functions.h).
// Gives:    the two words of Threefry2x32 with 20 rounds (J. Salmon et al., "Parallel random numbers: as easy as
//           1, 2, 3", SC 2011).
// Keeps:    integer arithmetic only.
// Does not: say which element gets which word; that is the numerics stage.
#pragma once
#include <cstdint>

namespace astra::numerics {

template <template <class> class V> struct Threefry {
  V<uint32_t> x0, x1;

  Threefry(V<uint32_t> key0, V<uint32_t> key1, V<uint32_t> counter0, V<uint32_t> counter1)
      : x0(counter0 + key0), x1(counter1 + key1) {
    constexpr int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    V<uint32_t> keys[3] = {key0, key1, key0 ^ key1 ^ uint32_t(0x1bd11bda)};
    for (unsigned round = 0; round < 20; ++round) {
      uint32_t r = rotations[round % 8];
      x0 = x0 + x1;
      x1 = ((x1 << r) | (x1 >> (32 - r))) ^ x0;
      if (round % 4 != 3) continue;
      uint32_t group = round / 4 + 1;
      x0 = x0 + keys[group % 3];
      x1 = x1 + keys[(group + 1) % 3] + group;
    }
  }
};

} // namespace astra::numerics

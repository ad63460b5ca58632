//===- TensorMap.h: the tensor maps of the stand-in driver ----------------===//
// Takes:    what cuTensorMapEncodeTiled is given.
// Gives:    whether it is what bundles ask for: two dims of words of 32 bits, lines one behind another, the swizzle of
//           128 bytes, zeros outside, within the driver's limits; 128 bytes that say so, and what they say.
#pragma once
#include "astra/Emulator/Emulator.h"
#include <cstring>

namespace astra::standin {

struct TensorMap {
  int type;
  uint32_t rank;
  void *address;
  const uint64_t *extents, *strides;
  const uint32_t *box, *steps;
  int interleave, swizzle, promotion, fill;

  bool isAllowed(const void *map) const {
    auto isAligned = [](const void *p, uint64_t by) { return reinterpret_cast<uintptr_t>(p) % by == 0; };
    bool isKnown = type == 2 && rank == 2 && !interleave && swizzle == 3 && promotion >= 0 && promotion <= 3 && !fill;
    return isKnown && isAligned(map, 64) && isAligned(address, 16) && extents[0] && extents[1] &&
           extents[0] <= uint64_t(1) << 32 && extents[1] <= uint64_t(1) << 32 && strides[0] % 16 == 0 &&
           strides[0] == 4 * extents[0] && box[0] == 32 && box[1] && box[1] <= 256 && steps[0] == 1 && steps[1] == 1;
  }
  uint64_t bytes() const { return extents[1] * strides[0]; }
  void write(void *map) const {
    Written w{mark, address, extents[0], extents[1], box[1]};
    memset(map, 0, 128);
    memcpy(map, &w, sizeof w);
  }
  /// Whether a map is one of this driver's and of the buffer and box that a kernel expects; its lines then.
  static bool read(const void *map, const void *address, EmulatedMap &expected) {
    Written w;
    memcpy(&w, map, sizeof w);
    expected.lines = w.lines;
    return w.mark == mark && w.address == address && w.words == expected.words && w.box == expected.box;
  }

private:
  static constexpr uint64_t mark = 0x70616d2d6f727473;
  struct Written {
    uint64_t mark;
    const void *address;
    uint64_t words, lines;
    uint32_t box;
  };
};

} // namespace astra::standin

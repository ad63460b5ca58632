//===- KBlocks.h: blocks of 256 with scales of 6 bits -----------------------===//
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include <array>
#include <cstdint>

namespace astra::quantize {

/// A block of Q4_K: value i is (d * s[i / 32]) * q[i] - dmin * t[i / 32].
struct BlockQ4_K {
  std::array<uint8_t, 256> q;
  std::array<uint8_t, 8> s, t;
  uint16_t d, dmin; // f16
};
/// Codes for 256 finite floats: of each 32 a line through codes 0..15, found by weighted least squares, whose weights
/// prefer large elements; then slopes and minima as 6 bits of the greatest of them, and codes anew.
BlockQ4_K blockQ4_K(llvm::ArrayRef<float> x);

} // namespace astra::quantize

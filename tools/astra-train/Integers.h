//===- Integers.h: integers of any width ----------------------------------------===//
// Gives:    what the runtime's integer types hold.
#pragma once
#include "astra/astra.h"

namespace astra::tool {

inline bool isInteger(int32_t dtype) { return dtype >= ASTRA_I8 && dtype <= ASTRA_U64; }
inline bool isSigned(int32_t dtype) { return dtype <= ASTRA_I64; } // of integer types

/// Whether the type holds v; `big`: v stands for a number of 2^63 and above, as u64 has it.
inline bool fits(int64_t v, bool big, int32_t dtype) {
  unsigned bits = astra_dtype_bits(dtype);
  if (big) return dtype == ASTRA_U64;
  if (!isSigned(dtype)) return v >= 0 && (bits == 64 || uint64_t(v) >> bits == 0);
  return bits == 64 || (v >= -(int64_t(1) << (bits - 1)) && v < int64_t(1) << (bits - 1));
}

} // namespace astra::tool

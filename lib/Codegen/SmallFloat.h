//===- SmallFloat.h: formats that are computed as f32 ----------------------===//
// Gives:    which formats those are, how those of 8 bits spend their codes, and the f32 of every code.
// Does not: emit conversions; each back end does, from this.
#pragma once
#include "astra/IR/DType.h"

namespace astra {

inline bool isNarrow(DType t) { return t == DType::F16 || t == DType::BF16; }
/// What is computed as f32: f16, bf16 and the storage formats of 8 bits.
inline bool isSmall(DType t) { return isNarrow(t) || (info(t).cls == DTypeClass::Storage && bitWidth(t) == 8); }

/// How a format of 8 bits spends its codes; codes are without the sign.
struct SmallFloat {
  DType dtype;
  int bias, mantissa;
  unsigned greatest, nan;
  bool infinity; // greatest + 1
  bool fnuz;     // the code of -0 is the NaN
};
/// The row of a format; not of e8m0, which has powers of two alone.
const SmallFloat &smallFloat(DType t);
/// The bits of the f32 of a code of 8 bits; all are exact.
uint32_t decodedSmall(DType t, unsigned code);

} // namespace astra

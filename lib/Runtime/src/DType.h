//===- DType.h: the dtypes of the ABI -------------------------------------===//
// Takes:    nothing.
// Gives:    one row per dtype: name, bits, how its NaNs become canonical; sizes of row-major tensors.
// Keeps:    the numbers of astra_dtype.
// Does not: know the compiler's dtype table (a test compares the two).
#pragma once

#include "Base.h"

namespace astra::rt {

struct DType {
  const char *name;
  uint32_t bits;
  /// Makes every NaN of `count` elements the canonical one (numerics clause N6); null where there is nothing to do.
  void (*canonicalize)(void *data, uint64_t count);
};

/// Null for a number that is no dtype.
const DType *dtypeOf(int32_t dtype);

/// Bytes of a row-major tensor; sub-byte rows are padded to bytes. False on overflow or a negative extent.
bool denseBytes(const DType &dtype, const int64_t *shape, uint32_t rank, uint64_t &bytes);

/// The bytes that NaNs hide in, made canonical: `bytes` must be whole elements.
void canonicalizeNaNs(const DType &dtype, void *data, uint64_t bytes);

} // namespace astra::rt

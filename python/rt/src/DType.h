//===- DType.h: element types, here and elsewhere -------------------------===//
// Takes:    a dtype of astra.h, a type number of NumPy, a type of DLPack.
// Gives:    the one for the other.
// Keeps:    one row for a dtype.
// Does not: convert values.
#pragma once

#include "DLPack.h"
#include "Handles.h"

namespace astra::python {

struct DTypeRow {
  int32_t dtype;
  int numpy;          ///< the type of the same values, or of codes of as many bits; -1: packed, bytes
  bool isCodes;       ///< NumPy has no such type: its arrays hold the bits
  const char *format; ///< of the buffer protocol; elements of packed types are bytes
  DLDataType dlpack;
};

/// Null for a number that is no dtype.
const DTypeRow *rowOf(int32_t dtype);
/// By the names of astra_dtype_name; null for one that is none.
const DTypeRow *rowOf(const char *name);
/// Null for a type that Astra does not have.
const DTypeRow *rowOf(DLDataType type);
/// The dtype of a type number of NumPy in native byte order; 0 where there is none.
int32_t dtypeOfNumpy(int type);
/// Bytes of a row-major tensor, whose rows are whole bytes; false if they leave 63 bits or an extent is negative.
bool denseBytes(uint32_t bits, const int64_t *shape, int32_t ndim, uint64_t &bytes);

} // namespace astra::python

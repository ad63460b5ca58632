//===- DType.cpp: the table of element types ------------------------------===//
// See DType.h.
#include "DType.h"

#include <cstring>

using namespace astra::python;

namespace {

// NumPy's type numbers, fixed by its ABI (numpy/ndarraytypes.h).
enum { Bool, Byte, UByte, Short, UShort, Int, UInt, Long, ULong, LongLong, ULongLong, Float, Double };
enum { CFloat = 14, CDouble = 15, Half = 23, kNumTypes = 24 };

constexpr DTypeRow kRows[] = {
    {ASTRA_BOOL, Bool, false, "?", {kDLBool, 8, 1}},
    {ASTRA_I8, Byte, false, "b", {kDLInt, 8, 1}},
    {ASTRA_I16, Short, false, "h", {kDLInt, 16, 1}},
    {ASTRA_I32, Int, false, "i", {kDLInt, 32, 1}},
    {ASTRA_I64, Long, false, "l", {kDLInt, 64, 1}},
    {ASTRA_U8, UByte, false, "B", {kDLUInt, 8, 1}},
    {ASTRA_U16, UShort, false, "H", {kDLUInt, 16, 1}},
    {ASTRA_U32, UInt, false, "I", {kDLUInt, 32, 1}},
    {ASTRA_U64, ULong, false, "L", {kDLUInt, 64, 1}},
    {ASTRA_F16, Half, false, "e", {kDLFloat, 16, 1}},
    {ASTRA_BF16, UShort, true, "H", {kDLBfloat, 16, 1}},
    {ASTRA_F32, Float, false, "f", {kDLFloat, 32, 1}},
    {ASTRA_F64, Double, false, "d", {kDLFloat, 64, 1}},
    {ASTRA_C64, CFloat, false, "Zf", {kDLComplex, 64, 1}},
    {ASTRA_C128, CDouble, false, "Zd", {kDLComplex, 128, 1}},
    {ASTRA_I2, -1, true, "B", {kDLInt, 2, 1}},
    {ASTRA_U2, -1, true, "B", {kDLUInt, 2, 1}},
    {ASTRA_I4, -1, true, "B", {kDLInt, 4, 1}},
    {ASTRA_U4, -1, true, "B", {kDLUInt, 4, 1}},
    {ASTRA_F4E2M1, -1, true, "B", {kDLFloat4_e2m1fn, 4, 1}},
    {ASTRA_F8E4M3FN, UByte, true, "B", {kDLFloat8_e4m3fn, 8, 1}},
    {ASTRA_F8E5M2, UByte, true, "B", {kDLFloat8_e5m2, 8, 1}},
    {ASTRA_F8E4M3FNUZ, UByte, true, "B", {kDLFloat8_e4m3fnuz, 8, 1}},
    {ASTRA_F8E5M2FNUZ, UByte, true, "B", {kDLFloat8_e5m2fnuz, 8, 1}},
    {ASTRA_F8E8M0, UByte, true, "B", {kDLFloat8_e8m0fnu, 8, 1}},
};
static_assert(sizeof(long) == 8, "the formats say so");

} // namespace

const DTypeRow *astra::python::rowOf(int32_t dtype) {
  constexpr int32_t count = sizeof(kRows) / sizeof(kRows[0]);
  return dtype >= 1 && dtype <= count ? &kRows[dtype - 1] : nullptr; // in the order of astra_dtype
}

const DTypeRow *astra::python::rowOf(const char *name) {
  for (const DTypeRow &row : kRows)
    if (std::strcmp(astra_dtype_name(row.dtype), name) == 0) return &row;
  return nullptr;
}

const DTypeRow *astra::python::rowOf(DLDataType type) {
  for (const DTypeRow &row : kRows)
    if (row.dlpack.code == type.code && row.dlpack.bits == type.bits && type.lanes == 1) return &row;
  return nullptr;
}

int32_t astra::python::dtypeOfNumpy(int type) {
  if (type == LongLong) return ASTRA_I64;
  if (type == ULongLong) return ASTRA_U64;
  if (type >= 0 && type < kNumTypes)
    for (const DTypeRow &row : kRows)
      if (row.numpy == type && !row.isCodes) return row.dtype;
  return 0;
}

bool astra::python::denseBytes(uint32_t bits, const int64_t *shape, int32_t ndim, uint64_t &bytes) {
  uint64_t count = 1;
  for (int32_t i = 0; i < ndim; i++) {
    if (shape[i] < 0) return false;
    bool last = i + 1 == ndim && bits < 8;
    uint64_t extent = uint64_t(shape[i]);
    if (last && extent > UINT64_MAX / 8 - 1) return false;
    if (last) extent = (extent * bits + 7) / 8;
    if (__builtin_mul_overflow(count, extent, &count)) return false;
  }
  uint64_t each = bits < 8 ? 1 : bits / 8;
  return !__builtin_mul_overflow(count, each, &bytes) && bytes <= uint64_t(INT64_MAX);
}

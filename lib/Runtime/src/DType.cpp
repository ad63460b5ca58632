//===- DType.cpp: the dtypes of the ABI -----------------------------------===//
// Takes:    see DType.h.
// Gives:    the table, and loops over raw bits that no floating point unit touches.
// Keeps:    numerics clause N6.
// Does not: compute with floats.
#include "DType.h"

using namespace astra::rt;

namespace {

/// IEEE-like formats: a NaN has an exponent of all ones and a mantissa that is not zero.
template <typename Bits, Bits exponent, Bits mantissa, Bits nan> void ieee(void *data, uint64_t count) {
  Bits *p = static_cast<Bits *>(data);
  for (uint64_t i = 0; i < count; i++)
    if ((p[i] & exponent) == exponent && (p[i] & mantissa)) p[i] = nan;
}
constexpr auto f16 = ieee<uint16_t, 0x7c00, 0x03ff, 0x7e00>;
constexpr auto bf16 = ieee<uint16_t, 0x7f80, 0x007f, 0x7fc0>;
constexpr auto f32 = ieee<uint32_t, 0x7f800000, 0x007fffff, 0x7fc00000>;
constexpr auto f64 = ieee<uint64_t, 0x7ff0000000000000, 0x000fffffffffffff, 0x7ff8000000000000>;
constexpr auto e5m2 = ieee<uint8_t, 0x7c, 0x03, 0x7e>;
void c64(void *data, uint64_t count) { f32(data, 2 * count); }
void c128(void *data, uint64_t count) { f64(data, 2 * count); }
void e4m3fn(void *data, uint64_t count) {
  uint8_t *p = static_cast<uint8_t *>(data);
  for (uint64_t i = 0; i < count; i++)
    if ((p[i] & 0x7f) == 0x7f) p[i] = 0x7f;
}

constexpr DType table[] = {
    {nullptr, 0, nullptr},      {"bool", 8, nullptr},    {"i8", 8, nullptr},     {"i16", 16, nullptr},
    {"i32", 32, nullptr},       {"i64", 64, nullptr},    {"u8", 8, nullptr},     {"u16", 16, nullptr},
    {"u32", 32, nullptr},       {"u64", 64, nullptr},    {"f16", 16, f16},       {"bf16", 16, bf16},
    {"f32", 32, f32},           {"f64", 64, f64},        {"complex64", 64, c64}, {"complex128", 128, c128},
    {"i2", 2, nullptr},         {"u2", 2, nullptr},      {"i4", 4, nullptr},     {"u4", 4, nullptr},
    {"f4e2m1", 4, nullptr},     {"f8e4m3fn", 8, e4m3fn}, {"f8e5m2", 8, e5m2},    {"f8e4m3fnuz", 8, nullptr},
    {"f8e5m2fnuz", 8, nullptr}, {"f8e8m0", 8, nullptr},
};
static_assert(sizeof(table) / sizeof(table[0]) == ASTRA_F8E8M0 + 1);

} // namespace

const DType *astra::rt::dtypeOf(int32_t dtype) {
  return dtype < ASTRA_BOOL || dtype > ASTRA_F8E8M0 ? nullptr : &table[dtype];
}

bool astra::rt::denseBytes(const DType &dtype, const int64_t *shape, uint32_t rank, uint64_t &bytes) {
  uint64_t rows = 1, row = dtype.bits;
  for (uint32_t i = 0; i < rank; i++) {
    uint64_t &factor = i + 1 == rank ? row : rows;
    if (shape[i] < 0 || !mul(factor, static_cast<uint64_t>(shape[i]), factor)) return false;
  }
  if (!add(row, 7, row) || !mul(rows, row / 8, bytes)) return false;
  return bytes <= INT64_MAX;
}

void astra::rt::canonicalizeNaNs(const DType &dtype, void *data, uint64_t bytes) {
  if (dtype.canonicalize) dtype.canonicalize(data, bytes / (dtype.bits / 8));
}

const char *astra_dtype_name(int32_t dtype) {
  const DType *row = dtypeOf(dtype);
  return row ? row->name : nullptr;
}

uint32_t astra_dtype_bits(int32_t dtype) {
  const DType *row = dtypeOf(dtype);
  return row ? row->bits : 0;
}

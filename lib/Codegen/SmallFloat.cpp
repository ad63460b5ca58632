//===- SmallFloat.cpp: the formats of 8 bits, one row each -----------------===//
#include "SmallFloat.h"

using namespace astra;

static constexpr SmallFloat rows[] = {
    {DType::F8E4M3FN, 7, 3, 0x7e, 0x7f, false, false},
    {DType::F8E5M2, 15, 2, 0x7b, 0x7e, true, false},
    {DType::F8E4M3FNUZ, 8, 3, 0x7f, 0x80, false, true},
    {DType::F8E5M2FNUZ, 16, 2, 0x7f, 0x80, false, true},
};

const SmallFloat &astra::smallFloat(DType t) {
  const SmallFloat *f = rows;
  while (f->dtype != t) ++f;
  return *f;
}

uint32_t astra::decodedSmall(DType t, unsigned code) {
  auto power = [](int e) { // 2^e
    return e >= -126 ? uint32_t(e + 127) << 23 : 1u << (e + 149);
  };
  if (t == DType::F8E8M0) return code == 0xff ? 0x7fc00000 : power(int(code) - 127);
  const SmallFloat &f = smallFloat(t);
  unsigned sign = code & 0x80, c = code & 0x7f;
  if (f.fnuz ? code == 0x80 : c > f.greatest + f.infinity) return 0x7fc00000;
  if (f.infinity && c == f.greatest + 1) return sign << 24 | 0x7f800000;
  unsigned m = c & ((1u << f.mantissa) - 1);
  int e = int(c >> f.mantissa);
  if (!c) return sign << 24;
  if (!e) // normalize; every format's least number is a normal f32
    for (e = 1; !(m >> f.mantissa); --e) m <<= 1;
  m &= (1u << f.mantissa) - 1;
  return sign << 24 | uint32_t(e - f.bias + 127) << 23 | m << (23 - f.mantissa);
}

//===- Samples.cpp: values that break things -------------------------------===//
#include "Samples.h"
#include <cstring>
#include <random>

using namespace astra;

std::vector<uint64_t> proofs::edges(DType t) {
  unsigned w = t == DType::Bool ? 1 : bitWidth(t);
  uint64_t all = w < 64 ? (uint64_t(1) << w) - 1 : ~uint64_t(0), top = uint64_t(1) << (w - 1);
  if (t == DType::Bool) return {0, 1};
  if (!isFloat(t)) return {0, 1, 2, 3, 5, 8, 64, top - 1, top, top + 1, all - 1, all, w - 1, w, 100};
  const DTypeInfo &i = info(t);
  uint64_t inf = ((uint64_t(1) << i.exponentBits) - 1) << i.mantissaBits,
           one = ((uint64_t(1) << (i.exponentBits - 1)) - 1) << i.mantissaBits;
  uint64_t ulp = 1, least = uint64_t(1) << i.mantissaBits, half = one - least;
  std::vector<uint64_t> v;
  for (uint64_t x : {uint64_t(0), ulp, least - 1, least, least + 1, half - 1, half, half + 1, one - 1, one, one + 1,
                     one + least, one + least + (least >> 1), inf - 1, inf, inf | (least >> 1)})
    v.push_back(x), v.push_back(x | top);
  return v;
}

static void put(Tensor &t, size_t i, uint64_t bits) {
  memcpy(t.bytes.data() + i * byteSize(t.dtype), &bits, byteSize(t.dtype));
}

Tensor proofs::samples(DType t, unsigned k, int64_t n, bool everyPattern, unsigned round) {
  Tensor out{t, {n}, {}};
  out.bytes.resize(n * byteSize(t));
  auto e = edges(t);
  std::mt19937_64 random(k * 977 + round * 31 + unsigned(t));
  uint64_t mask = t == DType::Bool ? 1 : bitWidth(t) < 64 ? (uint64_t(1) << bitWidth(t)) - 1 : ~uint64_t(0);
  uint64_t stride = 1;
  for (unsigned i = 0; i < k; ++i) stride *= 33;
  for (int64_t i = 0; i < n; ++i) {
    if (everyPattern && k == 0)
      put(out, i, uint64_t(i) & mask);
    else if (everyPattern)
      put(out, i, round < e.size() ? e[round] : random() & mask);
    else
      put(out, i, i < n / 2 ? e[(i / stride) % e.size()] : random() & mask);
  }
  return out;
}

uint64_t proofs::bitsAt(const Tensor &t, int64_t at) {
  uint64_t bits = 0;
  memcpy(&bits, &t.bytes[at * byteSize(t.dtype)], byteSize(t.dtype));
  return bits;
}

int64_t proofs::firstDifference(Tensor a, Tensor b) {
  canonicalizeNaN(a);
  canonicalizeNaN(b);
  if (a == b) return -1;
  if (a.dtype != b.dtype || a.shape != b.shape) return 0;
  int64_t at = 0;
  while (bitsAt(a, at) == bitsAt(b, at)) ++at;
  return at;
}

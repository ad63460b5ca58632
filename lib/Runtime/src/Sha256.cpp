//===- Sha256.cpp: SHA-256 ------------------------------------------------===//
// Takes:    see Sha256.h.
// Gives:    FIPS 180-4, section 6.2.
// Keeps:    big-endian words, as the standard has them.
// Does not: hide timing (nothing secret is hashed here).
#include "Sha256.h"
#include "Cpu.h"

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace astra::rt;

namespace {

alignas(16) constexpr uint32_t roundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

uint32_t loadBig(const uint8_t *p) {
  uint32_t x;
  memcpy(&x, p, 4);
  return __builtin_bswap32(x);
}

#if defined(__x86_64__)
/// The same by SHA instructions, which keep the state as two vectors {f, e, b, a} and {h, g, d, c} and do two rounds
/// each (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, SHA256RNDS2).
__attribute__((target("sha,sse4.1"))) void blocksByInstructions(uint32_t state[8], const uint8_t *data, size_t count) {
  auto at = [](auto *p) {
    return reinterpret_cast<__m128i *>(const_cast<uint8_t *>(reinterpret_cast<const uint8_t *>(p)));
  };
  const __m128i bigEndian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(at(state)), 0xb1),
          hgfe = _mm_shuffle_epi32(_mm_loadu_si128(at(state + 4)), 0x1b);
  __m128i feba = _mm_alignr_epi8(badc, hgfe, 8), hgdc = _mm_blend_epi16(hgfe, badc, 0xf0);
  for (; count; --count, data += 64) {
    __m128i w[4], sums[2] = {feba, hgdc};
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
      __m128i &now = w[i % 4];
      if (i < 4) {
        now = _mm_shuffle_epi8(_mm_loadu_si128(at(data + 16 * i)), bigEndian);
      } else {
        __m128i last = w[(i + 3) % 4], behind = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
        now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]), behind), last);
      }
      __m128i k = _mm_add_epi32(now, _mm_load_si128(at(roundConstants + 4 * i)));
      hgdc = _mm_sha256rnds2_epu32(hgdc, feba, k);
      feba = _mm_sha256rnds2_epu32(feba, hgdc, _mm_shuffle_epi32(k, 0x0e));
    }
    feba = _mm_add_epi32(feba, sums[0]), hgdc = _mm_add_epi32(hgdc, sums[1]);
  }
  __m128i abef = _mm_shuffle_epi32(feba, 0x1b), ghcd = _mm_shuffle_epi32(hgdc, 0xb1);
  _mm_storeu_si128(at(state), _mm_blend_epi16(abef, ghcd, 0xf0));
  _mm_storeu_si128(at(state + 4), _mm_alignr_epi8(ghcd, abef, 8));
}

bool hasInstructions() { return cpuHasFeature("sha") == 1 && cpuHasFeature("sse4.1") == 1; }
#else
void blocksByInstructions(uint32_t *, const uint8_t *, size_t) {}
bool hasInstructions() { return false; }
#endif

} // namespace

Sha256::Sha256()
    : state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::block(const uint8_t *data) {
  uint32_t w[64];
  for (int i = 0; i < 16; i++) w[i] = loadBig(data + 4 * i);
  for (int i = 16; i < 64; i++) {
    uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; i++) {
    uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + roundConstants[i] + w[i];
    uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; i++) state[i] += sums[i];
}

void Sha256::blocks(const uint8_t *data, size_t count) {
  constexpr size_t many = 64; // to ask the CPU costs microseconds in a virtual machine
  if (count >= many && hasInstructions()) return blocksByInstructions(state, data, count);
  for (; count; --count, data += 64) block(data);
}

void Sha256::update(const void *data, size_t bytes) {
  const uint8_t *p = static_cast<const uint8_t *>(data);
  if (!bytes) return;
  size_t held = total % 64;
  total += bytes;
  if (held) {
    size_t take = bytes < 64 - held ? bytes : 64 - held;
    memcpy(pending + held, p, take);
    p += take, bytes -= take;
    if (held + take < 64) return;
    block(pending);
  }
  blocks(p, bytes / 64);
  if (bytes % 64) memcpy(pending, p + bytes / 64 * 64, bytes % 64);
}

void Sha256::finish(uint8_t digest[32]) {
  uint64_t bits = __builtin_bswap64(total * 8);
  uint8_t padding[64] = {0x80};
  update(padding, 1 + (119 - total % 64) % 64);
  update(&bits, 8);
  for (int i = 0; i < 8; i++) {
    uint32_t word = __builtin_bswap32(state[i]);
    memcpy(digest + 4 * i, &word, 4);
  }
}

void Sha256::digest(const void *data, size_t bytes, uint8_t digest[32]) {
  Sha256 hash;
  hash.update(data, bytes);
  hash.finish(digest);
}

bool Sha256::matches(const void *data, size_t bytes, const uint8_t *expected) {
  uint8_t found[32];
  digest(data, bytes, found);
  return memcmp(found, expected, 32) == 0;
}

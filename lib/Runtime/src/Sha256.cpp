//===- Sha256.cpp: SHA-256 ------------------------------------------------===//
// Takes:    see Sha256.h.
// Gives:    FIPS 180-4, section 6.2.
// Keeps:    big-endian words, as the standard has them.
// Does not: hide timing (nothing secret is hashed here).
#include "Sha256.h"

#include <cstring>

using namespace astra::rt;

namespace {

constexpr uint32_t roundConstants[64] = {
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
  for (; bytes >= 64; p += 64, bytes -= 64) block(p);
  if (bytes) memcpy(pending, p, bytes);
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

bool Sha256::matches(const void *data, size_t bytes, const uint8_t *digest) {
  Sha256 hash;
  uint8_t found[32];
  hash.update(data, bytes);
  hash.finish(found);
  return memcmp(found, digest, 32) == 0;
}

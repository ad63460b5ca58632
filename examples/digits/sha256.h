/*===- sha256.h: SHA-256 (FIPS 180-4), for one hash over all output bytes ---===
 * Takes:    bytes, in pieces.
 * Gives:    the digest as 64 hexadecimal digits.
 * Does not: matter to Astra: it is here so that digits.c needs nothing but astra.h and the C library.
 */
#ifndef DIGITS_SHA256_H
#define DIGITS_SHA256_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct sha256 {
  uint32_t h[8];
  uint8_t block[64];
  uint64_t bytes;
} sha256;

static uint32_t sha256_rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void sha256_init(sha256 *s) {
  static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(s->h, start, sizeof start);
  s->bytes = 0;
}

static void sha256_block(sha256 *s) {
  static const uint32_t k[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; ++i)
    w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 | (uint32_t)s->block[4 * i + 2] << 8 |
           s->block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (sha256_rotate(a, 7) ^ sha256_rotate(a, 18) ^ a >> 3) +
           (sha256_rotate(b, 17) ^ sha256_rotate(b, 19) ^ b >> 10);
  }
  memcpy(v, s->h, sizeof v);
  for (int i = 0; i < 64; ++i) {
    uint32_t e = v[4], a = v[0];
    uint32_t t1 = v[7] + (sha256_rotate(e, 6) ^ sha256_rotate(e, 11) ^ sha256_rotate(e, 25)) +
                  ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
    uint32_t t2 =
        (sha256_rotate(a, 2) ^ sha256_rotate(a, 13) ^ sha256_rotate(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof v[0]);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; ++i) s->h[i] += v[i];
}

static void sha256_add(sha256 *s, const void *data, size_t count) {
  const uint8_t *from = data;
  for (size_t i = 0; i < count; ++i) {
    s->block[s->bytes++ % 64] = from[i];
    if (s->bytes % 64 == 0) sha256_block(s);
  }
}

static void sha256_text(sha256 *s, char text[65]) {
  uint64_t bits = s->bytes * 8;
  sha256_add(s, "\x80", 1);
  while (s->bytes % 64 != 56) sha256_add(s, "", 1);
  for (int i = 7; i >= 0; --i) {
    uint8_t byte = (uint8_t)(bits >> (8 * i));
    sha256_add(s, &byte, 1);
  }
  for (int i = 0; i < 8; ++i) sprintf(text + 8 * i, "%08x", (unsigned)s->h[i]);
}

#endif

//===- tiles.h: tiles of AMX in plain C, for machines without it -----------===//
// Takes:    C of a model, before which it is included (-include).
// Gives:    the macros of the prelude (lib/Codegen/C/Prelude.h) that are AMX otherwise; how many tiles were multiplied.
// Keeps:    docs/numerics.md, N4.8, amx32; a register is as its shape says, and what does not fit aborts.
#pragma once
#include <math.h>
#include <stdlib.h>
#include <string.h>

static unsigned char tile_shape[64], tile_bytes[8][16][64];

static unsigned tile_rows(unsigned t) { return tile_shape[48 + t]; }
static unsigned tile_row_bytes(unsigned t) { return tile_shape[16 + 2 * t]; }

static void tile_load(unsigned t, const void *p, long long step) {
  if (tile_shape[0] != 1 || !tile_rows(t)) abort();
  memset(tile_bytes[t], 0, sizeof tile_bytes[t]);
  for (unsigned r = 0; r < tile_rows(t); ++r) memcpy(tile_bytes[t][r], (const char *)p + r * step, tile_row_bytes(t));
}

static void tile_store(unsigned t, void *p, long long step) {
  for (unsigned r = 0; r < tile_rows(t); ++r) memcpy((char *)p + r * step, tile_bytes[t][r], tile_row_bytes(t));
}

static float tile_flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

/* Rounded as with any exponent, a result below 2^-126 is a zero. */
static float tile_fma(float x, float y, float z) {
  float wide = fmaf(x * 0x1p32f, y * 0x1p32f, z * 0x1p64f), r = fmaf(x, y, z);
  return fabsf(wide) < 0x1p-62f ? copysignf(0, r) : r;
}

static float tile_bf16(unsigned short bits) {
  unsigned wide = (unsigned)bits << 16;
  float x;
  memcpy(&x, &wide, 4);
  return tile_flushed(x);
}

static void tile_dot(unsigned c, unsigned a, unsigned b) {
  unsigned pairs = tile_row_bytes(a) / 4;
  if (tile_rows(c) != tile_rows(a) || tile_rows(b) != pairs || tile_row_bytes(c) != tile_row_bytes(b)) abort();
  for (unsigned i = 0; i < tile_rows(c); ++i)
    for (unsigned j = 0; j < tile_row_bytes(c) / 4; ++j) {
      float sums[2] = {0, 0}, before;
      memcpy(&before, &tile_bytes[c][i][4 * j], 4);
      for (unsigned k = 0; k < pairs; ++k)
        for (unsigned odd = 0; odd < 2; ++odd) {
          unsigned short x, y;
          memcpy(&x, &tile_bytes[a][i][4 * k + 2 * odd], 2);
          memcpy(&y, &tile_bytes[b][k][4 * j + 2 * odd], 2);
          sums[odd] = tile_fma(tile_bf16(x), tile_bf16(y), sums[odd]);
        }
      before = tile_fma(tile_fma(sums[0], 1, sums[1]), 1, tile_flushed(before));
      memcpy(&tile_bytes[c][i][4 * j], &before, 4);
    }
}

static int tile_dots; /* so many in the program, to be seen by a test */
__attribute__((visibility("default"))) int tile_dots_done(void) { return tile_dots; }

#define TILE_SHAPE(p) memcpy(tile_shape, p, 64)
#define TILE_LOAD(t, p, step) tile_load(t, p, step)
#define TILE_STORE(t, p, step) tile_store(t, p, step)
#define TILE_DOT(c, a, b) (++tile_dots, tile_dot(c, a, b))
#define TILE_RELEASE() memset(tile_shape, 0, 64)

/*===- threefry.h: random numbers by counting ------------------------------------===
 * Takes:    a key of two words, a place in the row of numbers.
 * Gives:    the number at that place: clause N13 of the numeric contract (Salmon et al. 2011).
 * Keeps:    nothing: the same key and place give the same number.
 */
#ifndef THREEFRY_H
#define THREEFRY_H

#include <stdint.h>

/* Word i of Threefry2x32 with 20 rounds, of a key of two words. */
static uint32_t random_word(uint32_t key0, uint32_t key1, uint64_t i) {
  static const int turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t keys[3] = {key0, key1, key0 ^ key1 ^ 0x1bd11bdau};
  uint32_t x = (uint32_t)(i >> 1) + key0, y = (uint32_t)(i >> 33) + key1;
  for (uint32_t round = 0; round < 20; ++round) {
    int turn = turns[round % 8];
    x += y;
    y = ((y << turn) | (y >> (32 - turn))) ^ x;
    if (round % 4 == 3) {
      uint32_t group = round / 4 + 1;
      x += keys[group % 3];
      y += keys[(group + 1) % 3] + group;
    }
  }
  return i & 1 ? y : x;
}

#endif

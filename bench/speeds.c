/*===- speeds.c: how fast one core adds, loads, stores and reads its caches ---===
 * Gives:    the numbers of a SPEEDS row of lib/Runtime/format/MachineTable.def, a cycle of the clock that a chain of
 *           additions of integers takes, each the best of several tries.
 * Keeps:    to one thread; sizes of the caches are those of the row's CORE, KiB, as arguments.
 *
 *     gcc -O2 -march=native bench/speeds.c -o speeds && taskset -c 0 ./speeds 32 512 32768
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { BYTES = 64 };
#elif defined(__AVX2__)
enum { BYTES = 32 };
#else
enum { BYTES = 16 };
#endif
typedef float vec __attribute__((vector_size(BYTES), aligned(BYTES), may_alias));

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#ifdef __aarch64__
#define VECTOR "w"
#else
#define VECTOR "x"
#endif
#define KEEP(x) __asm__ volatile("" : "+" VECTOR(x))
#define TIMES (1 << 22)

/* Cycles a second: an addition of integers takes one. */
static double chain(void) {
  uint64_t x = 1;
  double begun = seconds();
  for (int i = 0; i < TIMES; ++i) {
    __asm__ volatile("add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, "
                     "%0\n\tadd $1, %0"
                     : "+r"(x));
  }
  return 8.0 * TIMES / (seconds() - begun);
}

/* fmas a second: 12 sums beside each other, or one. */
static double fmas(int sums) {
  vec a = {0}, b = {0}, s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0}, s8 = {0},
      s9 = {0}, s10 = {0}, s11 = {0};
  KEEP(a);
  KEEP(b);
#define STEP(s)                                                                                                        \
  s = s * a + b;                                                                                                       \
  KEEP(s)
  double begun = seconds();
  if (sums == 1)
    for (int i = 0; i < TIMES; ++i) {
      STEP(s0);
    }
  else
    for (int i = 0; i < TIMES; ++i) {
      STEP(s0);
      STEP(s1);
      STEP(s2);
      STEP(s3);
      STEP(s4);
      STEP(s5);
      STEP(s6);
      STEP(s7);
      STEP(s8);
      STEP(s9);
      STEP(s10);
      STEP(s11);
    }
  return (double)sums * TIMES / (seconds() - begun);
}

/* Vectors a second that are loaded from, or stored to, `bytes` bytes. */
static double moved(char *data, size_t bytes, int stores) {
  size_t n = bytes / BYTES / 8 * 8;
  vec zero = {0}, *v = (vec *)data;
  KEEP(zero);
  size_t rounds = 1 + ((size_t)1 << 30) / bytes / 4;
  double begun = seconds();
  for (size_t r = 0; r < rounds; ++r)
    for (size_t i = 0; i < n; i += 8)
#pragma GCC unroll 8
      for (size_t k = 0; k < 8; ++k) {
        if (stores) {
          v[i + k] = zero;
          __asm__ volatile("" ::: "memory");
        } else {
          vec x = v[i + k];
          KEEP(x);
        }
      }
  return (double)(rounds * n) / (seconds() - begun);
}

/* Vectors of 4-byte elements a second, all but one of whose elements are loaded or stored. 0: by no instruction. */
static double masked(char *data, size_t bytes, int stores) {
#ifdef __AVX2__
  size_t n = bytes / 32 / 8 * 8, rounds = 1 + ((size_t)1 << 28) / bytes / 4;
  __m256i mask = _mm256_set_epi32(0, -1, -1, -1, -1, -1, -1, -1), x = _mm256_setzero_si256();
  KEEP(mask);
  KEEP(x);
  double begun = seconds();
  for (size_t r = 0; r < rounds; ++r)
    for (size_t i = 0; i < n; i += 8)
#pragma GCC unroll 8
      for (size_t k = 0; k < 8; ++k) {
        int *at = (int *)(data + 32 * (i + k));
        if (stores) {
          _mm256_maskstore_epi32(at, mask, x);
          __asm__ volatile("" ::: "memory");
        } else {
          __m256i y = _mm256_maskload_epi32(at, mask);
          KEEP(y);
        }
      }
  return (double)(rounds * n) / (seconds() - begun);
#else
  (void)data, (void)bytes, (void)stores;
  return 0;
#endif
}

/* Instructions a second: additions in registers of both kinds, none of which waits for another of its turn. */
static double instructions(void) {
  typedef int32_t ints __attribute__((vector_size(BYTES)));
  uint64_t a = 0, b = 0, c = 0;
  ints d = {0}, e = {0}, f = {0};
#define ADD(x, kind)                                                                                                   \
  x += 1;                                                                                                              \
  __asm__ volatile("" : "+" kind(x))
  double begun = seconds();
  for (int i = 0; i < TIMES; ++i) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      ADD(a, "r");
      ADD(d, VECTOR);
      ADD(b, "r");
      ADD(e, VECTOR);
      ADD(c, "r");
      ADD(f, VECTOR);
    }
  }
  return 24.0 * TIMES / (seconds() - begun);
}

static double best(double a, double b) { return a > b ? a : b; }

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: speeds L1 L2 L3 (KiB)\n"), 2;
  size_t l1 = (size_t)atol(argv[1]) << 10, l2 = (size_t)atol(argv[2]) << 10, l3 = (size_t)atol(argv[3]) << 10;
  if (l1 < 4096 || l2 <= l1 || l3 <= l2 || l3 > (size_t)1 << 31) return fprintf(stderr, "speeds: sizes that grow\n"), 2;
  size_t sizes[] = {l1 / 2, l1 / 2 + l2 / 4, l2 + l3 / 8, 8 * l3};
  char *data = aligned_alloc(4096, 8 * l3);
  if (!data) return 1;
  memset(data, 0, 8 * l3);
  double clock = 0, fma = 0, one = 0, stores = 0, issue = 0, maskedLoads = 0, maskedStores = 0, loads[4] = {0};
  for (int t = 0; t < 7; ++t) {
    clock = best(clock, chain()), fma = best(fma, fmas(12)), one = best(one, fmas(1));
    stores = best(stores, moved(data, l1 / 2, 1)), issue = best(issue, instructions());
    maskedLoads = best(maskedLoads, masked(data, l1 / 2, 0)),
    maskedStores = best(maskedStores, masked(data, l1 / 2, 1));
    for (int k = 0; k < 4; ++k) loads[k] = best(loads[k], moved(data, sizes[k], 0));
  }
  printf("clock %.2f GHz, vectors of %d bytes\n", clock / 1e9, BYTES);
  printf("fma %.2f, loads %.2f, stores %.2f, latency %.1f, l2 %.1f, l3 %.1f, memory %.1f\n", fma / clock,
         loads[0] / clock, stores / clock, clock / one, BYTES * loads[1] / clock, BYTES * loads[2] / clock,
         BYTES * loads[3] / clock);
  printf("issue %.1f", issue / clock);
  if (maskedStores > 0) printf(", masked load %.1f, masked store %.1f", clock / maskedLoads, clock / maskedStores);
  printf("\n");
  free(data);
  return 0;
}

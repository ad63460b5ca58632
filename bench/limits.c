/*===- limits.c: what this machine can do at this moment --------------------===
 * Takes:    a number of threads; on stdin, one line for each measurement that is wanted.
 * Gives:    for each line: GFLOP/s of f32 FMA instructions, GB/s read from memory (the better of two loops, one that
 *           prefetches), GB/s copied (bytes read and bytes written counted). The rates of all threads together, each
 *           in its own CPU time, so other work on the machine does not count. A measurement takes about 20 ms.
 * Keeps:    the FMA loop touches no memory and has more independent chains than an FMA takes cycles. Each thread
 *           reads and copies memory of its own, 96 MiB together, in large pages where there are such: more than most
 *           caches hold; where the L3 is larger, the rates are of it.
 * Does not: know what is measured between its lines.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

enum {
  FMA_STEPS = 40000000 / LANES,
  WARM_STEPS = FMA_STEPS / 8,
  BYTES = 96 << 20,
  AHEAD = 8192,
  PAGE = 2 << 20,
  WAYS = 4,
  MAX_THREADS = 64
};

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Twelve chains: two FMAs a cycle of four cycles each need eight; with two operands they fit 16 registers. */
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

/* Read after the first time and written before the second, so that the loop stays between them. */
static volatile float factor = 0.5f;

static float fma_chains(long steps) {
  vector x = factor - (vector){0}, y = x + 1.0f;
#define BEGIN(i) vector a##i = y + (float)i;
#define STEP(i) a##i = a##i * x + y;
#define END(i) x += a##i;
  CHAINS(BEGIN)
  for (long s = 0; s < steps; ++s) {
    CHAINS(STEP)
  }
  CHAINS(END)
  return x[0];
}

typedef struct Worker {
  float *from, *to;
  size_t bytes; /* of each */
  double took[WAYS];
  pthread_t thread;
} Worker;

static pthread_barrier_t barrier;
static volatile float sink;
static volatile int ended;

static inline float read_all(const float *from, size_t bytes, int ahead) {
  vector sums[4] = {{0}};
  for (size_t i = 0; i < bytes / sizeof(float); i += 4 * LANES)
    for (int k = 0; k < 4; ++k) {
      if (ahead) __builtin_prefetch((const char *)(from + i + k * LANES) + ahead, 0, 3);
      sums[k] += *(const vector *)(from + i + k * LANES);
    }
  vector sum = sums[0] + sums[1] + sums[2] + sums[3];
  return sum[0];
}

static void measure(Worker *w) {
  for (int way = 0; way < WAYS; ++way) {
    pthread_barrier_wait(&barrier);
    if (way == 0) sink = fma_chains(WARM_STEPS); /* out of the low clock of an idle core */
    double start = seconds();
    if (way == 0) sink = fma_chains(FMA_STEPS);
    if (way == 1) sink = read_all(w->from, w->bytes, 0);
    if (way == 2) sink = read_all(w->from, w->bytes, AHEAD);
    if (way == 3) memcpy(w->to, w->from, w->bytes);
    w->took[way] = seconds() - start;
  }
  pthread_barrier_wait(&barrier);
}

static void *work(void *argument) {
  for (;;) {
    pthread_barrier_wait(&barrier);
    if (ended) return NULL;
    measure(argument);
  }
}

int main(int argc, char **argv) {
  int threads = argc == 2 ? atoi(argv[1]) : 0;
  if (threads < 1 || threads > MAX_THREADS) return fprintf(stderr, "usage: limits THREADS (1 .. 64)\n"), 2;
  static Worker workers[MAX_THREADS];
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    Worker *w = &workers[i];
    w->bytes = BYTES / (size_t)threads / PAGE * PAGE;
    w->from = aligned_alloc(PAGE, w->bytes);
    w->to = aligned_alloc(PAGE, w->bytes);
    if (!w->from || !w->to) return fprintf(stderr, "limits: no memory\n"), 1;
    madvise(w->from, w->bytes, MADV_HUGEPAGE);
    madvise(w->to, w->bytes, MADV_HUGEPAGE);
    memset(w->from, 1, w->bytes);
    memset(w->to, 1, w->bytes);
    if (i && pthread_create(&w->thread, NULL, work, w)) return fprintf(stderr, "limits: no thread\n"), 1;
  }
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    pthread_barrier_wait(&barrier);
    measure(&workers[0]);
    double rates[WAYS] = {0};
    const double work[WAYS] = {2.0 * 12 * LANES * FMA_STEPS, 1, 1, 2}; /* the others times the bytes */
    for (int i = 0; i < threads; ++i)
      for (int way = 0; way < WAYS; ++way)
        rates[way] += 1e-9 * work[way] * (way ? (double)workers[i].bytes : 1) / workers[i].took[way];
    printf("%.3f %.3f %.3f\n", rates[0], rates[1] > rates[2] ? rates[1] : rates[2], rates[3]);
    fflush(stdout);
  }
  ended = 1;
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < threads; ++i) {
    if (i) pthread_join(workers[i].thread, NULL);
    free(workers[i].from);
    free(workers[i].to);
  }
  return 0;
}

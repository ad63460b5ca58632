/* transfers.c: what a transfer between two ranks costs (bench/ranks.py --simulated).
 * Prints microseconds of the shortest one, and GB/s of a rank that sends and receives 4 MiB: a row for
 * astra-inspect --machine. The fastest. */
#include <astra/ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
static void must(astra_status status, const astra_diag *diag) {
  if (!status) return;
  fprintf(stderr, "%s\n", diag->text);
  exit(1);
}

int main(void) {
  enum { Rounds = 301, Most = 4 << 20 };
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_ranks *ranks;
  must(astra_ranks_init(&ranks, NULL, &diag), &diag);
  size_t size = (size_t)astra_ranks_size(ranks);
  char *own = aligned_alloc(4096, Most), *all = aligned_alloc(4096, Most * size);
  if (!own || !all) return 1;
  memset(own, 1, Most), memset(all, 0, Most * size);
  double fastest[2] = {1e30, 1e30};
  for (int way = 0; way < 2; way++) {
    uint64_t bytes = way ? Most : 64;
    for (int r = 0; r < Rounds; r++) {
      must(astra_ranks_barrier(ranks, &diag), &diag);
      double begin = now();
      must(astra_ranks_gather(ranks, own, bytes, all, &diag), &diag);
      double took = now() - begin;
      if (took < fastest[way]) fastest[way] = took;
    }
  }
  if (astra_ranks_rank(ranks) == 0) printf("%.2f,%.3f\n", fastest[0], Most / (fastest[1] - fastest[0]) / 1e3);
  free(own), free(all);
  astra_ranks_free(&ranks);
  return 0;
}

// worker.c: gathers a thousand times, says who it is; with an argument, rank 1 aborts.
#include <astra/ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
  astra_ranks *r;
  astra_diag d = ASTRA_INIT(astra_diag);
  if (astra_ranks_init(&r, NULL, &d)) {
    fprintf(stderr, "%s\n", d.text);
    return 9;
  }
  int me = astra_ranks_rank(r), n = astra_ranks_size(r);
  int *all = malloc(4 * n);
  for (int k = 0; k < 1000; k++)
    if (astra_ranks_gather(r, &me, 4, all, &d)) {
      fprintf(stderr, "%s\n", d.text);
      return 8;
    }
  int sum = 0;
  for (int i = 0; i < n; i++) sum += all[i];
  printf("rank %d of %d, %s: %d\n", me, n, astra_ranks_engine(r), sum);
  if (argc > 1 && me == 1) abort();
  if (astra_ranks_barrier(r, &d)) {
    fprintf(stderr, "%s\n", d.text);
    return 7;
  }
  astra_ranks_free(&r);
  return 0;
}

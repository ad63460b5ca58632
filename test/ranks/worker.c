/* worker.c: one rank. Gathers a thousand times and says who it is. Arguments, of rank 1 alone: "abort" ends it by a
 * signal then, "leave" by exit code 0, "hang" stops it. Exit code: 0, or the status of the first failure. */
#include <astra/ranks.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const astra_diag *diag) {
  fprintf(stderr, "%s: %s\n", astra_status_name(diag->status), diag->text);
  return diag->status;
}

int main(int argc, char **argv) {
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_ranks_options options = ASTRA_INIT(astra_ranks_options);
  astra_ranks *ranks;
  if (!getenv("ASTRA_RANKS_TIMEOUT")) options.timeout = 2000;
  if (astra_ranks_init(&ranks, &options, &diag)) return failed(&diag);
  int32_t rank = astra_ranks_rank(ranks), count = astra_ranks_size(ranks), sum = 0;
  int32_t *all = malloc(sizeof(int32_t) * (size_t)count);
  for (int i = 0; all && i < 1000; i++) {
    int32_t mine = rank * 1000 + i;
    if (astra_ranks_gather(ranks, &mine, sizeof(mine), all, &diag)) return failed(&diag);
    for (int32_t r = 0; r < count; r++) sum += all[r] == r * 1000 + i;
  }
  free(all);
  printf("rank %d of %d, %s: %d\n", rank, count, astra_ranks_engine(ranks), sum);
  fflush(stdout);
  if (argc > 1 && rank == 1) {
    if (!strcmp(argv[1], "abort")) abort();
    if (!strcmp(argv[1], "leave")) return 0;
    if (!strcmp(argv[1], "hang")) raise(SIGSTOP);
  }
  if (astra_ranks_barrier(ranks, &diag)) return failed(&diag);
  astra_ranks_free(&ranks);
  return 0;
}

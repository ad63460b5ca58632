/* ranks.c: a sum of two ranks or more, beside MPI_Allreduce of the MPI library under which it runs (bench/ranks.py).
 * Prints a line a size: bytes, and the median microseconds of each way. The ways take turns. */
#include <astra/ranks.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static void must(astra_status status, const astra_diag *diag) {
  if (!status) return;
  fprintf(stderr, "%s\n", diag->text);
  exit(1);
}

int main(void) {
  astra_diag diag = ASTRA_INIT(astra_diag);
  astra_ranks_options options = ASTRA_INIT(astra_ranks_options);
  astra_ranks *mpi, *shm;
  options.engine = "mpi"; /* begins MPI */
  must(astra_ranks_init(&mpi, &options, &diag), &diag);
  options.engine = "shm";
  must(astra_ranks_init(&shm, &options, &diag), &diag);
  int (*allreduce)(const void *, void *, int, void *, void *, void *) = NULL;
  void *symbol = dlsym(RTLD_DEFAULT, "MPI_Allreduce");
  memcpy(&allreduce, &symbol, sizeof(symbol));
  void *world = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world"), *type = dlsym(RTLD_DEFAULT, "ompi_mpi_float"),
       *sum = dlsym(RTLD_DEFAULT, "ompi_mpi_op_sum");
  if (!world) /* MPICH: numbers */
    world = (void *)0x44000000, type = (void *)0x4c00040a, sum = (void *)0x58000003;
  enum { Ways = 3, Most = 101 };
  size_t most = (size_t)64 << 20;
  float *x = aligned_alloc(4096, most), *y = aligned_alloc(4096, most);
  for (size_t i = 0; i < most / 4; i++) x[i] = (float)(i % 1000), y[i] = 0;
  for (size_t bytes = 1024; bytes <= most; bytes *= 4) {
    double times[Ways][Most];
    int rounds = bytes <= 65536 ? 101 : bytes <= 4194304 ? 41 : 15, inner = bytes <= 16384 ? 20 : 1;
    for (int r = -2; r < rounds; r++)
      for (int way = 0; way < Ways; way++) {
        must(astra_ranks_barrier(shm, &diag), &diag);
        double begin = now();
        for (int k = 0; k < inner; k++) {
          if (way == 0) must(astra_ranks_sum(shm, ASTRA_F32, bytes / 4, x, y, &diag), &diag);
          if (way == 1) must(astra_ranks_sum(mpi, ASTRA_F32, bytes / 4, x, y, &diag), &diag);
          if (way == 2) allreduce(x, y, (int)(bytes / 4), type, sum, world);
        }
        if (r >= 0) times[way][r] = (now() - begin) / inner;
      }
    for (int way = 0; way < Ways; way++) qsort(times[way], (size_t)rounds, sizeof(double), ascending);
    if (astra_ranks_rank(shm) == 0)
      printf("%zu %.2f %.2f %.2f\n", bytes, times[0][rounds / 2], times[1][rounds / 2], times[2][rounds / 2]);
  }
  free(x), free(y);
  astra_ranks_free(&shm);
  astra_ranks_free(&mpi);
  return 0;
}

/*===- matmul.c: a matrix product beside the rate of FMA instructions -------===
 * Takes:    a bundle whose entry @main multiplies two f32 matrices of N x N into one, one or both of them inputs; N; a
 *           number of rounds.
 * Gives:    one line per round: GFLOP/s of FMA instructions alone, then of the entry; a last line of FMAs alone. CPU
 *           time of one thread; so each product stands between two measurements of the same core.
 * Keeps:    the FMA loop touches no memory and has more independent chains than an FMA takes cycles.
 * Does not: check the product (the tests do).
 */
#include "astra/astra.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

static double cpuSeconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Twelve chains: two FMAs a cycle of four cycles each need eight; with two operands they fit 16 registers. */
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

/* Read after the first time and written before the second, so that the loop stays between them. */
static volatile float factor = 0.5f, sink;

static double fmaRate(long steps) {
  double start = cpuSeconds();
  vector x = factor - (vector){0}, y = x + 1.0f;
#define BEGIN(i) vector a##i = y + (float)i;
#define STEP(i) a##i = a##i * x + y;
#define END(i) x += a##i;
  CHAINS(BEGIN)
  for (long s = 0; s < steps; ++s) {
    CHAINS(STEP)
  }
  CHAINS(END)
  sink = x[0];
  return 2.0 * 12 * LANES * (double)steps / (cpuSeconds() - start) * 1e-9;
}

static astra_diag diag = ASTRA_INIT(astra_diag);

static void check(astra_status s) {
  if (s == ASTRA_OK) return;
  fprintf(stderr, "matmul: %s\n", diag.text);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: matmul FILE.astra N ROUNDS\n"), 2;
  int64_t n = atoll(argv[2]), rounds = atoll(argv[3]), shape[2] = {n, n};
  astra_runtime *runtime = NULL;
  astra_device *device = NULL;
  astra_stream *stream = NULL;
  astra_bundle *bundle = NULL;
  astra_loaded *loaded = NULL;
  astra_session *session = NULL;
  const astra_entry *entry = NULL;
  check(astra_runtime_init(&runtime, NULL, &diag));
  check(astra_device_init(&device, runtime, "cpu", NULL, &diag));
  check(astra_stream_init(&stream, device, &diag));
  check(astra_bundle_init_file(&bundle, runtime, argv[1], NULL, &diag));
  check(astra_bundle_find_entry(bundle, "main", &entry, &diag));
  check(astra_loaded_init(&loaded, bundle, &device, 1, &diag));
  check(astra_session_init(&session, loaded, NULL, &diag));

  astra_entry_info info = ASTRA_INIT(astra_entry_info);
  check(astra_entry_get_info(entry, &info));
  size_t bytes = (size_t)(n * n) * sizeof(float);
  astra_tensor tensors[3]; /* at most two inputs, then the output */
  for (int i = 0; i < 3; ++i) {
    float *data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!data) return fprintf(stderr, "matmul: no memory\n"), 1;
    for (int64_t k = 0; k < n * n; ++k) data[k] = (float)(k * 2654435761u % 2048) / 1024.0f - 1.0f;
    astra_tensor t = ASTRA_INIT(astra_tensor);
    t.data = data, t.data_bytes = bytes, t.dtype = ASTRA_F32, t.ndim = 2, t.shape = shape;
    tensors[i] = t;
  }
  astra_call call = ASTRA_INIT(astra_call);
  call.entry = entry;
  call.inputs = tensors, call.num_inputs = info.num_inputs;
  call.outputs = tensors + 2, call.num_outputs = 1;

  double flops = 2.0 * (double)n * (double)n * (double)n;
  long steps = 10000000 / LANES, calls = 1 + (long)(1e10 / flops);
  fmaRate(steps); /* out of the low clock of an idle core */
  for (int64_t r = 0; r <= rounds; ++r) {
    printf("%.2f", fmaRate(steps));
    if (r < rounds) {
      double start = cpuSeconds();
      for (long i = 0; i < calls; ++i) check(astra_session_submit(session, stream, &call, NULL, &diag));
      printf(" %.2f", flops * (double)calls / (cpuSeconds() - start) * 1e-9);
    }
    printf("\n");
  }
  for (int i = 0; i < 3; ++i) free(tensors[i].data);
  astra_session_free(&session);
  astra_loaded_free(&loaded);
  astra_bundle_free(&bundle);
  astra_stream_free(&stream);
  astra_device_free(&device);
  return astra_runtime_free(&runtime) != ASTRA_OK;
}

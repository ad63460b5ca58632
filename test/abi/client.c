/*===- client.c: a client of the C API, valid C99 and C++17 -----------------===
 * Takes:    a bundle's path, a number of threads, a level or "best".
 * Gives:    the target and one hash over all output bytes; exit code 1 with the sentence of what went wrong.
 * Keeps:    nothing but astra.h and the C library: compiled by gcc, g++, clang and for aarch64, against the static and
 * the shared library, it must print the same hash everywhere. Does not: test refusals (test/unit/runtime).
 */
#include "astra/astra.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static astra_diag diag = {sizeof(astra_diag), 0, ""};
static uint64_t hash = 0xcbf29ce484222325u;

static void check(astra_status status, const char *what) {
  if (status == ASTRA_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, astra_status_name(status), diag.text);
  exit(1);
}

static void feed(const void *data, size_t bytes) {
  const unsigned char *p = (const unsigned char *)data;
  size_t i;
  for (i = 0; i < bytes; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
}

static astra_tensor tensor(float *data, size_t count, const int64_t *shape, int32_t ndim) {
  astra_tensor t;
  memset(&t, 0, sizeof(t));
  t.size = sizeof(t);
  t.data = data;
  t.data_bytes = count * sizeof(float);
  t.dtype = ASTRA_F32;
  t.ndim = ndim;
  t.shape = shape;
  return t;
}

int main(int argc, char **argv) {
  astra_runtime *runtime = NULL;
  astra_device *device = NULL;
  astra_stream *stream = NULL;
  astra_bundle *bundle = NULL;
  astra_loaded *loaded = NULL;
  astra_session *session = NULL;
  astra_promise *promise = NULL;
  const astra_entry *entry = NULL;
  astra_device_options options;
  astra_session_options session_options;
  astra_dim_value dim;
  astra_call call;
  static float x[5000 * 3], y[5000 * 8];
  int64_t n, i;
  if (argc != 4) {
    fprintf(stderr, "usage: client BUNDLE THREADS LEVEL\n");
    return 2;
  }
  memset(&options, 0, sizeof(options));
  options.size = sizeof(options);
  options.num_threads = (uint32_t)atoi(argv[2]);
  options.level = strcmp(argv[3], "best") == 0 ? NULL : argv[3];
  check(astra_runtime_init(&runtime, NULL, &diag), "runtime");
  check(astra_device_init(&device, runtime, "cpu", &options, &diag), "device");
  check(astra_stream_init(&stream, device, &diag), "stream");
  check(astra_bundle_init_file(&bundle, runtime, argv[1], NULL, &diag), "bundle");
  check(astra_loaded_init(&loaded, bundle, &device, 1, &diag), "loaded");
  dim.name = "cap";
  dim.value = 8;
  memset(&session_options, 0, sizeof(session_options));
  session_options.size = sizeof(session_options);
  session_options.dims = &dim;
  session_options.num_dims = 1;
  check(astra_session_init(&session, loaded, &session_options, &diag), "session");
  check(astra_bundle_find_entry(bundle, "apply", &entry, &diag), "entry");
  for (n = 0; n <= 5000; n = 3 * n + 1) {
    int64_t in[2], out[2];
    uint64_t bytes;
    astra_tensor input, output;
    in[0] = n;
    in[1] = 3;
    for (i = 0; i < 3 * n; i++) x[i] = (float)((i * 2654435761u) % 1000) / 1000.0f;
    input = tensor(x, sizeof(x) / sizeof(*x), in, 2);
    check(astra_entry_output_bound(entry, session, &input, 1, 0, out, NULL, &bytes, &diag), "bound");
    output = tensor(y, sizeof(y) / sizeof(*y), out, 2);
    memset(&call, 0, sizeof(call));
    call.size = sizeof(call);
    call.entry = entry;
    call.inputs = &input;
    call.num_inputs = 1;
    call.outputs = &output;
    call.num_outputs = 1;
    check(astra_session_submit(session, stream, &call, &promise, &diag), "submit");
    check(astra_promise_wait(promise, &diag), "wait");
    check(astra_promise_free(&promise), "promise");
    feed(y, (size_t)bytes);
  }
  printf("%016llx %s\n", (unsigned long long)hash, astra_loaded_target(loaded));
  check(astra_session_free(&session), "free session");
  check(astra_loaded_free(&loaded), "free loaded");
  check(astra_bundle_free(&bundle), "free bundle");
  check(astra_stream_free(&stream), "free stream");
  check(astra_device_free(&device), "free device");
  check(astra_runtime_free(&runtime), "free runtime");
  return 0;
}

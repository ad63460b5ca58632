/*===- ours.c: one entry of a bundle, as a process that answers -------------===
 * Takes:    a bundle, the name of an entry, a number of threads; on stdin, commands, one a line:
 *             input NAME DTYPE BYTES RANK EXTENTS... FILE    an input from a file of raw bytes
 *             open                                           loads the bundle and calls the entry once
 *             output NAME FILE                               writes the bytes of an output of the last call
 *             run N PARTS                                    calls the entry N times a part, after one untimed call
 *             trace                                          calls it once, timed kernel by kernel
 * Gives:    one line for each command: "ok ..." or "error SENTENCE". open: seconds from the start of the runtime to the
 *           first result. output: the number of its dtype and its extents. run: wall seconds and CPU seconds of each
 *           part. trace: lines "kernel NAME SECONDS FLOPS BYTES" before its "ok".
 * Keeps:    to astra.h, as any C program; nothing is allocated between the calls of a run.
 * Does not: check results.
 */
#include "astra/astra.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MOST = 512, NAME = 128 };

typedef struct Tensor {
  char name[NAME];
  int64_t shape[ASTRA_MAX_RANK];
  astra_tensor tensor;
} Tensor;

static astra_diag diag = ASTRA_INIT(astra_diag);
static astra_runtime *runtime;
static astra_device *device;
static astra_stream *stream;
static astra_bundle *bundle;
static astra_loaded *loaded;
static astra_session *session;
static astra_call call = ASTRA_INIT(astra_call);
static Tensor inputs[MOST], outputs[MOST];
static astra_tensor in[MOST], out[MOST];
static int num_inputs, num_outputs;

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int failed(astra_status s) {
  if (s != ASTRA_OK) printf("error %s: %s\n", astra_status_name(s), diag.text);
  return s != ASTRA_OK;
}

static int no(const char *sentence) {
  printf("error %s\n", sentence);
  return 1;
}

/* Large arrays in huge pages, as numpy's are, which the peers get. */
static void *memory(uint64_t bytes) {
  enum { HUGE = 2 << 20 };
  uint64_t unit = bytes < 2 * HUGE ? 64 : HUGE;
  uint64_t all = (bytes + unit) / unit * unit;
  void *got = aligned_alloc(unit, all);
  if (got && unit == HUGE) madvise(got, all, MADV_HUGEPAGE);
  return got;
}

static int read_input(char *line) {
  if (num_inputs == MOST) return no("more inputs than this program holds");
  Tensor *t = &inputs[num_inputs];
  t->tensor = (astra_tensor)ASTRA_INIT(astra_tensor);
  int at = 0, used;
  unsigned long long bytes;
  if (sscanf(line, "%127s %d %llu %d%n", t->name, &t->tensor.dtype, &bytes, &t->tensor.ndim, &at) != 4 ||
      t->tensor.ndim > ASTRA_MAX_RANK)
    return no("input: not understood");
  for (int i = 0; i < t->tensor.ndim; ++i, at += used) {
    long long extent;
    if (sscanf(line + at, "%lld%n", &extent, &used) != 1) return no("input: an extent is missing");
    t->shape[i] = extent;
  }
  char *path = line + at + strspn(line + at, " ");
  t->tensor.shape = t->shape;
  t->tensor.data_bytes = bytes;
  t->tensor.data = memory(bytes);
  FILE *file = fopen(path, "rb");
  if (!file || !t->tensor.data || fread(t->tensor.data, 1, bytes, file) != bytes) return no("input: the file is short");
  fclose(file);
  ++num_inputs;
  return 0;
}

static int call_once(void) {
  astra_promise *promise = NULL;
  if (failed(astra_session_submit(session, stream, &call, &promise, &diag))) return 1;
  astra_status s = astra_promise_wait(promise, &diag);
  astra_promise_free(&promise);
  return failed(s);
}

static int place_tensors(const astra_entry *entry) {
  astra_entry_info info = ASTRA_INIT(astra_entry_info);
  if (failed(astra_entry_get_info(entry, &info))) return 1;
  if (info.num_inputs != (uint32_t)num_inputs) return no("the entry has another number of inputs");
  if (info.num_outputs > MOST) return no("more outputs than this program holds");
  for (int i = 0; i < num_inputs; ++i) {
    uint32_t index;
    if (failed(astra_entry_find_input(entry, inputs[i].name, &index, &diag))) return 1;
    in[index] = inputs[i].tensor;
  }
  num_outputs = (int)info.num_outputs;
  for (int i = 0; i < num_outputs; ++i) {
    Tensor *t = &outputs[i];
    astra_tensor_info told = ASTRA_INIT(astra_tensor_info);
    uint64_t bytes;
    t->tensor = (astra_tensor)ASTRA_INIT(astra_tensor);
    if (failed(astra_entry_get_output(entry, (uint32_t)i, &told)) ||
        failed(astra_entry_output_bound(entry, session, in, info.num_inputs, (uint32_t)i, t->shape, &t->tensor.ndim,
                                        &bytes, &diag)))
      return 1;
    snprintf(t->name, NAME, "%s", told.name);
    t->tensor.dtype = told.dtype;
    t->tensor.shape = t->shape;
    t->tensor.data_bytes = bytes;
    t->tensor.data = memory(bytes);
    out[i] = t->tensor;
  }
  call.entry = entry;
  call.inputs = in, call.num_inputs = info.num_inputs;
  call.outputs = out, call.num_outputs = info.num_outputs;
  return 0;
}

static int open_bundle(const char *path, const char *name, int threads) {
  double start = now(CLOCK_MONOTONIC);
  astra_device_options options = ASTRA_INIT(astra_device_options);
  options.num_threads = (uint32_t)threads;
  const astra_entry *entry = NULL;
  if (failed(astra_runtime_init(&runtime, NULL, &diag)) ||
      failed(astra_device_init(&device, runtime, "cpu", &options, &diag)) ||
      failed(astra_stream_init(&stream, device, &diag)) ||
      failed(astra_bundle_init_file(&bundle, runtime, path, NULL, &diag)) ||
      failed(astra_bundle_find_entry(bundle, name, &entry, &diag)) ||
      failed(astra_loaded_init(&loaded, bundle, &device, 1, &diag)) ||
      failed(astra_session_init(&session, loaded, NULL, &diag)) || place_tensors(entry) || call_once())
    return 1;
  printf("ok %.9f %s\n", now(CLOCK_MONOTONIC) - start, astra_loaded_target(loaded));
  return 0;
}

static int write_output(char *line) {
  char *path = strchr(line, ' ');
  if (!path) return no("output: not understood");
  *path++ = 0;
  for (int i = 0; i < num_outputs; ++i) {
    if (strcmp(outputs[i].name, line)) continue;
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(out[i].data, 1, out[i].data_bytes, file) != out[i].data_bytes || fclose(file))
      return no("output: the file could not be written");
    printf("ok %d", out[i].dtype);
    for (int k = 0; k < out[i].ndim; ++k) printf(" %lld", (long long)out[i].shape[k]);
    printf("\n");
    return 0;
  }
  return no("output: there is none of this name");
}

static int run(const char *line) {
  long times, parts;
  if (sscanf(line, "%ld %ld", &times, &parts) != 2 || parts > MOST) return no("run: not understood");
  double wall[MOST], cpu[MOST];
  if (call_once()) return 1;
  for (long p = 0; p < parts; ++p) {
    wall[p] = now(CLOCK_MONOTONIC), cpu[p] = now(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < times; ++i)
      if (call_once()) return 1;
    wall[p] = now(CLOCK_MONOTONIC) - wall[p], cpu[p] = now(CLOCK_PROCESS_CPUTIME_ID) - cpu[p];
  }
  printf("ok");
  for (long p = 0; p < parts; ++p) printf(" %.9f %.9f", wall[p], cpu[p]);
  printf("\n");
  return 0;
}

static void print_kernel(void *self, const astra_trace_event *e) {
  (void)self;
  printf("kernel %s %.9f %lld %lld\n", e->name, 1e-9 * (double)(e->end_ns - e->begin_ns), (long long)e->flops,
         (long long)e->bytes);
}

static int trace(void) {
  if (call_once() || failed(astra_session_set_trace(session, print_kernel, NULL)) || call_once() ||
      failed(astra_session_set_trace(session, NULL, NULL)))
    return 1;
  printf("ok\n");
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: ours FILE.astra ENTRY THREADS\n"), 2;
  static char line[4096];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "input ", 6) && !read_input(line + 6)) printf("ok\n");
    if (!strcmp(line, "open")) open_bundle(argv[1], argv[2], atoi(argv[3]));
    if (!strncmp(line, "output ", 7)) write_output(line + 7);
    if (!strncmp(line, "run ", 4)) run(line + 4);
    if (!strcmp(line, "trace")) trace();
    fflush(stdout);
  }
  for (int i = 0; i < num_inputs; ++i) free(inputs[i].tensor.data);
  for (int i = 0; i < num_outputs; ++i) free(outputs[i].tensor.data);
  astra_session_free(&session);
  astra_loaded_free(&loaded);
  astra_bundle_free(&bundle);
  astra_stream_free(&stream);
  astra_device_free(&device);
  return astra_runtime_free(&runtime) != ASTRA_OK;
}

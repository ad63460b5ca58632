/*===- chargpt_train.c: a training loop in C, on one device or as a rank of several ---===
 * Takes:    a bundle of examples/chargpt/chargpt.onnx with train_step, with or without a mesh; a text.
 * Gives:    the loss of each step, and a checksum of the weights, which do not depend on the number of ranks.
 * Keeps:    to C11, the C library, astra.h and ranks.h. The program is the same for one device and for a mesh: a
 * process that was started alone is the only rank, and a bundle without a mesh is one shard.
 *
 *     chargpt-train chargpt.astra TEXT [STEPS]         astra-launch -n 4 chargpt-train chargpt.astra TEXT [STEPS]
 */
#include <astra/ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8, CONTEXT = 128, CHARACTERS = 96 };

static astra_diag diag = {.size = sizeof(astra_diag)};

static void check(astra_status status) {
  if (status == ASTRA_OK) return;
  fprintf(stderr, "chargpt-train: %s: %s\n", astra_status_name(status), diag.text);
  exit(1);
}

/* Fills `in` with this rank's part of a logical input; its memory is made in the first step. */
static void take(const astra_mesh *mesh, const char *name, const void *logical, uint32_t element, astra_tensor *in,
                 int64_t *shape) {
  static const int64_t whole[2] = {ROWS, CONTEXT};
  astra_mesh_cut cut = ASTRA_INIT(astra_mesh_cut);
  check(astra_mesh_get_cut(mesh, ASTRA_MESH_INPUT, "train_step", name, &cut));
  int64_t local = cut.is_whole ? 1 : astra_mesh_local_shards(mesh), rows = cut.is_whole ? ROWS : ROWS / cut.parts[0];
  in->data_bytes = (uint64_t)(local * rows * CONTEXT) * element;
  if (!in->data && !(in->data = malloc(in->data_bytes))) check(ASTRA_OUT_OF_MEMORY);
  in->ndim = 0;
  if (!cut.is_whole) shape[in->ndim++] = local;
  shape[in->ndim++] = rows, shape[in->ndim++] = CONTEXT;
  in->shape = shape;
  check(astra_mesh_take(mesh, ASTRA_MESH_INPUT, "train_step", name, element, 2, whole, logical, in->data,
                        in->data_bytes, &diag));
}

int main(int argc, char **argv) {
  long steps = argc > 3 ? atol(argv[3]) : 10;
  FILE *file = argc > 2 ? fopen(argv[2], "rb") : NULL;
  if (!file || steps < 1) return fprintf(stderr, "usage: chargpt-train BUNDLE TEXT [STEPS]\n"), 2;
  static unsigned char text[1 << 20];
  size_t length = fread(text, 1, sizeof text, file);
  fclose(file);
  if (length < ROWS * CONTEXT + 1) return fprintf(stderr, "chargpt-train: the text is too short\n"), 1;

  astra_ranks *ranks;
  astra_runtime *runtime;
  astra_device *device;
  astra_bundle *bundle;
  astra_mesh *mesh;
  astra_loaded *loaded;
  astra_session *session;
  astra_stream *stream;
  const astra_entry *entry;
  check(astra_ranks_init(&ranks, NULL, &diag));
  check(astra_runtime_init(&runtime, NULL, &diag));
  check(astra_device_init(&device, runtime, "cpu", NULL, &diag));
  check(astra_bundle_init_file(&bundle, runtime, argv[1], NULL, &diag));
  check(astra_mesh_init(&mesh, ranks, runtime, bundle, &diag)); /* before the bundle is loaded, which calls it */
  check(astra_loaded_init(&loaded, bundle, &device, 1, &diag));
  check(astra_session_init(&session, loaded, NULL, &diag));
  check(astra_stream_init(&stream, device, &diag));
  check(astra_bundle_find_entry(bundle, "train_step", &entry, &diag));

  float loss;
  double rate;
  int64_t shapes[2][3];
  astra_tensor in[2] = {ASTRA_INIT(astra_tensor), ASTRA_INIT(astra_tensor)};
  astra_tensor out[2] = {ASTRA_INIT(astra_tensor), ASTRA_INIT(astra_tensor)};
  in[0].dtype = ASTRA_U8, in[1].dtype = ASTRA_I64;
  out[0].data = &loss, out[0].data_bytes = sizeof loss, out[0].dtype = ASTRA_F32;
  out[1].data = &rate, out[1].data_bytes = sizeof rate, out[1].dtype = ASTRA_F64;
  for (long step = 0; step < steps; ++step) {
    static unsigned char token[ROWS * CONTEXT];
    static int64_t target[ROWS * CONTEXT]; /* the character behind each */
    size_t at = (size_t)step * 977 % (length - ROWS * CONTEXT);
    for (size_t i = 0; i < ROWS * CONTEXT; ++i) token[i] = text[at + i] % CHARACTERS;
    for (size_t i = 0; i < ROWS * CONTEXT; ++i) target[i] = text[at + i + 1] % CHARACTERS;
    take(mesh, "token", token, sizeof *token, &in[0], shapes[0]);
    take(mesh, "target", target, sizeof *target, &in[1], shapes[1]);
    astra_call call = ASTRA_INIT(astra_call);
    call.entry = entry, call.inputs = in, call.num_inputs = 2, call.outputs = out, call.num_outputs = 2;
    astra_promise *done;
    check(astra_session_submit(session, stream, &call, &done, &diag));
    check(astra_promise_wait(done, &diag));
    check(astra_promise_free(&done));
    if (astra_ranks_rank(ranks) == 0) printf("step %ld, loss %.6f\n", step + 1, (double)loss);
  }

  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  check(astra_bundle_get_info(bundle, &info));
  uint64_t sum = 0xcbf29ce484222325u; /* FNV-1a */
  for (uint32_t i = 0; i < info.num_states; ++i) {
    astra_tensor_info state = ASTRA_INIT(astra_tensor_info);
    const void *data;
    uint64_t bytes;
    check(astra_bundle_get_state(bundle, i, &state));
    check(astra_session_lease_state(session, state.name, &data, &bytes, &diag));
    for (uint64_t k = 0; k < bytes; ++k) sum = (sum ^ ((const unsigned char *)data)[k]) * 0x100000001b3u;
    check(astra_session_return_state(session, state.name, &diag));
  }
  if (astra_ranks_rank(ranks) == 0) printf("states %016llx\n", (unsigned long long)sum);

  astra_stream_free(&stream);
  astra_session_free(&session);
  astra_loaded_free(&loaded);
  astra_mesh_free(&mesh);
  astra_bundle_free(&bundle);
  astra_device_free(&device);
  astra_runtime_free(&runtime);
  astra_ranks_free(&ranks);
  free(in[0].data), free(in[1].data);
  return 0;
}

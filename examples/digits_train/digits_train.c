/*===- digits_train.c: a network is trained by a C program ----------------------===
 * Takes:    a bundle compiled from digits.onnx with --train, images and labels as .npy (u8).
 * Gives:    the loss and the accuracy on the held-out images, one hash of all weights; with --save all states, from
 * which another process goes on (--load, --first-epoch) to the same bytes. Keeps:    to C11, the C library and astra.h;
 * every status is checked. The order of the rows is astra-train's (docs/training.md), so the weights have the same
 * bytes. Does not: know the network, the loss or the optimizer: they are in the bundle.
 *
 *     digits_train digits.astra train_images.npy train_labels.npy heldout_images.npy heldout_labels.npy
 *         [--epochs N] [--first-epoch N] [--batch N] [--seed N] [--level L] [--threads N]
 *         [--load STATES.safetensors] [--save STATES.safetensors]
 */
#include "../digits/npy.h"
#include "../digits/sha256.h"
#include "../digits/threefry.h"
#include "astra/astra.h"
#include "safetensors.h"

enum { PIXELS = 8 * 8, CLASSES = 10, MOST_ROWS = 64 };

static astra_diag diag = {.size = sizeof(astra_diag)};

static void die(const char *what) {
  fprintf(stderr, "digits_train: %s\n", what);
  exit(1);
}

static void check(astra_status status) {
  if (status != ASTRA_OK) die(diag.text[0] ? diag.text : astra_status_name(status));
}

static unsigned char *load(const char *path, size_t *bytes) {
  const char *why;
  unsigned char *data = read_npy(path, "|u1", bytes, &why);
  if (!data) die(why);
  return data;
}

/* The rows in the order of an epoch; the first epoch is 1. */
static void shuffle(uint32_t seed, uint32_t epoch, uint32_t *order, uint32_t rows) {
  for (uint32_t i = 0; i < rows; ++i) order[i] = i;
  for (uint32_t i = 0; i + 1 < rows; ++i) {
    uint32_t j = i + (uint32_t)((uint64_t)random_word(seed, 0x80000000u + epoch, i) * (rows - i) >> 32);
    uint32_t row = order[i];
    order[i] = order[j];
    order[j] = row;
  }
}

static astra_tensor tensor(void *data, size_t bytes, int32_t dtype, int32_t ndim, const int64_t *shape) {
  astra_tensor t = ASTRA_INIT(astra_tensor);
  t.data = data;
  t.data_bytes = bytes;
  t.dtype = dtype;
  t.ndim = ndim;
  t.shape = shape;
  return t;
}

static astra_session *session;
static astra_stream *stream;

static void call(const astra_entry *entry, const astra_tensor *inputs, uint32_t num_inputs, const astra_tensor *outputs,
                 uint32_t num_outputs) {
  astra_call c = ASTRA_INIT(astra_call);
  astra_promise *done = NULL;
  c.entry = entry;
  c.inputs = inputs;
  c.num_inputs = num_inputs;
  c.outputs = outputs;
  c.num_outputs = num_outputs;
  check(astra_session_submit(session, stream, &c, &done, &diag));
  check(astra_promise_wait(done, &diag));
  check(astra_promise_free(&done));
}

/* One step on the rows order[0] ... order[n - 1]; gives the loss. */
static float step(const astra_entry *entry, const unsigned char *images, const unsigned char *labels,
                  const uint32_t *order, size_t n) {
  static _Alignas(64) unsigned char batch[MOST_ROWS * PIXELS];
  static _Alignas(64) int64_t target[MOST_ROWS];
  static _Alignas(64) float loss;
  static _Alignas(64) double rate;
  int64_t shape[4] = {(int64_t)n, 1, 8, 8};
  for (size_t i = 0; i < n; ++i) {
    memcpy(batch + i * PIXELS, images + order[i] * PIXELS, PIXELS);
    target[i] = labels[order[i]];
  }
  astra_tensor in[2], out[2];
  in[0] = tensor(batch, n * PIXELS, ASTRA_U8, 4, shape);
  in[1] = tensor(target, n * sizeof(int64_t), ASTRA_I64, 1, shape);
  out[0] = tensor(&loss, sizeof loss, ASTRA_F32, 0, NULL);
  out[1] = tensor(&rate, sizeof rate, ASTRA_F64, 0, NULL);
  call(entry, in, 2, out, 2);
  return loss;
}

/* The mean loss and accuracy of all images, by the entry eval. */
static void evaluate(const astra_entry *entry, unsigned char *images, const unsigned char *labels, size_t rows,
                     double *mean_loss, double *mean_accuracy) {
  static _Alignas(64) float logits[MOST_ROWS * CLASSES], loss, accuracy;
  static _Alignas(64) int64_t target[MOST_ROWS];
  *mean_loss = *mean_accuracy = 0;
  for (size_t first = 0; first < rows; first += MOST_ROWS) {
    size_t n = rows - first < MOST_ROWS ? rows - first : MOST_ROWS;
    int64_t in_shape[4] = {(int64_t)n, 1, 8, 8}, out_shape[2] = {(int64_t)n, CLASSES};
    astra_tensor in[2], out[3];
    for (size_t i = 0; i < n; ++i) target[i] = labels[first + i];
    in[0] = tensor(images + first * PIXELS, n * PIXELS, ASTRA_U8, 4, in_shape);
    in[1] = tensor(target, n * sizeof(int64_t), ASTRA_I64, 1, in_shape);
    out[0] = tensor(logits, n * CLASSES * sizeof(float), ASTRA_F32, 2, out_shape);
    out[1] = tensor(&loss, sizeof loss, ASTRA_F32, 0, NULL);
    out[2] = tensor(&accuracy, sizeof accuracy, ASTRA_F32, 0, NULL);
    call(entry, in, 2, out, 3);
    *mean_loss += (double)loss * (double)n / (double)rows;
    *mean_accuracy += (double)accuracy * (double)n / (double)rows;
  }
}

/* SHA-256 of the weights, which are the states that main uses, in the bundle's order. */
static void hash_weights(const astra_bundle *bundle, const astra_entry *main_entry, char text[65]) {
  astra_bundle_info info = ASTRA_INIT(astra_bundle_info);
  sha256 s;
  sha256_init(&s);
  check(astra_bundle_get_info(bundle, &info));
  for (uint32_t i = 0; i < info.num_states; ++i) {
    astra_tensor_info state = ASTRA_INIT(astra_tensor_info);
    const void *data;
    uint64_t bytes;
    if (astra_entry_uses_state(main_entry, i) != 1) continue;
    check(astra_bundle_get_state(bundle, i, &state));
    check(astra_session_lease_state(session, state.name, &data, &bytes, &diag));
    sha256_add(&s, data, bytes);
    check(astra_session_return_state(session, state.name, &diag));
  }
  sha256_text(&s, text);
}

int main(int argc, char **argv) {
  const char *files[5] = {0}, *level = NULL, *from = NULL, *to = NULL, *wrong;
  size_t given = 0, epochs = 20, first_epoch = 1, batch = 32;
  uint32_t seed = 0, threads = 1;
  for (int i = 1; i < argc; ++i) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "--epochs"))
      epochs = strtoul(value, NULL, 10), ++i;
    else if (!strcmp(argv[i], "--first-epoch"))
      first_epoch = strtoul(value, NULL, 10), ++i;
    else if (!strcmp(argv[i], "--load"))
      from = value, ++i;
    else if (!strcmp(argv[i], "--save"))
      to = value, ++i;
    else if (!strcmp(argv[i], "--batch"))
      batch = strtoul(value, NULL, 10), ++i;
    else if (!strcmp(argv[i], "--seed"))
      seed = (uint32_t)strtoul(value, NULL, 10), ++i;
    else if (!strcmp(argv[i], "--level"))
      level = value, ++i;
    else if (!strcmp(argv[i], "--threads"))
      threads = (uint32_t)strtoul(value, NULL, 10), ++i;
    else if (given < 5)
      files[given++] = argv[i];
  }
  if (given < 5 || batch == 0 || batch > MOST_ROWS) {
    fprintf(stderr,
            "usage: digits_train BUNDLE TRAIN_IMAGES.npy TRAIN_LABELS.npy HELDOUT_IMAGES.npy HELDOUT_LABELS.npy "
            "[--epochs N] [--first-epoch N] [--batch N] [--seed N] [--level L] [--threads N] "
            "[--load STATES.safetensors] [--save STATES.safetensors]\n");
    return 2;
  }
  size_t image_bytes, rows, heldout_bytes, heldout_rows;
  unsigned char *images = load(files[1], &image_bytes), *labels = load(files[2], &rows);
  unsigned char *heldout_images = load(files[3], &heldout_bytes), *heldout_labels = load(files[4], &heldout_rows);
  if (rows == 0 || rows > UINT32_MAX || image_bytes != rows * PIXELS || heldout_bytes != heldout_rows * PIXELS)
    die("images and labels differ in number");
  for (size_t i = 0; i < rows; ++i)
    if (labels[i] >= CLASSES) die("a label is no digit");
  uint32_t *order = malloc(rows * sizeof *order);
  if (!order) die("no memory");

  astra_runtime *runtime = NULL;
  astra_device *device = NULL;
  astra_bundle *bundle = NULL;
  astra_loaded *loaded = NULL;
  const astra_entry *train_step = NULL, *inference = NULL, *eval = NULL;
  astra_device_options options = ASTRA_INIT(astra_device_options);
  options.num_threads = threads;
  options.level = level;
  check(astra_runtime_init(&runtime, NULL, &diag));
  check(astra_device_init(&device, runtime, "cpu", &options, &diag));
  check(astra_bundle_init_file(&bundle, runtime, files[0], NULL, &diag));
  check(astra_bundle_find_entry(bundle, "train_step", &train_step, &diag));
  check(astra_bundle_find_entry(bundle, "main", &inference, &diag));
  check(astra_bundle_find_entry(bundle, "eval", &eval, &diag));
  check(astra_loaded_init(&loaded, bundle, &device, 1, &diag));
  check(astra_session_init(&session, loaded, NULL, &diag));
  check(astra_stream_init(&stream, device, &diag));

  if (from && (wrong = load_states(from, bundle, inference, session, &diag))) die(wrong);
  for (size_t epoch = first_epoch; epoch <= epochs; ++epoch) {
    float loss = 0;
    shuffle(seed, (uint32_t)epoch, order, (uint32_t)rows);
    for (size_t first = 0; first < rows; first += batch)
      loss = step(train_step, images, labels, order + first, rows - first < batch ? rows - first : batch);
    if (epoch == 1 || epoch % 5 == 0) printf("epoch %2u  loss of the last batch %.6f\n", (unsigned)epoch, loss);
  }
  if (to && (wrong = save_states(to, bundle, session, &diag))) die(wrong);
  double loss, accuracy;
  evaluate(eval, heldout_images, heldout_labels, heldout_rows, &loss, &accuracy);
  char hash[65];
  hash_weights(bundle, inference, hash);
  printf("%-14s threads %u  loss %.6f  accuracy %.2f %%  weights %s\n", astra_loaded_target(loaded), threads, loss,
         100 * accuracy, hash);

  check(astra_stream_free(&stream));
  check(astra_session_free(&session));
  check(astra_loaded_free(&loaded));
  check(astra_bundle_free(&bundle));
  check(astra_device_free(&device));
  check(astra_runtime_free(&runtime));
  free(order);
  free(images);
  free(labels);
  free(heldout_images);
  free(heldout_labels);
  return 0;
}

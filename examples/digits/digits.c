/*===- digits.c: handwritten digits, classified by a bundle -----------------===
 * Takes:    a bundle compiled from digits.onnx, images and labels as .npy.
 * Gives:    a few images with their labels, the accuracy, one hash of all output bytes.
 * Keeps:    to C99, the C library and astra.h; every status is checked.
 * Does not: know what is in the bundle beyond the names of its input and output.
 *
 *     digits digits.astra heldout_images.npy heldout_labels.npy [--level L] [--threads N] [--batch N] [--draw N]
 */
#include "astra/astra.h"
#include "npy.h"
#include "sha256.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10 };

static astra_diag diag = {.size = sizeof(astra_diag)};

static void die(const char *what) {
  fprintf(stderr, "digits: %s\n", what);
  exit(1);
}

static void check(astra_status status) {
  if (status != ASTRA_OK) die(diag.text[0] ? diag.text : astra_status_name(status));
}

static unsigned char *load(const char *path, const char *dtype, size_t *bytes) {
  const char *why;
  unsigned char *data = read_npy(path, dtype, bytes, &why);
  if (!data) die(why);
  return data;
}

static int most_likely(const float *probability) {
  int best = 0;
  for (int i = 1; i < CLASSES; ++i)
    if (probability[i] > probability[best]) best = i;
  return best;
}

/* Images side by side, two columns per pixel. */
static void draw(const float *images, const unsigned char *labels, const float *probability, size_t count) {
  for (int y = 0; y < SIDE; ++y) {
    for (size_t i = 0; i < count; ++i) {
      for (int x = 0; x < SIDE; ++x) {
        char c = " .:-=+*#%@"[(int)(images[i * PIXELS + (size_t)(y * SIDE + x)] * 9.0f + 0.5f)];
        printf("%c%c", c, c);
      }
      printf("   ");
    }
    printf("\n");
  }
  for (size_t i = 0; i < count; ++i) printf("label %d, said %d    ", labels[i], most_likely(probability + i * CLASSES));
  printf("\n");
}

int main(int argc, char **argv) {
  const char *files[3] = {0}, *level = NULL;
  size_t given = 0, batch = 64, shown = 0;
  unsigned threads = 1;
  for (int i = 1; i < argc; ++i) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "--level"))
      level = value, ++i;
    else if (!strcmp(argv[i], "--threads"))
      threads = (unsigned)strtoul(value, NULL, 10), ++i;
    else if (!strcmp(argv[i], "--batch"))
      batch = strtoul(value, NULL, 10), ++i;
    else if (!strcmp(argv[i], "--draw"))
      shown = strtoul(value, NULL, 10), ++i;
    else if (given < 3)
      files[given++] = argv[i];
  }
  if (given < 3 || batch == 0 || threads == 0) {
    fprintf(stderr, "usage: digits BUNDLE IMAGES.npy LABELS.npy [--level L] [--threads N] [--batch N] [--draw N]\n");
    return 2;
  }
  size_t image_bytes, count;
  float *images = (float *)(void *)load(files[1], "<f4", &image_bytes);
  unsigned char *labels = load(files[2], "|u1", &count);
  if (count == 0 || image_bytes != count * PIXELS * sizeof(float)) die("images and labels differ in number");
  float *output = malloc(count * CLASSES * sizeof(float));
  if (!output) die("no memory");

  astra_runtime *runtime = NULL;
  astra_device *device = NULL;
  astra_bundle *bundle = NULL;
  astra_loaded *loaded = NULL;
  astra_session *session = NULL;
  astra_stream *stream = NULL;
  const astra_entry *entry = NULL;
  astra_device_options options = ASTRA_INIT(astra_device_options);
  options.num_threads = threads;
  options.level = level;
  check(astra_runtime_init(&runtime, NULL, &diag));
  check(astra_device_init(&device, runtime, "cpu", &options, &diag));
  check(astra_bundle_init_file(&bundle, runtime, files[0], NULL, &diag));
  check(astra_bundle_find_entry(bundle, "main", &entry, &diag));
  check(astra_loaded_init(&loaded, bundle, &device, 1, &diag));
  check(astra_session_init(&session, loaded, NULL, &diag));
  check(astra_stream_init(&stream, device, &diag));

  for (size_t first = 0; first < count; first += batch) {
    size_t n = count - first < batch ? count - first : batch;
    int64_t in_shape[4] = {(int64_t)n, 1, SIDE, SIDE}, out_shape[2] = {(int64_t)n, CLASSES};
    astra_tensor in = ASTRA_INIT(astra_tensor), out = ASTRA_INIT(astra_tensor);
    in.data = images + first * PIXELS;
    in.data_bytes = n * PIXELS * sizeof(float);
    in.dtype = ASTRA_F32;
    in.ndim = 4;
    in.shape = in_shape;
    out.data = output + first * CLASSES;
    out.data_bytes = n * CLASSES * sizeof(float);
    out.dtype = ASTRA_F32;
    out.ndim = 2;
    out.shape = out_shape;
    astra_call call = ASTRA_INIT(astra_call);
    call.entry = entry;
    call.inputs = &in;
    call.num_inputs = 1;
    call.outputs = &out;
    call.num_outputs = 1;
    astra_promise *done = NULL;
    check(astra_session_submit(session, stream, &call, &done, &diag));
    check(astra_promise_wait(done, &diag));
    check(astra_promise_free(&done));
  }

  size_t right = 0;
  for (size_t i = 0; i < count; ++i) right += most_likely(output + i * CLASSES) == labels[i];
  char hash[65];
  sha256 s;
  sha256_init(&s);
  sha256_add(&s, output, count * CLASSES * sizeof(float));
  sha256_text(&s, hash);
  if (shown) draw(images, labels, output, shown < count ? shown : count);
  printf("%-14s threads %u  batch %-3u accuracy %.1f %%  sha256 %s\n", astra_loaded_target(loaded), threads,
         (unsigned)batch, 100.0 * (double)right / (double)count, hash);

  check(astra_stream_free(&stream));
  check(astra_session_free(&session));
  check(astra_loaded_free(&loaded));
  check(astra_bundle_free(&bundle));
  check(astra_device_free(&device));
  check(astra_runtime_free(&runtime));
  free(output);
  free(labels);
  free(images);
  return 0;
}

/*===- chargpt.c: a network writes text, one character after the other ---------===
 * Takes:    a bundle compiled from decode.onnx and the trained weights.
 * Gives:    the prompt and what follows it.
 * Keeps:    to C11, the C library and astra.h; every status is checked. The text is a function of the bundle and the
 *           command line: probabilities are computed by the bundle, random numbers by counting.
 * Does not: compute a character twice, until the context is full: then its second half is read again.
 *
 *     chargpt decode.astra [--prompt TEXT] [--length N] [--temperature T] [--seed N] [--level L] [--threads N]
 *
 * A temperature of 0 takes the most likely character each time.
 */
#include "../digits/threefry.h"
#include "astra/astra.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHARACTERS = 96, CONTEXT = 128, LAYERS = 6, HEADS = 4, HEAD = 32, ROWS = LAYERS * 2 * HEADS * HEAD };

static astra_diag diag = {.size = sizeof(astra_diag)};

static void die(const char *what) {
  fprintf(stderr, "chargpt: %s\n", what);
  exit(1);
}

static void check(astra_status status) {
  if (status != ASTRA_OK) die(diag.text[0] ? diag.text : astra_status_name(status));
}

/* A line feed is 0, the characters from space to tilde are 1 to 95. */
static unsigned char number_of(char c) {
  if (c == '\n') return 0;
  if (c < ' ' || c > '~') die("the prompt has a character that is neither a line feed nor of ASCII's printable ones");
  return (unsigned char)(c - ' ' + 1);
}

static void print_character(unsigned char number) { putchar(number ? number + ' ' - 1 : '\n'); }

static astra_tensor tensor(void *data, uint64_t bytes, int32_t dtype, int32_t ndim, const int64_t *shape) {
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
static const astra_entry *decode;

/* Keys and values of the characters read so far, in one of two buffers: a step reads one and writes the other. */
static _Alignas(64) float cache[2][ROWS * CONTEXT];
static int now;
static int64_t filled;
static _Alignas(64) float probability[CHARACTERS];

/* One character more is read; `probability` is that of the next one. */
static void read_character(unsigned char character, float temperature) {
  static _Alignas(64) unsigned char token[64];
  static _Alignas(64) float heat[16], logits[CHARACTERS];
  int64_t one[2] = {1, 1}, characters[1] = {CHARACTERS};
  int64_t past[6] = {LAYERS, 2, 1, HEADS, filled, HEAD}, present[6] = {LAYERS, 2, 1, HEADS, filled + 1, HEAD};
  astra_call call = ASTRA_INIT(astra_call);
  astra_promise *done = NULL;
  astra_tensor in[3], out[3];
  token[0] = character;
  heat[0] = temperature;
  in[0] = tensor(token, 1, ASTRA_U8, 2, one);
  in[1] = tensor(cache[now], sizeof(float) * ROWS * (uint64_t)filled, ASTRA_F32, 6, past);
  in[2] = tensor(heat, sizeof(float), ASTRA_F32, 0, NULL);
  out[0] = tensor(logits, sizeof logits, ASTRA_F32, 1, characters);
  out[1] = tensor(probability, sizeof probability, ASTRA_F32, 1, characters);
  out[2] = tensor(cache[1 - now], sizeof(float) * ROWS * (uint64_t)(filled + 1), ASTRA_F32, 6, present);
  call.entry = decode;
  call.inputs = in;
  call.num_inputs = 3;
  call.outputs = out;
  call.num_outputs = 3;
  check(astra_session_submit(session, stream, &call, &done, &diag));
  check(astra_promise_wait(done, &diag));
  check(astra_promise_free(&done));
  now = 1 - now;
  ++filled;
}

static unsigned char most_likely(void) {
  int best = 0;
  for (int i = 1; i < CHARACTERS; ++i)
    if (probability[i] > probability[best]) best = i;
  return (unsigned char)best;
}

/* The character in whose part of the line from 0 to 1 the number `at` lies. */
static unsigned char drawn(double at) {
  double sum = 0;
  for (int i = 0; i < CHARACTERS; ++i) {
    sum += probability[i];
    if (at < sum) return (unsigned char)i;
  }
  return most_likely(); /* the probabilities add up to a little less than 1 */
}

static double number_from(const char *text) {
  char *end;
  double number = strtod(text, &end);
  if (end == text || *end) die("expected a number");
  return number;
}

int main(int argc, char **argv) {
  const char *file = NULL, *prompt = "\n", *level = NULL;
  double length = 500, temperature = 0.8, seed = 0, threads = 1;
  for (int i = 1; i < argc; ++i) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "--prompt"))
      prompt = value, ++i;
    else if (!strcmp(argv[i], "--length"))
      length = number_from(value), ++i;
    else if (!strcmp(argv[i], "--temperature"))
      temperature = number_from(value), ++i;
    else if (!strcmp(argv[i], "--seed"))
      seed = number_from(value), ++i;
    else if (!strcmp(argv[i], "--level"))
      level = value, ++i;
    else if (!strcmp(argv[i], "--threads"))
      threads = number_from(value), ++i;
    else if (!file && argv[i][0] != '-')
      file = argv[i];
    else
      file = NULL, i = argc;
  }
  if (!file || !*prompt || !(temperature >= 0) || !(length >= 0 && length < 1e9) ||
      !(seed >= 0 && seed < 4294967296.0) || !(threads >= 1 && threads <= 1024)) {
    fprintf(stderr, "usage: chargpt BUNDLE [--prompt TEXT] [--length N] [--temperature T] [--seed N] [--level L] "
                    "[--threads N]\n");
    return 2;
  }

  astra_runtime *runtime = NULL;
  astra_device *device = NULL;
  astra_bundle *bundle = NULL;
  astra_loaded *loaded = NULL;
  astra_device_options options = ASTRA_INIT(astra_device_options);
  options.num_threads = (uint32_t)threads;
  options.level = level;
  check(astra_runtime_init(&runtime, NULL, &diag));
  check(astra_device_init(&device, runtime, "cpu", &options, &diag));
  check(astra_bundle_init_file(&bundle, runtime, file, NULL, &diag));
  check(astra_bundle_find_entry(bundle, "main", &decode, &diag));
  check(astra_loaded_init(&loaded, bundle, &device, 1, &diag));
  check(astra_session_init(&session, loaded, NULL, &diag));
  check(astra_stream_init(&stream, device, &diag));

  size_t given = strlen(prompt), all = given + (size_t)length;
  float heat = temperature > 0 ? (float)temperature : 1;
  unsigned char *text = malloc(all);
  if (!text) die("no memory");
  for (size_t i = 0; i < all; ++i) {
    if (i < given)
      text[i] = number_of(prompt[i]);
    else if (temperature > 0)
      text[i] = drawn((random_word((uint32_t)seed, 0, i) >> 8) * 0x1p-24);
    else
      text[i] = most_likely();
    print_character(text[i]);
    if (filled == CONTEXT) {
      filled = 0;
      for (size_t k = i - CONTEXT / 2; k < i; ++k) read_character(text[k], heat);
    }
    read_character(text[i], heat);
  }
  putchar('\n');

  check(astra_stream_free(&stream));
  check(astra_session_free(&session));
  check(astra_loaded_free(&loaded));
  check(astra_bundle_free(&bundle));
  check(astra_device_free(&device));
  check(astra_runtime_free(&runtime));
  free(text);
  return 0;
}

/*===- chat.c: a language model answers ------------------------------------------===
 * Takes:    a bundle that astra-compile made of a language model, and what is said to it.
 * Gives:    the answer, word by word.
 * Keeps:    to C99, the C library, astra.h and text.h; every status is checked. The answer is a function of the bundle
 *           and the command line: the bundle draws the random numbers, too.
 * Does not: remember what was said before: tools/astra-chat does.
 *
 *     chat model.astra "What is the capital of France?" [TEMPERATURE [SEED [THREADS]]]
 *
 * A temperature of 0, which is what it does if none is given, takes the most likely token each time.
 */
#include "astra/astra.h"
#include "astra/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static astra_diag diag = {.size = sizeof(astra_diag)};

static void die(const char *what) {
  fprintf(stderr, "chat: %s\n", what);
  exit(1);
}

static void check(astra_status status) {
  if (status != ASTRA_OK) die(diag.text[0] ? diag.text : astra_status_name(status));
}

static void *memory(size_t count, size_t size) {
  void *p = calloc(count, size);
  if (!p) die("no memory");
  return p;
}

static double number(const char *text, double least, double most) {
  char *end;
  double v = strtod(text, &end);
  if (end == text || *end || !(v >= least && v <= most)) die("expected a number");
  return v;
}

/*===- An entry and its arguments -------------------------------------------===*/

static astra_session *session;
static astra_stream *stream;

static astra_tensor tensor(void *data, int32_t dtype, int32_t ndim, const int64_t *shape) {
  astra_tensor t = ASTRA_INIT(astra_tensor);
  t.data = data;
  t.data_bytes = astra_dtype_bits(dtype) / 8;
  for (int32_t i = 0; i < ndim; ++i) t.data_bytes *= (uint64_t)shape[i];
  t.dtype = dtype;
  t.ndim = ndim;
  t.shape = shape;
  return t;
}

static void run(const astra_entry *entry, const astra_tensor *in, uint32_t ins, const astra_tensor *out,
                uint32_t outs) {
  astra_call call = ASTRA_INIT(astra_call);
  astra_promise *done = NULL;
  call.entry = entry;
  call.inputs = in;
  call.num_inputs = ins;
  call.outputs = out;
  call.num_outputs = outs;
  check(astra_session_submit(session, stream, &call, &done, &diag));
  check(astra_promise_wait(done, &diag));
  check(astra_promise_free(&done));
}

/*===- The model: one sequence, docs/language.md ----------------------------===*/

static const int64_t one[1] = {1};
static int64_t vocabulary[2] = {1, 0}; /* the shape of logits */
static int64_t chunk;                  /* tokens that prefill takes at most */
static const astra_entry *prefill, *decode, *sample;
static float *logits;
static unsigned char *allowed;

static void open_model(const astra_bundle *bundle, const astra_text *text) {
  astra_tensor_info tokens = ASTRA_INIT(astra_tensor_info), scores = ASTRA_INIT(astra_tensor_info);
  check(astra_bundle_find_entry(bundle, "prefill", &prefill, &diag));
  check(astra_bundle_find_entry(bundle, "decode", &decode, &diag));
  check(astra_bundle_find_entry(bundle, "sample", &sample, &diag));
  check(astra_entry_get_input(prefill, 0, &tokens));
  check(astra_entry_get_output(prefill, 0, &scores));
  if (tokens.ndim != 2 || scores.ndim != 2) die("the bundle is no language model");
  if (tokens.upper[0] != 1) die("the bundle has several sequences: compile it without --batch");
  chunk = tokens.upper[1];
  vocabulary[1] = scores.upper[1];
  logits = memory((size_t)vocabulary[1], sizeof *logits);
  allowed = memory((size_t)vocabulary[1], 1);
  /* A model may have more scores than its tokenizer has tokens. */
  for (int64_t i = 0; i < vocabulary[1]; ++i) allowed[i] = i < astra_text_tokens(text);
}

/* Reads tokens, at most `chunk`; logits are then those of what follows. Gives 0 where they do not fit the context. */
static int read_tokens(const int32_t *tokens, int32_t count) {
  int64_t shape[2] = {1, 0};
  int32_t status = 0;
  astra_tensor in[2], out[2];
  shape[1] = count;
  in[0] = tensor((void *)tokens, ASTRA_I32, 2, shape);
  in[1] = tensor(&count, ASTRA_I32, 1, one);
  out[0] = tensor(logits, ASTRA_F32, 2, vocabulary);
  out[1] = tensor(&status, ASTRA_I32, 1, one);
  run(prefill, in, 2, out, 2);
  if (status == 2) die("the tokenizer has a token that the model does not have");
  return status == 0;
}

/* The same for one token, and faster. */
static int read_token(int32_t token) {
  int32_t status = 0;
  astra_tensor in[1], out[2];
  in[0] = tensor(&token, ASTRA_I32, 1, one);
  out[0] = tensor(logits, ASTRA_F32, 2, vocabulary);
  out[1] = tensor(&status, ASTRA_I32, 1, one);
  run(decode, in, 1, out, 2);
  return status == 0;
}

static int32_t draw(float temperature, uint32_t seed) {
  int32_t top_k = 0, token = -1; /* 0 and 1 are off */
  float top_p = 1, min_p = 0, penalty = 1, logprob = 0;
  astra_tensor in[8], out[2];
  in[0] = tensor(logits, ASTRA_F32, 2, vocabulary);
  in[1] = tensor(allowed, ASTRA_BOOL, 2, vocabulary);
  in[2] = tensor(&temperature, ASTRA_F32, 1, one);
  in[3] = tensor(&top_k, ASTRA_I32, 1, one);
  in[4] = tensor(&top_p, ASTRA_F32, 1, one);
  in[5] = tensor(&min_p, ASTRA_F32, 1, one);
  in[6] = tensor(&penalty, ASTRA_F32, 1, one);
  in[7] = tensor(&seed, ASTRA_U32, 1, one);
  out[0] = tensor(&token, ASTRA_I32, 1, one);
  out[1] = tensor(&logprob, ASTRA_F32, 1, one);
  run(sample, in, 8, out, 2);
  return token;
}

/*===- A question and its answer --------------------------------------------===*/

static int32_t *encode(const astra_text *text, const char *question, size_t *count) {
  astra_text_message message;
  message.role = "user";
  message.content = question;
  astra_status status = astra_text_chat_encode(text, &message, 1, ASTRA_TEXT_ANSWER, NULL, 0, count, &diag);
  if (status != ASTRA_CAPACITY) check(status);
  int32_t *tokens = memory(*count, sizeof *tokens);
  check(astra_text_chat_encode(text, &message, 1, ASTRA_TEXT_ANSWER, tokens, *count, count, &diag));
  return tokens;
}

static void answer(const astra_text *text, float temperature, uint32_t seed) {
  int32_t end = astra_text_role_token(text, ASTRA_TEXT_END), turn = astra_text_role_token(text, ASTRA_TEXT_TURN);
  astra_text_stream state = {0};
  char piece[1024];
  size_t bytes;
  for (;;) {
    int32_t token = draw(temperature, seed);
    if (token < 0 || token == end || token == turn) break;
    check(astra_text_stream_next(text, &state, token, ASTRA_TEXT_PLAIN, piece, sizeof piece, &bytes, &diag));
    fwrite(piece, 1, bytes, stdout);
    fflush(stdout);
    if (!read_token(token)) {
      fprintf(stderr, "\nchat: the context is full");
      break;
    }
  }
  check(astra_text_stream_end(&state, piece, sizeof piece, &bytes, &diag));
  fwrite(piece, 1, bytes, stdout);
  putchar('\n');
}

int main(int argc, char **argv) {
  if (argc < 3 || argc > 6) {
    fprintf(stderr, "usage: chat BUNDLE QUESTION [TEMPERATURE [SEED [THREADS]]]\n");
    return 2;
  }
  float temperature = argc > 3 ? (float)number(argv[3], 0, 100) : 0;
  uint32_t seed = argc > 4 ? (uint32_t)number(argv[4], 0, 4294967295.0) : 0;
  astra_device_options options = ASTRA_INIT(astra_device_options);
  options.num_threads = argc > 5 ? (uint32_t)number(argv[5], 1, 1024) : 1;

  astra_runtime *runtime = NULL;
  astra_device *device = NULL;
  astra_bundle *bundle = NULL;
  astra_loaded *loaded = NULL;
  astra_text *text = NULL;
  const void *tokenizer;
  uint64_t size;
  check(astra_runtime_init(&runtime, NULL, &diag));
  check(astra_device_init(&device, runtime, "cpu", &options, &diag));
  check(astra_bundle_init_file(&bundle, runtime, argv[1], NULL, &diag));
  check(astra_bundle_find_asset(bundle, "tokenizer", &tokenizer, &size, &diag));
  check(astra_text_init(&text, tokenizer, (size_t)size, &diag));
  check(astra_loaded_init(&loaded, bundle, &device, 1, &diag));
  check(astra_session_init(&session, loaded, NULL, &diag));
  check(astra_stream_init(&stream, device, &diag));
  open_model(bundle, text);

  if (!argv[2][0]) die("the prompt is empty");
  size_t count;
  int32_t *tokens = encode(text, argv[2], &count);
  for (size_t at = 0; at < count; at += (size_t)chunk)
    if (!read_tokens(tokens + at, (int32_t)(count - at < (size_t)chunk ? count - at : (size_t)chunk)))
      die("the question is longer than the context");
  answer(text, temperature, seed);

  free(tokens);
  free(allowed);
  free(logits);
  check(astra_stream_free(&stream));
  check(astra_session_free(&session));
  check(astra_loaded_free(&loaded));
  astra_text_free(&text);
  check(astra_bundle_free(&bundle));
  check(astra_device_free(&device));
  check(astra_runtime_free(&runtime));
  return 0;
}

/*===- sentence.c: lines of text, ranked by what they say ----------------------===
 * Takes:    a bundle compiled from all-MiniLM-L6-v2, its vocabulary, a file of lines.
 * Gives:    the lines nearest in meaning to a query; on request every line's embedding, or its word pieces.
 * Keeps:    to C11, the C library and astra.h; every status is checked.
 * Does not: know what is in the bundle beyond the names and shapes of its inputs and its output: the network, the mean
 *           over a line's tokens and the normalisation are in there.
 *
 *     sentence minilm.astra vocab.txt lines.txt --query "how do I cook rice" [--top N] [--threads N] [--level L]
 *                                               [--batch N] [--embeddings FILE.npy]
 *     sentence --tokens vocab.txt lines.txt
 */
#include "astra/astra.h"
#include "tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 384, LONGEST = 256 }; /* numbers of an embedding; tokens of a line: what is more is cut */

static astra_diag diag = {.size = sizeof(astra_diag)};

static void die(const char *what) {
  fprintf(stderr, "sentence: %s\n", what);
  exit(1);
}

static void check(astra_status status) {
  if (status != ASTRA_OK) die(diag.text[0] ? diag.text : astra_status_name(status));
}

static void *take(size_t bytes) {
  void *p = calloc(bytes ? bytes : 1, 1);
  if (!p) die("no memory");
  return p;
}

/*===- lines -------------------------------------------------------------------===*/

typedef struct {
  const char *text;
  size_t bytes;
  int64_t *ids;
  size_t length;
  float *embedding;
  float score;
} line;

typedef struct {
  char *file;
  line *lines;
  size_t count;
} text;

static text read_text(const char *path) {
  FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
  text t = {0};
  size_t bytes = 0, room = 1 << 16;
  if (!f) die("the file of lines cannot be read");
  t.file = take(room);
  for (size_t got; (got = fread(t.file + bytes, 1, room - bytes, f)) > 0;)
    if ((bytes += got) == room && !(t.file = realloc(t.file, room *= 2))) die("no memory");
  if (ferror(f)) die("the file of lines cannot be read");
  if (f != stdin) fclose(f);
  for (size_t i = 0; i < bytes; ++i) t.count += t.file[i] == '\n' || i + 1 == bytes;
  t.lines = take((t.count + 1) * sizeof *t.lines); /* one more for the query */
  char *at = t.file, *end = t.file + bytes;
  for (size_t i = 0; i < t.count; ++i) {
    char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    t.lines[i].text = at;
    t.lines[i].bytes = (size_t)(stop - at);
    if (t.lines[i].bytes && stop[-1] == '\r') --t.lines[i].bytes;
    at = stop + 1;
  }
  return t;
}

static void tokenize(const tokenizer *t, line *l) {
  int64_t ids[LONGEST];
  l->length = tokenizer_encode(t, l->text, l->bytes, ids, LONGEST);
  l->ids = take(l->length * sizeof *ids);
  memcpy(l->ids, ids, l->length * sizeof *ids);
}

static int by_length(const void *a, const void *b) {
  const line *x = *(line *const *)a, *y = *(line *const *)b;
  if (x->length != y->length) return x->length < y->length ? -1 : 1;
  return x < y ? -1 : x > y;
}

static int by_score(const void *a, const void *b) {
  const line *x = *(line *const *)a, *y = *(line *const *)b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return x < y ? -1 : x > y;
}

/*===- the network -------------------------------------------------------------===*/

typedef struct {
  astra_runtime *runtime;
  astra_device *device;
  astra_bundle *bundle;
  astra_loaded *loaded;
  astra_session *session;
  astra_stream *stream;
  const astra_entry *entry;
} network;

static network open_network(const char *path, const char *level, unsigned threads) {
  network n = {0};
  astra_device_options options = ASTRA_INIT(astra_device_options);
  options.num_threads = threads;
  options.level = level;
  check(astra_runtime_init(&n.runtime, NULL, &diag));
  check(astra_device_init(&n.device, n.runtime, "cpu", &options, &diag));
  check(astra_bundle_init_file(&n.bundle, n.runtime, path, NULL, &diag));
  check(astra_bundle_find_entry(n.bundle, "main", &n.entry, &diag));
  check(astra_loaded_init(&n.loaded, n.bundle, &n.device, 1, &diag));
  check(astra_session_init(&n.session, n.loaded, NULL, &diag));
  check(astra_stream_init(&n.stream, n.device, &diag));
  return n;
}

static void close_network(network *n) {
  check(astra_stream_free(&n->stream));
  check(astra_session_free(&n->session));
  check(astra_loaded_free(&n->loaded));
  check(astra_bundle_free(&n->bundle));
  check(astra_device_free(&n->device));
  check(astra_runtime_free(&n->runtime));
}

static astra_tensor tensor(void *data, size_t element, astra_dtype dtype, const int64_t shape[2]) {
  astra_tensor t = ASTRA_INIT(astra_tensor);
  t.data = data;
  t.data_bytes = (size_t)(shape[0] * shape[1]) * element;
  t.dtype = dtype;
  t.ndim = 2;
  t.shape = shape;
  return t;
}

/* Lines of like length together, padded to the longest of them; the mask tells the network what is padding. */
static void embed(network *n, line **lines, size_t count) {
  size_t length = lines[count - 1]->length;
  int64_t *ids = take(count * length * sizeof *ids), *mask = take(count * length * sizeof *mask);
  float *embeddings = take(count * WIDTH * sizeof *embeddings);
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < lines[i]->length; ++k) ids[i * length + k] = lines[i]->ids[k], mask[i * length + k] = 1;
  int64_t in_shape[2] = {(int64_t)count, (int64_t)length}, out_shape[2] = {(int64_t)count, WIDTH};
  astra_tensor in[2] = {tensor(ids, sizeof *ids, ASTRA_I64, in_shape), tensor(mask, sizeof *mask, ASTRA_I64, in_shape)};
  astra_tensor out = tensor(embeddings, sizeof *embeddings, ASTRA_F32, out_shape);
  astra_call call = ASTRA_INIT(astra_call);
  call.entry = n->entry;
  call.inputs = in;
  call.num_inputs = 2;
  call.outputs = &out;
  call.num_outputs = 1;
  astra_promise *done = NULL;
  check(astra_session_submit(n->session, n->stream, &call, &done, &diag));
  check(astra_promise_wait(done, &diag));
  check(astra_promise_free(&done));
  for (size_t i = 0; i < count; ++i) {
    lines[i]->embedding = take(WIDTH * sizeof(float));
    memcpy(lines[i]->embedding, embeddings + i * WIDTH, WIDTH * sizeof(float));
  }
  free(ids);
  free(mask);
  free(embeddings);
}

static void write_embeddings(const char *path, const line *lines, size_t count) {
  FILE *f = fopen(path, "wb");
  char header[118];
  int n =
      snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %d), }", count, WIDTH);
  if (!f) die("the embeddings cannot be written");
  fprintf(f, "\x93NUMPY\x01%c\x76%c%-117s\n", 0, 0, n > 0 ? header : "");
  for (size_t i = 0; i < count; ++i) fwrite(lines[i].embedding, sizeof(float), WIDTH, f);
  if (ferror(f) | fclose(f)) die("the embeddings cannot be written");
}

/*===- the command line --------------------------------------------------------===*/

static int usage(const char *word, const char *what) {
  if (word) fprintf(stderr, "sentence: %s %s\n", word, what);
  fprintf(stderr, "usage: sentence BUNDLE VOCABULARY LINES [--query TEXT] [--embeddings FILE.npy] [--top N]\n"
                  "                [--threads N] [--level L] [--batch N]\n"
                  "       sentence --tokens VOCABULARY LINES\n");
  return 2;
}

/* A whole number in 1 .. most, or 0. */
static unsigned long number(const char *word, unsigned long most) {
  char *end;
  if (*word < '0' || *word > '9') return 0;
  unsigned long value = strtoul(word, &end, 10);
  return *end || value > most ? 0 : value;
}

/*===- the program -------------------------------------------------------------===*/

static void print_tokens(const text *t) {
  for (size_t i = 0; i < t->count; ++i)
    for (size_t k = 0; k < t->lines[i].length; ++k)
      printf("%lld%c", (long long)t->lines[i].ids[k], k + 1 < t->lines[i].length ? ' ' : '\n');
}

int main(int argc, char **argv) {
  const char *files[3] = {0}, *level = NULL, *query = NULL, *embeddings = NULL;
  unsigned long given = 0, top = 5, batch = 16, threads = 1;
  int tokens = 0;
  const struct {
    const char *flag, **text;
    unsigned long *number, most;
  } flags[] = {{"--query", &query, NULL, 0},           {"--level", &level, NULL, 0},
               {"--embeddings", &embeddings, NULL, 0}, {"--threads", NULL, &threads, 1024},
               {"--batch", NULL, &batch, 1 << 20},     {"--top", NULL, &top, 1 << 30}};
  for (int i = 1; i < argc; ++i) {
    size_t k = 0, count = sizeof flags / sizeof *flags;
    while (k < count && strcmp(argv[i], flags[k].flag)) ++k;
    if (k < count) {
      if (i + 1 == argc) return usage(argv[i], "needs a value");
      const char *value = argv[++i];
      if (flags[k].text)
        *flags[k].text = value;
      else if (!(*flags[k].number = number(value, flags[k].most)))
        return usage(flags[k].flag, "needs a whole number from 1 on");
    } else if (!strcmp(argv[i], "--tokens")) {
      tokens = 1;
    } else if (!strncmp(argv[i], "--", 2)) {
      return usage(argv[i], "is no option");
    } else if (given == 3) {
      return usage(argv[i], "is one word too many");
    } else {
      files[given++] = argv[i];
    }
  }
  if (given != (tokens ? 2 : 3)) return usage(NULL, NULL);
  if (!tokens && !query && !embeddings) return usage("one", "of --query and --embeddings is needed");
  tokenizer *t = tokenizer_open(files[tokens ? 0 : 1]);
  if (!t) die("the vocabulary cannot be read, or lacks [UNK], [CLS] or [SEP]");
  text all = read_text(files[tokens ? 1 : 2]);
  size_t lines = all.count + (query != NULL);
  if (query) all.lines[all.count].text = query, all.lines[all.count].bytes = strlen(query);
  for (size_t i = 0; i < lines; ++i) tokenize(t, &all.lines[i]);
  if (tokens) {
    print_tokens(&all);
  } else {
    line **order = take(lines * sizeof *order);
    for (size_t i = 0; i < lines; ++i) order[i] = &all.lines[i];
    qsort(order, lines, sizeof *order, by_length);
    network n = open_network(files[0], level, (unsigned)threads);
    for (size_t first = 0; first < lines; first += batch)
      embed(&n, order + first, lines - first < batch ? lines - first : batch);
    if (embeddings) write_embeddings(embeddings, all.lines, all.count);
    for (size_t i = 0; query && i < all.count; ++i)
      for (size_t k = 0; k < WIDTH; ++k)
        all.lines[i].score += all.lines[i].embedding[k] * all.lines[all.count].embedding[k];
    for (size_t i = 0; i < all.count; ++i) order[i] = &all.lines[i];
    qsort(order, all.count, sizeof *order, by_score);
    for (size_t i = 0, shown = 0; query && i < all.count && shown < top; ++i)
      if (order[i]->length > 2 && ++shown)
        printf("%6.3f  %.*s\n", (double)order[i]->score, (int)order[i]->bytes, order[i]->text);
    close_network(&n);
    free(order);
  }
  for (size_t i = 0; i < lines; ++i) {
    free(all.lines[i].ids);
    free(all.lines[i].embedding);
  }
  free(all.lines);
  free(all.file);
  tokenizer_close(t);
  return 0;
}

/*===- tokenizer.c: from text to the numbers of word pieces --------------------===
 * Takes:    UTF-8.
 * Gives:    words (lower case, no accents; punctuation and ideographs each alone), and the longest pieces that make a
 *           word; a word that no pieces make is [UNK].
 * Keeps:    time linear in the text: a word has at most 100 characters.
 * Does not: reorder accents among what it keeps (the reference sorts rare marks that are not stripped).
 */
#include "tokenizer.h"
#include "unicode_generated.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_WORD = 100, WORD_BYTES = 4 * LONGEST_WORD, HANGUL = 0xac00, HANGUL_END = 0xd7a4 };

/* Names that stand for themselves in the text. */
static const char *const special_names[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
enum { PAD, UNK, CLS, SEP, MASK, SPECIALS };

typedef struct {
  const char *text;
  size_t bytes;
} piece;

struct tokenizer {
  char *file;
  piece *pieces;
  uint32_t *slots; /* number + 1 of a piece, found by the hash of its bytes; 0 is free */
  size_t mask;
  int64_t specials[SPECIALS]; /* -1: not in the vocabulary */
};

/*===- the vocabulary ----------------------------------------------------------===*/

static size_t hash_of(const char *prefix, const char *text, size_t bytes) {
  uint64_t h = 14695981039346656037u;
  for (; *prefix; ++prefix) h = (h ^ (unsigned char)*prefix) * 1099511628211u;
  for (size_t i = 0; i < bytes; ++i) h = (h ^ (unsigned char)text[i]) * 1099511628211u;
  return (size_t)(h ^ h >> 32);
}

/* The slot of prefix + text: that piece's, or a free one. */
static uint32_t *slot_of(const tokenizer *t, const char *prefix, const char *text, size_t bytes) {
  size_t before = strlen(prefix);
  for (size_t i = hash_of(prefix, text, bytes);; ++i) {
    uint32_t *slot = &t->slots[i & t->mask];
    if (*slot == 0) return slot;
    const piece *p = &t->pieces[*slot - 1];
    if (p->bytes == before + bytes && !memcmp(p->text, prefix, before) && !memcmp(p->text + before, text, bytes))
      return slot;
  }
}

static int64_t number_of(const tokenizer *t, const char *prefix, const char *text, size_t bytes) {
  return (int64_t)*slot_of(t, prefix, text, bytes) - 1;
}

static char *read_file(const char *path, size_t *bytes) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  long end = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
  char *data = end >= 0 && end < 1 << 28 ? malloc((size_t)end + 1) : NULL;
  rewind(f);
  if (data && fread(data, 1, (size_t)end, f) != (size_t)end) {
    free(data);
    data = NULL;
  }
  fclose(f);
  if (data) data[end] = 0, *bytes = (size_t)end;
  return data;
}

tokenizer *tokenizer_open(const char *vocabulary) {
  tokenizer *t = calloc(1, sizeof *t);
  size_t bytes = 0, lines = 1, size = 2;
  if (!t || !(t->file = read_file(vocabulary, &bytes))) return tokenizer_close(t), NULL;
  for (size_t i = 0; i < bytes; ++i) lines += t->file[i] == '\n';
  while (size < 2 * lines) size *= 2;
  t->mask = size - 1;
  t->pieces = calloc(lines, sizeof *t->pieces);
  t->slots = calloc(size, sizeof *t->slots);
  if (!t->pieces || !t->slots) return tokenizer_close(t), NULL;
  uint32_t number = 0;
  for (char *line = t->file, *end = t->file + bytes; line < end; ++number) {
    char *stop = memchr(line, '\n', (size_t)(end - line));
    if (!stop) stop = end;
    piece *p = &t->pieces[number];
    p->text = line;
    p->bytes = (size_t)(stop - line);
    if (p->bytes && stop[-1] == '\r') --p->bytes;
    uint32_t *slot = slot_of(t, "", p->text, p->bytes);
    *slot = number + 1; /* of equal lines the last counts */
    line = stop + 1;
  }
  for (int i = 0; i < SPECIALS; ++i) t->specials[i] = number_of(t, "", special_names[i], strlen(special_names[i]));
  if (t->specials[UNK] < 0 || t->specials[CLS] < 0 || t->specials[SEP] < 0) return tokenizer_close(t), NULL;
  return t;
}

void tokenizer_close(tokenizer *t) {
  if (!t) return;
  free(t->slots);
  free(t->pieces);
  free(t->file);
  free(t);
}

/*===- characters --------------------------------------------------------------===*/

/* Reads a code point and moves on; a byte that begins none is read alone, as U+FFFD. */
static unsigned next_point(const unsigned char **at, const unsigned char *end) {
  const unsigned char *s = *at;
  unsigned c = *s++, more = c < 0x80                ? 0
                            : c >= 0xc2 && c < 0xe0 ? 1
                            : c >= 0xe0 && c < 0xf0 ? 2
                            : c >= 0xf0 && c < 0xf5 ? 3
                                                    : 4;
  ++*at;
  if (more == 0) return c;
  if (more == 4 || (size_t)(end - s) < more) return 0xfffd;
  c &= 0x3fu >> more;
  for (unsigned i = 0; i < more; ++i) {
    if ((s[i] & 0xc0) != 0x80) return 0xfffd;
    c = c << 6 | (s[i] & 0x3fu);
  }
  static const unsigned least[] = {0, 0x80, 0x800, 0x10000};
  if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0xfffd;
  *at += more;
  return c;
}

static size_t put_point(unsigned c, char *to) {
  if (c < 0x80) return to[0] = (char)c, 1;
  if (c < 0x800) return to[0] = (char)(0xc0 | c >> 6), to[1] = (char)(0x80 | (c & 0x3f)), 2;
  if (c < 0x10000)
    return to[0] = (char)(0xe0 | c >> 12), to[1] = (char)(0x80 | (c >> 6 & 0x3f)), to[2] = (char)(0x80 | (c & 0x3f)), 3;
  to[0] = (char)(0xf0 | c >> 18), to[1] = (char)(0x80 | (c >> 12 & 0x3f)), to[2] = (char)(0x80 | (c >> 6 & 0x3f));
  return to[3] = (char)(0x80 | (c & 0x3f)), 4;
}

/* The row of a table in order whose first number is the greatest that is not above c; NULL where there is none. Every
 * row type begins with an unsigned. */
static const void *row_below(unsigned c, const void *table, size_t rows, size_t row_bytes) {
  size_t low = 0, high = rows;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    unsigned first;
    memcpy(&first, (const char *)table + middle * row_bytes, sizeof first);
    if (first <= c)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? (const char *)table + (low - 1) * row_bytes : NULL;
}
#define ROW_BELOW(c, table) row_below(c, table, sizeof(table) / sizeof(*(table)), sizeof(*(table)))

static int inside(unsigned c, const point_range *row) { return row && c <= row->last; }

/* What a character becomes: up to three. */
static unsigned lowered(unsigned c, unsigned to[3]) {
  if (c >= HANGUL && c < HANGUL_END) { /* Unicode 3.12 */
    unsigned s = c - HANGUL;
    to[0] = 0x1100 + s / 588, to[1] = 0x1161 + s % 588 / 28, to[2] = 0x11a7 + s % 28;
    return s % 28 ? 3 : 2;
  }
  const point_pair *pair = ROW_BELOW(c, single_points);
  if (pair && pair->from == c) return to[0] = pair->to, 1;
  const point_row *row = ROW_BELOW(c, several_points);
  if (row && row->from == c) return memcpy(to, row->to, sizeof row->to), row->to[2] ? 3 : 2;
  return to[0] = c, 1;
}

/*===- words -------------------------------------------------------------------===*/

typedef struct {
  const tokenizer *t;
  int64_t *numbers;
  size_t count, most;
  char word[WORD_BYTES];
  size_t bytes, points; /* of the word; of one too long only the points go on counting */
} writer;

static void put(writer *w, int64_t number) {
  if (w->count < w->most) w->numbers[w->count++] = number;
}

/* The word at hand as the longest pieces, from its begin. */
static void end_word(writer *w) {
  size_t begin = 0, first = w->count, found = 0;
  int whole = w->points <= LONGEST_WORD;
  while (whole && begin < w->bytes) {
    size_t end = w->bytes;
    int64_t number = -1;
    for (; end > begin; --end) {
      if (end < w->bytes && (w->word[end] & 0xc0) == 0x80) continue; /* inside a character */
      number = number_of(w->t, begin ? "##" : "", w->word + begin, end - begin);
      if (number >= 0) break;
    }
    whole = number >= 0;
    if (whole) put(w, number), ++found;
    begin = end;
  }
  if (!whole) {
    w->count = first;
    put(w, w->t->specials[UNK]);
  }
  w->bytes = w->points = 0;
}

static void add_point(writer *w, unsigned c) {
  if (++w->points <= LONGEST_WORD) w->bytes += put_point(c, w->word + w->bytes);
}

static void read_point(writer *w, unsigned c) {
  if (inside(c, ROW_BELOW(c, removed_points))) return;
  int space = inside(c, ROW_BELOW(c, space_points)) || c == ' ', lone = inside(c, ROW_BELOW(c, lone_points));
  if ((space || lone) && w->points) end_word(w);
  if (space) return;
  unsigned to[3], count = lowered(c, to);
  for (unsigned i = 0; i < count; ++i) {
    int punctuation = inside(to[i], ROW_BELOW(to[i], punctuation_points));
    if (punctuation && w->points) end_word(w);
    add_point(w, to[i]);
    if (punctuation) end_word(w);
  }
  if (lone && w->points) end_word(w);
}

/* Whether a name of special_names begins here; its number in `which`. */
static size_t special_at(const tokenizer *t, const unsigned char *at, const unsigned char *end, int *which) {
  for (int i = 0; *at == '[' && i < SPECIALS; ++i) {
    size_t bytes = strlen(special_names[i]);
    if (t->specials[i] >= 0 && (size_t)(end - at) >= bytes && !memcmp(at, special_names[i], bytes))
      return *which = i, bytes;
  }
  return 0;
}

size_t tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, int64_t *numbers, size_t most) {
  writer w = {.t = t, .numbers = numbers, .most = most - 1};
  put(&w, t->specials[CLS]);
  const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
  while (at < end && w.count < w.most) {
    int which;
    size_t skip = special_at(t, at, end, &which);
    if (skip) {
      if (w.points) end_word(&w);
      put(&w, t->specials[which]);
      at += skip;
    } else {
      read_point(&w, next_point(&at, end));
    }
  }
  if (w.points) end_word(&w);
  w.most = most;
  put(&w, t->specials[SEP]);
  return w.count;
}

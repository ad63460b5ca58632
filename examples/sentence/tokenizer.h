/*===- tokenizer.h: from text to the numbers of word pieces --------------------===
 * Takes:    a vocabulary of one piece a line (BERT's vocab.txt), and UTF-8 text.
 * Gives:    the numbers that BERT's uncased tokenizer gives.
 * Keeps:    the reference's answers on any text: accents, ideographs, emoji, broken UTF-8, long words.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct tokenizer tokenizer;

/* NULL where the file cannot be read or lacks [UNK], [CLS] or [SEP]. */
tokenizer *tokenizer_open(const char *vocabulary);
void tokenizer_close(tokenizer *t);

/* The pieces of a text between [CLS] and [SEP]; text that needs more than `most` numbers in all is cut. Gives how many
 * were written, at least 2; `most` is at least 2. A byte that is not UTF-8 is left out. */
size_t tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, int64_t *numbers, size_t most);

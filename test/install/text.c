/*===- text.c: tokens of a text ----------------------------------------------===
 * Takes:    the compiled form of a tokenizer, a text.
 * Gives:    the text's tokens on a line.
 * Keeps:    text.h, astra.h and the C library.
 */
#include "astra/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  static uint64_t bytes[1 << 16];
  int32_t tokens[64];
  size_t size, count, i;
  astra_text *text = NULL;
  astra_diag diag = ASTRA_INIT(astra_diag);
  FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (!file) return 2;
  size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  if (astra_text_init(&text, bytes, size, &diag) ||
      astra_text_encode(text, argv[2], strlen(argv[2]), 0, tokens, 64, &count, &diag)) {
    fprintf(stderr, "%s\n", diag.text);
    return 1;
  }
  for (i = 0; i < count; i++) printf("%d ", (int)tokens[i]);
  printf("\n");
  astra_text_free(&text);
  return 0;
}

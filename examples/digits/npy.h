/*===- npy.h: the data of a .npy file -------------------------------------------===
 * Takes:    a file of format 1, in C order.
 * Gives:    its elements.
 * Does not: read shapes: the caller knows them.
 */
#ifndef NPY_H
#define NPY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 10 bytes, a header of the length in bytes 8 and 9, the elements. NULL and a sentence in *why if the file cannot be
 * read or has another dtype ("<f4"); free() what it gives. */
static unsigned char *read_npy(const char *path, const char *dtype, size_t *bytes, const char **why) {
  FILE *f = fopen(path, "rb");
  unsigned char *file = NULL;
  long end = -1;
  *why = "an .npy file cannot be read";
  if (f && fseek(f, 0, SEEK_END) == 0 && (end = ftell(f)) >= 10) file = malloc((size_t)end + 1);
  if (file) {
    rewind(f);
    if (fread(file, 1, (size_t)end, f) != (size_t)end) {
      free(file);
      file = NULL;
    }
  }
  if (f) fclose(f);
  if (!file) return NULL;
  file[end] = 0;
  size_t header = 10 + file[8] + 256u * file[9];
  *why = NULL;
  if (memcmp(file, "\x93NUMPY\1", 7) != 0 || header > (size_t)end) {
    *why = "a file is no .npy file of format 1";
  } else {
    unsigned char first = file[header];
    file[header] = 0;
    if (!strstr((char *)file + 10, dtype) || strstr((char *)file + 10, "True"))
      *why = "an .npy file has another dtype or order";
    file[header] = first;
  }
  if (*why) {
    free(file);
    return NULL;
  }
  *bytes = (size_t)end - header;
  return memmove(file, file + header, *bytes);
}

#endif

/*===- host.c: runs kernels of a flat image on another architecture -------===*/
/* host IMAGE JOBS OUT: maps IMAGE executable and runs every job of JOBS; OUT gets all buffers of all jobs.
   JOBS is a stream of 64-bit words: offset, items, parts, scratch bytes, number of dims, dims, number of buffers, and
   for each buffer its bytes and its contents padded to 8. The items are run in `parts` calls. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *slurp(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  if (!f) exit(10);
  fseek(f, 0, SEEK_END);
  *size = (size_t)ftell(f);
  rewind(f);
  void *p = malloc(*size + 8);
  if (fread(p, 1, *size, f) != *size) exit(11);
  fclose(f);
  return p;
}

/* A copy whose end is the end of what may be touched. */
enum { page = 65536 };
static void *guarded(const void *bytes, size_t size) {
  size_t room = (size + page - 1) / page * page;
  char *base = mmap(0, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED || mprotect(base + room, page, PROT_NONE)) exit(12);
  return memcpy(base + room - size, bytes, size);
}
static void release(void *p, size_t size) {
  size_t room = (size + page - 1) / page * page;
  munmap((char *)p + size - room, room + page);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  size_t imageSize, jobsSize;
  void *image = slurp(argv[1], &imageSize);
  int64_t *job = slurp(argv[2], &jobsSize), *end = job + jobsSize / 8;
  char *code = mmap(0, imageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 3;
  memcpy(code, image, imageSize);
  __builtin___clear_cache(code, code + imageSize);
  if (mprotect(code, imageSize, PROT_READ | PROT_EXEC)) return 4;
  FILE *out = fopen(argv[3], "wb");
  if (!out) return 5;
  while (job < end) {
    int64_t offset = *job++, items = *job++, parts = *job++, scratchBytes = *job++, ndims = *job++;
    int64_t *dims = job;
    job += ndims;
    int64_t nbuffers = *job++;
    void *buffers[64];
    int64_t sizes[64];
    for (int64_t i = 0; i < nbuffers; ++i) {
      sizes[i] = *job++;
      buffers[i] = guarded(job, (size_t)sizes[i]);
      job += (sizes[i] + 7) / 8;
    }
    void *scratch = aligned_alloc(64, (size_t)(scratchBytes + 127) / 64 * 64);
    void (*run)(void *const *, const int64_t *, void *, int64_t, int64_t);
    void *entry = code + offset;
    memcpy(&run, &entry, sizeof run);
    for (int64_t p = 0; p < parts; ++p) {
      int64_t first = items * p / parts, last = items * (p + 1) / parts;
      if (first < last) run(buffers, dims, scratch, first, last);
    }
    free(scratch);
    for (int64_t i = 0; i < nbuffers; ++i) {
      fwrite(buffers[i], 1, (size_t)sizes[i], out);
      release(buffers[i], (size_t)sizes[i]);
    }
  }
  return fclose(out) ? 6 : 0;
}

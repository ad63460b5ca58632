/* crash.c: preloaded into a rank, ends it by SIGKILL at a call that writes files: CRASH_AT=N is the N-th of write,
 * fsync, rename, remove and unlink, in the rank CRASH_RANK; with CRASH_MARK=FILE in the process alone that makes that
 * file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void count(void) {
  static int n;
  const char *at = getenv("CRASH_AT"), *rank = getenv("CRASH_RANK"), *own = getenv("ASTRA_RANK"),
             *mark = getenv("CRASH_MARK");
  if (!at || !rank || !own || strcmp(rank, own) || __atomic_add_fetch(&n, 1, __ATOMIC_RELAXED) != atoi(at)) return;
  if (mark && open(mark, O_CREAT | O_EXCL, 0600) < 0) return;
  raise(SIGKILL);
}
ssize_t write(int fd, const void *data, size_t bytes) {
  count();
  return ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, data, bytes);
}
int fsync(int fd) {
  count();
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
int rename(const char *from, const char *to) {
  count();
  return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
int remove(const char *path) {
  count();
  return ((int (*)(const char *))dlsym(RTLD_NEXT, "remove"))(path);
}
int unlink(const char *path) {
  count();
  return ((int (*)(const char *))dlsym(RTLD_NEXT, "unlink"))(path);
}

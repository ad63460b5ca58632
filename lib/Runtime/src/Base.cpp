//===- Base.cpp: status, diagnostics, memory ------------------------------===//
// Takes:    see Base.h.
// Gives:    the sentences' formatting, the versioned structs of the C ABI, dtype and status names.
// Keeps:    never writes behind what the caller's struct size allows.
// Does not: print anything.
#include "Base.h"

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

using namespace astra::rt;

static Status failWith(astra_diag *diag, Status status, const char *format, va_list args) {
  constexpr size_t textAt = offsetof(astra_diag, text);
  if (!diag || diag->size <= textAt) return status;
  size_t room = diag->size - textAt;
  diag->status = status;
  vsnprintf(diag->text, room < sizeof(diag->text) ? room : sizeof(diag->text), format, args);
  return status;
}

Status astra::rt::fail(astra_diag *diag, Status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  failWith(diag, status, format, args);
  va_end(args);
  return status;
}

Status astra::rt::malformed(astra_diag *diag, const char *format, ...) {
  va_list args;
  va_start(args, format);
  failWith(diag, ASTRA_MALFORMED, format, args);
  va_end(args);
  return ASTRA_MALFORMED;
}

/// POSIX's strerror_r (musl) gives a status and fills `text`; GNU's gives the words.
[[maybe_unused]] static const char *wordsOf(int failed, const char *text) { return failed ? "an unknown error" : text; }
[[maybe_unused]] static const char *wordsOf(const char *words, const char *) { return words; }

const char *astra::rt::errorText(int error, char *text, size_t bytes) {
  return wordsOf(strerror_r(error, text, bytes), text);
}

Status astra::rt::readStruct(void *out, size_t outSize, const void *in, size_t least, const char *what,
                             astra_diag *diag) {
  size_t size;
  if (!in) return fail(diag, ASTRA_INVALID_ARGUMENT, "%s is NULL; give one", what);
  memcpy(&size, in, sizeof(size));
  if (size < least)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the size of %s is %zu; set it to sizeof, as ASTRA_INIT does", what,
                size);
  for (size_t i = outSize; i < size; i++)
    if (static_cast<const unsigned char *>(in)[i])
      return fail(diag, ASTRA_NEWER_CLIENT,
                  "%s has %zu bytes and sets a field behind the %zu bytes that this library knows; use a newer library",
                  what, size, outSize);
  memset(out, 0, outSize);
  memcpy(out, in, size < outSize ? size : outSize);
  return ASTRA_OK;
}

Status astra::rt::writeStruct(void *out, const void *full, size_t fullSize) {
  size_t size;
  if (!out) return ASTRA_INVALID_ARGUMENT;
  memcpy(&size, out, sizeof(size));
  if (size < sizeof(size)) return ASTRA_INVALID_ARGUMENT;
  memset(static_cast<char *>(out) + sizeof(size), 0, size - sizeof(size));
  size_t known = size < fullSize ? size : fullSize;
  memcpy(static_cast<char *>(out) + sizeof(size), static_cast<const char *>(full) + sizeof(size), known - sizeof(size));
  return ASTRA_OK;
}

constexpr uint64_t kHugePage = 2 << 20; // of x86-64 and AArch64 with pages of 4 KiB; elsewhere only an alignment
static bool isLarge(uint64_t bytes) { return bytes >= 2 * kHugePage; }

/// What is large is a mapping of its own that asks for huge pages (madvise(2)): a sum over 64 MiB reads 24 GB/s through
/// pages of 4 KiB and 40 through those of 2 MiB (Zen 4). The system may refuse, and nothing else changes.
void *astra::rt::mapPages(uint64_t bytes) {
  size_t all = bytes + kHugePage;
  void *given = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (given == MAP_FAILED) return nullptr;
  auto at = reinterpret_cast<uintptr_t>(given), begin = (at + kHugePage - 1) / kHugePage * kHugePage;
  if (begin > at) munmap(given, begin - at);
  uintptr_t end = begin + bytes, page = uintptr_t(sysconf(_SC_PAGESIZE)), last = (end + page - 1) / page * page;
  if (last < at + all) munmap(reinterpret_cast<void *>(last), at + all - last);
  madvise(reinterpret_cast<void *>(begin), bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return reinterpret_cast<void *>(begin);
}

void astra::rt::unmapPages(void *memory, uint64_t bytes) { munmap(memory, bytes); }

/// Aligned memory of libc, before which lies what libc gave, or of the system. Of zeros that come fresh from the system
/// no page is there before it is written.
static void *fromLibc(uint64_t bytes, uint64_t alignment, bool zero) {
  if (isLarge(bytes) && alignment <= kHugePage) return mapPages(bytes);
  if (alignment < sizeof(void *)) alignment = sizeof(void *);
  size_t all = bytes + alignment + sizeof(void *);
  void *given = zero ? calloc(1, all) : malloc(all);
  if (!given) return nullptr;
  uintptr_t at = (reinterpret_cast<uintptr_t>(given) + sizeof(void *) + alignment - 1) / alignment * alignment;
  void *memory = reinterpret_cast<void *>(at);
  static_cast<void **>(memory)[-1] = given;
  return memory;
}

void *Heap::allocate(uint64_t bytes, uint64_t alignment, bool zero) {
  if (bytes == 0 || bytes > SIZE_MAX / 2) return nullptr;
  if (!hooks.allocate) return fromLibc(bytes, alignment, zero);
  void *memory = hooks.allocate(hooks.self, bytes, alignment);
  if (memory && zero) memset(memory, 0, bytes);
  return memory;
}

void Heap::release(void *memory, uint64_t bytes, uint64_t alignment) {
  if (!memory) return;
  if (hooks.allocate)
    hooks.release(hooks.self, memory, bytes, alignment);
  else if (isLarge(bytes) && alignment <= kHugePage)
    unmapPages(memory, bytes);
  else
    free(static_cast<void **>(memory)[-1]);
}

const char *astra_status_name(astra_status status) {
  switch (status) {
#define NAME(s)                                                                                                        \
  case s: return #s
    NAME(ASTRA_OK);
    NAME(ASTRA_INVALID_ARGUMENT);
    NAME(ASTRA_NEWER_CLIENT);
    NAME(ASTRA_UNKNOWN_NAME);
    NAME(ASTRA_WRONG_DTYPE);
    NAME(ASTRA_WRONG_RANK);
    NAME(ASTRA_WRONG_SHAPE);
    NAME(ASTRA_OUT_OF_BOUNDS);
    NAME(ASTRA_EQUATION);
    NAME(ASTRA_WRONG_STRIDES);
    NAME(ASTRA_OVERLAP);
    NAME(ASTRA_CAPACITY);
    NAME(ASTRA_OVERFLOW);
    NAME(ASTRA_MISSING_VALUE);
    NAME(ASTRA_NOT_A_BUNDLE);
    NAME(ASTRA_TRUNCATED);
    NAME(ASTRA_NEWER_FORMAT);
    NAME(ASTRA_UNKNOWN_FEATURE);
    NAME(ASTRA_CORRUPT);
    NAME(ASTRA_MALFORMED);
    NAME(ASTRA_SIGNATURE);
    NAME(ASTRA_WRONG_CONTRACT);
    NAME(ASTRA_NO_TARGET);
    NAME(ASTRA_OUT_OF_MEMORY);
    NAME(ASTRA_IO);
    NAME(ASTRA_UNSUPPORTED);
    NAME(ASTRA_THREADS);
    NAME(ASTRA_DEVICE_LOST);
    NAME(ASTRA_DRIVER);
    NAME(ASTRA_NOT_READY);
    NAME(ASTRA_BUSY);
    NAME(ASTRA_IN_USE);
    NAME(ASTRA_FORKED);
    NAME(ASTRA_STATE_LOST);
    NAME(ASTRA_DATA_DIM);
    NAME(ASTRA_DEPENDENCY);
    NAME(ASTRA_KERNEL_FAULT);
    NAME(ASTRA_CANCELLED);
    NAME(ASTRA_FUNCTION_FAILED);
    NAME(ASTRA_PEER_LOST);
    NAME(ASTRA_PEER_DIFFERS);
#undef NAME
  }
  return "unknown status";
}

uint32_t astra_version(void) { return ASTRA_VERSION_MAJOR << 16 | ASTRA_VERSION_MINOR; }

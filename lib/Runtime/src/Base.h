//===- Base.h: status, diagnostics, memory, locks -------------------------===//
// Takes:    the host's allocator and logger.
// Gives:    what every other file of the runtime is written with; libstdc++ is used for headers only, never linked.
// Keeps:    no global state, no exception, no allocation outside the host's allocator.
// Does not: know bundles, devices or sessions.
#pragma once

#include "astra/astra.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <new>
#include <pthread.h>
#include <utility>

namespace astra::rt {

using Status = astra_status;

/// Fills `diag` (may be null) with the sentence and gives `status`. `if (...) return fail(...)` is the only error path.
[[gnu::cold, gnu::format(printf, 3, 4)]] Status fail(astra_diag *diag, Status status, const char *format, ...);

/// The same with ASTRA_MALFORMED, for the many rules of the format.
[[gnu::cold, gnu::format(printf, 2, 3)]] Status malformed(astra_diag *diag, const char *format, ...);

/// The system's words for an errno, in `text` or constant. libcs differ in what strerror_r gives.
const char *errorText(int error, char *text, size_t bytes);

/// A copy of a caller's struct, its missing tail zero. Refuses a null, a size below `least` and unknown nonzero fields.
Status readStruct(void *out, size_t outSize, const void *in, size_t least, const char *what, astra_diag *diag);
template <typename T> Status readStruct(T &out, const T *in, const char *what, astra_diag *diag) {
  return readStruct(&out, sizeof(T), in, sizeof(size_t), what, diag);
}
/// The same where null stands for all defaults.
template <typename T> Status readOptions(T &out, const T *in, const char *what, astra_diag *diag) {
  memset(static_cast<void *>(&out), 0, sizeof(T));
  return in ? readStruct(out, in, what, diag) : ASTRA_OK;
}

/// Copies as much as the caller's struct holds; a tail that this library does not know becomes zero.
Status writeStruct(void *out, const void *full, size_t fullSize);
template <typename T> Status writeStruct(T *out, const T &full) { return writeStruct(out, &full, sizeof(T)); }

inline bool add(uint64_t a, uint64_t b, uint64_t &out) { return !__builtin_add_overflow(a, b, &out); }
inline bool mul(uint64_t a, uint64_t b, uint64_t &out) { return !__builtin_mul_overflow(a, b, &out); }
inline bool roundUp(uint64_t value, uint64_t alignment, uint64_t &out) {
  if (!add(value, alignment - 1, out)) return false;
  out &= ~(alignment - 1);
  return true;
}

//===- Memory -------------------------------------------------------------===//

/// A mapping of its own, zeroed, that asks for huge pages; null when there is none.
void *mapPages(uint64_t bytes);
void unmapPages(void *memory, uint64_t bytes);

/// The host's allocator.
class Heap {
public:
  explicit Heap(const astra_allocator &hooks) : hooks(hooks) {}
  /// Zeroed when `zero`; null when there is none. bytes may be 0 (gives null).
  void *allocate(uint64_t bytes, uint64_t alignment, bool zero);
  void release(void *memory, uint64_t bytes, uint64_t alignment);

  template <typename T, typename... Args> T *make(Args &&...args) {
    void *memory = allocate(sizeof(T), alignof(T), true);
    return memory ? new (memory) T(std::forward<Args>(args)...) : nullptr;
  }
  template <typename T> void destroy(T *object) {
    if (!object) return;
    object->~T();
    release(object, sizeof(T), alignof(T));
  }
  const astra_allocator &allocator() const { return hooks; }

private:
  astra_allocator hooks;
};

/// A zeroed array that owns its memory. T is a type for which all bytes zero is the empty value.
template <typename T> class Array {
public:
  Array() = default;
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  ~Array() { clear(); }

  /// Replaces the content by `count` zeros; false when memory is short (the old content stays).
  bool init(Heap &from, uint64_t count, uint64_t align = alignof(T)) {
    uint64_t total;
    if (!mul(count, sizeof(T), total)) return false;
    void *memory = from.allocate(total, align, true);
    if (!memory && total) return false;
    clear();
    heap = &from, items = static_cast<T *>(memory), length = count, alignment = align;
    return true;
  }
  /// At least `count` long; the content is lost if it grows.
  bool reserve(Heap &from, uint64_t count, uint64_t align = alignof(T)) {
    return count <= length || init(from, count, align);
  }
  void clear() {
    for (uint64_t i = 0; i < length; i++) items[i].~T();
    if (items) heap->release(items, length * sizeof(T), alignment);
    items = nullptr, length = 0;
  }
  void swap(Array &other) {
    std::swap(heap, other.heap), std::swap(items, other.items);
    std::swap(length, other.length), std::swap(alignment, other.alignment);
  }
  T *data() { return items; }
  const T *data() const { return items; }
  uint64_t size() const { return length; }
  T &operator[](uint64_t i) { return items[i]; }
  const T &operator[](uint64_t i) const { return items[i]; }
  T *begin() { return items; }
  T *end() { return items + length; }

private:
  Heap *heap = nullptr;
  T *items = nullptr;
  uint64_t length = 0, alignment = alignof(T);
};

//===- Locks --------------------------------------------------------------===//

class Mutex {
public:
  Mutex() { pthread_mutex_init(&handle, nullptr); }
  ~Mutex() { pthread_mutex_destroy(&handle); }
  Mutex(const Mutex &) = delete;
  void lock() { pthread_mutex_lock(&handle); }
  bool tryLock() { return pthread_mutex_trylock(&handle) == 0; }
  void unlock() { pthread_mutex_unlock(&handle); }
  pthread_mutex_t handle;
};

class Lock {
public:
  explicit Lock(Mutex &m) : mutex(m) { mutex.lock(); }
  ~Lock() { mutex.unlock(); }
  Lock(const Lock &) = delete;

private:
  Mutex &mutex;
};

class Condition {
public:
  Condition() {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&handle, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  ~Condition() { pthread_cond_destroy(&handle); }
  Condition(const Condition &) = delete;
  void wait(Mutex &mutex) { pthread_cond_wait(&handle, &mutex.handle); }
  /// At most so long.
  void waitFor(Mutex &mutex, uint64_t ns) {
    timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    ns += uint64_t(until.tv_nsec);
    until.tv_sec += time_t(ns / 1'000'000'000), until.tv_nsec = long(ns % 1'000'000'000);
    pthread_cond_timedwait(&handle, &mutex.handle, &until);
  }
  void notifyOne() { pthread_cond_signal(&handle); }
  void notifyAll() { pthread_cond_broadcast(&handle); }

private:
  pthread_cond_t handle;
};

/// How many others use a handle.
using Users = std::atomic<uint32_t>;

} // namespace astra::rt

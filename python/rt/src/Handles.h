//===- Handles.h: the runtime's handles as Python objects hold them -------===//
// Takes:    options as Python gives them.
// Gives:    a struct for each handle of astra.h, shared by whatever needs it, so that handles are freed in the right
//           order whatever Python frees first; statuses as Python exceptions.
// Keeps:    a process that was forked frees and uses nothing of its parent.
// Does not: know Python's types of this module.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000 // one binary for CPython 3.10 and later
#include <Python.h>

#include "astra/astra.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <vector>

namespace astra::python {

/// How often this process was forked: a handle is good in the generation that made it.
unsigned forkGeneration();

/// What a Python exception is made for beside the statuses of astra.h (astra_rt/_errors.py).
enum : int32_t { kClosed = -1, kForked = ASTRA_FORKED };

/// Sets the Python exception of a status; gives null.
PyObject *raise(int32_t status, const char *text);
/// The callable (status, text) -> exception, from Python.
extern PyObject *exceptionMaker;

struct Diag : astra_diag {
  Diag() : astra_diag{} { size = sizeof(astra_diag); }
};

/// Runs fn without the GIL.
template <typename Fn> auto withoutGil(Fn fn) {
  PyThreadState *state = PyEval_SaveThread();
  auto result = fn();
  PyEval_RestoreThread(state);
  return result;
}

/// The runtime of this process, made once and never freed: devices may outlive the interpreter. Null with an exception.
astra_runtime *theRuntime();

/// A device, and the pool of host memory that outputs come from.
struct DeviceBox {
  std::string name;
  uint32_t threads = 1;
  std::string level;
  astra_device *device = nullptr;
  astra_device *host = nullptr; ///< where the pool is: the device, or a CPU beside a GPU
  astra_pool *pool = nullptr;
  unsigned generation = forkGeneration();
  ~DeviceBox();
};

/// The device of these options, shared with whoever has it already. Null with an exception.
std::shared_ptr<DeviceBox> openDevice(const char *name, uint32_t threads, const char *level);

/// This process among the ranks of a job (Ranks.cpp).
struct JobBox;
/// Holds what all calls of bundles for a mesh share: they go one at a time. Waits without the GIL.
void lockJob(JobBox &job);
void unlockJob(JobBox &job);
bool hasLeft(const JobBox &job); ///< with the lock

struct BundleBox {
  void *memory = nullptr; ///< of a bundle from bytes: a copy, aligned as the runtime wants it
  astra_bundle *bundle = nullptr;
  std::shared_ptr<JobBox> job; ///< of one whose collectives are the job's, or null
  unsigned generation = forkGeneration();
  ~BundleBox();
};

/// Of a bundle that calls collectives: from now on it is the job's, if this process has joined one.
void joinJob(BundleBox &bundle);

/// From a file, or from bytes if `path` is null. Null with an exception.
std::shared_ptr<BundleBox> openBundle(const char *path, const void *data, size_t bytes, uint32_t flags);

struct LoadedBox {
  std::shared_ptr<BundleBox> bundle;
  std::shared_ptr<DeviceBox> device;
  astra_loaded *loaded = nullptr;
  unsigned generation = forkGeneration();
  ~LoadedBox();
};

struct TraceEvent {
  std::string name;
  uint64_t begin, end;
  int64_t items, bytes, flops;
  std::vector<std::string> origins;
  uint32_t moreOrigins;
};

/// A mutex that another thread may unlock than the one that locked it.
class Turn {
public:
  void lock() { free.acquire(); }
  bool try_lock() { return free.try_acquire(); }
  void unlock() { free.release(); }

private:
  std::binary_semaphore free{1};
};

struct SessionBox {
  std::shared_ptr<LoadedBox> loaded;
  astra_session *session = nullptr;
  astra_stream *stream = nullptr;
  Turn mutex;               ///< held from before a call's first look at the session to its end
  uint64_t dimsVersion = 0; ///< how often a host dim was set
  std::mutex traceMutex;
  std::vector<TraceEvent> trace;
  unsigned generation = forkGeneration();
  void close(); ///< with the mutex
  ~SessionBox() { close(); }
};

/// Holds a session while it is used; several threads take turns. It waits without the GIL.
class SessionLock {
public:
  explicit SessionLock(SessionBox &box) : box(box) {
    if (box.generation != forkGeneration()) {
      raise(kForked, "the module belongs to the parent process; load it again in this one");
      return;
    }
    if (!box.mutex.try_lock()) withoutGil([&] { return box.mutex.lock(), 0; });
    locked = true;
    if (!box.session) {
      raise(kClosed, "the session is closed; load the module again");
      return;
    }
    job = box.loaded->bundle->job.get();
    if (job) lockJob(*job);
    left = job && hasLeft(*job);
    if (left) raise(kClosed, "this process has left the job of ranks that the module is for");
  }
  SessionLock(const SessionLock &) = delete;
  ~SessionLock() {
    if (job) unlockJob(*job);
    if (locked) box.mutex.unlock();
  }
  /// False with an exception: of a closed session, or in a forked process.
  explicit operator bool() const { return locked && box.session && !left; }

private:
  SessionBox &box;
  JobBox *job = nullptr;
  bool locked = false, left = false;
};

} // namespace astra::python

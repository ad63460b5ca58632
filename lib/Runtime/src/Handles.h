//===- Handles.h: runtime, device, pool, buffer, bundle, loaded -----------===//
// Takes:    the opaque names of astra.h.
// Gives:    their structs and the rules of their lives; sessions, streams and promises are in Session.h and Stream.h.
// Keeps:    each handle counts who uses it (`users`); freeing what is used is refused.
// Does not: hold anything global.
#pragma once

#include "DType.h"
#include "FreeBlocks.h"
#include "Reader.h"
#include "astra/gpu.h"

namespace astra::rt {

struct DeviceType;
struct Gpu;
struct ThreadPool;

/// The head of every handle. Declares nothing of its own beyond what all of them need.
struct Handle {
  explicit Handle(astra_runtime *runtime) : runtime(runtime) {}
  astra_runtime *runtime;
  Users users{0};
};

/// Refuses a null, and a handle of the parent process.
Status checkHandle(const Handle *handle, const char *what, astra_diag *diag);
/// Refuses freeing what is used or foreign.
Status checkFree(const Handle *handle, const char *what);

/// Whether this process made it, or a forked child holds a copy: a page that the system gives to a child as zeros
/// (madvise(2), MADV_WIPEONFORK), since asking for the process's number takes a tenth of a microsecond; where there is
/// none, that number.
class Birthplace {
public:
  Birthplace();
  Birthplace(const Birthplace &) = delete;
  ~Birthplace();
  bool isHere() const;

private:
  int32_t *mark; ///< null: none; 1 in the process that made it
  int32_t process;
};

} // namespace astra::rt

namespace astra::rt {

/// A function of the host, as it was registered.
struct HostFunction {
  astra_function_fn fn; ///< null: none
  void *self;
  uint32_t flags;
  astra_gpu_function_fn gpu; ///< on a GPU's memory; null: by copies
  astra_gpu_settle_fn settle;
  void *settleSelf;
};
struct RegisteredFunction : HostFunction {
  RegisteredFunction *next;
  uint64_t bytes; ///< of this and the name
  char *name() { return reinterpret_cast<char *>(this + 1); }
};

} // namespace astra::rt

struct astra_runtime : astra::rt::Handle {
  astra_runtime(const astra_allocator &allocator, const astra_logger &logger, astra_verify_fn verify)
      : Handle(this), heap(allocator), logger(logger), verify(verify) {}
  /// Formats a line for the host's logger, if it gave one.
  [[gnu::cold, gnu::format(printf, 3, 4)]] void log(int32_t level, const char *format, ...) const;

  astra::rt::Heap heap;
  astra_logger logger;
  astra_verify_fn verify;
  astra::rt::Birthplace birthplace;

  /// Order between streams, and the calls in flight (Stream.cpp, Flight.cpp).
  astra::rt::Mutex order;
  astra::rt::Array<uint64_t> ticks; ///< per stream number: tasks submitted so far; kept when a number is used again
  astra::rt::Array<bool> taken;     ///< per stream number: a stream has it
  astra::rt::Array<uint64_t> next;  ///< of `place`: the clock of the task at hand, then one for the next
  astra::rt::Array<uint64_t> named; ///< of `place`: per stream number: the last of its tasks that `after` names
  uint64_t submits = 0;             ///< tasks of all streams
  struct astra_session *flight = nullptr;

  astra::rt::Mutex registry;
  astra::rt::RegisteredFunction *functions = nullptr;
  /// The function of that name, all zeros if there is none.
  astra::rt::HostFunction functionOf(const char *name);

  /// Promises that are free, with their memory: a call after the first asks the allocator for nothing.
  astra::rt::Mutex spares;
  struct astra_promise *spare = nullptr;
};

struct astra_device : astra::rt::Handle {
  astra_device(astra_runtime *runtime, const astra::rt::DeviceType &type) : Handle(runtime), type(type) {}
  const astra::rt::DeviceType &type;
  astra_executor executor{}; ///< num_workers >= 1; parallel_for null if there is one worker, enqueue may be null
  astra::rt::ThreadPool *threads = nullptr; ///< ours, if the caller asked for threads
  char level[64] = {};                      ///< forced level, or empty; of a GPU its architecture
  astra_emulator emulator{};                ///< of a device "emu:...": what does its launches
  astra::rt::Gpu *gpu = nullptr;            ///< of a device "cuda:N" or "hip:N" (Gpu.h)
};

namespace astra::rt {

void retain(Block *block);
/// For task `tick` of a stream; runtime.order is locked.
void retain(Block *block, uint32_t stream, uint64_t tick);
/// The last one gives the block back to its pool.
void release(Block *block);

} // namespace astra::rt

struct astra_pool : astra::rt::Handle {
  astra_pool(astra_device *device, const astra_pool_options &o)
      : Handle(device->runtime), device(device), maxBytes(o.max_bytes), node(o.node), flags(o.flags) {}
  bool isPinned() const { return flags & ASTRA_POOL_PINNED; }
  astra_device *device;
  uint64_t maxBytes;
  uint32_t node, flags; ///< as in astra_pool_options
  astra::rt::Mutex mutex;
  astra::rt::FreeBlocks whole, parts;      ///< free segments, and free parts of others
  astra::rt::Block *busy = nullptr;        ///< those that only calls in flight have, the last one first
  astra::rt::Block *spareBlocks = nullptr; ///< descriptions without memory, by `behind`
  astra_buffer *spareBuffers = nullptr;    ///< those that were freed
  uint64_t made = 0;                       ///< blocks so far
  astra_pool_stats stats{};
};

struct astra_buffer : astra::rt::Handle {
  astra_buffer(astra_pool *pool, astra::rt::Block *block, uint64_t offset, uint64_t bytes)
      : Handle(pool->runtime), pool(pool), block(block), offset(offset), bytes(bytes) {}
  astra_pool *pool;
  astra::rt::Block *block; ///< null for 0 bytes
  uint64_t offset, bytes;
  astra_buffer *nextSpare = nullptr;
  void *data() const { return block ? static_cast<char *>(block->memory) + offset : nullptr; }
  bool onGpu() const { return pool->device->gpu && !pool->isPinned(); }
};

struct astra_entry {
  const astra_bundle *bundle;
  const astra::rt::fmt::Entry *table;
  uint32_t index;
  bool waitsOnHost;
  /// Extents of inputs, then outputs: for each tensor its lower bounds, then its upper bounds.
  const int64_t **ranges;
};

struct astra_bundle : astra::rt::Handle {
  explicit astra_bundle(astra_runtime *runtime) : Handle(runtime) {}
  ~astra_bundle();
  const astra::rt::fmt::Manifest &manifest() const { return *file.manifest; }

  astra::rt::FileView file{};
  int descriptor = -1;     ///< of a mapped file; -1 for memory
  void *mapping = nullptr; ///< of a mapped file
  astra::rt::Array<astra_entry> entries;
  astra::rt::Array<int64_t> ranges;          ///< what the infos' lower and upper point to
  astra::rt::Array<const int64_t *> tensors; ///< per entry: inputs, then outputs
  astra::rt::Array<const int64_t *> params, states;
  astra::rt::Array<uint32_t> userParams; ///< indices of the params that a user may replace
  struct Constant {
    int64_t value;
    bool known;
  };
  astra::rt::Array<Constant> constants; ///< per expression: its value, if it is one number and no more
};

namespace astra::rt {

/// The bundle's expression as `evaluate` of its manifest gives it; constants, which most are, without reading the
/// manifest: a call evaluates several for each of its launches.
inline Status evaluate(const astra_bundle &bundle, uint32_t index, const int64_t *dims, int64_t &out,
                       astra_diag *diag) {
  const astra_bundle::Constant &constant = bundle.constants[index];
  if (!constant.known) return evaluate(bundle.manifest(), index, dims, out, diag);
  out = constant.value;
  return ASTRA_OK;
}

/// Machine code of one target, ready to run.
struct Code {
  void *base;
  uint64_t bytes;
  void **functions; ///< per kernel, where code has no place of its own
};

/// The stored bytes of a param that a user set.
struct ParamValue {
  void *data;
  uint64_t bytes;
};

/// Memory of a device, owned.
class DeviceMemory {
public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  ~DeviceMemory() { clear(); }
  /// At least so many bytes, zeros where they are new; the content is lost if it grows.
  Status reserve(astra_device *on, uint64_t wanted, astra_diag *diag);
  void clear();
  uint8_t *data() const { return static_cast<uint8_t *>(memory); }
  uint64_t size() const { return bytes; }

private:
  astra_device *device = nullptr;
  void *memory = nullptr;
  uint64_t bytes = 0;
};

} // namespace astra::rt

struct astra_loaded : astra::rt::Handle {
  astra_loaded(astra_bundle *bundle, astra_device *device) : Handle(bundle->runtime), bundle(bundle), device(device) {}
  astra_bundle *bundle;
  astra_device *device;
  uint32_t target = 0; ///< index into the manifest's targets
  astra::rt::Code code{};
  astra::rt::DeviceMemory weights;                     ///< where the device cannot read them in the file
  astra::rt::Array<astra::rt::HostFunction> functions; ///< of the manifest's, what is called
  astra::rt::Array<const void *> params;               ///< stored bytes; null: the user must set them
  astra::rt::Array<astra::rt::ParamValue> owned;       ///< those that the user set
  uint64_t changes = 0;                                ///< how often one was set; with the mutex locked
  astra::rt::Mutex mutex;                              ///< of the params, against the next line
  std::atomic<uint32_t> flying{0};                     ///< calls in flight
};

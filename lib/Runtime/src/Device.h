//===- Device.h: what a kind of device can do -----------------------------===//
// Takes:    nothing.
// Gives:    the table of functions that stands between the runtime and a kind of device; the CPU is one.
// Keeps:    everything above this line (sessions, streams, programs) is the same for every kind.
// Does not: know bundles beyond a target's row.
#pragma once

#include "Handles.h"

namespace astra::rt {

/// One launch, every expression evaluated.
struct Launch {
  const void *entry; ///< first instruction, in Code
  void *const *buffers;
  const int64_t *dims;
  int64_t items;    ///< > 0
  uint8_t *scratch; ///< workers * scratchStride bytes
  uint64_t scratchStride;
  int64_t cost; ///< bytes or operations, whichever is more; -1 if not known
  const fmt::Kernel *kernel;
  const fmt::KernelCode *code;
  const fmt::Target *target;
  const uint64_t *bufferBytes;
};

struct DeviceType {
  Status (*init)(astra_device *device, const char *name, const astra_device_options &options, astra_diag *diag);
  void (*destroy)(astra_device *device);
  int (*hasFeature)(const char *name);
  /// Whether the device could run a target of this architecture and kind at all.
  bool (*accepts)(const fmt::Target &target);
  /// Maps a code section; `bundle` stays alive while the code does.
  Status (*load)(astra_device *device, const astra_bundle &bundle, const fmt::Section &section, Code &out,
                 astra_diag *diag);
  void (*unload)(astra_device *device, Code &code);
  Status (*launch)(astra_device *device, const Launch &launch, astra_diag *diag);
  void (*copy)(astra_device *device, void *dst, const void *src, uint64_t bytes);
};

extern const DeviceType cpuDevice;      // CpuDevice.cpp
extern const DeviceType emulatedDevice; // EmulatedDevice.cpp

//===- Threads made on request (Threads.cpp) ------------------------------===//

/// Null when memory or a thread cannot be had; `status` says which.
ThreadPool *makeThreads(Heap &heap, uint32_t count, Status &status);
void destroyThreads(Heap &heap, ThreadPool *threads);
/// The hooks of a host's executor, implemented by our pool.
astra_executor executorOf(ThreadPool *threads);
/// Room for one more queued task, so that enqueue never allocates.
bool reserveTask(ThreadPool *threads);
void unreserveTask(ThreadPool *threads);
/// A thread that waits works meanwhile: until `state` is no longer ASTRA_NOT_READY, or nothing has come for a while, it
/// shares in launches and runs `instead` in place of the task queued for `queued`, if no worker took that. It has
/// entered before, while it knew that the threads are there; they stay until it leaves.
void enterThreads(ThreadPool *threads);
void helpThreads(ThreadPool *threads, const std::atomic<Status> &state, const void *queued, void (*instead)(void *),
                 void *arg);

} // namespace astra::rt

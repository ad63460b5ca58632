//===- Device.h: what a kind of device can do -----------------------------===//
// Takes:    nothing.
// Gives:    the table of functions that stands between the runtime and a kind of device; the CPU is one.
// Keeps:    everything above this line (sessions, streams, programs) is the same for every kind.
// Does not: know bundles beyond a target's row.
#pragma once

#include "Handles.h"

#include <sched.h>

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
  void *queue; ///< a GPU's; null: it runs here and now
};

/// To the device, from it, on it.
enum class Way : uint8_t { In, Out, On };

struct DeviceType {
  Status (*init)(astra_device *device, const char *name, const astra_device_options &options, astra_diag *diag);
  void (*destroy)(astra_device *device);
  int (*hasFeature)(const char *name);
  /// Whether the device could run a target of this architecture and kind at all; null where `choose` says which.
  bool (*accepts)(const fmt::Target &target);
  Status (*choose)(const astra_device *device, const astra_bundle &bundle, uint32_t &target, astra_diag *diag);
  /// Maps the code of a target; `bundle` stays alive while the code does.
  Status (*load)(astra_device *device, const astra_bundle &bundle, uint32_t target, Code &out, astra_diag *diag);
  void (*unload)(astra_device *device, Code &code);
  Status (*launch)(astra_device *device, const Launch &launch, astra_diag *diag);
  /// Memory of the device, 64-byte aligned. bytes is above 0.
  Status (*allocate)(astra_device *device, uint64_t bytes, bool zero, void *&out, astra_diag *diag);
  void (*release)(astra_device *device, void *memory, uint64_t bytes);
  /// In the order of the queue; a null one copies here and now.
  Status (*copy)(astra_device *device, void *queue, Way way, void *to, const void *from, uint64_t bytes,
                 astra_diag *diag);
  /// Waits for all of a queue.
  Status (*settle)(astra_device *device, void *queue, astra_diag *diag);

  // Null where calls end before they return: queues that run by themselves, and places in them.
  Status (*makeQueue)(astra_device *device, void *&out, astra_diag *diag);
  void (*freeQueue)(astra_device *device, void *queue);
  Status (*makeEvent)(astra_device *device, void *&out, astra_diag *diag);
  void (*freeEvent)(astra_device *device, void *event);
  Status (*record)(astra_device *device, void *event, void *queue, astra_diag *diag);
  /// What comes next in the queue begins after the event.
  Status (*await)(astra_device *device, void *queue, void *event);
  /// ASTRA_NOT_READY, or how what is before the event has ended.
  Status (*ended)(astra_device *device, void *event, bool wait);
  /// fn(arg) on a thread of the driver, in the order of the queue; it may not call the driver.
  Status (*notify)(astra_device *device, void *queue, void (*fn)(void *), void *arg);
};

extern const DeviceType cpuDevice;      // CpuDevice.cpp
extern const DeviceType emulatedDevice; // EmulatedDevice.cpp
extern const DeviceType gpuDevice;      // GpuDevice.cpp

/// What the CPU does, for devices that do it alike (CpuDevice.cpp).
namespace cpu {
Status init(astra_device *device, const char *name, const astra_device_options &options, astra_diag *diag);
void destroy(astra_device *device);
Status load(astra_device *device, const astra_bundle &bundle, uint32_t target, Code &out, astra_diag *diag);
void unload(astra_device *device, Code &code);
Status allocate(astra_device *device, uint64_t bytes, bool zero, void *&out, astra_diag *diag);
void release(astra_device *device, void *memory, uint64_t bytes);
Status copy(astra_device *device, void *queue, Way way, void *to, const void *from, uint64_t bytes, astra_diag *diag);
Status settle(astra_device *device, void *queue, astra_diag *diag);
} // namespace cpu

/// Memory of the host that a GPU's driver has pinned (GpuDevice.cpp).
Status pin(astra_device *device, uint64_t bytes, void *&out, astra_diag *diag);
void unpin(astra_device *device, void *memory);
/// Zeros in a GPU's memory, in the order of the queue.
Status clear(astra_device *device, void *queue, void *to, uint64_t bytes, astra_diag *diag);
/// fn(arg) while a GPU is current on this thread.
Status within(astra_device *device, Status (*fn)(void *arg), void *arg);

/// ASTRA_DEVICE_LOST for a GPU whose context is broken.
Status checkDevice(const astra_device *device, astra_diag *diag);
/// The queue of what belongs to no stream; null for a device that has none.
void *ownQueue(const astra_device *device);
/// Ends what has run to its end on a device whose queues run by themselves; nothing on others. No lock is held.
void progress(astra_device *device);

//===- Threads made on request (Threads.cpp) ------------------------------===//

/// Null when memory or a thread cannot be had; `status` says which. spinNs as in astra_device_options; cpus: where they
/// stay, null for anywhere.
ThreadPool *makeThreads(Heap &heap, uint32_t count, int64_t spinNs, const cpu_set_t *cpus, Status &status);
void destroyThreads(Heap &heap, ThreadPool *threads);
/// Of a clock that only goes on.
uint64_t nowNs();
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

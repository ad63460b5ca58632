//===- Gpu.h: a GPU, and what is in flight on it --------------------------===//
// Takes:    a driver's table (Driver.h).
// Gives:    the state of a device "cuda:N" or "hip:N"; events; the end of what runs behind submit (Flight.cpp).
// Keeps:    a context that is lost stays lost: its first sentence is given to every call from then on.
// Does not: lay out memory or read bundles.
#pragma once

#include "Device.h"
#include "Driver.h"
#include "Stream.h"

namespace astra::rt {

/// A place in a queue of the driver. Counted by the promise it ends, by who waits for it, and by its task.
struct Event {
  Event *next; ///< among the device's unused ones
  void *handle;
  astra_device *device;
  void *queue; ///< where it was recorded
  std::atomic<uint32_t> refs;
};

struct Gpu {
  const DriverKind *kind;
  DriverCalls calls;
  int version; ///< of the driver, as it counts: CUDA's 13000 of 13.0
  int ordinal; ///< the driver's number of the device
  void *context;
  int sm; ///< NVIDIA: 90 of sm_90
  bool allowPtx;
  /// Where copies and launches outside of streams go.
  void *queue;

  std::atomic<bool> lost;
  Mutex losing;    ///< of the next one, until `lost` is set
  astra_diag loss; ///< what every call gives from then on
  Mutex mutex;     ///< of what follows
  Event *unused;
  uint32_t events; ///< in use
  Condition idle;  ///< none is
  astra_stream *streams;
  Task *ended;     ///< whose events have come, in the order of their submits
  uint32_t ending; ///< how many the thread `ender` is ending, one inside of another
  pthread_t ender;

  // Who is told of ends (Watch.cpp).
  Mutex watching; ///< of `hasWatcher` and the streams' `bells`
  bool hasWatcher;
  pthread_t watcher;
  Mutex bellMutex; ///< of what follows; held for some instructions only
  Condition bell;
  bool rung, stop;
  bool asleep; ///< the watcher looks for what is in flight, or found nothing
};

/// The sentence of a failed driver call; notes a loss. `what` is what the call was for.
[[gnu::cold]] Status driverFailed(astra_device *device, int error, const char *what, astra_diag *diag);

//===- Flight.cpp ---------------------------------------------------------===//

/// Marks the end of what the stream's queue has so far.
Status recordEvent(astra_stream *stream, Event *&out, astra_diag *diag);
void release(Event *event);
/// Destroys the events that nobody uses.
void freeEvents(astra_device *device);

/// The task's work is in the stream's queue: it ends when its event does. The task is no longer the caller's.
Status fly(astra_stream *stream, Task *task, Ready &ready, astra_diag *diag);
/// The event of a promise whose work is in a queue, counted for the caller; null if it is not, or has ended.
Event *eventOf(astra_promise *promise);
/// Lets what comes next in the stream begin after the event: by the driver between streams of one device. False if this
/// thread has waited instead: then the promise has ended, or somebody is about to end it.
bool orderAfter(astra_stream *stream, Event *event, Ready &ready);
/// Ends what has run to its end.
void progress(astra_device *device, Ready &ready);
/// Waits for everything in a stream.
void finishStream(astra_stream *stream);

//===- Watch.cpp ----------------------------------------------------------===//

/// From now on what ends in the stream is ended without anybody asking.
Status watch(astra_stream *stream, astra_diag *diag);
/// What the stream has in flight, of which the event is the last, is watched.
void ringAfter(astra_stream *stream, void *bells, Event *event);
void stopWatching(astra_device *device);

} // namespace astra::rt

//===- Stream.h: FIFO queues and promises ---------------------------------===//
// Takes:    tasks: calls of sessions, marks, waits.
// Gives:    their order; promises that say how they ended.
// Keeps:    no thread waits for another stream: a stream whose next task must wait parks itself at the promise and is
//           taken up again by whoever completes it.
// Does not: know what a call does (Session.h).
#pragma once

#include "Device.h"

namespace astra::rt {

/// What waits at a promise: a parked stream.
struct Waiter {
  Waiter *next;
  astra_stream *stream;
};

/// Streams without threads that can go on; drained one after another, so that chains of streams do not nest.
struct Ready {
  astra_stream *first = nullptr;
};

struct Event;

/// Whom to call when a promise has ended.
struct Continuation {
  Continuation *next;
  astra_ready_fn fn;
  void *self;
};

/// What can still be taken back.
enum class Phase : uint8_t { Queued, Begun, Cancelled };

/// A copy between host memory and a buffer.
struct Transfer {
  void *to;
  const void *from;
  uint64_t bytes;
  bool toHost;
  Block *block; ///< counted
};

struct Task {
  Task *next = nullptr;             ///< in the stream, then among its flights
  astra_promise *promise = nullptr; ///< counted; completed when the task has ended
  astra_session *session = nullptr; ///< null: a mark or a wait, made on the heap
  astra_promise **after = nullptr;  ///< counted; the task begins when they have ended
  uint32_t numAfter = 0, waited = 0;
  uint32_t numNeeded = 0, numWaits = 0; ///< the first ones, whose order nothing else gives; of them not yet ended
  bool afterFailed = false;
  astra_promise *single = nullptr;  ///< storage of `after` for a wait
  astra_runtime *runtime = nullptr; ///< of a task without a session
  Transfer transfer{};              ///< of a task without a session; nothing if it has no bytes

  uint64_t number = 0; ///< of its submit, among those of the runtime

  // Once its work is in a queue that runs by itself (Flight.cpp).
  astra_stream *stream = nullptr;
  Event *event = nullptr; ///< counted
  Status ended = ASTRA_OK;
};

astra_promise *makePromise(astra_runtime *runtime, astra_diag *diag);
void retain(astra_promise *promise);
void release(astra_promise *promise);
void complete(astra_promise *promise, Status status, const astra_diag *error, Ready &ready);
/// Calls them, one after the other; no lock is held (Continue.cpp).
void callAll(astra_promise *promise, Continuation *first, Status status);
/// Of a runtime that nobody uses.
void freeSpares(astra_runtime *runtime);

/// With runtime.order locked: what will have ended before the task's own end, in runtime.next, and its promise knows;
/// the promises of `after` that it has to wait for come first. False when memory is short. Nothing else has changed:
/// `append`, or forget it.
bool place(astra_stream *stream, Task &task);
/// With runtime.order still locked after `place`: the task takes its place in the stream's order. Gives whether the
/// caller must `start` the stream when order is unlocked.
bool append(astra_stream *stream, Task &task);
/// Lets the stream go on: on the device's workers, or here. `small`: the promise of its next task, which takes less
/// time than a worker takes to come: it runs here too; null: there is none.
void start(astra_stream *stream, astra_promise *small = nullptr);

/// Takes up the streams that were parked.
void scheduleAll(Waiter *waiters, Ready &ready);
void pump(Ready &ready);
/// Frees what the task holds and completes its promise; `error` may be null where status is that of the device.
void endTask(Task *task, Status status, Ready &ready, const astra_diag *error = nullptr);

/// Runs a call, or puts its work into the stream's queue (Call.cpp). `afterFailed`: do not.
Status runCall(astra_session *session, astra_stream *stream, bool afterFailed, astra_diag *error);
/// Frees the session for the next call.
void endCall(astra_session *session, Status status);

} // namespace astra::rt

struct astra_promise : astra::rt::Handle {
  explicit astra_promise(astra_runtime *runtime) : Handle(runtime) { error.size = sizeof(error); }
  std::atomic<uint32_t> refs{1};
  std::atomic<astra_status> state{ASTRA_NOT_READY};
  astra_stream *stream = nullptr; ///< that of its task; there as long as the state is ASTRA_NOT_READY
  astra::rt::Mutex mutex;
  astra::rt::Condition ended;
  astra::rt::Waiter *waiters = nullptr;
  astra::rt::Continuation *continuations = nullptr; ///< in the order in which they came
  astra::rt::Continuation *lastContinuation = nullptr;
  astra::rt::Continuation own{}; ///< memory of the first of them: who asks once a call allocates nothing
  std::atomic<astra::rt::Phase> phase{astra::rt::Phase::Queued};
  astra_promise *nextSpare = nullptr;
  astra::rt::Event *event = nullptr; ///< counted; there while it is not completed and its work is in a queue
  astra_diag error{};
  uint32_t number = 0;               ///< of its stream
  astra::rt::Array<uint64_t> clock;  ///< per stream number: how many of its tasks ended before this promise
  astra::rt::Array<int64_t> extents; ///< outputs' ranks, then their extents one after another
  uint32_t numOutputs = 0;
};

struct astra_stream : astra::rt::Handle {
  explicit astra_stream(astra_device *device) : Handle(device->runtime), device(device) {}
  astra_device *device;
  astra::rt::Mutex mutex;
  astra::rt::Condition idle;
  astra::rt::Task *head = nullptr, *tail = nullptr;
  bool running = false; ///< somebody drains it, or it is parked at a promise
  astra::rt::Waiter waiter{};
  astra_stream *nextReady = nullptr;
  uint32_t number = 0;
  astra::rt::Array<uint64_t> clock; ///< what is known to have ended before the next task; with runtime.order locked
  astra_stream_stats stats{};       ///< with runtime.order locked

  void *queue = nullptr;                                     ///< of a GPU's driver
  void *bells = nullptr;                                     ///< another, of who is told of ends (Watch.cpp); or null
  astra::rt::Task *flights = nullptr, *lastFlight = nullptr; ///< tasks whose work is in the queue
  uint32_t helpers = 0;                                      ///< tasks that somebody is ending
  astra_stream *nextOfDevice = nullptr;                      ///< with gpu.mutex locked
};

//===- Stream.cpp: FIFO queues and promises -------------------------------===//
// Takes:    see Stream.h.
// Gives:    astra_stream_*, astra_promise_*.
// Keeps:    a promise is completed once; whoever completes it resumes the streams parked there.
// Does not: block a worker on another stream.
//
// Note [Order between calls]
// Each stream has a number and counts its tasks. A clock holds, per stream number, how many of its tasks are known to
// end before a point. A stream's clock grows by its own tasks and by the clocks of the promises it waits for. So a call
// knows which calls in flight are ordered before it; with the others it may share no memory that one of them writes.
#include "Stream.h"

using namespace astra::rt;

//===- Promises -----------------------------------------------------------===//

astra_promise *astra::rt::makePromise(astra_runtime *runtime, astra_diag *diag) {
  astra_promise *promise = runtime->heap.make<astra_promise>(runtime);
  if (!promise) {
    fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a promise");
    return nullptr;
  }
  runtime->users++;
  return promise;
}

void astra::rt::retain(astra_promise *promise) { promise->refs.fetch_add(1, std::memory_order_relaxed); }

void astra::rt::release(astra_promise *promise) {
  if (!promise || promise->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  astra_runtime *runtime = promise->runtime;
  runtime->heap.destroy(promise);
  runtime->users--;
}

namespace {

bool isInline(const astra_stream *stream) { return !stream->device->executor.enqueue; }

void drain(astra_stream *stream, Ready &ready, const astra_promise *until = nullptr);

void pump(Ready &ready) {
  while (astra_stream *stream = ready.first) {
    ready.first = stream->nextReady;
    drain(stream, ready);
  }
}

void push(astra_stream *stream, Ready &ready) {
  stream->nextReady = ready.first;
  ready.first = stream;
}

void drainOnWorker(void *stream) {
  Ready ready;
  push(static_cast<astra_stream *>(stream), ready);
  pump(ready);
}

void schedule(astra_stream *stream, Ready &ready) {
  const astra_executor &e = stream->device->executor;
  if (isInline(stream) || e.enqueue(e.self, drainOnWorker, stream) != 0) push(stream, ready);
}

/// Parks the stream at the promise; false if it has ended meanwhile.
bool park(astra_stream *stream, astra_promise *promise) {
  Lock lock(promise->mutex);
  if (promise->state.load(std::memory_order_relaxed) != ASTRA_NOT_READY) return false;
  stream->waiter = {promise->waiters, stream};
  promise->waiters = &stream->waiter;
  return true;
}

void destroyTask(astra_runtime *runtime, Task *task) {
  for (uint32_t i = 0; i < task->numAfter; i++) release(task->after[i]);
  runtime->heap.destroy(task);
}

/// Runs tasks until none is left or the next one must wait, or, if the device's workers can go on, `until` has ended.
/// The caller owns `running`.
void drain(astra_stream *stream, Ready &ready, const astra_promise *until) {
  for (;;) {
    Task *task;
    {
      Lock lock(stream->mutex);
      task = stream->head;
      if (!task) {
        stream->running = false;
        stream->idle.notifyAll();
        return;
      }
    }
    if (until && until->state.load(std::memory_order_relaxed) != ASTRA_NOT_READY) {
      const astra_executor &e = stream->device->executor;
      if (e.enqueue(e.self, drainOnWorker, stream) == 0) return;
    }
    while (task->waited < task->numAfter) {
      astra_promise *promise = task->after[task->waited];
      Status state = promise->state.load(std::memory_order_acquire);
      if (state == ASTRA_NOT_READY) {
        if (park(stream, promise)) return;
        continue;
      }
      task->afterFailed |= state != ASTRA_OK;
      task->waited++;
    }
    {
      Lock lock(stream->mutex);
      stream->head = task->next;
      if (!stream->head) stream->tail = nullptr;
    }
    astra_promise *promise = task->promise;
    Status status = ASTRA_OK;
    astra_diag error;
    error.size = sizeof(error);
    if (task->session)
      runCall(task->session, task->afterFailed, status, error); // from here on the task may be used again
    else
      destroyTask(stream->runtime, task);
    if (promise) complete(promise, status, &error, ready);
  }
}

} // namespace

void astra::rt::complete(astra_promise *promise, Status status, const astra_diag *error, Ready &ready) {
  Waiter *waiters;
  {
    Lock lock(promise->mutex);
    if (status != ASTRA_OK && error) promise->error = *error;
    promise->state.store(status, std::memory_order_release);
    waiters = promise->waiters;
    promise->waiters = nullptr;
    promise->ended.notifyAll();
  }
  while (waiters) {
    Waiter *next = waiters->next; // the waiter is part of its stream and may be used again once it is scheduled
    schedule(waiters->stream, ready);
    waiters = next;
  }
  release(promise);
}

astra_status astra_promise_poll(astra_promise *promise, astra_diag *diag) {
  if (Status s = checkHandle(promise, "the promise", diag)) return s;
  Status state = promise->state.load(std::memory_order_acquire);
  if (state == ASTRA_OK || state == ASTRA_NOT_READY) return state;
  return fail(diag, state, "%s", promise->error.text);
}

namespace {

/// What a waiting thread does: see Note [Who looks and who sleeps] in Threads.cpp.
struct Waiting {
  astra_stream *stream;
  const astra_promise *promise;
};

void drainWhileWaiting(void *arg) {
  Waiting &waiting = *static_cast<Waiting *>(arg);
  Ready ready;
  drain(waiting.stream, ready, waiting.promise);
  pump(ready);
}

} // namespace

astra_status astra_promise_wait(astra_promise *promise, astra_diag *diag) {
  if (Status s = checkHandle(promise, "the promise", diag)) return s;
  if (promise->state.load(std::memory_order_acquire) == ASTRA_NOT_READY) {
    ThreadPool *threads = nullptr;
    Waiting waiting{nullptr, promise};
    {
      Lock lock(promise->mutex); // a promise that has not ended has its stream, and that its device
      if (promise->state.load(std::memory_order_relaxed) == ASTRA_NOT_READY) {
        waiting.stream = promise->stream;
        threads = waiting.stream->device->threads;
        if (threads) enterThreads(threads);
      }
    }
    if (threads) helpThreads(threads, promise->state, waiting.stream, drainWhileWaiting, &waiting);
    Lock lock(promise->mutex);
    while (promise->state.load(std::memory_order_acquire) == ASTRA_NOT_READY) promise->ended.wait(promise->mutex);
  }
  return astra_promise_poll(promise, diag);
}

astra_status astra_promise_output_shape(astra_promise *promise, uint32_t output, int64_t *shape, int32_t *ndim,
                                        astra_diag *diag) {
  if (Status s = astra_promise_poll(promise, diag)) {
    if (s == ASTRA_NOT_READY) return fail(diag, s, "the call has not ended; wait for the promise first");
    return s;
  }
  if (output >= promise->numOutputs)
    return fail(diag, ASTRA_UNKNOWN_NAME, "the call has %u outputs and no output %u", promise->numOutputs, output);
  const int64_t *ranks = promise->extents.data(), *extents = ranks + promise->numOutputs;
  for (uint32_t i = 0; i < output; i++) extents += ranks[i];
  if (shape && ranks[output]) memcpy(shape, extents, uint64_t(ranks[output]) * sizeof(int64_t));
  if (ndim) *ndim = int32_t(ranks[output]);
  return ASTRA_OK;
}

astra_status astra_promise_free(astra_promise **promise) {
  if (!promise || !*promise) return ASTRA_OK;
  if (Status s = checkHandle(*promise, "the promise", nullptr)) return s;
  release(*promise);
  *promise = nullptr;
  return ASTRA_OK;
}

//===- Streams ------------------------------------------------------------===//

bool astra::rt::place(astra_stream *stream, Task &task) {
  astra_runtime *runtime = stream->runtime;
  uint64_t count = runtime->ticks.size();
  Array<uint64_t> clock;
  if (!clock.init(runtime->heap, count)) return false;
  if (task.promise && !task.promise->clock.init(runtime->heap, count)) return false;
  for (uint64_t i = 0; i < stream->clock.size(); i++) clock[i] = stream->clock[i];
  for (uint32_t a = 0; a < task.numAfter; a++) {
    const Array<uint64_t> &known = task.after[a]->clock;
    for (uint64_t i = 0; i < known.size(); i++) clock[i] = known[i] > clock[i] ? known[i] : clock[i];
  }
  clock[stream->number] = ++runtime->ticks[stream->number];
  if (task.promise) task.promise->stream = stream;
  if (task.promise) memcpy(task.promise->clock.data(), clock.data(), count * sizeof(uint64_t));
  stream->clock.swap(clock);
  return true;
}

bool astra::rt::append(astra_stream *stream, Task &task) {
  Lock lock(stream->mutex);
  task.next = nullptr;
  (stream->tail ? stream->tail->next : stream->head) = &task;
  stream->tail = &task;
  return !std::exchange(stream->running, true);
}

void astra::rt::start(astra_stream *stream) {
  Ready ready;
  schedule(stream, ready);
  pump(ready);
}

astra_status astra_stream_init(astra_stream **out, astra_device *device, astra_diag *diag) {
  if (Status s = checkHandle(device, "the device", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
  astra_runtime *runtime = device->runtime;
  auto refuse = [&] { return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a stream"); };
  astra_stream *stream = runtime->heap.make<astra_stream>(device);
  if (!stream) return refuse();
  if (device->threads && !reserveTask(device->threads)) {
    runtime->heap.destroy(stream);
    return refuse();
  }
  Lock lock(runtime->order);
  uint64_t number = 0;
  while (number < runtime->taken.size() && runtime->taken[number]) number++;
  if (number == runtime->taken.size()) {
    Array<uint64_t> ticks;
    Array<bool> taken;
    if (!ticks.init(runtime->heap, 2 * number + 8) || !taken.init(runtime->heap, 2 * number + 8)) {
      if (device->threads) unreserveTask(device->threads);
      runtime->heap.destroy(stream);
      return refuse();
    }
    for (uint64_t i = 0; i < number; i++) ticks[i] = runtime->ticks[i], taken[i] = runtime->taken[i];
    runtime->ticks.swap(ticks);
    runtime->taken.swap(taken);
  }
  runtime->taken[number] = true;
  stream->number = uint32_t(number);
  device->users++;
  *out = stream;
  return ASTRA_OK;
}

astra_status astra_stream_free(astra_stream **stream) {
  if (!stream || !*stream) return ASTRA_OK;
  if (Status s = checkFree(*stream, "the stream")) return s;
  astra_stream *s = *stream;
  astra_device *device = s->device;
  astra_runtime *runtime = s->runtime;
  s->mutex.lock();
  while (s->running) s->idle.wait(s->mutex);
  s->mutex.unlock();
  runtime->order.lock();
  runtime->taken[s->number] = false;
  runtime->order.unlock();
  runtime->heap.destroy(s);
  if (device->threads) unreserveTask(device->threads);
  device->users--;
  *stream = nullptr;
  return ASTRA_OK;
}

namespace {

/// Queues a task without a call: `after` may be null, `out` may be null.
Status queueMark(astra_stream *stream, astra_promise *after, astra_promise **out, astra_diag *diag) {
  astra_runtime *runtime = stream->runtime;
  Task *task = runtime->heap.make<Task>();
  if (!task) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a task");
  astra_promise *promise = out ? makePromise(runtime, diag) : nullptr;
  if (out && !promise) {
    runtime->heap.destroy(task);
    return ASTRA_OUT_OF_MEMORY;
  }
  task->promise = promise;
  if (after) task->single = after, task->after = &task->single, task->numAfter = 1;
  bool placed, starts = false;
  {
    Lock lock(runtime->order);
    placed = place(stream, *task);
    if (placed) {
      if (after) retain(after);
      if (promise) retain(promise);
      starts = append(stream, *task);
    }
  }
  if (!placed) {
    runtime->heap.destroy(task);
    release(promise);
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a task");
  }
  if (starts) start(stream);
  if (out) *out = promise;
  return ASTRA_OK;
}

} // namespace

astra_status astra_stream_mark(astra_stream *stream, astra_promise **out, astra_diag *diag) {
  if (Status s = checkHandle(stream, "the stream", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
  return queueMark(stream, nullptr, out, diag);
}

astra_status astra_stream_wait(astra_stream *stream, astra_promise *promise, astra_diag *diag) {
  if (Status s = checkHandle(stream, "the stream", diag)) return s;
  if (Status s = checkHandle(promise, "the promise", diag)) return s;
  if (promise->runtime != stream->runtime)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the promise belongs to another runtime; use one runtime");
  return queueMark(stream, promise, nullptr, diag);
}

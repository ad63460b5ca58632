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
//
// Note [As few waits as there can be]
// Of the promises that a task names, one needs a wait only if nothing else orders it: not the stream's clock, not the
// clock of another one that is named. This leaves the edges between streams of the transitive reduction of the order,
// of which there is one, and none can be left out. What needs no wait is looked at when the others have ended: it has
// ended too, or it is in a queue of a GPU behind which this one's comes; then it can fail only with the device.
#include "Gpu.h"
#include "Session.h"

using namespace astra::rt;

//===- Promises -----------------------------------------------------------===//

astra_promise *astra::rt::makePromise(astra_runtime *runtime, astra_diag *diag) {
  astra_promise *promise;
  {
    Lock lock(runtime->spares);
    promise = runtime->spare;
    if (promise) runtime->spare = promise->nextSpare;
  }
  if (promise) {
    promise->refs.store(1, std::memory_order_relaxed);
    promise->state.store(ASTRA_NOT_READY, std::memory_order_relaxed);
    promise->phase.store(Phase::Queued, std::memory_order_relaxed);
    promise->error.text[0] = 0;
    promise->numOutputs = 0;
  } else if (!(promise = runtime->heap.make<astra_promise>(runtime))) {
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
  {
    Lock lock(runtime->spares);
    promise->nextSpare = runtime->spare;
    runtime->spare = promise;
  }
  runtime->users--;
}

void astra::rt::freeSpares(astra_runtime *runtime) {
  while (astra_promise *promise = runtime->spare) {
    runtime->spare = promise->nextSpare;
    runtime->heap.destroy(promise);
  }
}

namespace {

bool isInline(const astra_stream *stream) { return !stream->device->executor.enqueue; }

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

/// Parks the stream at the promise; false if it has ended meanwhile. If its work is in a queue, whose end nobody else
/// may ask for: only where that is said, and the queue can be watched.
bool park(astra_stream *stream, astra_promise *promise, bool whereWatched) {
  Lock lock(promise->mutex);
  if (promise->state.load(std::memory_order_relaxed) != ASTRA_NOT_READY) return false;
  if (promise->event && (!whereWatched || watch(promise->stream, nullptr))) return false;
  stream->waiter = {promise->waiters, stream};
  promise->waiters = &stream->waiter;
  return true;
}

void destroyTask(astra_runtime *runtime, Task *task) {
  for (uint32_t i = 0; i < task->numAfter; i++) release(task->after[i]);
  release(task->transfer.block);
  runtime->heap.destroy(task);
}

/// Whether nobody has taken the task back; from here on nobody can.
bool begin(astra_promise *promise) {
  Phase queued = Phase::Queued;
  return !promise || promise->phase.compare_exchange_strong(queued, Phase::Begun, std::memory_order_relaxed);
}

/// What the task does, here and now or in the stream's queue.
Status run(astra_stream *stream, Task *task, astra_diag *error) {
  if (!begin(task->promise)) {
    if (task->session) task->session->launched = false;
    return fail(error, ASTRA_CANCELLED, "the call was cancelled before it began");
  }
  if (task->session) return runCall(task->session, stream, task->afterFailed, error);
  const Transfer &t = task->transfer;
  if (!t.bytes) return checkDevice(stream->device, error);
  return stream->device->type.copy(stream->device, stream->queue, t.toHost ? Way::Out : Way::In, t.to, t.from, t.bytes,
                                   error);
}

/// Runs tasks until none is left or the next one must wait, or, if the device's workers can go on, `until` has ended.
/// The caller owns `running`.
void drain(astra_stream *stream, Ready &ready, const astra_promise *until = nullptr) {
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
      if (state == ASTRA_NOT_READY && task->waited < task->numNeeded) {
        Event *event = eventOf(promise);
        bool isElsewhere = event && event->device != stream->device && (stream->queue || !isInline(stream));
        if ((!event || isElsewhere) && park(stream, promise, isElsewhere)) return release(event);
        if (!event) continue;
        task->waited += orderAfter(stream, event, ready);
        continue;
      }
      task->afterFailed |= state != ASTRA_OK && state != ASTRA_NOT_READY;
      task->waited++;
    }
    {
      Lock lock(stream->mutex);
      stream->head = task->next;
      if (!stream->head) stream->tail = nullptr;
    }
    astra_diag error;
    error.size = sizeof(error);
    Status status = run(stream, task, &error);
    if (!status && stream->queue && task->promise) {
      status = fly(stream, task, ready, &error);
      if (!status) continue; // the task may be used again by now
    }
    if (status) stream->device->type.settle(stream->device, stream->queue, nullptr); // nothing of it runs any more
    endTask(task, status, ready, &error);
  }
}

} // namespace

void astra::rt::pump(Ready &ready) {
  while (astra_stream *stream = ready.first) {
    ready.first = stream->nextReady;
    drain(stream, ready);
  }
}

void astra::rt::endTask(Task *task, Status status, Ready &ready, const astra_diag *error) {
  astra_promise *promise = task->promise;
  astra_diag own;
  own.size = sizeof(own);
  if (status && !error) checkDevice(task->stream->device, &own), error = &own;
  if (task->session)
    endCall(task->session, status);
  else
    destroyTask(task->runtime, task);
  if (promise) complete(promise, status, error, ready);
}

void astra::rt::scheduleAll(Waiter *waiters, Ready &ready) {
  while (waiters) {
    Waiter *next = waiters->next; // the waiter is part of its stream and may be used again once it is scheduled
    schedule(waiters->stream, ready);
    waiters = next;
  }
}

void astra::rt::complete(astra_promise *promise, Status status, const astra_diag *error, Ready &ready) {
  Waiter *waiters;
  Continuation *continuations;
  Event *event;
  {
    Lock lock(promise->mutex);
    if (status != ASTRA_OK && error) promise->error = *error;
    promise->state.store(status, std::memory_order_release);
    waiters = std::exchange(promise->waiters, nullptr);
    continuations = std::exchange(promise->continuations, nullptr);
    event = std::exchange(promise->event, nullptr);
    promise->ended.notifyAll();
  }
  release(event);
  scheduleAll(waiters, ready);
  callAll(promise, continuations, status);
  release(promise);
}

astra_status astra_promise_poll(astra_promise *promise, astra_diag *diag) {
  if (Status s = checkHandle(promise, "the promise", diag)) return s;
  Status state = promise->state.load(std::memory_order_acquire);
  if (state == ASTRA_NOT_READY)
    if (Event *event = eventOf(promise)) {
      progress(event->device);
      release(event);
      state = promise->state.load(std::memory_order_acquire);
    }
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
      if (promise->state.load(std::memory_order_relaxed) == ASTRA_NOT_READY && !promise->event) {
        waiting.stream = promise->stream;
        threads = waiting.stream->device->threads;
        if (threads) enterThreads(threads);
      }
    }
    if (threads) helpThreads(threads, promise->state, waiting.stream, drainWhileWaiting, &waiting);
    {
      Lock lock(promise->mutex);
      while (promise->state.load(std::memory_order_acquire) == ASTRA_NOT_READY && !promise->event)
        promise->ended.wait(promise->mutex);
    }
    if (Event *event = eventOf(promise)) { // a GPU's: no thread of ours runs it
      event->device->type.ended(event->device, event->handle, true);
      progress(event->device);
      release(event);
    }
    Lock lock(promise->mutex); // who took it to end it will
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
  Array<uint64_t> &clock = runtime->next, &named = runtime->named; // all clocks grow alike, to `count`
  if (!clock.reserve(runtime->heap, count) || !named.reserve(runtime->heap, count)) return false;
  if (task.promise && !task.promise->clock.reserve(runtime->heap, count)) return false;
  for (uint64_t i = 0; i < count; i++) clock[i] = i < stream->clock.size() ? stream->clock[i] : 0, named[i] = 0;
  auto take = [](uint64_t &most, uint64_t tick) { most = tick > most ? tick : most; };
  for (uint32_t a = 0; a < task.numAfter; a++) {
    const astra_promise &p = *task.after[a];
    for (uint64_t i = 0; i < p.clock.size(); i++) take(i == p.number ? named[i] : clock[i], p.clock[i]);
  }
  task.numNeeded = task.numWaits = 0;
  for (uint32_t a = 0; a < task.numAfter; a++) {
    const astra_promise &p = *task.after[a];
    uint64_t tick = p.clock[p.number];
    if (tick <= clock[p.number] || tick < named[p.number]) continue;
    clock[p.number] = tick; // named twice, it is waited for once
    task.numWaits += p.state.load(std::memory_order_acquire) == ASTRA_NOT_READY;
    std::swap(task.after[a], task.after[task.numNeeded++]);
  }
  for (uint64_t i = 0; i < count; i++) take(clock[i], named[i]);
  clock[stream->number] = runtime->ticks[stream->number] + 1;
  if (!task.promise) return true;
  task.promise->stream = stream, task.promise->number = stream->number;
  memcpy(task.promise->clock.data(), clock.data(), count * sizeof(uint64_t));
  return true;
}

bool astra::rt::append(astra_stream *stream, Task &task) {
  stream->clock.swap(stream->runtime->next);
  ++stream->runtime->ticks[stream->number];
  task.number = ++stream->runtime->submits;
  stream->stats.tasks++, stream->stats.dependencies += task.numAfter, stream->stats.waits += task.numWaits;
  Lock lock(stream->mutex);
  task.next = nullptr;
  (stream->tail ? stream->tail->next : stream->head) = &task;
  stream->tail = &task;
  return !std::exchange(stream->running, true);
}

void astra::rt::start(astra_stream *stream, astra_promise *small) {
  Ready ready;
  if (small) {
    retain(small);
    drain(stream, ready, small); // what others queue meanwhile goes to the workers
    release(small);
  } else {
    schedule(stream, ready);
  }
  pump(ready);
}

astra_status astra_stream_init(astra_stream **out, astra_device *device, astra_diag *diag) {
  if (Status s = checkHandle(device, "the device", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
  if (Status s = checkDevice(device, diag)) return s;
  astra_runtime *runtime = device->runtime;
  auto refuse = [&] { return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a stream"); };
  astra_stream *stream = runtime->heap.make<astra_stream>(device);
  if (!stream) return refuse();
  if (device->type.makeQueue)
    if (Status s = device->type.makeQueue(device, stream->queue, diag)) {
      runtime->heap.destroy(stream);
      return s;
    }
  auto destroy = [&] {
    if (stream->queue) device->type.freeQueue(device, stream->queue);
    runtime->heap.destroy(stream);
  };
  if (device->threads && !reserveTask(device->threads)) {
    destroy();
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
      destroy();
      return refuse();
    }
    for (uint64_t i = 0; i < number; i++) ticks[i] = runtime->ticks[i], taken[i] = runtime->taken[i];
    runtime->ticks.swap(ticks);
    runtime->taken.swap(taken);
  }
  if (!stream->clock.init(runtime->heap, runtime->ticks.size())) {
    if (device->threads) unreserveTask(device->threads);
    destroy();
    return refuse();
  }
  runtime->taken[number] = true;
  stream->number = uint32_t(number);
  if (device->gpu) {
    Lock inner(device->gpu->mutex);
    stream->nextOfDevice = device->gpu->streams;
    device->gpu->streams = stream;
  }
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
  if (s->queue) {
    finishStream(s);
    Lock lock(device->gpu->mutex);
    astra_stream **link = &device->gpu->streams;
    while (*link != s) link = &(*link)->nextOfDevice;
    *link = s->nextOfDevice;
  }
  runtime->order.lock();
  runtime->taken[s->number] = false;
  runtime->order.unlock();
  if (s->bells) device->type.freeQueue(device, s->bells);
  if (s->queue) device->type.freeQueue(device, s->queue);
  runtime->heap.destroy(s);
  if (device->threads) unreserveTask(device->threads);
  device->users--;
  *stream = nullptr;
  return ASTRA_OK;
}

namespace {

/// Queues a task without a call: `after` may be null, `out` may be null.
Status queueTask(astra_stream *stream, astra_promise *after, const Transfer &transfer, astra_promise **out,
                 astra_diag *diag) {
  astra_runtime *runtime = stream->runtime;
  if (Status s = checkDevice(stream->device, diag)) return s;
  Task *task = runtime->heap.make<Task>();
  if (!task) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a task");
  // What is in a queue has a promise, so that its end is known.
  bool promises = out || transfer.bytes;
  astra_promise *promise = promises ? makePromise(runtime, diag) : nullptr;
  if (promises && !promise) {
    runtime->heap.destroy(task);
    return ASTRA_OUT_OF_MEMORY;
  }
  task->runtime = runtime, task->promise = promise, task->transfer = transfer;
  if (after) task->single = after, task->after = &task->single, task->numAfter = 1;
  bool placed, starts = false;
  {
    Lock lock(runtime->order);
    placed = place(stream, *task);
    if (placed) {
      if (after) retain(after);
      if (out) retain(promise);
      retain(transfer.block, stream->number, runtime->next[stream->number]);
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

Status queueCopy(astra_stream *stream, astra_buffer *buffer, uint64_t offset, void *host, bool toHost, uint64_t bytes,
                 astra_promise **promise, astra_diag *diag) {
  if (Status s = checkHandle(stream, "the stream", diag)) return s;
  if (Status s = checkHandle(buffer, "the buffer", diag)) return s;
  if (buffer->pool->device != stream->device)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the buffer is of another device than the stream; use one of its device");
  if (buffer->pool->isPinned())
    return fail(diag, ASTRA_INVALID_ARGUMENT,
                "the buffer is memory of the host, which its address gives; name the other end of the copy");
  uint64_t end;
  if (!add(offset, bytes, end) || end > buffer->bytes)
    return fail(diag, ASTRA_CAPACITY, "a copy of %llu bytes at byte %llu does not fit into a buffer of %llu bytes",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset),
                static_cast<unsigned long long>(buffer->bytes));
  if (bytes && !host) return fail(diag, ASTRA_INVALID_ARGUMENT, "the host memory of a copy is NULL; give some");
  char *there = bytes ? static_cast<char *>(buffer->data()) + offset : nullptr;
  Transfer transfer{toHost ? host : there, toHost ? there : host, bytes, toHost, buffer->block};
  return queueTask(stream, nullptr, transfer, promise, diag);
}

} // namespace

astra_status astra_stream_get_stats(astra_stream *stream, astra_stream_stats *out) {
  if (Status s = checkHandle(stream, "the stream", nullptr)) return s;
  Lock lock(stream->runtime->order);
  return writeStruct(out, stream->stats);
}

astra_status astra_stream_mark(astra_stream *stream, astra_promise **out, astra_diag *diag) {
  if (Status s = checkHandle(stream, "the stream", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of a pointer");
  return queueTask(stream, nullptr, {}, out, diag);
}

astra_status astra_stream_wait(astra_stream *stream, astra_promise *promise, astra_diag *diag) {
  if (Status s = checkHandle(stream, "the stream", diag)) return s;
  if (Status s = checkHandle(promise, "the promise", diag)) return s;
  if (promise->runtime != stream->runtime)
    return fail(diag, ASTRA_INVALID_ARGUMENT, "the promise belongs to another runtime; use one runtime");
  return queueTask(stream, promise, {}, nullptr, diag);
}

astra_status astra_stream_write(astra_stream *stream, astra_buffer *to, uint64_t offset, const void *from,
                                uint64_t bytes, astra_promise **promise, astra_diag *diag) {
  return queueCopy(stream, to, offset, const_cast<void *>(from), false, bytes, promise, diag);
}

astra_status astra_stream_read(astra_stream *stream, void *to, astra_buffer *from, uint64_t offset, uint64_t bytes,
                               astra_promise **promise, astra_diag *diag) {
  return queueCopy(stream, from, offset, to, true, bytes, promise, diag);
}

//===- Flight.cpp: what runs behind submit --------------------------------===//
// Takes:    tasks whose work is in a queue of a GPU's driver.
// Gives:    their end: it is found when somebody asks (poll, wait, a busy session, a pool that is short), in the order
//           of submits: while a thread ends a task of a device no other ends one, so that who has waited for a call
//           finds those before it ended.
// Keeps:    no thread of its own. A task is ended once. What one thread waits for another may end.
// Does not: begin tasks (Stream.cpp).
//
// Note [Who waits for whom]
// A promise of a queue carries an event from the moment its work is in the queue. What comes later in the same queue
// needs no wait. Another queue of the same device is told to wait for the event. Everybody else (a CPU, another device,
// a caller) waits for the event on his thread. A promise without an event is completed, or its task has not begun: then
// streams park there as on a CPU, and are taken up when the event is there.
#include "Gpu.h"

using namespace astra::rt;

//===- Events -------------------------------------------------------------===//

Status astra::rt::recordEvent(astra_stream *stream, Event *&out, astra_diag *diag) {
  astra_device *device = stream->device;
  Gpu &gpu = *device->gpu;
  Event *event;
  {
    Lock lock(gpu.mutex);
    event = gpu.unused;
    if (event) gpu.unused = event->next;
    gpu.events++;
  }
  auto noEvent = [&] {
    Lock lock(gpu.mutex);
    gpu.events--;
  };
  if (!event) {
    event = device->runtime->heap.make<Event>();
    Status s = event ? device->type.makeEvent(device, event->handle, diag)
                     : fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for an event");
    if (s) {
      device->runtime->heap.destroy(event);
      noEvent();
      return s;
    }
    event->device = device;
  }
  event->queue = stream->queue;
  event->refs.store(1, std::memory_order_relaxed);
  Status s = device->type.record(device, event->handle, stream->queue, diag);
  if (s)
    release(event);
  else
    out = event;
  return s;
}

void astra::rt::release(Event *event) {
  if (!event || event->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Gpu &gpu = *event->device->gpu;
  Lock lock(gpu.mutex);
  event->next = gpu.unused;
  gpu.unused = event;
  if (--gpu.events == 0) gpu.idle.notifyAll();
}

void astra::rt::freeEvents(astra_device *device) {
  {
    // Another thread may still be on its way out of a wait.
    Lock lock(device->gpu->mutex);
    while (device->gpu->events) device->gpu->idle.wait(device->gpu->mutex);
  }
  while (Event *event = device->gpu->unused) {
    device->gpu->unused = event->next;
    device->type.freeEvent(device, event->handle);
    device->runtime->heap.destroy(event);
  }
}

Event *astra::rt::eventOf(astra_promise *promise) {
  Lock lock(promise->mutex);
  if (promise->state.load(std::memory_order_relaxed) != ASTRA_NOT_READY || !promise->event) return nullptr;
  promise->event->refs.fetch_add(1, std::memory_order_relaxed);
  return promise->event;
}

//===- The end of tasks ---------------------------------------------------===//

Status astra::rt::fly(astra_stream *stream, Task *task, Ready &ready, astra_diag *diag) {
  Event *event = nullptr;
  if (Status s = recordEvent(stream, event, diag)) return s;
  astra_promise *promise = task->promise;
  retain(promise); // the task may end at once
  event->refs.fetch_add(1, std::memory_order_relaxed);
  task->event = event, task->stream = stream;
  void *bells;
  {
    Lock lock(stream->mutex);
    task->next = nullptr;
    (stream->flights ? stream->lastFlight->next : stream->flights) = task;
    stream->lastFlight = task;
    bells = stream->bells;
  }
  if (bells) ringAfter(stream, bells, event);
  Waiter *waiters = nullptr;
  {
    Lock lock(promise->mutex);
    if (promise->state.load(std::memory_order_relaxed) == ASTRA_NOT_READY) {
      promise->event = event, event = nullptr;
      waiters = std::exchange(promise->waiters, nullptr);
      promise->ended.notifyAll();
    }
  }
  scheduleAll(waiters, ready);
  release(event);
  release(promise);
  return ASTRA_OK;
}

namespace {

/// Puts the tasks of a device that have ended into gpu.ended, in the order of their submits. What a task waited for has
/// ended before it: a pass that finds nothing more says that the list has that too. gpu.mutex is locked.
void findEnded(astra_device *device) {
  Gpu &gpu = *device->gpu;
  for (bool again = true; again;) {
    again = false;
    for (astra_stream *stream = gpu.streams; stream; stream = stream->nextOfDevice) {
      for (;;) {
        Task *task;
        {
          Lock inner(stream->mutex);
          task = stream->flights;
        }
        if (!task) break;
        task->ended = device->type.ended(device, task->event->handle, false);
        if (task->ended == ASTRA_NOT_READY) break;
        Lock inner(stream->mutex);
        stream->flights = task->next;
        stream->helpers++;
        Task **link = &gpu.ended;
        while (*link && (*link)->number < task->number) link = &(*link)->next;
        task->next = *link, *link = task;
        again = true;
      }
    }
  }
}

/// The next task to end; null if there is none, or another thread is ending one: that looks again when it has. Whom a
/// task's end calls may come here again.
Task *takeEnded(astra_device *device) {
  Gpu &gpu = *device->gpu;
  Lock lock(gpu.mutex);
  if (gpu.ending && !pthread_equal(gpu.ender, pthread_self())) return nullptr;
  if (!gpu.ended) findEnded(device);
  Task *task = gpu.ended;
  if (!task) return nullptr;
  gpu.ended = task->next;
  gpu.ender = pthread_self(), gpu.ending++;
  return task;
}

} // namespace

void astra::rt::progress(astra_device *device, Ready &ready) {
  while (Task *task = takeEnded(device)) {
    astra_stream *stream = task->stream;
    release(task->event);
    endTask(task, task->ended, ready);
    {
      Lock lock(stream->mutex);
      stream->helpers--;
      stream->idle.notifyAll();
    }
    Lock lock(device->gpu->mutex);
    device->gpu->ending--;
  }
}

void astra::rt::progress(astra_device *device) {
  if (!device->gpu) return;
  Ready ready;
  progress(device, ready);
  pump(ready);
}

bool astra::rt::orderAfter(astra_stream *stream, Event *event, Ready &ready) {
  astra_device *device = event->device;
  bool isOrdered = device == stream->device &&
                   (event->queue == stream->queue || !device->type.await(device, stream->queue, event->handle));
  if (!isOrdered) {
    device->type.ended(device, event->handle, true);
    progress(device, ready);
  }
  release(event);
  return isOrdered;
}

void astra::rt::finishStream(astra_stream *stream) {
  astra_device *device = stream->device;
  device->type.settle(device, stream->queue, nullptr); // or the device is lost, and everything ends so
  if (stream->bells) device->type.settle(device, stream->bells, nullptr);
  progress(device);
  Lock lock(stream->mutex);
  while (stream->flights || stream->helpers) stream->idle.wait(stream->mutex);
}

//===- Watch.cpp: ends of a GPU's calls that nobody asks for ---------------===//
// Takes:    streams of a GPU of which somebody wants to be called.
// Gives:    a thread that ends what has run to its end there, as soon as it has.
// Keeps:    no thread before it is asked for; it sleeps while nothing is in flight. What is watched waits for nothing.
// Does not: end calls itself (Flight.cpp), or call whoever wants it (Continue.cpp).
//
// Note [Bells]
// A GPU's calls are ended when somebody asks how they are, and who is to be called asks nobody. So a watched stream has
// a second queue, where a bell follows each event of the first: a function of the host that the driver calls, which
// only wakes the watcher. In the stream's own queue it would hold up the kernels behind it for the time that a host's
// function takes. Bells of one stream are in the order of its events, whoever asks first. A driver passes no status to
// such a function and may call none where a context is lost (CUDA's programming guide, "Host functions"): hence the
// watcher asks for the state of what ended, and, while something is in flight, now and then unasked.
#include "Gpu.h"

#include <csignal>

using namespace astra::rt;

namespace {

/// How long a loss may go unnoticed.
constexpr uint64_t kGlanceNs = 10'000'000;

void ring(void *self) {
  Gpu &gpu = *static_cast<Gpu *>(self);
  Lock lock(gpu.bellMutex);
  gpu.rung = true;
  gpu.bell.notifyOne();
}

bool isFlying(Gpu &gpu) {
  Lock lock(gpu.mutex);
  for (astra_stream *stream = gpu.streams; stream; stream = stream->nextOfDevice) {
    Lock inner(stream->mutex);
    if (stream->bells && stream->flights) return true;
  }
  return false;
}

void *run(void *self) {
  auto *device = static_cast<astra_device *>(self);
  Gpu &gpu = *device->gpu;
  for (;;) {
    {
      Lock lock(gpu.bellMutex);
      gpu.asleep = true; // what begins to fly from here on says so
    }
    bool flying = isFlying(gpu);
    {
      Lock lock(gpu.bellMutex);
      if (!gpu.rung && !gpu.stop && flying) gpu.bell.waitFor(gpu.bellMutex, kGlanceNs);
      while (!gpu.rung && !gpu.stop && !flying) gpu.bell.wait(gpu.bellMutex);
      if (gpu.stop) return nullptr;
      gpu.rung = gpu.asleep = false;
    }
    progress(device);
  }
}

Status makeWatcher(astra_device *device, astra_diag *diag) {
  Gpu &gpu = *device->gpu;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  gpu.hasWatcher = pthread_create(&gpu.watcher, nullptr, run, device) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return gpu.hasWatcher ? ASTRA_OK
                        : fail(diag, ASTRA_THREADS, "the thread that tells of a GPU's ends could not be made");
}

} // namespace

Status astra::rt::watch(astra_stream *stream, astra_diag *diag) {
  astra_device *device = stream->device;
  Gpu &gpu = *device->gpu;
  Lock lock(gpu.watching);
  if (stream->bells) return ASTRA_OK;
  if (!gpu.hasWatcher)
    if (Status s = makeWatcher(device, diag)) return s;
  void *bells = nullptr;
  if (Status s = device->type.makeQueue(device, bells, diag)) return s;
  Lock inner(stream->mutex);
  stream->bells = bells;
  for (Task *task = stream->flights; task; task = task->next) ringAfter(stream, bells, task->event);
  return ASTRA_OK;
}

void astra::rt::ringAfter(astra_stream *stream, void *bells, Event *event) {
  astra_device *device = stream->device;
  Gpu &gpu = *device->gpu;
  if (!device->type.await(device, bells, event->handle)) device->type.notify(device, bells, ring, &gpu);
  Lock lock(gpu.bellMutex);
  if (!gpu.asleep) return;
  gpu.rung = true; // it may have found nothing in flight
  gpu.bell.notifyOne();
}

void astra::rt::stopWatching(astra_device *device) {
  Gpu &gpu = *device->gpu;
  if (!gpu.hasWatcher) return;
  {
    Lock lock(gpu.bellMutex);
    gpu.stop = true;
    gpu.bell.notifyOne();
  }
  pthread_join(gpu.watcher, nullptr);
}

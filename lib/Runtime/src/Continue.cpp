//===- Continue.cpp: what happens when a promise has ended -----------------===//
// Takes:    a promise.
// Gives:    astra_promise_on_ready, astra_promise_fd, astra_promise_cancel.
// Keeps:    each function is called exactly once, without a lock of ours, in the order in which they came.
// Does not: make promises end (Stream.cpp, Flight.cpp); of a GPU it asks that this is done unasked (Watch.cpp).
#include "Gpu.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace astra::rt;

void astra::rt::callAll(astra_promise *promise, Continuation *first, Status status) {
  while (Continuation *one = first) {
    first = one->next;
    Continuation call = *one;
    if (one != &promise->own) promise->runtime->heap.destroy(one);
    call.fn(call.self, status);
  }
}

astra_status astra_promise_on_ready(astra_promise *promise, astra_ready_fn fn, void *self, astra_diag *diag) {
  if (Status s = checkHandle(promise, "the promise", diag)) return s;
  if (!fn) return fail(diag, ASTRA_INVALID_ARGUMENT, "the function to call is NULL; give one");
  Status state = astra_promise_poll(promise, nullptr);
  if (state == ASTRA_NOT_READY) {
    Lock lock(promise->mutex);
    state = promise->state.load(std::memory_order_acquire);
    if (state == ASTRA_NOT_READY) { // it has its stream, and that its device
      Continuation *one = promise->continuations ? promise->runtime->heap.make<Continuation>() : &promise->own;
      if (!one) return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for a function that waits for a promise");
      if (promise->stream->device->gpu)
        if (Status s = watch(promise->stream, diag)) {
          if (one != &promise->own) promise->runtime->heap.destroy(one);
          return s;
        }
      *one = {nullptr, fn, self};
      (promise->continuations ? promise->lastContinuation->next : promise->continuations) = one;
      promise->lastContinuation = one;
      return ASTRA_OK;
    }
  }
  fn(self, state);
  return ASTRA_OK;
}

astra_status astra_promise_fd(astra_promise *promise, int *out, astra_diag *diag) {
  if (Status s = checkHandle(promise, "the promise", diag)) return s;
  if (!out) return fail(diag, ASTRA_INVALID_ARGUMENT, "out is NULL; give the address of an int");
  int theirs = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int ours = theirs < 0 ? -1 : fcntl(theirs, F_DUPFD_CLOEXEC, 0); // theirs may be closed first
  Status s = ASTRA_OK;
  if (ours < 0) {
    char text[128];
    s = fail(diag, ASTRA_IO, "no descriptor for a promise: %s", errorText(errno, text, sizeof(text)));
  } else {
    auto post = [](void *self, Status) {
      int descriptor = int(reinterpret_cast<intptr_t>(self));
      eventfd_write(descriptor, 1);
      close(descriptor);
    };
    s = astra_promise_on_ready(promise, post, reinterpret_cast<void *>(intptr_t(ours)), diag);
    if (s) close(ours);
  }
  if (!s)
    *out = theirs;
  else if (theirs >= 0)
    close(theirs);
  return s;
}

astra_status astra_promise_cancel(astra_promise *promise, astra_diag *diag) {
  if (Status s = checkHandle(promise, "the promise", diag)) return s;
  Phase phase = Phase::Queued;
  if (promise->phase.compare_exchange_strong(phase, Phase::Cancelled, std::memory_order_relaxed) ||
      phase == Phase::Cancelled)
    return ASTRA_OK;
  return fail(diag, ASTRA_BUSY, "the call has begun; wait for its promise");
}

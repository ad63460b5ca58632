//===- Lane.cpp: functions of the host beside a program --------------------===//
// Takes:    see Lane.h.
// Gives:    one thread for each session that needs it: ranks come to their collectives in one order then.
// Keeps:    all signals are blocked in the thread.
#include "Lane.h"
#include "Cpu.h"
#include "Device.h"

#include <signal.h>

using namespace astra::rt;

Status astra::rt::functionFailed(const char *name, Status status, astra_diag &said, astra_diag *diag) {
  said.text[sizeof(said.text) - 1] = 0;
  bool stays = status == ASTRA_PEER_LOST || status == ASTRA_PEER_DIFFERS || status == ASTRA_DEVICE_LOST;
  return fail(diag, stays ? status : Status(ASTRA_FUNCTION_FAILED), "function '%.64s' failed: %.400s", name,
              *said.text ? said.text : "it does not say why");
}

void HostCall::report(uint64_t begin, astra_trace_fn trace, void *traceSelf) const {
  astra_trace_event event{};
  event.size = sizeof(event);
  event.begin_ns = begin, event.end_ns = nowNs();
  event.name = name;
  event.items = 1, event.bytes = int64_t(bytes), event.flops = -1;
  trace(traceSelf, &event);
}

Status HostCall::run(astra_trace_fn trace, void *traceSelf, astra_diag *diag) {
  uint64_t begin = nowNs();
  astra_diag said{};
  said.size = sizeof(said);
  Status own;
  {
    FloatEnvironment environment;
    own = function->fn(function->self, tensors, inputs, tensors + inputs, count - inputs, &said);
  }
  if (own) return functionFailed(name, own, said, diag);
  if (trace) report(begin, trace, traceSelf);
  return ASTRA_OK;
}

Status Lane::init(astra_diag *diag) {
  if (!calls.init(heap, kMost) || !outcomes.init(heap, kMost))
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory for calls beside a program");
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto body = [](void *self) -> void * { return static_cast<Lane *>(self)->run(), nullptr; };
  isRunning = pthread_create(&thread, nullptr, body, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return isRunning ? ASTRA_OK : fail(diag, ASTRA_THREADS, "the system refuses to make a thread for transfers");
}

Lane::~Lane() {
  if (!isRunning) return;
  mutex.lock();
  stop = true;
  changed.notifyAll();
  mutex.unlock();
  pthread_join(thread, nullptr);
}

void Lane::run() {
  Lock lock(mutex);
  for (;;) {
    while (posted == ended && !stop) changed.wait(mutex);
    if (posted == ended) return;
    Outcome &out = outcomes[ended % kMost];
    out.diag.size = sizeof(out.diag);
    if (hasFailed) {
      out.status = fail(&out.diag, ASTRA_DEPENDENCY, "an earlier transfer failed");
    } else {
      HostCall &call = calls[ended % kMost];
      astra_trace_fn fn = trace;
      void *self = traceSelf;
      mutex.unlock();
      Status s = call.run(fn, self, &out.diag);
      mutex.lock();
      out.status = s;
      hasFailed = s != ASTRA_OK;
    }
    ended++;
    changed.notifyAll();
  }
}

void Lane::start(astra_trace_fn fn, void *self) {
  Lock lock(mutex);
  trace = fn, traceSelf = self;
  if (!flying()) hasFailed = false;
  started++;
  posted = started;
  changed.notifyAll();
}

Status Lane::land(astra_diag *diag) {
  Lock lock(mutex);
  while (ended == landed) changed.wait(mutex);
  Outcome &out = outcomes[landed % kMost];
  Status s = out.status;
  if (s) fail(diag, s, "%s", out.diag.text);
  landed++;
  return s;
}

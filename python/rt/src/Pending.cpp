//===- Pending.cpp: calls that nobody waits for on a thread -----------------===//
// Takes:    an entry of a device with threads of its own, arguments; who is to be told.
// Gives:    `_rt.begin`, which submits the call, `_rt.Pending`, the call until its result is taken, and `_rt.Ready`, a
//           descriptor that an event loop reads from when calls have ended.
// Keeps:    the thread that ends a call takes no GIL and frees nothing of Python's: it frees the session for its next
//           call, and puts a number behind the descriptor. So no worker stands still for Python, and a loop that has
//           gone is no matter. What a call in flight uses stays until it has ended, whoever lets go of it.
#include "Calling.h"
#include "Holder.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace astra::python;

namespace {

/// Numbers of what has ended, for one event loop.
struct ReadyBox {
  int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::mutex mutex;
  std::vector<uint64_t> tokens;
  ~ReadyBox() {
    if (fd >= 0) close(fd);
  }
  void push(uint64_t token) {
    std::lock_guard lock(mutex);
    tokens.push_back(token);
    const uint64_t one = 1;
    if (tokens.size() == 1 && write(fd, &one, sizeof(one)) < 0) {
    } // full is readable too
  }
};

/// What the thread that ends a call shares with those who ask for it.
struct End {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  int64_t at = 0; ///< of the monotonic clock, in nanoseconds
  std::vector<std::pair<std::shared_ptr<ReadyBox>, uint64_t>> waiting;
};

/// A reference, given back with the GIL.
struct Reference {
  PyObject *object;
  ~Reference() { Py_XDECREF(object); }
};

/// From before the submit until the result is taken.
struct Flight {
  Reference entry; ///< has the session
  Arguments arguments;
  std::optional<Targets> targets;
  Dims dims;
  Running running;
  astra_status status = ASTRA_OK;
  std::shared_ptr<End> end = std::make_shared<End>();
  unsigned generation = forkGeneration();

  Flight(PyObject *object, Core &c)
      : entry{(Py_INCREF(object), object)}, arguments(c.inputs.size()), running(c, arguments, nullptr) {}
  bool ended() {
    std::lock_guard lock(end->mutex);
    return end->ended;
  }
};

/// An astra_ready_fn.
void callEnds(void *self, astra_status status) {
  auto *flight = static_cast<Flight *>(self);
  std::shared_ptr<End> end = flight->end;
  flight->status = status ? status : flight->running.collect();
  flight->running.core.session->mutex.unlock();
  std::vector<std::pair<std::shared_ptr<ReadyBox>, uint64_t>> waiting;
  {
    std::lock_guard lock(end->mutex);
    end->ended = true; // from here on the flight may be gone
    end->at = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    waiting.swap(end->waiting);
    end->changed.notify_all();
  }
  for (auto &[ready, token] : waiting) ready->push(token);
}

/// Calls in flight that nobody wants any more: freed, with the GIL, when they have ended.
std::vector<std::unique_ptr<Flight>> &orphans() {
  static auto *list = new std::vector<std::unique_ptr<Flight>>; // never freed: they may outlive the interpreter
  return *list;
}
} // namespace

void astra::python::freeOrphans() {
  std::vector<std::unique_ptr<Flight>> gone; // freeing runs Python code, which may come here
  auto &all = orphans();
  for (size_t i = all.size(); i-- > 0;)
    if (bool isHere = all[i]->generation == forkGeneration(); !isHere || all[i]->ended()) {
      if (isHere)
        gone.push_back(std::move(all[i]));
      else
        all[i].release(); // the parent's
      all.erase(all.begin() + ptrdiff_t(i));
    }
}

namespace {

struct PendingBox {
  std::unique_ptr<Flight> flight;
  std::shared_ptr<End> end;
  unsigned generation = forkGeneration();
  ~PendingBox() {
    if (!flight) return;
    if (generation != forkGeneration())
      flight.release();
    else if (!flight->ended())
      orphans().push_back(std::move(flight));
  }
};

/// Whether the session's calls end on threads of the device, so that a submit returns at once.
bool hasOwnThreads(const SessionBox &box) {
  const DeviceBox &device = *box.loaded->device;
  return device.threads > 1 && device.host == device.device && !box.loaded->bundle->job;
}

/// `begin(entry, args, kwargs or None)`: the call, submitted; None where that would wait for something.
PyObject *begin(PyObject *, PyObject *args) {
  PyObject *entry, *tuple, *kwargs;
  if (!PyArg_ParseTuple(args, "OO!O", &entry, &PyTuple_Type, &tuple, &kwargs)) return nullptr;
  if (!isEntry(entry)) return PyErr_Format(PyExc_TypeError, "the first argument is an entry");
  if (kwargs != Py_None && !PyDict_Check(kwargs)) return PyErr_Format(PyExc_TypeError, "keywords are a dict");
  if (kwargs == Py_None) kwargs = nullptr;
  freeOrphans();
  Core &core = coreOf(entry);
  SessionBox &session = *core.session;
  if (session.generation != forkGeneration() || !hasOwnThreads(session) || !session.mutex.try_lock()) Py_RETURN_NONE;
  session.mutex.unlock(); // free, it seems: worth to convert the arguments
  auto box = std::make_shared<PendingBox>();
  auto flight = std::make_unique<Flight>(entry, core);
  Few<PyObject *> all(size_t(PyTuple_Size(tuple) + (kwargs ? PyDict_Size(kwargs) : 0)));
  Reference names{nullptr};
  if (!spread(tuple, kwargs, all, names.object) ||
      !takeArguments(core, all.data(), size_t(PyTuple_Size(tuple)), names.object, flight->arguments, flight->targets,
                     flight->dims))
    return nullptr;
  Running &running = flight->running;
  running.targets = flight->targets ? &*flight->targets : nullptr;
  PyObject *object = hold(box);
  if (!object) return nullptr;
  const bool isFree = session.mutex.try_lock();
  if (isFree && !session.session) session.mutex.unlock(); // closed
  if (!isFree || !session.session) {
    Py_DECREF(object);
    Py_RETURN_NONE;
  }
  box->end = flight->end;
  astra_status s = running.prepare(flight->dims);
  if (!s) s = withoutGil([&] { return running.submit(); });
  if (s) {
    session.mutex.unlock();
    Py_DECREF(object);
    return raise(s, running.diag.text);
  }
  Flight *self = flight.get();
  box->flight = std::move(flight);
  withoutGil([&] {
    if (astra_promise_on_ready(self->running.promise, callEnds, self, nullptr) == ASTRA_OK) return 0;
    astra_status status = astra_promise_wait(self->running.promise, nullptr);
    callEnds(self, status);
    return 0;
  });
  return object;
}

//===- Pending ---------------------------------------------------------------===//

bool isHere(PendingBox &box) {
  if (box.generation == forkGeneration()) return true;
  raise(kForked, "the call belongs to the parent process");
  return false;
}

PyObject *isDone(PyObject *self, PyObject *) {
  PendingBox &box = boxOf<PendingBox>(self);
  std::lock_guard lock(box.end->mutex);
  return PyBool_FromLong(box.end->ended);
}

/// `wait(seconds or None)`: whether it has ended by then.
PyObject *wait(PyObject *self, PyObject *timeout) {
  PendingBox &box = boxOf<PendingBox>(self);
  if (!isHere(box)) return nullptr;
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kStep(50); // between looks for signals
  std::optional<Clock::time_point> until;
  if (timeout != Py_None) {
    double seconds = PyFloat_AsDouble(timeout);
    if (seconds == -1 && PyErr_Occurred()) return nullptr;
    if (seconds != seconds) return PyErr_Format(PyExc_ValueError, "a timeout is no NaN");
    constexpr double kMost = 1e9;
    until = Clock::now() + std::chrono::microseconds(int64_t(std::clamp(seconds, 0.0, kMost) * 1e6));
  }
  std::shared_ptr<End> end = box.end;
  for (;;) {
    Clock::time_point next = Clock::now() + kStep;
    bool isLast = until && *until <= next;
    bool ended = withoutGil([&] {
      std::unique_lock lock(end->mutex);
      return end->changed.wait_until(lock, isLast ? *until : next, [&] { return end->ended; });
    });
    if (ended || isLast) return PyBool_FromLong(ended);
    if (PyErr_CheckSignals()) return nullptr;
  }
}

/// `result()`: what the call gives or raises, once, when it has ended.
PyObject *result(PyObject *self, PyObject *) {
  PendingBox &box = boxOf<PendingBox>(self);
  if (!isHere(box)) return nullptr;
  if (!box.flight || !box.flight->ended())
    return raise(ASTRA_NOT_READY, "the call has not ended, or its result was taken");
  std::unique_ptr<Flight> flight = std::move(box.flight);
  if (!flight->status) return flight->running.results();
  Diag diag;
  if (!astra_promise_wait(flight->running.promise, &diag))
    diag = flight->running.diag; // it has ended: for the sentence
  return raise(flight->status, diag.text);
}

/// `cancel()`: whether the call was taken back.
PyObject *cancel(PyObject *self, PyObject *) {
  PendingBox &box = boxOf<PendingBox>(self);
  if (!isHere(box)) return nullptr;
  return PyBool_FromLong(box.flight && astra_promise_cancel(box.flight->running.promise, nullptr) == ASTRA_OK);
}

/// `notify(ready, number)`: False if it has ended already; else the number comes out of `ready` when it has.
PyObject *notify(PyObject *self, PyObject *args) {
  PyObject *ready;
  unsigned long long token;
  PendingBox &box = boxOf<PendingBox>(self);
  if (!PyArg_ParseTuple(args, "O!K", typeOf<ReadyBox>, &ready, &token) || !isHere(box)) return nullptr;
  std::lock_guard lock(box.end->mutex);
  if (!box.end->ended) box.end->waiting.emplace_back(shared<ReadyBox>(ready), token);
  return PyBool_FromLong(!box.end->ended);
}

PyObject *endedAt(PyObject *self, void *) {
  PendingBox &box = boxOf<PendingBox>(self);
  std::lock_guard lock(box.end->mutex);
  return PyLong_FromLongLong(box.end->at);
}

PyMethodDef pendingMethods[] = {
    {"done", isDone, METH_NOARGS, "Whether it has ended."},
    {"wait", wait, METH_O, "wait(seconds or None): whether it has ended by then."},
    {"result", result, METH_NOARGS, "What the call gives or raises, once."},
    {"cancel", cancel, METH_NOARGS, "Takes back a call that has not begun."},
    {"notify", notify, METH_VARARGS, "notify(ready, number): has the number put into `ready` when it has ended."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef pendingProperties[] = {
    {"ended_at", endedAt, nullptr, "When it ended, as time.monotonic_ns says it; 0 before.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

//===- Ready -----------------------------------------------------------------===//

PyObject *makeReady(PyObject *, PyObject *) {
  auto box = std::make_shared<ReadyBox>();
  if (box->fd < 0) return PyErr_SetFromErrno(PyExc_OSError);
  return hold(std::move(box));
}

PyObject *filenoOf(PyObject *self, PyObject *) { return PyLong_FromLong(boxOf<ReadyBox>(self).fd); }

/// `drain()`: the numbers that have come, in order.
PyObject *drain(PyObject *self, PyObject *) {
  ReadyBox &box = boxOf<ReadyBox>(self);
  freeOrphans();
  std::vector<uint64_t> tokens;
  {
    std::lock_guard lock(box.mutex);
    uint64_t count;
    if (read(box.fd, &count, sizeof(count)) < 0) {
    } // nothing there: fine
    tokens.swap(box.tokens);
  }
  PyObject *list = PyList_New(Py_ssize_t(tokens.size()));
  for (size_t i = 0; list && i < tokens.size(); i++)
    PyList_SetItem(list, Py_ssize_t(i), PyLong_FromUnsignedLongLong(tokens[i]));
  return list;
}

PyMethodDef readyMethods[] = {{"fileno", filenoOf, METH_NOARGS, "What an event loop reads from."},
                              {"drain", drain, METH_NOARGS, "The numbers that have come."},
                              {nullptr, nullptr, 0, nullptr}};
PyGetSetDef readyProperties[] = {{nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef functions[] = {{"begin", begin, METH_VARARGS,
                            "begin(entry, args, kwargs or None): a Pending, or None where it would have to wait."},
                           {"ready", makeReady, METH_NOARGS, "A Ready, which tells an event loop what has ended."},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

bool astra::python::addPending(PyObject *module) {
  return addType<PendingBox>(module, "astra_rt._rt.Pending", "Pending", pendingMethods, pendingProperties) &&
         addType<ReadyBox>(module, "astra_rt._rt.Ready", "Ready", readyMethods, readyProperties) &&
         PyModule_AddFunctions(module, functions) == 0;
}

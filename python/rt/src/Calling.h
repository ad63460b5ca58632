//===- Calling.h: a call from its arguments to its results ------------------===//
// Takes:    an entry, arguments of Python.
// Gives:    the steps of a call, for one that waits (Entry.cpp) and one that is awaited (Pending.cpp).
// Keeps:    Python code runs while arguments are converted and when results are made, nowhere between.
#pragma once

#include "Targets.h"

#include <optional>
#include <utility>

namespace astra::python {

struct Spec {
  std::string name;
  PyObject *key; ///< the name, interned
  int32_t dtype;
  int32_t ndim;
};

struct Output {
  int64_t bound[ASTRA_MAX_RANK];
  int32_t ndim;
  uint64_t bytes;
};

/// What an entry's calls need, once for all of them.
struct Core {
  std::shared_ptr<SessionBox> session;
  const astra_entry *entry = nullptr;
  std::string name;
  std::vector<Spec> inputs, outputs;
  std::vector<Spec> hostDims;
  std::vector<Output> bounds; ///< of the outputs for `shapes` and `dimsVersion`
  std::vector<int64_t> shapes;
  uint64_t dimsVersion = ~uint64_t(0);
  PyObject *resultClass = nullptr; ///< of several outputs: names for a tuple; or null
  PyObject *info = nullptr;        ///< what Python keeps with it
  ~Core() {
    for (auto *list : {&inputs, &outputs, &hostDims})
      for (Spec &s : *list) Py_XDECREF(s.key);
    Py_XDECREF(resultClass);
    Py_XDECREF(info);
  }
};

Core &coreOf(PyObject *entry);
bool isEntry(PyObject *object);

/// The arguments, one for each input.
struct Arguments {
  size_t count;
  Few<PyObject *> given; ///< borrowed
  Few<PyObject *> held;  ///< references
  Few<Described> described;
  PyObject *out = nullptr; ///< borrowed: where the caller wants the outputs, or null
  explicit Arguments(size_t n) : count(n), given(n), held(n), described(n) {
    for (size_t i = 0; i < n; i++) given[i] = held[i] = nullptr;
  }
  ~Arguments() {
    for (size_t i = 0; i < count; i++) Py_XDECREF(held[i]);
  }
};

using Dims = std::vector<std::pair<const char *, int64_t>>;

/// Sorts arguments to inputs, `out` and host dims, and converts them. False with an exception.
bool takeArguments(Core &c, PyObject *const *args, size_t numArgs, PyObject *names, Arguments &out,
                   std::optional<Targets> &targets, Dims &dims);
/// The same of a tuple and a dict, which may be null or None: the values of keywords, in `room`, and their names.
bool spread(PyObject *args, PyObject *kwargs, Few<PyObject *> &room, PyObject *&names);

/// A call while its session is locked: prepare, submit, and when the promise has ended collect.
struct Running {
  Core &core;
  Arguments &arguments;
  Targets *targets; ///< or null: all outputs are new tensors
  Few<astra_tensor> inputs, outputs;
  Few<astra_buffer *> buffers;
  Few<Output> actual;
  astra_promise *promise = nullptr;
  Diag diag;

  Running(Core &c, Arguments &a, Targets *t)
      : core(c), arguments(a), targets(t), inputs(a.count), outputs(c.outputs.size()), buffers(c.outputs.size()),
        actual(c.outputs.size()) {
    for (size_t i = 0; i < c.outputs.size(); i++) buffers[i] = nullptr;
  }
  Running(const Running &) = delete;
  ~Running() {
    astra_promise_free(&promise);
    for (size_t i = 0; i < core.outputs.size(); i++) astra_buffer_free(&buffers[i]);
  }

  /// Finds the sizes of outputs, and memory for them. `dims` are set first.
  astra_status prepare(const Dims &dims);
  astra_status submit();
  /// The extents of the results, which are moved together. Waits for nobody, and needs no GIL.
  astra_status collect();
  /// What the caller gets, once. Null with an exception.
  PyObject *results();

private:
  PyObject *result(size_t i);
};

/// Frees calls in flight that nobody wanted any more, once they have ended. With the GIL.
void freeOrphans();

/// Adds `_rt.begin`, `_rt.Pending` and `_rt.Ready` to the module.
bool addPending(PyObject *module);

} // namespace astra::python

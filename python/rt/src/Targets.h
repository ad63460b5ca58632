//===- Targets.h: memory of the caller that outputs go into ---------------===//
// Takes:    what a call was given as `out`: an array, a tuple of them, a dict by name.
// Gives:    for each output that has one a description for the runtime; after the call, what the caller gets back.
// Keeps:    an array gets the elements or is refused; of one that is not row-major the runtime scatters them.
// Does not: compare shapes: the runtime does, when the session is locked.
#pragma once

#include "Entry.h"

namespace astra::python {

class Targets {
public:
  explicit Targets(size_t numOutputs);
  Targets(const Targets &) = delete;
  ~Targets();

  /// Says what output i is: its name, which stays its owner's, and its dtype.
  void name(size_t i, PyObject *key, int32_t dtype) { slots[i].key = key, slots[i].dtype = dtype; }
  /// Sorts `out` to the outputs. False with an exception.
  bool take(PyObject *out, const char *entry);

  bool has(size_t i) { return slots[i].array; }
  const astra_tensor &tensor(size_t i) { return slots[i].described.tensor; }
  /// A new reference to what was given for output i, or to an array of the beginning of its memory where the output has
  /// become smaller than its bound.
  PyObject *result(size_t i, int32_t ndim, const int64_t *shape);

private:
  struct Slot {
    PyObject *key = nullptr; ///< borrowed
    int32_t dtype = 0;
    PyObject *given = nullptr; ///< references
    PyObject *array = nullptr;
    Described described;
  };
  bool set(size_t i, PyObject *object);
  bool takeNamed(PyObject *out, const char *entry);

  size_t count;
  Few<Slot> slots;
};

/// Adds the setters of Python's part to the module.
bool addTargets(PyObject *module);

} // namespace astra::python

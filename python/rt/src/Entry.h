//===- Entry.h: calling an entry ------------------------------------------===//
// Takes:    arrays and tensors of Python, by place or by name; values of host dims by name.
// Gives:    the Python type `_rt.Entry`, a callable; tensors in memory of the device's pool.
// Keeps:    one call of a session at a time; the GIL is free while it runs. What does not change from call to call
//           (names, dtypes, sizes of outputs for the shapes of the last call) is kept.
// Does not: convert what is no array: astra_rt/_convert.py does, called for whatever is not usable as it is.
#pragma once

#include "Tensor.h"

namespace astra::python {

/// Room for the tensors of a call: on the stack as long as they are few.
template <typename T> class Few {
public:
  explicit Few(size_t n) : at(n <= kInline ? room : new T[n]) {}
  Few(const Few &) = delete;
  ~Few() {
    if (at != room) delete[] at;
  }
  T &operator[](size_t i) { return at[i]; }
  T *data() { return at; }

private:
  static constexpr size_t kInline = 16; ///< that need no memory of the heap
  T room[kInline];
  T *at;
};

/// Memory of a NumPy array or a Tensor as the runtime takes it; shape and strides are copied, since an array's may
/// change.
struct Described {
  astra_tensor tensor;
  int64_t shape[ASTRA_MAX_RANK];
  int64_t strides[ASTRA_MAX_RANK]; ///< in elements, of what is not row-major
};

/// Of a tensor whose shape is set and that has elements: the memory that its strides reach around the first element.
/// False where they are no whole elements.
bool setStrided(Described &out, char *first, const Py_ssize_t *bytes, uint64_t elementBytes);

/// Whether `object` can be given as it is where `wanted` is asked for: a tensor, or an aligned array of a dtype that
/// Astra has, of any strides. Of types that NumPy lacks an array of codes is taken.
bool describe(PyObject *object, int32_t wanted, Described &out);
/// A new reference to something that describe takes: the object, or what Python's converter makes of it (object,
/// dtype's name, what it is). Null with an exception.
PyObject *usable(PyObject *object, int32_t wanted, const char *what, Described &out);

/// An entry of a session as a Python object.
PyObject *newEntry(std::shared_ptr<SessionBox> session, uint32_t index);

/// Adds `_rt.Entry`, `_rt.Callable` and the setters of Python's part to the module.
bool addEntry(PyObject *module);

} // namespace astra::python

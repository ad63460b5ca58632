//===- Targets.cpp: memory of the caller that outputs go into -------------===//
// See Targets.h.
#include "Targets.h"
#include "Numpy.h"

#include <cstring>

using namespace astra::python;

namespace {

PyObject *converter = nullptr; ///< (object, dtype, what) -> an array that can be written to
PyObject *front = nullptr;     ///< (array, shape) -> an array of the beginning of its memory

template <PyObject **place> PyObject *keep(PyObject *, PyObject *object) {
  Py_INCREF(object);
  Py_XDECREF(*place);
  *place = object;
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {{"set_out_converter", keep<&converter>, METH_O,
                            "What makes arrays of what outputs go into: (object, dtype, what)."},
                           {"set_front", keep<&front>, METH_O, "What gives the beginning of an array: (array, shape)."},
                           {nullptr, nullptr, 0, nullptr}};

/// Whether it is an array that an output of the dtype can be written into as it is.
bool isWritable(PyObject *object, int32_t dtype, Described &out) {
  return PyArray_Check(object) && PyArray_ISBEHAVED(reinterpret_cast<PyArrayObject *>(object)) &&
         describe(object, dtype, out) && out.tensor.dtype == dtype;
}

} // namespace

Targets::Targets(size_t numOutputs) : count(numOutputs), slots(numOutputs) {}

Targets::~Targets() {
  for (size_t i = 0; i < count; i++) {
    Py_XDECREF(slots[i].given);
    Py_XDECREF(slots[i].array);
  }
}

bool Targets::set(size_t i, PyObject *object) {
  Slot &slot = slots[i];
  if (object == Py_None) return true;
  if (isWritable(object, slot.dtype, slot.described)) {
    Py_INCREF(object);
    slot.array = object;
  } else {
    PyObject *what = PyUnicode_FromFormat("out of output %U", slot.key);
    slot.array = what ? PyObject_CallFunction(converter, "OsN", object, astra_dtype_name(slot.dtype), what) : nullptr;
    if (!slot.array) return false;
    if (!isWritable(slot.array, slot.dtype, slot.described)) {
      PyErr_Format(PyExc_TypeError, "out of output %U cannot be written to as %s", slot.key,
                   astra_dtype_name(slot.dtype));
      return false;
    }
  }
  Py_INCREF(object);
  slot.given = object;
  return true;
}

/// Of a dict. Its keys are listed first: converting may run code that changes it.
bool Targets::takeNamed(PyObject *out, const char *entry) {
  PyObject *keys = PyDict_Keys(out);
  bool fine = keys;
  for (Py_ssize_t k = 0; fine && k < PyList_Size(keys); k++) {
    PyObject *key = PyList_GetItem(keys, k), *object = PyDict_GetItemWithError(out, key); // borrowed
    size_t i = 0;
    while (i < count && !(PyUnicode_Check(key) && PyUnicode_Compare(slots[i].key, key) == 0)) i++;
    if (i == count) PyErr_Format(PyExc_TypeError, "%s() has no output %R, which out names", entry, key);
    Py_XINCREF(object);
    fine = i < count && object && set(i, object);
    Py_XDECREF(object);
  }
  Py_XDECREF(keys);
  return fine && !PyErr_Occurred();
}

bool Targets::take(PyObject *out, const char *entry) {
  if (PyDict_Check(out)) return takeNamed(out, entry);
  if (PyTuple_Check(out)) {
    if (PyTuple_Size(out) != Py_ssize_t(count)) {
      PyErr_Format(PyExc_TypeError, "%s() gives %zu outputs and out has %zd arrays", entry, count, PyTuple_Size(out));
      return false;
    }
    for (size_t i = 0; i < count; i++)
      if (!set(i, PyTuple_GetItem(out, Py_ssize_t(i)))) return false;
    return true;
  }
  if (count == 1) return set(0, out);
  PyErr_Format(PyExc_TypeError, "%s() gives %zu outputs: out must be a tuple of as many arrays, or a dict by name",
               entry, count);
  return false;
}

PyObject *Targets::result(size_t i, int32_t ndim, const int64_t *shape) {
  Slot &slot = slots[i];
  if (std::memcmp(shape, slot.described.shape, size_t(ndim) * sizeof(int64_t)) == 0) {
    Py_INCREF(slot.given);
    return slot.given;
  }
  PyObject *extents = PyTuple_New(ndim);
  for (int32_t k = 0; extents && k < ndim; k++) {
    PyObject *extent = PyLong_FromLongLong(shape[k]);
    if (!extent) Py_CLEAR(extents);
    if (extents) PyTuple_SetItem(extents, k, extent);
  }
  return extents ? PyObject_CallFunction(front, "ON", slot.array, extents) : nullptr;
}

bool astra::python::addTargets(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

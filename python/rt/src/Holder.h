//===- Holder.h: Python objects that share a box ---------------------------===//
// Takes:    a box, shared by whatever needs it; methods and properties.
// Gives:    a Python type for each kind of box, whose objects are made by functions of this module.
// Keeps:    a box goes when the last object and the last other owner have gone.
#pragma once

#include "Handles.h"

#include <new>

namespace astra::python {

/// A Python object that shares a box.
template <typename Box> struct Holder {
  PyObject_HEAD std::shared_ptr<Box> box;
};
template <typename Box> inline PyTypeObject *typeOf = nullptr;
template <typename Box> Box &boxOf(PyObject *object) { return *reinterpret_cast<Holder<Box> *>(object)->box; }
template <typename Box> std::shared_ptr<Box> shared(PyObject *object) {
  return reinterpret_cast<Holder<Box> *>(object)->box;
}

template <typename Box> PyObject *hold(std::shared_ptr<Box> box) {
  if (!box) return nullptr;
  PyTypeObject *type = typeOf<Box>;
  PyObject *object = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (object) new (&reinterpret_cast<Holder<Box> *>(object)->box) std::shared_ptr<Box>(std::move(box));
  return object;
}

template <typename Box> void dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  {
    std::shared_ptr<Box> last = std::move(reinterpret_cast<Holder<Box> *>(object)->box);
    reinterpret_cast<Holder<Box> *>(object)->box.~shared_ptr();
  }
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

inline PyObject *noNew(PyTypeObject *, PyObject *, PyObject *) {
  PyErr_SetString(PyExc_TypeError, "use astra_rt.load");
  return nullptr;
}

template <typename Box>
bool addType(PyObject *module, const char *name, const char *shortName, PyMethodDef *methods, PyGetSetDef *properties) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(dealloc<Box>)},
                         {Py_tp_new, reinterpret_cast<void *>(noNew)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, properties},
                         {0, nullptr}};
  PyType_Spec spec = {name, sizeof(Holder<Box>), 0, Py_TPFLAGS_DEFAULT, slots};
  PyObject *type = PyType_FromSpec(&spec);
  if (!type) return false;
  typeOf<Box> = reinterpret_cast<PyTypeObject *>(type);
  Py_INCREF(type);
  return PyModule_AddObject(module, shortName, type) == 0;
}

} // namespace astra::python

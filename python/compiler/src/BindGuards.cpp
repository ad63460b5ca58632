//===- BindGuards.cpp: whether what a traced function read is as it was -----===//
// Takes:    dicts, lists and attributes, with what they held when the function was traced.
// Gives:    one answer for all of them, in a call that costs some nanoseconds for each value.
// Keeps:    a value is as it was where it is the same object, or an equal number, string or tuple of these. Another
//           one is shown to a callback, which may take it in the place of the old one.
// Does not: know what the values are for (python/compiler/astra/_environment.py).
#include "Bind.h"
#include <cstring>

using namespace astra;
using namespace astra::python;
using namespace nb::literals;

namespace {

/// A place that is looked at.
struct Place {
  enum Kind { Dict, List, Attribute, Content } kind;
  nb::object container, key, expected, replaced;
};

/// Whether a number or a string is another's equal; floats by their bits.
bool isEqual(PyObject *x, PyObject *y) {
  if (x == y) return true;
  PyTypeObject *t = Py_TYPE(x);
  if (t != Py_TYPE(y)) return false;
  if (t == &PyFloat_Type) {
    double a = PyFloat_AsDouble(x), b = PyFloat_AsDouble(y);
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
  if (t == &PyComplex_Type) {
    double a[] = {PyComplex_RealAsDouble(x), PyComplex_ImagAsDouble(x)};
    double b[] = {PyComplex_RealAsDouble(y), PyComplex_ImagAsDouble(y)};
    return std::memcmp(a, b, sizeof a) == 0;
  }
  if (t == &PyTuple_Type) {
    Py_ssize_t n = PyTuple_Size(x);
    if (n != PyTuple_Size(y)) return false;
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!isEqual(PyTuple_GetItem(x, i), PyTuple_GetItem(y, i))) return false;
    return true;
  }
  if (t != &PyLong_Type && t != &PyUnicode_Type && t != &PyBytes_Type) return false;
  int equal = PyObject_RichCompareBool(x, y, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

class Guards {
public:
  std::vector<Place> places;

  void add(const std::string &kind, nb::object container, nb::object key, nb::object expected, nb::object replaced) {
    Place::Kind k = kind == "dict"        ? Place::Dict
                    : kind == "list"      ? Place::List
                    : kind == "attribute" ? Place::Attribute
                                          : Place::Content;
    if ((k == Place::Dict && !(PyDict_Check(container.ptr()) && PyDict_Check(expected.ptr()))) ||
        (k == Place::List && !(PyList_Check(container.ptr()) && PyList_Check(expected.ptr()))))
      throw std::invalid_argument("a guard of a " + kind + " is given something else");
    places.push_back({k, std::move(container), std::move(key), std::move(expected), std::move(replaced)});
  }

  bool check() {
    for (size_t i = 0; i < places.size(); ++i) // by number: a callback may run anything
      if (!holds(places[i])) return false;
    return true;
  }

private:
  static bool isTaken(const Place &p, nb::handle key, PyObject *now) {
    if (p.replaced.is_none()) return false;
    nb::object kept = nb::borrow(now);
    return nb::cast<bool>(p.replaced(key, kept));
  }

  static bool holds(const Place &p) {
    switch (p.kind) {
    case Place::Dict: {
      if (PyDict_Size(p.container.ptr()) != PyDict_Size(p.expected.ptr()) && p.key.is_none()) return false;
      PyObject *key, *was;
      for (Py_ssize_t at = 0; PyDict_Next(p.expected.ptr(), &at, &key, &was);) {
        PyObject *now = PyDict_GetItemWithError(p.container.ptr(), key);
        if (now == was) continue;
        if (!now) return PyErr_Clear(), false;
        if (!isEqual(now, was) && !isTaken(p, key, now)) return false;
        PyDict_SetItem(p.expected.ptr(), key, now); // a key that is there: the dict stays as it is
      }
      return true;
    }
    case Place::List: {
      Py_ssize_t n = PyList_Size(p.expected.ptr());
      if (PyList_Size(p.container.ptr()) != n) return false;
      for (Py_ssize_t i = 0; i < n; ++i) {
        nb::object now = nb::borrow(PyList_GetItem(p.container.ptr(), i));
        PyObject *was = PyList_GetItem(p.expected.ptr(), i);
        if (now.ptr() == was) continue;
        if (!isEqual(now.ptr(), was) && !isTaken(p, nb::int_(i), now.ptr())) return false;
        if (PyList_Size(p.container.ptr()) != n) return false;
        PyList_SetItem(p.expected.ptr(), i, now.release().ptr());
      }
      return true;
    }
    case Place::Attribute: {
      nb::object now = nb::steal(PyObject_GetAttr(p.container.ptr(), p.key.ptr()));
      if (!now.is_valid()) return PyErr_Clear(), false;
      if (now.ptr() == p.expected.ptr() || isEqual(now.ptr(), p.expected.ptr())) return true;
      if (!isTaken(p, p.key, now.ptr())) return false;
      const_cast<Place &>(p).expected = std::move(now);
      return true;
    }
    case Place::Content: return nb::cast<bool>(p.container());
    }
    return false;
  }
};

int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const Place &p : nb::inst_ptr<Guards>(self)->places) {
    Py_VISIT(p.container.ptr());
    Py_VISIT(p.key.ptr());
    Py_VISIT(p.expected.ptr());
    Py_VISIT(p.replaced.ptr());
  }
  return 0;
}

int clear(PyObject *self) {
  std::vector<Place> places;
  places.swap(nb::inst_ptr<Guards>(self)->places);
  return 0;
}

PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(traverse)}, {Py_tp_clear, reinterpret_cast<void *>(clear)}, {0, nullptr}};

} // namespace

void python::bindGuards(nb::module_ &m) {
  nb::class_<Guards>(m, "Guards", nb::type_slots(slots),
                     "What a traced function read, with the values that it had: places in dicts, lists and objects.")
      .def(nb::init<>())
      .def("add", &Guards::add, "kind"_a, "container"_a, "key"_a.none(), "expected"_a.none(), "replaced"_a.none())
      .def("check", &Guards::check, "Whether all values are as they were.")
      .def("__len__", [](const Guards &g) { return g.places.size(); });
}

//===- Module.cpp: the extension module astra_rt._rt ----------------------===//
// Takes:    NumPy, imported here.
// Gives:    the module: types of Tensor.cpp, Entry.cpp, Session.cpp, Text.cpp and Ranks.cpp, functions of Function.cpp;
//           versions; devices that there are.
// Keeps:    one interpreter: a second one in the process is refused.
// Does not: define anything that a user sees without the Python part of astra_rt.
#define ASTRA_IMPORTS_NUMPY
#include "Calling.h"
#include "Entry.h"
#include "Exchange.h"
#include "Function.h"
#include "Numpy.h"
#include "Ranks.h"
#include "Session.h"
#include "Text.h"

using namespace astra::python;

namespace {

/// `probe(name)`: None if there is such a device, else why not.
PyObject *probe(PyObject *, PyObject *args) {
  const char *name;
  if (!PyArg_ParseTuple(args, "s", &name)) return nullptr;
  if (openDevice(name, 1, nullptr)) Py_RETURN_NONE;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *text = value ? PyObject_Str(value) : PyUnicode_FromString("there is no such device");
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return text;
}

/// `has_feature(name)`: whether this CPU has it; None for a name that is not known.
PyObject *hasFeature(PyObject *, PyObject *args) {
  const char *name;
  if (!PyArg_ParseTuple(args, "s", &name)) return nullptr;
  std::shared_ptr<DeviceBox> cpu = openDevice("cpu", 1, nullptr);
  if (!cpu) return nullptr;
  int32_t has = astra_device_has_feature(cpu->device, name);
  if (has >= 0) return PyBool_FromLong(has);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"probe", probe, METH_VARARGS, "Why there is no such device, or None."},
                           {"has_feature", hasFeature, METH_VARARGS, "Whether this CPU has a feature."},
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "astra_rt._rt",
                          "The runtime's C API, close to its letters.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

int importNumpy() {
  import_array1(-1);
  return 0;
}

} // namespace

PyMODINIT_FUNC PyInit__rt() {
  if (importNumpy() < 0) return nullptr;
  PyObject *module = PyModule_Create(&definition);
  if (!module) return nullptr;
  if (PyModule_AddStringConstant(module, "package_version", ASTRA_VERSION) == 0 && addTensor(module) &&
      addEntry(module) && addSession(module) && addExchange(module) && addText(module) && addFunction(module) &&
      addRanks(module) && addPending(module) && PyModule_AddIntConstant(module, "version", long(astra_version())) == 0)
    return module;
  Py_DECREF(module);
  return nullptr;
}

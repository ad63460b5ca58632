//===- Function.cpp: functions of Python that bundles call ----------------===//
// See Function.h.
#include "Function.h"
#include "DType.h"

#include <cstring>
#include <list>
#include <map>
#include <vector>

using namespace astra::python;

namespace {

/// Flags, -1 of what is not registered any more, and a function of astra.h, null of one of Python.
struct Registered {
  int flags;
  astra_function_fn fn;
};
/// By name: loaded bundles still have the name, by which a function of Python is told apart.
std::map<std::string, Registered> registered; // used with the GIL
PyObject *dispatcher = nullptr;               // (name, inputs, outputs), each a list of (dtype, shape, memoryview)

constexpr int kRead = 0x100, kWrite = 0x200; // PyBUF_READ, PyBUF_WRITE, which the stable ABI names since 3.11

/// (dtype, shape, memoryview) of each tensor. Null with an exception.
PyObject *listOf(const astra_tensor *tensors, uint32_t count, int access) {
  static char nothing;
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i < count; i++) {
    const astra_tensor &t = tensors[i];
    PyObject *shape = PyTuple_New(t.ndim);
    for (int32_t k = 0; shape && k < t.ndim; k++) PyTuple_SetItem(shape, k, PyLong_FromLongLong(t.shape[k]));
    char *data = t.data_bytes ? static_cast<char *>(t.data) : &nothing;
    PyObject *memory = shape ? PyMemoryView_FromMemory(data, Py_ssize_t(t.data_bytes), access) : nullptr;
    PyObject *row = memory ? Py_BuildValue("sNN", astra_dtype_name(t.dtype), shape, memory) : nullptr;
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

/// The pending exception as a sentence, which it ends.
void writeException(astra_diag *diag) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject *name = type ? PyObject_GetAttrString(type, "__name__") : nullptr;
  PyObject *text = value ? PyUnicode_FromFormat("%S: %S", name ? name : Py_None, value) : nullptr;
  PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : nullptr;
  if (const char *said = bytes ? PyBytes_AsString(bytes) : nullptr)
    std::strncpy(diag->text, said, sizeof(diag->text) - 1);
  for (PyObject *x : {type, value, traceback, name, text, bytes}) Py_XDECREF(x);
  PyErr_Clear();
}

/// A function of astra.h, on whatever thread runs the call, which has no GIL.
astra_status callPython(void *self, const astra_tensor *inputs, uint32_t numInputs, const astra_tensor *outputs,
                        uint32_t numOutputs, astra_diag *diag) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *given = listOf(inputs, numInputs, kRead);
  PyObject *wanted = given ? listOf(outputs, numOutputs, kWrite) : nullptr;
  PyObject *done = nullptr;
  if (wanted) done = PyObject_CallFunction(dispatcher, "sOO", static_cast<const char *>(self), given, wanted);
  if (!done) writeException(diag);
  astra_status status = done ? ASTRA_OK : ASTRA_FUNCTION_FAILED;
  for (PyObject *x : {done, given, wanted}) Py_XDECREF(x);
  PyGILState_Release(state);
  return status;
}

astra_status registerIn(astra_runtime *runtime, const std::pair<const std::string, Registered> &row, astra_diag *diag) {
  auto [flags, fn] = row.second;
  bool none = flags < 0;
  return astra_runtime_register(runtime, row.first.c_str(),
                                none ? nullptr
                                : fn ? fn
                                     : callPython,
                                const_cast<char *>(row.first.c_str()), none ? 0 : uint32_t(flags), diag);
}

/// `register(name, flags, address)`: flags of astra.h, or -1: it is not registered any more; the address of a function
/// of astra.h, or 0: what the dispatcher calls.
PyObject *add(PyObject *, PyObject *args) {
  const char *name;
  int flags;
  unsigned long long address = 0;
  if (!PyArg_ParseTuple(args, "si|K", &name, &flags, &address)) return nullptr;
  astra_runtime *runtime = theRuntime();
  if (!runtime) return nullptr;
  Diag diag;
  Registered made{flags, reinterpret_cast<astra_function_fn>(uintptr_t(address))};
  if (astra_status s = registerIn(runtime, *registered.insert_or_assign(name, made).first, &diag))
    return raise(s, diag.text);
  Py_RETURN_NONE;
}

/// Rows (dtype, shape, address, bytes) as tensors, with their shapes. False with an exception.
bool tensorsOf(PyObject *rows, std::vector<astra_tensor> &tensors, std::list<std::vector<int64_t>> &shapes) {
  for (Py_ssize_t i = 0; i < PyList_Size(rows); i++) {
    const char *dtype;
    PyObject *shape;
    unsigned long long address, bytes;
    if (!PyArg_ParseTuple(PyList_GetItem(rows, i), "sOKK", &dtype, &shape, &address, &bytes)) return false;
    std::vector<int64_t> &extents = shapes.emplace_back();
    for (Py_ssize_t k = 0; k < PyTuple_Size(shape); k++)
      extents.push_back(PyLong_AsLongLong(PyTuple_GetItem(shape, k)));
    if (PyErr_Occurred()) return false;
    astra_tensor t = ASTRA_INIT(astra_tensor);
    const DTypeRow *row = rowOf(dtype);
    t.dtype = row ? row->dtype : 0; // which no function takes
    t.data = reinterpret_cast<void *>(uintptr_t(address));
    t.data_bytes = bytes;
    t.ndim = int32_t(extents.size());
    t.shape = extents.data();
    tensors.push_back(t);
  }
  return true;
}

/// `call_c_function(address, inputs, outputs)`: a function of astra.h, called by the evaluator of the package astra.
PyObject *callC(PyObject *, PyObject *args) {
  unsigned long long address;
  PyObject *in, *out;
  if (!PyArg_ParseTuple(args, "KOO", &address, &in, &out)) return nullptr;
  std::vector<astra_tensor> inputs, outputs;
  std::list<std::vector<int64_t>> shapes;
  if (!tensorsOf(in, inputs, shapes) || !tensorsOf(out, outputs, shapes)) return nullptr;
  Diag diag;
  astra_status status = reinterpret_cast<astra_function_fn>(uintptr_t(address))(
      nullptr, inputs.data(), uint32_t(inputs.size()), outputs.data(), uint32_t(outputs.size()), &diag);
  if (status) return raise(status, diag.text);
  Py_RETURN_NONE;
}

PyObject *setDispatcher(PyObject *, PyObject *callable) {
  Py_INCREF(callable);
  Py_XDECREF(dispatcher);
  dispatcher = callable;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"register", add, METH_VARARGS, "A name that bundles call: (name, flags or -1, address)."},
    {"call_c_function", callC, METH_VARARGS, "Calls a function of C: (address, inputs, outputs)."},
    {"set_dispatcher", setDispatcher, METH_O, "What calls a function by its name."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

astra_status astra::python::registerAgain(astra_runtime *runtime, astra_diag *diag) {
  for (const auto &row : registered)
    if (astra_status s = registerIn(runtime, row, diag)) return s;
  return ASTRA_OK;
}

bool astra::python::addFunction(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

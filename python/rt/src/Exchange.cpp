//===- Exchange.cpp: tensors of another library by C functions -------------===//
// See Exchange.h.
#include "Exchange.h"
#include "DLPack.h"
#include "Tensor.h"

#include <algorithm>
#include <cstring>

using namespace astra::python;

namespace {

/// What a library offers, as dmlc/dlpack, include/dlpack/dlpack.h, lays it out.
struct ExchangeApi {
  uint32_t major, minor;
  ExchangeApi *before;
  void *allocate;
  int (*managedOf)(void *object, DLManagedTensorVersioned **out);
  int (*objectOf)(DLManagedTensorVersioned *tensor, void **out);
  int (*tensorOf)(void *object, DLTensor *out);
  void *stream;
};

PyTypeObject *exchangedType = nullptr;
const ExchangeApi *api = nullptr;
PyObject *requiresGrad = nullptr, *isNegative = nullptr; // the name of the attribute, the method of the type
PyObject *settings = nullptr;                            // functions of the library's state: the first must give False

/// Whether what was given is False; it is let go.
bool isFalse(PyObject *value) {
  if (!value) PyErr_Clear();
  bool is = value == Py_False;
  Py_XDECREF(value);
  return is;
}

/// Appends what the settings are, by the identities of what their functions give: objects that live as long as the
/// library. Whether the first is False.
bool addSettings(char *bytes, size_t most, size_t &used) {
  for (Py_ssize_t i = 0, n = settings ? PyTuple_Size(settings) : 0; i < n; i++) {
    PyObject *value = PyObject_CallNoArgs(PyTuple_GetItem(settings, i));
    if (!value) PyErr_Clear();
    Py_XDECREF(value);
    if (!value || (i == 0 && value != Py_False) || used + sizeof value > most) return false;
    if (i == 0) continue;
    std::memcpy(bytes + used, &value, sizeof value);
    used += sizeof value;
  }
  return true;
}

/// `set_exchange(type, capsule, settings)`
PyObject *setExchange(PyObject *, PyObject *args) {
  PyObject *type, *capsule, *functions;
  if (!PyArg_ParseTuple(args, "OOO!", &type, &capsule, &PyTuple_Type, &functions)) return nullptr;
  if (!PyType_Check(type) || !PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
    return PyErr_Format(PyExc_TypeError, "a type and its capsule 'dlpack_exchange_api' are needed");
  auto *found = static_cast<const ExchangeApi *>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  while (found && found->major != 1) found = found->before;
  if (!found || !found->objectOf || !found->tensorOf)
    return PyErr_Format(PyExc_BufferError, "the exchange API is not one of DLPack 1");
  if (!requiresGrad && !(requiresGrad = PyUnicode_InternFromString("requires_grad"))) return nullptr;
  if (!isNegative && !(isNegative = PyObject_GetAttrString(type, "is_neg"))) return nullptr;
  Py_INCREF(functions);
  Py_XDECREF(settings);
  settings = functions;
  Py_INCREF(type);
  Py_INCREF(capsule); // its functions are called as long as the process lives
  exchangedType = reinterpret_cast<PyTypeObject *>(type), api = found;
  Py_RETURN_NONE;
}

/// `give(tensor)`: the same memory as a tensor of the other library.
PyObject *give(PyObject *, PyObject *object) {
  if (!api || !isTensor(object)) return PyErr_Format(PyExc_TypeError, "give takes a tensor of astra_rt");
  DLManagedTensorVersioned *managed = lendManaged(object);
  if (!managed) return nullptr;
  void *out = nullptr;
  if (api->objectOf(managed, &out) == 0) return static_cast<PyObject *>(out);
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_BufferError, "the tensor cannot be taken by the other library");
  return nullptr;
}

/// `exchanged_kind(tensors)`: what tells calls apart, the settings, types and shapes and whether they want gradients,
/// as bytes; None where one is no tensor that the other library describes, or the first setting is not False.
PyObject *exchangedKind(PyObject *, PyObject *tensors) {
  struct {
    DLDataType dtype;
    int16_t device;
    int8_t ndim;
    bool plain;
  } kind;
  constexpr size_t most = 512;
  char bytes[most];
  size_t used = 0;
  if (!PyTuple_Check(tensors)) return PyErr_Format(PyExc_TypeError, "exchanged_kind takes a tuple");
  if (!addSettings(bytes, most, used)) Py_RETURN_NONE;
  for (Py_ssize_t i = 0, n = PyTuple_Size(tensors); i < n; i++) {
    PyObject *object = PyTuple_GetItem(tensors, i);
    DLTensor from = {};
    if (Py_TYPE(object) != exchangedType || !exchangedType) Py_RETURN_NONE;
    if (api->tensorOf(object, &from) != 0) {
      PyErr_Clear();
      Py_RETURN_NONE;
    }
    size_t shape = size_t(from.ndim) * sizeof(int64_t);
    if (from.ndim < 0 || from.ndim > ASTRA_MAX_RANK || used + sizeof kind + shape > most) Py_RETURN_NONE;
    std::memset(&kind, 0, sizeof kind);
    kind.dtype = from.dtype, kind.device = int16_t(from.device.device_type), kind.ndim = int8_t(from.ndim);
    kind.plain = isFalse(PyObject_GetAttr(object, requiresGrad));
    std::memcpy(bytes + used, &kind, sizeof kind);
    std::memcpy(bytes + used + sizeof kind, from.shape, shape);
    used += sizeof kind + shape;
  }
  return PyBytes_FromStringAndSize(bytes, Py_ssize_t(used));
}

PyMethodDef functions[] = {
    {"set_exchange", setExchange, METH_VARARGS,
     "Which type is exchanged, and by which functions: (type, capsule, settings)."},
    {"exchanged_kind", exchangedKind, METH_O, "Types and shapes of a tuple of such tensors, as bytes, or None."},
    {"give", give, METH_O, "A tensor as one of the type that is exchanged, in the same memory."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool astra::python::describeExchanged(PyObject *object, Described &out) {
  if (Py_TYPE(object) != exchangedType || !exchangedType) return false;
  if (!isFalse(PyObject_GetAttr(object, requiresGrad))) return false;
  if (!isFalse(PyObject_CallFunctionObjArgs(isNegative, object, nullptr))) return false;
  DLTensor from = {};
  if (api->tensorOf(object, &from) != 0) return PyErr_Clear(), false;
  if (from.device.device_type != kDLCPU || from.ndim < 0 || from.ndim > ASTRA_MAX_RANK) return false;
  const DTypeRow *row = rowOf(from.dtype);
  if (!row || from.dtype.code == kDLComplex || astra_dtype_bits(row->dtype) < 8) return false;
  uint64_t bytes = astra_dtype_bits(row->dtype) / 8;
  int64_t stride = 1;
  bool isStrided = false;
  Py_ssize_t steps[ASTRA_MAX_RANK] = {};
  for (int32_t i = from.ndim; i-- > 0;) {
    steps[i] = (from.strides ? from.strides[i] : stride) * Py_ssize_t(bytes);
    isStrided |= from.shape[i] > 1 && steps[i] != stride * Py_ssize_t(bytes);
    stride *= from.shape[i];
  }
  char *data = static_cast<char *>(from.data) + from.byte_offset;
  if (reinterpret_cast<uintptr_t>(data) % std::min<uint64_t>(bytes, 8)) return false;
  astra_tensor &t = out.tensor;
  t.dtype = row->dtype, t.ndim = from.ndim;
  std::memcpy(out.shape, from.shape, size_t(t.ndim) * 8);
  if (isStrided && stride) return setStrided(out, data, steps, bytes);
  t.data = data, t.data_bytes = uint64_t(stride) * bytes;
  return true;
}

bool astra::python::addExchange(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

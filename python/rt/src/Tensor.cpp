//===- Tensor.cpp: the Python type of tensors -----------------------------===//
// See Tensor.h. What is pleasant and not urgent (repr, numbers, __dlpack__) is in astra_rt/_tensor.py, in a class
// derived from this one.
#include "Tensor.h"
#include "Numpy.h"

#include <algorithm>
#include <cstring>
#include <new>

using namespace astra::python;

PyTypeObject *astra::python::tensorType = nullptr;
PyTypeObject *astra::python::tensorClass = nullptr;

namespace {

constexpr const char *kName = "dltensor", *kUsedName = "used_dltensor";
constexpr const char *kVersionedName = "dltensor_versioned", *kUsedVersionedName = "used_dltensor_versioned";

/// What the buffer protocol passes (PEP 3118). The limited API names it from 3.11 on; its layout is older.
struct BufferView {
  void *buf;
  PyObject *obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char *format;
  Py_ssize_t *shape;
  Py_ssize_t *strides;
  Py_ssize_t *suboffsets;
  void *internal;
};
enum {
  kSlotGetBuffer = 1,
  kFlagWritable = 1,
  kFlagFormat = 4,
  kFlagShape = 8,
  kFlagStrides = 0x10,
  kFlagsContiguous = 0x20 | 0x40 | 0x80 // C, Fortran, any
};

TensorObject *self(PyObject *object) { return reinterpret_cast<TensorObject *>(object); }

void dealloc(PyObject *object) {
  TensorObject *t = self(object);
  PyTypeObject *type = Py_TYPE(object);
  if (t->managed && t->managed->deleter) t->managed->deleter(t->managed);
  if (t->versioned && t->versioned->deleter) t->versioned->deleter(t->versioned);
  if (t->buffer) astra_buffer_free(&t->buffer);
  Py_XDECREF(t->base);
  t->device.~shared_ptr();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

void setRowMajor(TensorObject *t) {
  uint32_t bits = astra_dtype_bits(t->dtype);
  Py_ssize_t stride = bits < 8 ? 1 : bits / 8;
  for (int32_t i = t->ndim; i-- > 0; stride *= t->extents[i]) t->strides[i] = stride;
}

int getBuffer(PyObject *object, BufferView *view, int flags) {
  TensorObject *t = self(object);
  if (flags & kFlagWritable) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "a tensor is immutable and gives no writable buffer; copy it: numpy.array(t)");
    return -1;
  }
  if (t->isStrided && ((flags & kFlagStrides) != kFlagStrides || flags & kFlagsContiguous)) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "the tensor is not row-major; copy it: numpy.array(t, order='C')");
    return -1;
  }
  const DTypeRow &row = *rowOf(t->dtype);
  uint32_t bits = astra_dtype_bits(t->dtype);
  *view = {};
  Py_INCREF(object);
  view->obj = object;
  view->buf = t->data, view->len = Py_ssize_t(t->bytes), view->itemsize = bits < 8 ? 1 : bits / 8, view->readonly = 1;
  view->ndim = t->ndim;
  if (flags & kFlagFormat) view->format = const_cast<char *>(row.format);
  if (flags & kFlagShape) view->shape = t->extents;
  if ((flags & kFlagStrides) == kFlagStrides) view->strides = t->strides;
  return 0;
}

/// `_array()`: a NumPy array without a copy, read-only; of codes, or of bytes, where NumPy has no such dtype.
PyObject *toArray(PyObject *object, PyObject *) {
  TensorObject *t = self(object);
  int type = rowOf(t->dtype)->numpy;
  npy_intp shape[ASTRA_MAX_RANK];
  for (int32_t i = 0; i < t->ndim; i++) shape[i] = t->extents[i];
  PyArray_Descr *descr = PyArray_DescrFromType(type < 0 ? NPY_UBYTE : type);
  if (!descr) return nullptr;
  void *data = t->data;
  static int64_t nothing; // an array of no element has an address too
  PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, t->ndim, shape, t->isStrided ? t->strides : nullptr,
                                         data ? data : &nothing, 0, nullptr);
  if (!array) return nullptr;
  Py_INCREF(object);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(array), object) < 0) {
    Py_DECREF(array);
    return nullptr;
  }
  return array;
}

//===- DLPack ---------------------------------------------------------------===//

/// What a capsule of ours owns. `managed` is the whole of it for whoever takes it.
template <typename Managed> struct Lent {
  Managed managed;
  PyObject *tensor;
  int64_t shape[ASTRA_MAX_RANK];
  int64_t strides[ASTRA_MAX_RANK];
};

/// Called by the consumer, on any thread, with or without the GIL.
template <typename Managed> void release(Managed *managed) {
  auto *lent = static_cast<Lent<Managed> *>(managed->manager_ctx);
  if (Py_IsInitialized()) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(lent->tensor);
    PyGILState_Release(state);
  }
  delete lent;
}

/// A capsule that nobody took.
template <typename Managed> void dropCapsule(PyObject *capsule) {
  constexpr bool isVersioned = std::is_same_v<Managed, DLManagedTensorVersioned>;
  const char *name = isVersioned ? kVersionedName : kName;
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto *managed = static_cast<Managed *>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter) managed->deleter(managed);
}

template <typename Managed> Managed *lendWithout(TensorObject *t, uint64_t flags) {
  auto *lent = new (std::nothrow) Lent<Managed>{};
  if (!lent) return PyErr_NoMemory(), nullptr;
  int64_t stride = 1;
  for (int32_t i = t->ndim; i-- > 0;) {
    lent->shape[i] = t->shape[i];
    lent->strides[i] = t->isStrided ? t->strides[i] / Py_ssize_t(astra_dtype_bits(t->dtype) / 8) : stride;
    stride *= t->shape[i] > 1 ? t->shape[i] : 1;
  }
  Managed &m = lent->managed;
  m.manager_ctx = lent, m.deleter = release<Managed>;
  m.dl_tensor = {t->data, {kDLCPU, 0}, t->ndim, rowOf(t->dtype)->dlpack, lent->shape, lent->strides, 0};
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) m.version = {1, 1}, m.flags = flags;
  (void)flags;
  Py_INCREF(t);
  lent->tensor = reinterpret_cast<PyObject *>(t);
  return &m;
}

template <typename Managed> PyObject *lend(TensorObject *t, uint64_t flags) {
  Managed *managed = lendWithout<Managed>(t, flags);
  if (!managed) return nullptr;
  constexpr bool isVersioned = std::is_same_v<Managed, DLManagedTensorVersioned>;
  PyObject *capsule = PyCapsule_New(managed, isVersioned ? kVersionedName : kName, dropCapsule<Managed>);
  if (!capsule) release(managed);
  return capsule;
}

/// DLPack wants memory to begin at a multiple of this; TensorFlow ends the process where it does not.
constexpr uint64_t kDLAlign = 256;

/// Elements of any strides (in bytes), in row-major order.
void gather(char *to, const char *at, const TensorObject &shape, const Py_ssize_t *strides) {
  uint64_t size = astra_dtype_bits(shape.dtype) / 8;
  int64_t index[ASTRA_MAX_RANK] = {};
  for (const char *end = to + shape.bytes; to < end; to += size) {
    std::memcpy(to, at, size);
    for (int32_t i = shape.ndim; i-- > 0;) {
      at += strides[i];
      if (++index[i] < shape.shape[i]) break;
      at -= strides[i] * shape.shape[i];
      index[i] = 0;
    }
  }
}

/// The same elements in memory of its own, which whoever gets it may write to.
TensorObject *copyOf(TensorObject *t) {
  TensorObject *copy = newTensor(t->dtype, t->ndim, t->shape);
  if (!copy) return nullptr;
  copy->base = PyBytes_FromStringAndSize(nullptr, Py_ssize_t(t->bytes + kDLAlign - 1));
  if (!copy->base) {
    Py_DECREF(copy);
    return nullptr;
  }
  uintptr_t begin = reinterpret_cast<uintptr_t>(PyBytes_AsString(copy->base));
  copy->data = reinterpret_cast<char *>((begin + kDLAlign - 1) / kDLAlign * kDLAlign);
  if (t->isStrided)
    gather(static_cast<char *>(copy->data), static_cast<const char *>(t->data), *t, t->strides);
  else if (t->bytes)
    std::memcpy(copy->data, t->data, t->bytes);
  return copy;
}

/// `_capsule(versioned, copy)`
PyObject *toCapsule(PyObject *object, PyObject *args) {
  int isVersioned, copies;
  if (!PyArg_ParseTuple(args, "pp", &isVersioned, &copies)) return nullptr;
  TensorObject *t = self(object);
  uint32_t bits = astra_dtype_bits(t->dtype);
  if (bits < 8 && t->ndim > 1 && t->shape[t->ndim - 1] * bits % 8)
    return PyErr_Format(PyExc_BufferError,
                        "rows of this %s tensor end inside of a byte and are padded, which DLPack cannot say; "
                        "take its values: t.numpy()",
                        astra_dtype_name(t->dtype));
  if (copies)
    t = copyOf(t);
  else
    Py_INCREF(t);
  if (!t) return nullptr;
  PyObject *capsule =
      isVersioned ? lend<DLManagedTensorVersioned>(t, copies ? kDLIsCopied : kDLReadOnly) : lend<DLManagedTensor>(t, 0);
  Py_DECREF(t);
  return capsule;
}

bool isDense(const DLTensor &t) {
  int64_t expected = 1;
  for (int32_t i = t.ndim; t.strides && i-- > 0;) {
    if (t.shape[i] > 1 && t.strides[i] != expected) return false;
    expected *= t.shape[i] > 1 ? t.shape[i] : 1;
  }
  return true;
}

/// The tensor that a capsule lends, which stays its owner.
TensorObject *borrow(const DLTensor &from, bool isPadded) {
  int32_t place = from.device.device_type;
  if (place != kDLCPU && place != kDLCUDAHost && place != kDLROCMHost) {
    PyErr_SetString(PyExc_BufferError, "the tensor lies in memory of a device; copy it to the host first");
    return nullptr;
  }
  if (from.ndim < 0 || from.ndim > ASTRA_MAX_RANK) {
    PyErr_Format(PyExc_ValueError, "the tensor has %d dims; 0 to %d are allowed", int(from.ndim), ASTRA_MAX_RANK);
    return nullptr;
  }
  const DTypeRow *row = rowOf(from.dtype);
  uint32_t bits = row ? astra_dtype_bits(row->dtype) : 0;
  bool isPacked = bits < 8;
  if (!row || (isPacked && (isPadded || (from.ndim && from.shape[from.ndim - 1] * bits % 8)))) {
    PyErr_Format(PyExc_TypeError,
                 "the tensor's dtype (code %d, %d bits, %d lanes%s) is not one that can be taken without a copy",
                 int(from.dtype.code), int(from.dtype.bits), int(from.dtype.lanes), isPacked ? ", packed" : "");
    return nullptr;
  }
  TensorObject *t = newTensor(row->dtype, from.ndim, from.shape);
  if (!t) return nullptr;
  char *data = static_cast<char *>(from.data) + from.byte_offset;
  uint64_t alignment = bits >= 64 ? 8 : isPacked ? 1 : bits / 8;
  bool dense = isDense(from) || !t->bytes;
  Py_ssize_t strides[ASTRA_MAX_RANK]; // in bytes; those of axes of one element say nothing
  for (int32_t i = 0; i < from.ndim; i++)
    strides[i] = !dense && from.shape[i] > 1 ? from.strides[i] * int64_t(bits / 8) : 0;
  if (!t->bytes || ((dense || !isPacked) && reinterpret_cast<uintptr_t>(data) % alignment == 0)) {
    t->data = data, t->isStrided = !dense;
    if (!dense) std::copy_n(strides, from.ndim, t->strides);
    return t;
  }
  if (isPacked) {
    PyErr_SetString(PyExc_BufferError, "the tensor is packed and not row-major; make it so");
    Py_DECREF(t);
    return nullptr;
  }
  t->base = PyBytes_FromStringAndSize(nullptr, Py_ssize_t(t->bytes));
  if (!t->base) {
    Py_DECREF(t);
    return nullptr;
  }
  t->data = PyBytes_AsString(t->base);
  if (dense)
    std::memcpy(t->data, data, t->bytes);
  else
    gather(static_cast<char *>(t->data), data, *t, strides);
  return t;
}

/// `from_capsule(capsule)`: takes what is in it.
PyObject *fromCapsule(PyObject *, PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, kVersionedName)) {
    auto *m = static_cast<DLManagedTensorVersioned *>(PyCapsule_GetPointer(capsule, kVersionedName));
    if (m->version.major != 1)
      return PyErr_Format(PyExc_BufferError, "the capsule is of DLPack %d.%d; version 1 is understood",
                          int(m->version.major), int(m->version.minor));
    TensorObject *t = borrow(m->dl_tensor, m->flags & kDLSubbytePadded);
    if (t && PyCapsule_SetName(capsule, kUsedVersionedName) < 0) Py_CLEAR(t);
    if (t) t->versioned = m;
    return reinterpret_cast<PyObject *>(t);
  }
  if (PyCapsule_IsValid(capsule, kName)) {
    auto *m = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(capsule, kName));
    TensorObject *t = borrow(m->dl_tensor, false);
    if (t && PyCapsule_SetName(capsule, kUsedName) < 0) Py_CLEAR(t);
    if (t) t->managed = m;
    return reinterpret_cast<PyObject *>(t);
  }
  PyErr_SetString(PyExc_ValueError, "no capsule of DLPack, or one that was taken before; call __dlpack__() again");
  return nullptr;
}

/// `wrap(array, dtype, shape)`: a tensor in the memory of a C-contiguous array, which nobody may write to any more.
PyObject *wrap(PyObject *, PyObject *args) {
  PyObject *object, *extents;
  const char *name;
  if (!PyArg_ParseTuple(args, "OsO", &object, &name, &extents)) return nullptr;
  const DTypeRow *row = rowOf(name);
  if (!row) return PyErr_Format(PyExc_TypeError, "there is no dtype '%s'", name);
  if (!PyArray_Check(object) || !PyArray_ISCARRAY_RO(reinterpret_cast<PyArrayObject *>(object)))
    return PyErr_Format(PyExc_TypeError, "the memory of a tensor must be a contiguous, aligned array");
  int64_t shape[ASTRA_MAX_RANK];
  Py_ssize_t ndim = PySequence_Size(extents);
  if (ndim < 0) return nullptr;
  if (ndim > ASTRA_MAX_RANK)
    return PyErr_Format(PyExc_ValueError, "%zd dims; 0 to %d are allowed", ndim, ASTRA_MAX_RANK);
  for (Py_ssize_t i = 0; i < ndim; i++) {
    PyObject *extent = PySequence_GetItem(extents, i);
    if (!extent) return nullptr;
    shape[i] = PyLong_AsLongLong(extent);
    Py_DECREF(extent);
    if (shape[i] == -1 && PyErr_Occurred()) return nullptr;
  }
  TensorObject *t = newTensor(row->dtype, int32_t(ndim), shape);
  if (!t) return nullptr;
  auto *array = reinterpret_cast<PyArrayObject *>(object);
  if (uint64_t(PyArray_NBYTES(array)) != t->bytes) {
    Py_DECREF(t);
    return PyErr_Format(PyExc_ValueError, "an array of %zd bytes is not as large as %s of this shape",
                        Py_ssize_t(PyArray_NBYTES(array)), name);
  }
  Py_INCREF(object);
  t->base = object, t->data = PyArray_DATA(array);
  return reinterpret_cast<PyObject *>(t);
}

//===- The type -------------------------------------------------------------===//

PyObject *getShape(PyObject *object, void *) {
  TensorObject *t = self(object);
  PyObject *shape = PyTuple_New(t->ndim);
  for (int32_t i = 0; shape && i < t->ndim; i++) {
    PyObject *extent = PyLong_FromLongLong(t->shape[i]);
    if (!extent) Py_CLEAR(shape);
    if (shape) PyTuple_SetItem(shape, i, extent);
  }
  return shape;
}
PyObject *getDType(PyObject *object, void *) { return PyUnicode_FromString(astra_dtype_name(self(object)->dtype)); }
PyObject *getNDim(PyObject *object, void *) { return PyLong_FromLong(self(object)->ndim); }
PyObject *getBytes(PyObject *object, void *) { return PyLong_FromUnsignedLongLong(self(object)->bytes); }
/// Of a tensor with strides its elements are made row-major first: whoever asks reads them so. Where they were stays as
/// long as the tensor, for those that look there.
PyObject *getAddress(PyObject *object, void *) {
  TensorObject *t = self(object);
  if (t->isStrided) {
    PyObject *bytes = PyBytes_FromStringAndSize(nullptr, Py_ssize_t(t->bytes));
    if (!bytes) return nullptr;
    gather(PyBytes_AsString(bytes), static_cast<const char *>(t->data), *t, t->strides);
    t->base = bytes, t->data = PyBytes_AsString(bytes), t->isStrided = false;
    setRowMajor(t);
  }
  return PyLong_FromVoidPtr(t->data);
}
PyObject *getSize(PyObject *object, void *) {
  TensorObject *t = self(object);
  int64_t count = 1;
  for (int32_t i = 0; i < t->ndim; i++) count *= t->shape[i];
  return PyLong_FromLongLong(count);
}

PyObject *noNew(PyTypeObject *, PyObject *, PyObject *) {
  PyErr_SetString(PyExc_TypeError, "make a tensor with astra_rt.tensor(values) or astra_rt.from_dlpack(object)");
  return nullptr;
}

PyGetSetDef properties[] = {
    {"shape", getShape, nullptr, "The extents, a tuple of int.", nullptr},
    {"dtype", getDType, nullptr, "The element type's name: 'f32', 'bf16', 'i4', ...", nullptr},
    {"ndim", getNDim, nullptr, "The number of axes.", nullptr},
    {"size", getSize, nullptr, "The number of elements.", nullptr},
    {"nbytes", getBytes, nullptr, "The bytes of the elements; packed types take less than one each.", nullptr},
    {"_address", getAddress, nullptr, "Where the elements are, row-major.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"_array", toArray, METH_NOARGS, "A read-only array without a copy: values, codes or bytes."},
                         {"_capsule", toCapsule, METH_VARARGS, "A capsule of DLPack: (versioned, copy)."},
                         {nullptr, nullptr, 0, nullptr}};
PyMethodDef functions[] = {{"wrap", wrap, METH_VARARGS, "A tensor in the memory of an array: (array, dtype, shape)."},
                           {"from_capsule", fromCapsule, METH_O, "The tensor that a capsule of DLPack lends."},
                           {"set_tensor_class",
                            [](PyObject *, PyObject *type) -> PyObject * {
                              if (!PyType_Check(type) ||
                                  !PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(type), tensorType))
                                return PyErr_Format(PyExc_TypeError, "a class derived from _rt.Tensor is needed");
                              Py_INCREF(type);
                              tensorClass = reinterpret_cast<PyTypeObject *>(type);
                              Py_RETURN_NONE;
                            },
                            METH_O, "The class that tensors are of."},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

TensorObject *astra::python::newTensor(int32_t dtype, int32_t ndim, const int64_t *shape) {
  uint32_t bits = astra_dtype_bits(dtype);
  uint64_t bytes;
  if (!denseBytes(bits, shape, ndim, bytes)) {
    PyErr_SetString(PyExc_ValueError, "the shape is negative or too large");
    return nullptr;
  }
  auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(tensorClass, Py_tp_alloc));
  TensorObject *t = self(allocate(tensorClass, 0)); // all zeros but for the head
  if (!t) return nullptr;
  new (&t->device) std::shared_ptr<DeviceBox>();
  t->bytes = bytes, t->dtype = dtype, t->ndim = ndim;
  for (int32_t i = 0; i < ndim; i++) {
    t->shape[i] = shape[i];
    t->extents[i] = i + 1 == ndim && bits < 8 ? (shape[i] * bits + 7) / 8 : shape[i];
  }
  setRowMajor(t);
  return t;
}

PyObject *astra::python::tensorOf(std::shared_ptr<DeviceBox> device, astra_buffer *buffer, int32_t dtype, int32_t ndim,
                                  const int64_t *shape) {
  TensorObject *t = newTensor(dtype, ndim, shape);
  if (!t) {
    astra_buffer_free(&buffer);
    return nullptr;
  }
  t->device = std::move(device);
  t->buffer = buffer, t->data = astra_buffer_data(buffer);
  return reinterpret_cast<PyObject *>(t);
}

DLManagedTensorVersioned *astra::python::lendManaged(PyObject *tensor) {
  TensorObject *t = self(tensor);
  if (astra_dtype_bits(t->dtype) < 8) {
    PyErr_SetString(PyExc_BufferError, "packed elements are not exchanged");
    return nullptr;
  }
  return lendWithout<DLManagedTensorVersioned>(t, kDLReadOnly);
}

bool astra::python::addTensor(PyObject *module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
                         {Py_tp_new, reinterpret_cast<void *>(noNew)},
                         {Py_tp_getset, properties},
                         {Py_tp_methods, methods},
                         {kSlotGetBuffer, reinterpret_cast<void *>(getBuffer)},
                         {0, nullptr}};
  PyType_Spec spec = {"astra_rt._rt.Tensor", sizeof(TensorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject *type = PyType_FromSpec(&spec);
  if (!type) return false;
  tensorType = tensorClass = reinterpret_cast<PyTypeObject *>(type);
  Py_INCREF(type);
  return PyModule_AddObject(module, "Tensor", type) == 0 && PyModule_AddFunctions(module, functions) == 0;
}

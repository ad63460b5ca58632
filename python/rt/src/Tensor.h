//===- Tensor.h: immutable tensors in host memory -------------------------===//
// Takes:    a buffer of a pool, memory of a Python object, a capsule of DLPack.
// Gives:    the Python type `_rt.Tensor`: buffer protocol, NumPy arrays and capsules without a copy.
// Keeps:    row-major, but for what was lent with strides; memory that is seen is read-only, and stays.
// Does not: compute.
#pragma once

#include "DType.h"

namespace astra::python {

struct TensorObject {
  PyObject_HEAD std::shared_ptr<DeviceBox> device; ///< whose pool `buffer` is from
  astra_buffer *buffer;                            ///< or null
  PyObject *base;                                  ///< what else keeps the memory, or null
  DLManagedTensor *managed;                        ///< what was taken out of a capsule, or null
  DLManagedTensorVersioned *versioned;
  void *data;
  uint64_t bytes;
  int32_t dtype;
  int32_t ndim;
  int64_t shape[ASTRA_MAX_RANK];
  Py_ssize_t strides[ASTRA_MAX_RANK]; ///< in bytes, as the buffer protocol wants them
  bool isStrided;                     ///< not row-major: lent so. `data` is the first element
  Py_ssize_t extents[ASTRA_MAX_RANK]; ///< of what the buffer protocol shows: bytes along the last axis of packed types
};

/// The type from C, and the one of Python that instances are of.
extern PyTypeObject *tensorType;
extern PyTypeObject *tensorClass;

inline bool isTensor(PyObject *object) {
  return Py_TYPE(object) == tensorClass || PyObject_TypeCheck(object, tensorType);
}

/// A tensor without memory yet; `bytes` and strides follow from the shape. Null with an exception.
TensorObject *newTensor(int32_t dtype, int32_t ndim, const int64_t *shape);
/// A tensor in a buffer of the device's pool, which it takes over, also on failure.
PyObject *tensorOf(std::shared_ptr<DeviceBox> device, astra_buffer *buffer, int32_t dtype, int32_t ndim,
                   const int64_t *shape);

/// What lends a tensor's memory, read-only, until it is released. Null with an exception.
DLManagedTensorVersioned *lendManaged(PyObject *tensor);

/// Adds the type and the functions `wrap`, `from_capsule` and `set_tensor_class` to the module.
bool addTensor(PyObject *module);

} // namespace astra::python

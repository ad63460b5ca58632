//===- Exchange.h: tensors of another library by C functions ---------------===//
// Takes:    a type of tensors, and the functions that its library gives for them (DLPack 1.3's exchange API).
// Gives:    arguments as they are, results as tensors of that type: no Python runs, no capsule is made.
// Keeps:    what these functions do not see goes the way of all objects: subclasses, views that negate or
//           conjugate, gradients.
#pragma once

#include "Entry.h"

namespace astra::python {

/// Whether `object` is of that type, in host memory, and can be given as it is.
bool describeExchanged(PyObject *object, Described &out);

/// Adds `set_exchange` and `give` to the module.
bool addExchange(PyObject *module);

} // namespace astra::python

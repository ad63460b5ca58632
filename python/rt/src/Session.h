//===- Session.h: bundles and sessions as Python types --------------------===//
// Takes:    a module that is being made.
// Gives:    its types `Bundle`, `Loaded`, `SessionHandle` and the function `open`.
// Keeps:    a method for what astra.h has; names and tuples, nothing pleasant.
// Does not: define entries (Entry.h) or tensors (Tensor.h).
#pragma once

#include "Handles.h"

namespace astra::python {

/// False with an exception.
bool addSession(PyObject *module);

} // namespace astra::python

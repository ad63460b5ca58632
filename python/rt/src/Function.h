//===- Function.h: functions of Python that bundles call ------------------===//
// Takes:    names, and one callable that calls what Python has registered by a name.
// Gives:    functions of astra.h.
// Keeps:    which function a name stands for is looked up at each call, in Python: nothing here holds one.
// Does not: know arrays; astra_rt/_function.py does.
#pragma once

#include "Handles.h"

namespace astra::python {

/// Registers in a new runtime what was registered in this process.
astra_status registerAgain(astra_runtime *runtime, astra_diag *diag);

/// Adds `register` and `set_dispatcher` to the module.
bool addFunction(PyObject *module);

} // namespace astra::python

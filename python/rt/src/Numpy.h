//===- Numpy.h: NumPy's C API, once for all files -------------------------===//
// Takes:    nothing.
// Gives:    NumPy's headers, set up so that Module.cpp alone holds the table of its functions.
// Keeps:    NumPy 1.23 and later at run time.
// Does not: import NumPy (Module.cpp does).
#pragma once

#include "Handles.h"

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL astraNumpy
#ifndef ASTRA_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

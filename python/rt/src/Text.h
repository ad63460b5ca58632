//===- Text.h: tokenizers -------------------------------------------------===//
// Takes:    the bytes of a compiled tokenizer, text, tokens.
// Gives:    the Python type `_rt.Text`, close to text.h.
// Keeps:    a handle is never changed: threads share it.
// Does not: know bundles; astra_rt/_tokenizer.py does.
#pragma once

#include "Handles.h"

namespace astra::python {

/// Adds `_rt.Text` to the module.
bool addText(PyObject *module);

} // namespace astra::python

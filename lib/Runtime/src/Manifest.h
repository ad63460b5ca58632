//===- Manifest.h: the manifest, checked and read in place ----------------===//
// Takes:    the bytes of the manifest section.
// Gives:    the FlatBuffer, once every index, offset, length, expression and program in it is known to be right; the
//           evaluator of its integer expressions.
// Keeps:    no copy: the FlatBuffer is the data structure. Whoever holds a checked manifest needs no check of his own,
//           except of what depends on dims.
// Does not: read files (Reader.cpp), run programs (Interpreter.cpp).
#pragma once

#include "Base.h"

// The verifier and the checks have seen every field before it is read; the library's own asserts would pull in abort.
#define FLATBUFFERS_ASSERT(x) ((void)0)
#include "format/Format.h"
#include "format/manifest_generated.h"

namespace astra::rt {

namespace fmt = astra::fmt;
using fmt::kNone;

/// Verifies the FlatBuffer and checks everything in it. Sections are those of the file. On success `out` points into
/// `data`.
Status checkManifest(const fmt::Manifest *&out, const void *data, uint64_t bytes, const fmt::Section *sections,
                     uint32_t sectionCount, Heap &heap, astra_diag *diag);

/// exprs[index] over `dims`; ASTRA_OVERFLOW if arithmetic overflows or a divisor is not positive.
Status evaluate(const fmt::Manifest &m, uint32_t index, const int64_t *dims, int64_t &out, astra_diag *diag);

/// The same where a byte size is expected: a negative value is ASTRA_MALFORMED.
Status evaluateBytes(const fmt::Manifest &m, uint32_t index, const int64_t *dims, uint64_t &out, astra_diag *diag);

/// An interval that holds every value of exprs[index] while the dims are within their lo and hi (saturated to int64).
void evaluateRange(const fmt::Manifest &m, uint32_t index, int64_t &lower, int64_t &upper);

/// Refuses a value outside the dim's lo, hi and bound.
Status checkDim(const fmt::Manifest &m, uint32_t dim, int64_t value, const int64_t *dims, Status status,
                astra_diag *diag);

} // namespace astra::rt

//===- Values.h: elements of arrays as numbers ------------------------------===//
// Takes:    arrays of any dtype of the runtime.
// Gives:    their elements as doubles, in short for people and as JSON; how far two arrays are apart.
// Keeps:    bytes are equal or not: nothing is near unless a tolerance is asked for.
// Does not: read or write files.
#pragma once
#include "Npy.h"
#include <optional>

namespace astra::tool {

/// "y: f32[2, 3] 0 0 0 ...".
std::string shortText(const char *name, const Npy &array);
/// {"name": ..., "dtype": ..., "shape": [...], "values": [the first eight]}, the last where they are numbers.
std::string shortJson(const char *name, const Npy &array);

/// What is wrong with `found`, as astra-run says it behind the name of the output; nothing if it is as expected: the
/// same bytes or, with a tolerance t, numbers of which none differs by more than t * (1 + |expected|), NaNs where NaNs
/// are. A dtype that is not a number's is compared by bytes.
std::optional<std::string> difference(const Npy &found, const Npy &expected, const std::string &file,
                                      std::optional<double> tolerance);

} // namespace astra::tool

//===- Corners.h: values of dims where kernels are likely to go wrong ------===//
// Takes:    a manifest, an entry, a target.
// Gives:    vectors of dims, the same ones every time: the lowest, one more, the highest that is small enough, and
//           about each tile edge, the lowest and the highest of each dim together with various values of the others.
// Keeps:    bounds of dims. Every value that is tried of a dim is in some vector.
// Does not: give all combinations.
#pragma once
#include "src/Manifest.h"

#include <vector>

namespace astra::guard {

using Dims = std::vector<int64_t>; ///< a number per dim of the manifest

struct CornerOptions {
  uint64_t most = 24;             ///< vectors
  uint64_t mostBytes = 32 << 20;  ///< of inputs, outputs and arena of a call
  uint64_t mostCost = 300000000;  ///< operations, or bytes of launches, of a call
  uint64_t totalCost = 600000000; ///< of all vectors together, beyond the first three
};

struct Corners {
  std::vector<Dims> dims;
  uint64_t tooLarge = 0; ///< left out: their calls cost too much
};

Corners cornersOf(const rt::fmt::Manifest &m, const rt::fmt::Entry &e, uint32_t target, const CornerOptions &options);

} // namespace astra::guard

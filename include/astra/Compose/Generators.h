//===- Generators.h: counter generators as XLA numbers their words ---------===//
// Source:   Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011); the order of words is XLA's.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

struct Drawn {
  UOpRef state = nullptr, bits = nullptr;
};
/// Bits of an unsigned or signed integer type and constant shape. The state is u64 [2]: a key and a counter.
Drawn threefryBits(Composer &b, UOpRef state, llvm::ArrayRef<int64_t> shape, DType t);
/// The state is u64 [2] or [3]: a key and a counter of 64 or 128 bits.
Drawn philoxBits(Composer &b, UOpRef state, llvm::ArrayRef<int64_t> shape, DType t);

} // namespace astra::compose

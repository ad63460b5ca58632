//===- Mma.h: lines of shared memory that ldmatrix reads --------------------===//
#pragma once
#include "astra/Codegen/GPU.h"

namespace astra::gpu {

/// The shared arrays of a tile in which the words of a matrix unit's step are neighbours, a line of `kc` words for each
/// point, with kc: those that ldmatrix reads.
llvm::DenseMap<UOpRef, unsigned> linesOf(Context &c, const Linear &l, unsigned kc);
/// Where word `place` of such an array is, of lines of `line` words: parts of 16 bytes change places.
uint64_t swizzled(uint64_t place, unsigned line);

} // namespace astra::gpu

//===- VerifyAccesses.h: the accesses of one kernel ----------------------------===//
#pragma once
#include "astra/Codegen/Accesses.h"
#include "llvm/ADT/DenseSet.h"

namespace astra {

/// What becomes of loads, stores and gated reads of stages that are not proved.
struct Unproved {
  llvm::SmallVectorImpl<UOpRef> *found = nullptr; // gets those that no point was found outside for; null: refused
  const llvm::DenseSet<UOpRef> *tested = nullptr; // those that test at run time that their elements exist
};

/// Like verifyAccesses, of a kernel that the items of another call (region), without counting time.
llvm::Error verifyAccesses(const Kernel &k, const Linear &l, const NotNegative &facts, const TileRegion *region,
                           AccessCount &count, Unproved unproved);

} // namespace astra

//===- Canonical.h: canonical NaNs (clause N6) -----------------------------===//
// Takes:    values in primitives.
// Gives:    equal values in which every NaN is the canonical one of its type.
// Keeps:    a state is canonical (it is made so when it is set), so what only moves a state's elements, or writes a
//           window of them, needs no pass over the whole: the window alone is made canonical.
// Does not: touch integers.
#pragma once
#include "astra/IR/Builder.h"
#include "llvm/ADT/DenseMap.h"

namespace astra::numerics {

/// x with every NaN replaced, by a select over x; x itself if it is no float or is such a select.
UOpRef selectCanonical(Builder &b, UOpRef x);

class Canonical {
public:
  explicit Canonical(Builder &b) : b(b) {}
  UOpRef of(UOpRef x);

private:
  Builder &b;
  llvm::DenseMap<UOpRef, UOpRef> done;
  UOpRef fromSources(UOpRef n);
};

} // namespace astra::numerics

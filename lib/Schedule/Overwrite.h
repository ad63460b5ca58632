//===- Overwrite.h: states that are replaced where they lie -----------------===//
#pragma once
#include "Fusion.h"

namespace astra {

/// A value that becomes a state and may be computed into its memory.
struct Overwrite {
  UOpRef state;
  bool reads; // its kernel reads the state too, each element before it writes it
};

/// For `updates`, pairs of a value and the state that it becomes: those that may be computed into the state, because
/// nobody reads the old one afterwards. `order`: as kernels are launched; `roots`: what is read at the end.
llvm::DenseMap<UOpRef, Overwrite> overwrites(llvm::ArrayRef<UOpRef> order, const Fusion &f,
                                             llvm::ArrayRef<UOpRef> roots,
                                             llvm::ArrayRef<std::pair<UOpRef, UOpRef>> updates);

} // namespace astra

//===- View.h: movement as arithmetic on indices ---------------------------===//
#pragma once
#include "astra/IR/UOp.h"

namespace astra {

/// Where element `index` of a movement op (any but pad) lies in its source.
llvm::SmallVector<UOpRef, 4> throughMovement(Context &c, UOpRef movement, llvm::ArrayRef<UOpRef> index);
/// Row-major decoding of a flat index over `extents`.
llvm::SmallVector<UOpRef, 4> unflatten(Context &c, UOpRef flat, llvm::ArrayRef<UOpRef> extents);

} // namespace astra

//===- View.h: movement as arithmetic on indices ---------------------------===//
#pragma once
#include "astra/IR/UOp.h"

namespace astra {

/// Where element `index` of a movement op (any but pad) lies in its source.
llvm::SmallVector<UOpRef, 4> throughMovement(Context &c, UOpRef movement, llvm::ArrayRef<UOpRef> index);
/// What a view moves, and which axis of that an axis of the view is.
struct AxisOfView {
  UOpRef base; // no view
  int axis;    // `repeated`: elements along it are one; `unknown`
  static constexpr int repeated = -1, unknown = -2;
};
AxisOfView axisBehind(UOpRef view, unsigned axis);
/// Row-major decoding of a flat index over `extents`.
llvm::SmallVector<UOpRef, 4> unflatten(Context &c, UOpRef flat, llvm::ArrayRef<UOpRef> extents);

} // namespace astra

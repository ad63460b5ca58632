//===- KernelGrid.h: tensors with a tile for each program --------------------===//
#pragma once
#include "astra/IR/Builder.h"

namespace astra {

/// The grid of a custom op: extents, and the dims that stand for a program's place in the function.
struct KernelGrid {
  KernelGrid(Builder &b, UOpRef custom);
  /// A tile of a program as what it stores into a tensor of all of them, [grid.., tile..]: a tile that is smaller in
  /// some programs is filled up with `value`.
  UOpRef place(Builder &b, UOpRef tile, uint64_t value) const;
  /// The program's tile of such a tensor.
  UOpRef tile(Builder &b, UOpRef all, Shape shape) const;
  /// An extent of a tile for all programs.
  UOpRef most(Builder &b, UOpRef extent) const;
  bool varies(UOpRef index) const; // from program to program

  llvm::SmallVector<UOpRef, 4> dims, extents;
};

/// A custom op with other results: the same kernel otherwise. It takes `more` tensors behind those of `kernel`.
UOpRef customWith(Builder &b, UOpRef kernel, llvm::ArrayRef<UOpRef> stores, llvm::ArrayRef<UOpRef> more);
UOpRef resultOf(Builder &b, UOpRef custom, size_t number);
/// An equal kernel in which each loop that a kernel has no form for is a loop of kernels; itself where there is none.
UOpRef withoutLoops(Builder &b, UOpRef kernel);

} // namespace astra

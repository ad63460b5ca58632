//===- StraightKernel.h: a kernel's body without control ops -----------------===//
#pragma once
#include "astra/IR/Builder.h"

namespace astra {

struct StraightKernel {
  llvm::SmallVector<UOpRef, 4> roots;
  std::string why;          // there are none
  UOpRef blocked = nullptr; // the op of the body at which it ends
};
StraightKernel straighten(Builder &b, llvm::ArrayRef<UOpRef> roots);

} // namespace astra

//===- Inline.h: a function's body in place of its call ----------------------===//
// Takes:    a function, what stands for its arguments.
// Gives:    its results over these.
#pragma once
#include "astra/IR/Builder.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace astra {

/// The results of a function at these arguments. each: told what every node of the body, which comes after its sources,
/// has become.
llvm::SmallVector<UOpRef, 8> inlineFunction(Context &c, UOpRef function, llvm::ArrayRef<UOpRef> args,
                                            llvm::function_ref<void(UOpRef now, UOpRef was)> each = nullptr);

} // namespace astra

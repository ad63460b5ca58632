//===- Fold.h: literals ----------------------------------------------------===//
#pragma once
#include "astra/Rewrite/Rewrite.h"

namespace astra {

/// An elementwise op on `const` nodes as a `const` node; null where the evaluator refuses it.
UOpRef foldScalar(Context &c, Op op, llvm::ArrayRef<int64_t> ints, DType result, llvm::ArrayRef<UOpRef> literals);

/// A tensor (a vector at the kernel level) whose every element is the literal.
UOpRef spread(RuleContext r, UOpRef literal, Shape shape);

} // namespace astra

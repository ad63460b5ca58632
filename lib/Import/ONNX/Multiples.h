//===- Multiples.h: which dims would have to be multiples ------------------===//
// Takes:    extents of which something is not known, and how to find out whether it holds.
// Gives:    the flags that say that dims are multiples, where it holds for such dims: tried before it is said.
// Keeps:    the multiples small: a smaller one for which it holds is the one that is named.
#pragma once
#include "Lowering.h"

namespace astra::onnx {

using compose::WithMultiples;

/// "; if h is always a multiple of 4, say so with --dim 'h=4*h_4' --dim h_4=1..16": of the dims that `extents` divide,
/// or of one of `others` (a dim and what it should be a multiple of) too. "" where `holds` is false all the same.
std::string multipleHint(Lowering &lowering, llvm::ArrayRef<UOpRef> extents,
                         llvm::function_ref<bool(WithMultiples)> holds,
                         llvm::ArrayRef<std::pair<UOpRef, int64_t>> others = {});

} // namespace astra::onnx

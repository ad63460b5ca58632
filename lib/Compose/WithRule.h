//===- WithRule.h: values with a derivative that is stated -----------------===//
// Takes:    a value of floats or complex numbers, the sources that it is computed from.
// Gives:    the value, whose derivative by the sources is a rule, where derivatives are wanted.
// Keeps:    its bits. A rule's own derivative is that of its graph, in which the value has the rule once more.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// What a rule gives: the cotangents of the sources, from the value, the sources and the value's cotangent.
using Rule =
    llvm::function_ref<llvm::SmallVector<UOpRef, 2>(UOpRef value, llvm::ArrayRef<UOpRef> sources, UOpRef cotangent)>;
/// The value with this derivative by its sources, where derivatives are wanted, and with the derivative of that one.
UOpRef withRule(Composer &b, UOpRef value, llvm::ArrayRef<UOpRef> sources, Rule rule);

} // namespace astra::compose

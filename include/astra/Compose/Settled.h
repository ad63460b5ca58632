//===- Settled.h: small tensors whose values are known while building -----===//
// Takes:    nodes of the graph being built.
// Gives:    their values, computed by the reference evaluator, so that what is folded here has the bits that a run
//           would give; as numbers, or as a parameter in place of the arithmetic.
// Does not: fold integers that depend on symbolic dims (Known.h does).
#pragma once
#include "astra/Compose/Composer.h"
#include "astra/IR/Eval.h"

namespace astra::compose {

/// The value of x when it follows from constants alone, by at most 512 nodes of at most 2^22 elements each, none of
/// them a function, a control op or a random one; else nothing.
std::optional<Tensor> settledValue(Composer &b, UOpRef x);
/// The same, of at most `most` elements together; `data` gives the bytes of a parameter, or null.
std::optional<Tensor> settledValue(llvm::function_ref<const std::vector<uint8_t> *(UOpRef)> data, UOpRef x,
                                   int64_t most);

/// x, or in its place a parameter (a literal for a scalar) with its value.
UOpRef settled(Composer &b, UOpRef x);

/// The elements of x, of an integer or float type, as f64 numbers; nothing where settledValue gives nothing.
std::optional<std::vector<double>> settledNumbers(Composer &b, UOpRef x);

} // namespace astra::compose

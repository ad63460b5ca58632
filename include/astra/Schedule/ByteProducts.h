//===- ByteProducts.h: products of 8-bit integers, four bytes a step -------===//
#pragma once
#include "astra/IR/Module.h"

namespace astra {

/// Rewrites, bit for bit, i32 contracts of 8-bit integers, with zero points or without, of which one operand depends on
/// parameters with data and on constants alone, into contracts of words (decision 0072). Leaves the others, and those
/// in the bodies of control ops, as they are.
void joinBytes(Module &m);

} // namespace astra

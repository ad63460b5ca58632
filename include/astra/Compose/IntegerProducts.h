//===- IntegerProducts.h: products of dequantized values ------------------===//
// Gives:    integerProducts, for front doors whose models say "dequantize, multiply, quantize" (QDQ) and mean integers.
#pragma once
#include "astra/IR/Module.h"

namespace astra::compose {

/// A contract of two dequantized values becomes the exact i32 contract of their integers, scaled once; a division by
/// the scale that quantizes a sum of scaled integers goes into their scales; what is dequantized, moved or pooled by
/// max and quantized again the same way stays bytes. Values change by roundings alone, so a result may be a quantum
/// away: who calls this decides what the model means, before its numbers are (docs/decisions/0110). `params` are those
/// of the module, wherever they are kept. Bodies of control ops stay.
void integerProducts(Module &m, llvm::ArrayRef<Param> params);

} // namespace astra::compose

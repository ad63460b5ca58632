//===- Numbers.h: narrow floats and arrays of few bits ----------------------===//
// Gives:    bytes of a tensor as f32, scales rounded to f16 and back, numbers packed as the IR stores them.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::quantize {

/// Elements of f16, bf16 or f32 in f32, exactly.
std::vector<float> floatsOf(DType t, llvm::ArrayRef<uint8_t> bytes);
/// The bits of x as f16, rounded once, and the value of such bits.
uint16_t halfBits(float x);
float halfValue(uint16_t bits);

/// Rows of numbers of a type, given by their bits: sub-byte ones lie packed, the lowest bits first.
compose::Payload packed(DType t, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<uint32_t> bits);

} // namespace astra::quantize

//===- Names.h: what values are called in C --------------------------------===//
// A scalar of dtype f32 has the C type `f32`, a vector `f32x16`. f16 and bf16 values are their 16 bits. A scalar bool
// is `b1`. A vector of bools is a mask: a signed integer vector of lanes 0 and -1, as wide as what it was compared
// from, so that one compare and one select fit without conversion.
#pragma once
#include "../SmallFloat.h"
#include "astra/IR/UOp.h"
#include <string>

namespace astra::cemit {

inline unsigned lanesOf(UOpRef x) { return x->rank() ? unsigned(x->shape[0]->constIndex().value_or(0)) : 1; }
inline DType signedOf(unsigned bits) {
  return bits == 8 ? DType::I8 : bits == 16 ? DType::I16 : bits == 32 ? DType::I32 : DType::I64;
}
inline DType unsignedOf(unsigned bits) {
  return bits == 8 ? DType::U8 : bits == 16 ? DType::U16 : bits == 32 ? DType::U32 : DType::U64;
}
/// The dtype as C's elements in memory: bool is a byte.
inline std::string memoryName(DType t) { return t == DType::Bool ? "u8" : t == DType::Index ? "i64" : info(t).text; }
/// "f32", "f32x16", "b1"; not for vectors of bools.
inline std::string typeName(DType t, unsigned lanes) {
  std::string name = t == DType::Bool ? "b1" : memoryName(t);
  return lanes > 1 ? name + "x" + std::to_string(lanes) : name;
}
/// The width of the lanes of a mask that compares values of this dtype: what is small is compared as f32.
inline unsigned maskBits(DType t) { return isSmall(t) || t == DType::Bool ? 32 : bitWidth(t); }

} // namespace astra::cemit

//===- Random.cpp: distributions over random bits (clause N13) -------------===//
#include "astra/Numerics/Random.h"
#include "llvm/ADT/SmallVector.h"
#include <cassert>
#include <numbers>

using namespace astra;

/// Elements 2i and 2i + 1 of a vector of even length, as two vectors.
static std::pair<UOpRef, UOpRef> pairs(Builder &b, UOpRef flat, UOpRef half) {
  UOpRef zero = b.idx(0), one = b.idx(1);
  UOpRef table = b.reshape(flat, {half, b.idx(2)});
  auto column = [&](UOpRef at) { return b.reshape(b.shrink(table, {zero, at}, {half, one}), {half}); };
  return {column(zero), column(one)};
}

UOpRef astra::randomUniform(Builder &b, UOpRef seed, UOpRef stream, DType t, Shape shape) {
  assert(t == DType::F32 || t == DType::F64);
  if (t == DType::F32) {
    UOpRef bits = b.bin(Op::Shr, b.random(seed, stream, shape), b.litInt(DType::U32, 8));
    return b.mul(b.cast(bits, t), b.lit(t, 0x1p-24));
  }
  UOpRef count = idxProduct(b.c, shape);
  auto [high, low] = pairs(b, b.random(seed, stream, {idxMul(b.c, count, b.idx(2))}), count);
  UOpRef wideHigh = b.bin(Op::Shl, b.cast(high, DType::U64), b.litInt(DType::U64, 21));
  UOpRef wideLow = b.cast(b.bin(Op::Shr, low, b.litInt(DType::U32, 11)), DType::U64);
  UOpRef bits = b.bin(Op::Xor, wideHigh, wideLow);
  return b.reshape(b.mul(b.cast(bits, t), b.lit(t, 0x1p-53)), shape);
}

UOpRef astra::randomNormal(Builder &b, UOpRef seed, UOpRef stream, DType t, Shape shape) {
  UOpRef count = idxProduct(b.c, shape);
  auto [u, v] = pairs(b, randomUniform(b, seed, stream, t, {idxMul(b.c, count, b.idx(2))}), count);
  UOpRef radius = b.un(Op::Sqrt, b.mul(b.lit(t, -2), b.un(Op::Log, b.sub(b.lit(t, 1), u))));
  UOpRef angle = b.mul(b.lit(t, 2 * std::numbers::pi), v);
  return b.reshape(b.mul(radius, b.un(Op::Cos, angle)), shape);
}

UOpRef astra::randomInteger(Builder &b, UOpRef seed, UOpRef stream, uint32_t low, uint32_t high, Shape shape) {
  assert(low < high);
  UOpRef bits = b.cast(b.random(seed, stream, shape), DType::U64);
  UOpRef product = b.mul(bits, b.litInt(DType::U64, int64_t(high - low)));
  UOpRef word = b.cast(b.bin(Op::Shr, product, b.litInt(DType::U64, 32)), DType::U32);
  return b.add(word, b.litInt(DType::U32, low));
}

//===- Numbers.cpp: narrow floats and arrays of few bits --------------------===//
#include "Numbers.h"
#include "astra/IR/Eval.h"
#include "llvm/ADT/bit.h"
#include <cstring>

using namespace astra;
using namespace astra::quantize;

static uint64_t converted(DType from, DType to, uint64_t bits) {
  return llvm::cantFail(foldElementwise(Op::Cast, {int64_t(to), 0}, to, {{from, bits}}));
}

uint16_t quantize::halfBits(float x) {
  return uint16_t(converted(DType::F32, DType::F16, llvm::bit_cast<uint32_t>(x)));
}

float quantize::halfValue(uint16_t bits) {
  static const auto values = [] {
    std::vector<float> all(1 << 16);
    for (uint32_t i = 0; i < all.size(); ++i)
      all[i] = llvm::bit_cast<float>(uint32_t(converted(DType::F16, DType::F32, i)));
    return all;
  }();
  return values[bits];
}

std::vector<float> quantize::floatsOf(DType t, llvm::ArrayRef<uint8_t> bytes) {
  std::vector<float> x(bytes.size() / byteSize(t));
  if (t == DType::F32) {
    if (!x.empty()) std::memcpy(x.data(), bytes.data(), x.size() * 4);
    return x;
  }
  assert(t == DType::F16 || t == DType::BF16);
  for (size_t i = 0; i < x.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    x[i] = t == DType::F16 ? halfValue(bits) : llvm::bit_cast<float>(uint32_t(bits) << 16);
  }
  return x;
}

compose::Payload quantize::packed(DType t, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<uint32_t> bits) {
  compose::Payload p{t, dims, std::vector<uint8_t>(tensorBytes(t, dims))};
  if (!isSubByte(t)) {
    for (size_t i = 0; i < bits.size(); ++i) std::memcpy(p.bytes.data() + i * byteSize(t), &bits[i], byteSize(t));
    return p;
  }
  size_t width = bitWidth(t), row = size_t(dims.back()), rowBytes = (row * width + 7) / 8;
  for (size_t i = 0; i < bits.size(); ++i) {
    size_t at = i % row * width;
    p.bytes[i / row * rowBytes + at / 8] |= uint8_t(bits[i] << at % 8);
  }
  return p;
}

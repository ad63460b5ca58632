//===- Creation.cpp: tensors that extents and few numbers make -------------===//
// Takes, gives: Creation.h.
#include "astra/Compose/Creation.h"
#include "astra/IR/Index.h"
#include <cmath>

namespace astra::compose {

UOpRef repeatedNumber(Composer &b, DType dtype, llvm::ArrayRef<uint8_t> bytes, llvm::ArrayRef<UOpRef> dims) {
  size_t size = byteSize(dtype);
  if (size == 0 || bytes.size() < size) return nullptr;
  for (size_t i = size; i < bytes.size(); ++i)
    if (bytes[i] != bytes[i - size]) return nullptr;
  auto literal = [&](DType t, size_t from) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + from, byteSize(t));
    return b.c.literal(t, bits);
  };
  DType part = partOf(dtype);
  UOpRef number =
      isComplex(dtype) ? b.make(Op::Complex, {literal(part, 0), literal(part, size / 2)}) : literal(dtype, 0);
  return b.broadcastTo(number, dims);
}

UOpRef rangeLength(Composer &b, UOpRef first, UOpRef last, int64_t step) {
  UOpRef distance = step > 0 ? idxSub(b.c, last, first) : idxSub(b.c, first, last);
  return idxMax(b.c, b.idx(0), idxCeilDiv(b.c, distance, b.idx(std::abs(step))));
}

std::optional<int64_t> rangeLength(double first, double last, double step) {
  double count = std::ceil((last - first) / step);
  if (!std::isfinite(count) || count >= 1e9) return std::nullopt;
  return std::max<int64_t>(0, int64_t(std::max(count, 0.0)));
}

UOpRef range(Composer &b, DType type, UOpRef length, UOpRef start, UOpRef step) {
  UOpRef ramp = length ? b.iota(type, {length}, 0) : nullptr;
  if (step) ramp = b.bin(Op::Mul, ramp, step);
  return start ? b.bin(Op::Add, ramp, start) : ramp;
}

UOpRef eye(Composer &b, llvm::ArrayRef<UOpRef> dims, int64_t k, DType type) {
  if (dims.size() != 2) return b.fail("a diagonal of " + llvm::Twine(dims.size()) + " axes, expected 2");
  UOpRef row = b.iota(DType::I64, dims, 0), column = b.iota(DType::I64, dims, 1);
  return b.cast(b.bin(Op::Eq, b.bin(Op::Sub, column, row), b.b.litInt(DType::I64, k)), type);
}

UOpRef indexVector(Composer &b, llvm::ArrayRef<UOpRef> values) {
  if (values.empty()) return b.broadcastTo(b.b.litInt(DType::I64, 0), {b.idx(0)});
  llvm::SmallVector<UOpRef, 4> scalars;
  for (UOpRef v : values) scalars.push_back(b.unsqueeze(b.fromIndex(v, DType::I64), {0}));
  return b.concat(scalars, 0);
}

} // namespace astra::compose

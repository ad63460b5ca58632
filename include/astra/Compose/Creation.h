//===- Creation.h: tensors that extents and few numbers make ---------------===//
// Takes:    symbolic integers, scalars, numbers that are known while building.
// Gives:    constants, ranges, diagonals, vectors of symbolic integers.
#pragma once
#include "astra/Compose/Composer.h"
#include <cstring>

namespace astra::compose {

/// Numbers in row-major order; T is the dtype's type of C++.
template <class T> Payload payloadOf(DType dtype, llvm::ArrayRef<T> values, std::vector<int64_t> dims) {
  Payload p{dtype, std::move(dims), std::vector<uint8_t>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(p.bytes.data(), values.data(), p.bytes.size());
  return p;
}
/// A tensor of them, as `constant` gives it.
template <class T> UOpRef numbersOf(Composer &b, DType dtype, llvm::ArrayRef<T> values, std::vector<int64_t> dims) {
  return b.constant(payloadOf(dtype, values, std::move(dims)));
}
inline UOpRef numbersOf(Composer &b, llvm::ArrayRef<float> v, std::vector<int64_t> dims) {
  return numbersOf<float>(b, DType::F32, v, std::move(dims));
}
inline UOpRef numbersOf(Composer &b, llvm::ArrayRef<int64_t> v, std::vector<int64_t> dims) {
  return numbersOf<int64_t>(b, DType::I64, v, std::move(dims));
}
/// Where all elements are one number, that number repeated: no data are kept. Else null; also of no elements, and of
/// types whose elements are no whole bytes.
UOpRef repeatedNumber(Composer &b, DType dtype, llvm::ArrayRef<uint8_t> bytes, llvm::ArrayRef<UOpRef> dims);

/// How many elements first, first + step ... has below `last`, or above it where the step, which is not 0, is negative.
UOpRef rangeLength(Composer &b, UOpRef first, UOpRef last, int64_t step);
/// The same of numbers, computed in f64: ceil((last - first) / step), 0 at least. Nothing where that is no number below
/// 10^9.
std::optional<int64_t> rangeLength(double first, double last, double step);
/// start + i * step for each i below `length`, of an arithmetic type; scalars of that type. No start is 0, no step 1.
UOpRef range(Composer &b, DType type, UOpRef length, UOpRef start, UOpRef step);

/// A matrix of these two extents with ones at column = row + k, else zeros.
UOpRef eye(Composer &b, llvm::ArrayRef<UOpRef> dims, int64_t k, DType type);

/// i64 [n]: symbolic integers as elements.
UOpRef indexVector(Composer &b, llvm::ArrayRef<UOpRef> values);

} // namespace astra::compose

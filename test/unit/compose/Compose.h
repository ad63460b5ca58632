//===- Compose.h: composites called from plain C++ -------------------------===//
// Gives:    tensors of literal numbers, the values of what a composite gives by the reference evaluator, and its
//           sentence when it refuses. A plain Composer is the only front door here.
#pragma once
#include "astra/Compose/Composer.h"
#include "astra/IR/Eval.h"
#include "astra/Numerics/EvalFunctions.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace astra::compose {

/// A parameter with these numbers in row-major order; of i64 one whose elements are known, of other types a cast of
/// f64.
inline UOpRef tensor(Composer &b, std::vector<int64_t> dims, std::vector<double> numbers, DType t = DType::F32) {
  Payload p{t == DType::I64 ? t : DType::F64, std::move(dims), {}};
  p.bytes.resize(numbers.size() * 8);
  std::vector<int64_t> whole(numbers.begin(), numbers.end());
  const void *data = t == DType::I64 ? static_cast<const void *>(whole.data()) : numbers.data();
  if (!numbers.empty()) std::memcpy(p.bytes.data(), data, p.bytes.size());
  return b.cast(b.constant(std::move(p)), t);
}

/// The numbers of x; an empty list, and a failure, where it cannot be evaluated.
inline std::vector<double> valuesOf(Composer &b, UOpRef x) {
  llvm::Expected<UOpRef> value = composed(b, x);
  if (!value) return ADD_FAILURE() << llvm::toString(value.takeError()), std::vector<double>();
  EvalInputs in;
  for (const Param &p : b.params) {
    Tensor t{p.value->dtype, {}, *p.data};
    for (UOpRef d : p.value->shape) t.shape.push_back(*d->constIndex());
    in.params[p.value->str.str()] = std::move(t);
  }
  EvalOptions options;
  options.function = evalFunction;
  llvm::Expected<std::vector<Tensor>> found = evalNodes({b.cast(*value, DType::F64)}, in, options);
  if (!found) return ADD_FAILURE() << llvm::toString(found.takeError()), std::vector<double>();
  std::vector<double> numbers(found->front().bytes.size() / 8);
  if (!numbers.empty()) std::memcpy(numbers.data(), found->front().bytes.data(), numbers.size() * 8);
  return numbers;
}

/// Whether x has this shape and these numbers: within 2e-6 of the greatest, as they were worked out in f64.
inline void expectValues(Composer &b, UOpRef x, std::vector<int64_t> dims, std::vector<double> expected) {
  std::vector<double> found = valuesOf(b, x);
  if (!x) return;
  Dims wanted;
  for (int64_t d : dims) wanted.push_back(b.idx(d));
  EXPECT_EQ(dimsText(x->shape), dimsText(wanted));
  ASSERT_EQ(found.size(), expected.size());
  double most = 0;
  for (double v : expected)
    if (std::isfinite(v)) most = std::max(most, std::abs(v));
  for (size_t i = 0; i < found.size(); ++i)
    if (std::isfinite(expected[i]))
      EXPECT_NEAR(found[i], expected[i], 2e-6 * std::max(most, 1.0)) << "element " << i;
    else
      EXPECT_EQ(found[i], expected[i]) << "element " << i;
}

/// Whether it refused, with this sentence.
inline void expectRefusal(Composer &b, UOpRef x, llvm::StringRef sentence,
                          std::errc code = std::errc::invalid_argument) {
  llvm::Expected<UOpRef> value = composed(b, x);
  ASSERT_FALSE(bool(value));
  std::error_code found;
  std::string text;
  llvm::handleAllErrors(value.takeError(), [&](const llvm::StringError &e) {
    found = e.convertToErrorCode();
    text = e.getMessage();
  });
  EXPECT_EQ(text, sentence.str());
  EXPECT_EQ(found, std::make_error_code(code)) << text;
  EXPECT_FALSE(b.failed()) << "a Composer can be used again";
}

} // namespace astra::compose

//===- Features.cpp: what is done to features before a model, and to labels ===//
// Takes:    operands and numbers that may not fit.
// Gives:    what Features.h says.
#include "astra/Compose/Features.h"
#include "astra/Compose/Indexing.h"
#include "astra/Compose/Reduction.h"
#include "astra/Compose/Scores.h"
#include "astra/IR/Index.h"
#include <cmath>

namespace astra::compose {

namespace {

/// One number as a literal, several as a row that x has a feature for each of; null for none.
template <class T> UOpRef perFeature(Composer &b, UOpRef x, llvm::ArrayRef<T> values, const char *what) {
  if (!x || b.failed()) return nullptr;
  if (values.size() == 1) return b.cast(numbersOf(b, values, {}), x->dtype);
  if (x->rank() == 0 || !b.requireEqual(x->shape.back(), b.idx(values.size()), llvm::Twine(what) + " and the features"))
    return b.fail(llvm::Twine(values.size()) + " numbers of " + what + " do not fit " + dimsText(x->shape));
  return b.cast(numbersOf(b, values, {int64_t(values.size())}), x->dtype);
}

/// Equal, or both a NaN.
UOpRef same(Composer &b, UOpRef x, UOpRef y) {
  UOpRef equal = b.bin(Op::Eq, x, y);
  if (!x || !y || !isFloat(x->dtype)) return equal;
  return b.bin(Op::Or, equal, b.bin(Op::And, b.bin(Op::Ne, x, x), b.bin(Op::Ne, y, y)));
}

} // namespace

UOpRef scaledFeatures(Composer &b, UOpRef given, llvm::ArrayRef<float> offset, llvm::ArrayRef<float> scale) {
  UOpRef x = b.cast(given, DType::F32);
  if (!offset.empty()) x = b.bin(Op::Sub, x, perFeature(b, x, offset, "the offset"));
  if (!scale.empty()) x = b.bin(Op::Mul, x, perFeature(b, x, scale, "the scale"));
  return x;
}

UOpRef normalizedRows(Composer &b, UOpRef given, RowNorm norm) {
  UOpRef x = b.cast(given, DType::F32);
  if (!b.requireRank(x, 1)) return nullptr;
  Ints last = {int64_t(x->rank()) - 1};
  UOpRef divisor = nullptr;
  if (norm == RowNorm::Max)
    divisor = b.reduce(ReduceKind::Max, x, last);
  else
    divisor = norm == RowNorm::Magnitudes ? sumOfMagnitudes(b, x, last) : euclideanNorm(b, x, last);
  return b.select(b.bin(Op::Eq, divisor, 0.0), x, b.bin(Op::Div, x, divisor));
}

UOpRef binarized(Composer &b, UOpRef x, double threshold) {
  if (!x) return nullptr;
  DType wide = x->dtype == DType::F32 ? DType::F32 : DType::F64;
  return b.cast(b.bin(Op::Lt, b.b.lit(wide, threshold), b.cast(x, wide)), x->dtype);
}

UOpRef imputed(Composer &b, UOpRef x, llvm::ArrayRef<double> values, double replaced) {
  if (!b.requireFloat(x)) return nullptr;
  if (values.empty()) return b.fail("the imputed values are missing");
  std::vector<float> narrow(values.begin(), values.end());
  UOpRef value = perFeature(b, x, llvm::ArrayRef<float>(narrow), "the imputed values");
  return b.select(same(b, x, b.literal(x, replaced)), value, x);
}

UOpRef imputedIntegers(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> values, int64_t replaced) {
  if (values.empty()) return b.fail("the imputed values are missing");
  UOpRef value = perFeature(b, x, values, "the imputed values"), old = b.b.litInt(DType::I64, replaced);
  return x ? b.select(b.bin(Op::Eq, b.cast(x, DType::I64), old), value, x) : nullptr;
}

UOpRef oneHotRows(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> categories) {
  UOpRef index = b.cast(x, DType::I64);
  if (!index || b.failed()) return nullptr;
  UOpRef all = numbersOf(b, categories, {int64_t(categories.size())});
  return b.cast(b.bin(Op::Eq, b.unsqueeze(index, {int64_t(index->rank())}), all), DType::F32);
}

UOpRef pickedFeatures(Composer &b, UOpRef x, UOpRef index) {
  if (!b.requireRank(x, 1) || !index) return nullptr;
  UOpRef count = b.idx(1);
  for (UOpRef extent : index->shape) count = idxMul(b.c, count, extent);
  UOpRef rows = x->rank() == 1 ? b.unsqueeze(x, {0}) : x;
  return rows ? gather(b, rows, b.reshape(index, {count}), int64_t(rows->rank()) - 1) : nullptr;
}

UOpRef encodedLabels(Composer &b, UOpRef x, const Payload &keys, const Payload &values, UOpRef otherwise) {
  if (!x || !otherwise) return nullptr;
  if (keys.dtype != x->dtype)
    return b.fail(llvm::Twine("the keys are of type ") + info(keys.dtype).text + ", the operand of type " +
                  info(x->dtype).text);
  if (keys.dims.size() != 1 || keys.dims != values.dims) return b.fail("the numbers of keys and values differ");
  int64_t count = keys.dims[0];
  if (count == 0) return b.broadcastTo(otherwise, x->shape);
  int64_t last = x->rank();
  UOpRef found = same(b, b.unsqueeze(x, {last}), b.constant(keys));
  UOpRef which = b.squeeze(argReduce(b, b.cast(found, DType::U8), last, true, true), {last});
  UOpRef any = b.squeeze(b.reduce(ReduceKind::Max, b.cast(found, DType::U8), {last}), {last});
  return b.select(b.bin(Op::Ne, any, 0.0), gather(b, b.constant(values), which, 0), otherwise);
}

UOpRef labelsAt(Composer &b, UOpRef index, llvm::ArrayRef<int64_t> labels) {
  return gather(b, numbersOf(b, labels, {int64_t(labels.size())}), index, 0);
}

UOpRef signs(Composer &b, UOpRef x) {
  return x ? b.select(b.bin(Op::Lt, b.literal(x, 0), x), b.literal(x, 1), b.literal(x, -1)) : nullptr;
}

UOpRef mirrored(Composer &b, UOpRef s) { return b.concat({b.un(Op::Neg, s), s}, 1); }

} // namespace astra::compose

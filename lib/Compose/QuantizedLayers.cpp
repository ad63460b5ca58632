//===- QuantizedLayers.cpp: layers of quantized operands and results -------===//
// Takes:    operands and options that may be wrong in every way.
// Gives:    what QuantizedLayers.h says.
#include "astra/Compose/QuantizedLayers.h"
#include "astra/Compose/Product.h"
#include "astra/Compose/Reduction.h"
#include "llvm/ADT/STLExtras.h"

namespace astra::compose {

namespace {

UOpRef floats(Composer &b, const Quantized &x) {
  return x.scale ? dequantize(b, x.value, x.scale, x.zero, {}) : x.value;
}

/// y quantized by `to`; like what where there is no zero point to say the type.
UOpRef quantizedTo(Composer &b, UOpRef y, const Quantized &to, UOpRef like) {
  QuantizationOptions options;
  if (!to.zero && like) options.to = like->dtype;
  return quantize(b, y, to.scale, to.zero, options);
}

UOpRef centered(Composer &b, const Quantized &x) {
  UOpRef value = b.cast(x.value, DType::I32);
  return x.zero ? b.bin(Op::Sub, value, b.cast(x.zero, DType::I32)) : value;
}

bool isUnsigned(UOpRef x) { return x && isInt(x->dtype) && !isSigned(x->dtype); }

} // namespace

UOpRef quantizedFunction(Composer &b, const Quantized &x, const Quantized &to, llvm::function_ref<UOpRef(UOpRef)> f) {
  UOpRef value = floats(b, x);
  return value ? quantizedTo(b, f(value), to, x.value) : nullptr;
}

UOpRef quantizedFunction(Composer &b, const Quantized &x, const Quantized &y, const Quantized &to,
                         llvm::function_ref<UOpRef(UOpRef, UOpRef)> f) {
  UOpRef left = floats(b, x), right = floats(b, y);
  return left && right ? quantizedTo(b, f(left, right), to, x.value) : nullptr;
}

UOpRef integerElementProduct(Composer &b, const Quantized &x, const Quantized &y) {
  return b.bin(Op::Mul, centered(b, x), centered(b, y));
}

UOpRef quantizedElementProduct(Composer &b, const Quantized &x, const Quantized &y, const Quantized &to) {
  UOpRef scales = b.bin(Op::Mul, x.scale, y.scale);
  UOpRef value = b.bin(Op::Mul, b.cast(integerElementProduct(b, x, y), DType::F32), scales);
  return quantizedTo(b, value, to, x.value);
}

UOpRef quantizedConcat(Composer &b, llvm::ArrayRef<Quantized> xs, const Quantized &to, int64_t axis) {
  std::vector<UOpRef> parts;
  for (const Quantized &x : xs) parts.push_back(quantizedTo(b, floats(b, x), to, x.value));
  if (parts.empty() || b.failed() || !b.requireRank(parts[0], 1)) return nullptr;
  axis = b.axis(axis, parts[0]->rank());
  return b.failed() ? nullptr : b.concat(parts, axis);
}

UOpRef channelsFirst(Composer &b, UOpRef x) {
  if (!b.requireRank(x, 2)) return nullptr;
  Ints order = {0, int64_t(x->rank()) - 1};
  for (int64_t axis = 1; axis + 1 < int64_t(x->rank()); ++axis) order.push_back(axis);
  return b.permute(x, order);
}

UOpRef channelsLast(Composer &b, UOpRef x) {
  if (!b.requireRank(x, 2)) return nullptr;
  Ints order = {0};
  for (int64_t axis = 2; axis < int64_t(x->rank()); ++axis) order.push_back(axis);
  order.push_back(1);
  return b.permute(x, order);
}

// ---- products

UOpRef scaledProduct(Composer &b, const Quantized &givenX, const Quantized &givenY, UOpRef integerBias,
                     UOpRef floatBias, const Quantized &to, const ScaledProductOptions &options) {
  Quantized x = givenX, y = givenY;
  auto turned = [&](UOpRef m) { return b.requireRank(m, 2, 2) ? b.permute(m, {1, 0}) : nullptr; };
  if (options.transposeX) x.value = turned(x.value);
  if (options.transposeY) y.value = turned(y.value);
  UOpRef z = integerProduct(b, x, y);
  if (integerBias) z = z ? b.bin(Op::Add, z, b.broadcastTo(b.cast(integerBias, z->dtype), z->shape)) : nullptr;
  UOpRef scales = b.bin(Op::Mul, b.cast(x.scale, DType::F32), b.cast(y.scale, DType::F32));
  if (options.alpha != 1) scales = b.bin(Op::Mul, scales, options.alpha);
  if (!z || !scales) return nullptr;
  UOpRef value = b.bin(Op::Mul, b.cast(z, DType::F32), b.broadcastTo(scales, z->shape));
  if (floatBias) value = b.bin(Op::Add, value, b.broadcastTo(b.cast(floatBias, DType::F32), z->shape));
  if (to.scale) return quantizedTo(b, value, to, x.value);
  return b.cast(value, x.scale->dtype);
}

UOpRef dynamicProduct(Composer &b, UOpRef x, const Quantized &y, UOpRef bias) {
  if (!b.requireFloat(x)) return nullptr;
  DynamicallyQuantized q = quantizeByRange(b, x);
  return scaledProduct(b, {q.value, q.scale, q.zero}, y, nullptr, bias, {});
}

UOpRef wrappingProduct(Composer &b, UOpRef x, UOpRef y) {
  DType type = isUnsigned(x) && isUnsigned(y) ? DType::U32 : DType::I32;
  return product(b, b.cast(x, type), b.cast(y, type));
}

UOpRef integerSum(Composer &b, UOpRef x, llvm::ArrayRef<int64_t> axes, bool keep) {
  UOpRef wide = b.cast(x, isUnsigned(x) ? DType::U32 : DType::I32);
  if (!wide) return nullptr;
  Ints all = b.axes(axes, wide->rank());
  return b.failed() ? nullptr : reduction(b, plainFold<ReduceKind::Sum>, wide, all, keep);
}

// ---- recurrent layers

RecurrentResult quantizedLSTM(Composer &b, const Quantized &w, const Quantized &r, RecurrentOperands operands,
                              RecurrentOptions options) {
  auto weights = [&](const Quantized &q) -> UOpRef {
    if (!b.requireRank(q.value, 3, 3) || !q.scale) return nullptr;
    auto spread = [&](UOpRef v) -> UOpRef { // [D] or [D, 4 H]
      if (!v || !b.requireRank(v, 1, 2)) return nullptr;
      Dims dims = {v->shape[0], b.idx(1), v->rank() == 2 ? v->shape[1] : b.idx(1)};
      return b.broadcastTo(b.reshape(v, dims), q.value->shape);
    };
    UOpRef value = centered(b, {q.value, nullptr, q.zero ? spread(q.zero) : nullptr});
    return b.permute(b.bin(Op::Mul, b.cast(value, DType::F32), spread(q.scale)), {0, 2, 1});
  };
  operands.w = weights(w);
  operands.r = weights(r);
  options.roundsByRange = true;
  return b.failed() ? RecurrentResult() : recurrent(b, RecurrentCell::LSTM, operands, options);
}

} // namespace astra::compose

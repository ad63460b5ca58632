//===- WeightFormat.cpp: how the elements of a weight are stored ------------===//
// Gives:    see WeightFormat.h.
#include "astra/Compose/WeightFormat.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;

/// Bytes of an element, known while compiling.
static constexpr unsigned bytesOf(DType t) {
  constexpr unsigned bits[] = {
#define DTYPE(Name, text, bits, Class, e, m) bits,
#include "astra/IR/DType.def"
#undef DTYPE
  };
  return bits[size_t(t)] / 8;
}

static constexpr WeightFormatInfo formats[] = {
#define DENSE(Name, text, ggml, type) {text, ggml, 1, bytesOf(DType::type), DType::type},
#define BLOCK(Name, text, ggml, elements, bytes) {text, ggml, elements, bytes, DType::Void},
#include "astra/Compose/WeightFormats.def"
};

const WeightFormatInfo &astra::info(WeightFormat format) { return formats[size_t(format)]; }

std::optional<WeightFormat> astra::weightFormatNamed(llvm::StringRef text) {
  auto row = llvm::find_if(formats, [&](const WeightFormatInfo &f) { return f.text == text; });
  if (row == std::end(formats)) return std::nullopt;
  return WeightFormat(row - formats);
}

std::optional<WeightFormat> astra::weightFormatOfGgml(uint32_t number) {
  auto row =
      llvm::find_if(formats, [&](const WeightFormatInfo &f) { return f.ggml >= 0 && uint32_t(f.ggml) == number; });
  if (row == std::end(formats)) return std::nullopt;
  return WeightFormat(row - formats);
}

std::optional<uint64_t> astra::weightBytes(WeightFormat format, llvm::ArrayRef<int64_t> dims) {
  const WeightFormatInfo &f = info(format);
  uint64_t bytes = f.bytes;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t extent = dims[i];
    if (i + 1 == dims.size()) {
      if (extent % f.elements) return std::nullopt;
      extent /= f.elements;
    }
    if (extent < 0 || __builtin_mul_overflow(bytes, uint64_t(extent), &bytes) || bytes > INT64_MAX) return std::nullopt;
  }
  if (dims.empty() && f.isBlocked()) return std::nullopt;
  return bytes;
}

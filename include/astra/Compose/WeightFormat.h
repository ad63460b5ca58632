//===- WeightFormat.h: how the elements of a weight are stored --------------===//
// Gives:    the enum, names and sizes of WeightFormats.def: elements of the IR's types, and blocks of few bits with
//           their scales, as llama.cpp writes them.
// Does not: read files (Import/WeightFile.h).
#pragma once
#include "astra/IR/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>

namespace astra {

enum class WeightFormat : uint8_t {
#define DENSE(Name, ...) Name,
#define BLOCK(Name, ...) Name,
#include "astra/Compose/WeightFormats.def"
};

constexpr unsigned numWeightFormats = 0
#define DENSE(Name, ...) +1
#define BLOCK(Name, ...) +1
#include "astra/Compose/WeightFormats.def"
    ;

struct WeightFormatInfo {
  const char *text;  // "Q4_1"
  int ggml;          // the number of the type in a GGUF file; -1: it has none
  unsigned elements; // of a block, along the last axis; 1 where every element is by itself
  unsigned bytes;    // of a block
  DType dtype;       // of an element that is by itself; Void of blocks
  bool isBlocked() const { return elements > 1; }
};

const WeightFormatInfo &info(WeightFormat format);
/// The format named `text` ("Q4_1", as safetensors and GGUF call them), or nothing.
std::optional<WeightFormat> weightFormatNamed(llvm::StringRef text);
/// The format whose number in a GGUF file this is, or nothing.
std::optional<WeightFormat> weightFormatOfGgml(uint32_t number);
/// The bytes of a tensor; nothing where the last axis is not whole blocks, an extent is negative, or the size is 2^63
/// or more.
std::optional<uint64_t> weightBytes(WeightFormat format, llvm::ArrayRef<int64_t> dims);

} // namespace astra

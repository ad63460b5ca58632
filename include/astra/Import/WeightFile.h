//===- WeightFile.h: weight files as named tensors --------------------------===//
// Takes:    the path of a .safetensors file, a GGUF file (versions 2 and 3), a file of PyTorch's torch.save (.pt, .pth,
//           .bin), an index (NAME.safetensors.index.json), or a folder with model.safetensors, pytorch_model.bin, or
//           the index of either and its shards.
// Gives:    the tensors: name, format, dims, bytes; and the metadata: GGUF's keys, or the strings of "__metadata__".
// Keeps:    a file is input from outside: sizes are computed with checks, and a tensor that leaves the file or overlaps
//           another one is refused. Tensors are views of the mapped files: nothing is copied, except what a zip archive
//           has deflated. Nothing in a file is executed.
// Does not: know what a tensor is for, or convert values: WeightPlanes.h takes blocks apart.
#pragma once
#include "astra/Compose/WeightFormat.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace astra {

enum class WeightContainer : uint8_t { Safetensors, GGUF, PyTorch };

struct WeightTensor {
  std::string name;
  WeightFormat format = WeightFormat::F32;
  std::vector<int64_t> dims;     // outermost first, whatever the file's order is: row-major
  llvm::ArrayRef<uint8_t> bytes; // of the file: weightBytes(format, dims); may lie at any address
};

/// A value of the metadata. Integers and bools are int64_t, of a u64 its bits; floats are double; f32 widens exactly.
struct WeightValue {
  using Any =
      std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;
  const char *type = "string"; // "u32", "f32", "bool", "string": of the value, or of an array's elements
  Any value;
};

class WeightFile {
public:
  /// A sentence that begins with the file's name: it cannot be read, is none of these, is truncated or malformed, has
  /// tensors of a type that is not supported (all of these types are named).
  static llvm::Expected<WeightFile> open(llvm::StringRef path);
  /// The same of a file's bytes, which must outlive it; sentences begin with `name`.
  static llvm::Expected<WeightFile> read(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef name);
  /// Whether a path is one of weights by its ending or its first bytes, or a folder.
  static bool isLikely(llvm::StringRef path);

  WeightContainer container() const { return kind; }
  /// "safetensors", "GGUF version 3", "PyTorch".
  const std::string &containerText() const { return kindText; }
  const std::string &path() const { return name; }
  /// In the order of their bytes, shard by shard.
  llvm::ArrayRef<WeightTensor> tensors() const { return all; }
  const WeightTensor *find(llvm::StringRef tensor) const;
  /// The same, or a sentence that says what the file lacks.
  llvm::Expected<const WeightTensor *> get(llvm::StringRef tensor) const;

  /// In the order of the file.
  llvm::ArrayRef<std::pair<std::string, WeightValue>> metadata() const { return values; }
  const WeightValue *value(llvm::StringRef key) const;
  /// Null, or nothing, where the key is missing or of another type.
  std::optional<int64_t> integer(llvm::StringRef key) const;
  /// Integers too.
  std::optional<double> number(llvm::StringRef key) const;
  const std::string *string(llvm::StringRef key) const;
  const std::vector<int64_t> *integers(llvm::StringRef key) const;
  const std::vector<double> *numbers(llvm::StringRef key) const;
  const std::vector<std::string> *strings(llvm::StringRef key) const;

  // ---- for the readers in lib/Import/Weights

  WeightContainer kind = WeightContainer::Safetensors;
  std::string kindText = "safetensors", name;
  std::vector<WeightTensor> all;
  std::vector<std::pair<std::string, WeightValue>> values;
  llvm::StringMap<size_t> tensorIndex, valueIndex;
  std::vector<std::shared_ptr<const void>> owners; // mapped files and inflated members
};

} // namespace astra

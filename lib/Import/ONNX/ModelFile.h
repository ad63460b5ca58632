//===- ModelFile.h: an ONNX file in memory ---------------------------------===//
// Takes:    a path.
// Gives:    the parsed protobuf and its tensors' bytes, sizes checked, external data read.
// Does not: know ops (OpTable.h) or make UOps (Importer.cpp).
#pragma once
#include "astra/IR/Module.h"
#include <memory>

namespace astra::onnx {

namespace proto {
class Model;
class Tensor;
} // namespace proto

constexpr int64_t newestIRVersion = 14, newestOpset = 28, oldestOpset = 7;

/// A dense tensor: row-major little-endian bytes.
struct Payload {
  DType dtype;
  std::vector<int64_t> dims;
  std::vector<uint8_t> bytes;
};

/// The dtype of ONNX's element type number `code`; an error that names the type when Astra has none for it.
llvm::Expected<DType> elementType(int32_t code);

class ModelFile {
public:
  ModelFile(ModelFile &&);
  ~ModelFile();

  /// Errors: the file cannot be read, is not protobuf of this schema, is of a newer IR version, or has no graph or no
  /// default opset.
  static llvm::Expected<ModelFile> open(llvm::StringRef path);

  proto::Model &model() { return *message; }
  int64_t opset() const { return version; }

  /// The tensor's bytes, from the message or from the file beside the model that it names. Errors: an element type that
  /// Astra lacks, dims that are negative or overflow, a size that is not that of the dims, external data outside the
  /// model's folder or shorter than stated.
  llvm::Expected<Payload> payload(const proto::Tensor &tensor) const;

private:
  ModelFile() = default;
  llvm::Expected<std::vector<uint8_t>> externalBytes(const proto::Tensor &tensor, uint64_t size) const;

  std::unique_ptr<proto::Model> message;
  std::string folder;
  int64_t version = 0;
};

} // namespace astra::onnx

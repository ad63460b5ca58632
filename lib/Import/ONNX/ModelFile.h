//===- ModelFile.h: an ONNX file in memory ---------------------------------===//
// Takes:    a path.
// Gives:    the parsed protobuf and its tensors' bytes, sizes checked, external data read.
// Does not: know ops (OpTable.h) or make UOps (Importer.cpp).
#pragma once
#include "astra/Compose/Composer.h"
#include "astra/IR/Module.h"
#include <memory>

namespace astra::onnx {

namespace proto {
class Model;
class SparseTensor;
class Tensor;
} // namespace proto

constexpr int64_t newestIRVersion = 14, newestOpset = 28, oldestOpset = 1;

using compose::Payload;

/// An error with a sentence, and the same error with words put before its sentence; what kind of error it is stays.
llvm::Error sentence(const llvm::Twine &text, std::errc code = std::errc::invalid_argument);
llvm::Error prefixed(const llvm::Twine &words, llvm::Error e);

/// The dtype of ONNX's element type number `code`; an error that names the type when Astra has none for it.
llvm::Expected<DType> elementType(int32_t code);
/// The same by its name, "FLOAT" or "float16".
llvm::Expected<DType> elementType(llvm::StringRef name);

class ModelFile {
public:
  ModelFile(ModelFile &&);
  ~ModelFile();

  /// Errors: the file cannot be read, is not protobuf of this schema, is of a newer IR version, or has no graph or no
  /// default opset.
  static llvm::Expected<ModelFile> open(llvm::StringRef path);

  proto::Model &model() { return *message; }

  /// The tensor's bytes, from the message or from the file beside the model that it names. Errors: an element type that
  /// Astra lacks, dims that are negative or overflow, a size that is not that of the dims, external data outside the
  /// model's folder or shorter than stated.
  llvm::Expected<Payload> payload(const proto::Tensor &tensor) const;
  /// The same of a sparse tensor, zeros filled in. Errors: those of its parts, and an index that is out of range, out
  /// of order or given twice.
  llvm::Expected<Payload> payload(const proto::SparseTensor &tensor) const;

private:
  ModelFile() = default;
  llvm::Expected<std::vector<uint8_t>> externalBytes(const proto::Tensor &tensor, uint64_t size) const;

  std::unique_ptr<proto::Model> message;
  std::string folder;
};

} // namespace astra::onnx

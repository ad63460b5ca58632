//===- Safetensors.h: files of named tensors --------------------------------===//
// Takes:    .safetensors files (github.com/huggingface/safetensors): 8 bytes little-endian, the length of a header; the
//           header, a JSON object from names to dtype, shape and data_offsets; the data.
// Gives:    the tensors in the order of their data, and the strings of "__metadata__".
// Keeps:    a file is input from outside: grammar, lengths, names, places are checked before anything is trusted, and
//           the tensors cover the data, each byte once. What is written has the largest elements first, so that all lie
//           aligned, and the same bytes for the same tensors.
// Does not: read the header as general JSON: what the format does not have is refused.
#pragma once
#include "Npy.h"
#include "OutputFile.h"
#include <map>

namespace astra::tool {

using Metadata = std::map<std::string, std::string>;

struct Safetensors {
  std::vector<std::pair<std::string, Npy>> tensors;
  Metadata metadata;
  const Npy *find(const std::string &name) const;
  std::map<std::string, size_t> index; // of tensors
};

/// False and a sentence in `error` if the file cannot be read or is none.
bool readSafetensors(const std::string &path, Safetensors &out, std::string &error);

struct TensorType {
  std::string name;
  int32_t dtype;
  std::vector<int64_t> shape;
};
/// A JSON string.
std::string jsonText(std::string_view s);
/// The astra_dtype of a name that the format has; 0: none.
int32_t safetensorsDtype(std::string_view name);
/// Of a dtype that the format has; 0: it has not.
uint64_t safetensorsBytes(const TensorType &tensor);
/// The order in which a file has them: numbers of `tensors`.
std::vector<size_t> safetensorsOrder(const std::vector<TensorType> &tensors);

/// A file whose tensors come one at a time.
class SafetensorsWriter {
public:
  /// `tensors` in the order of the file. False and a sentence in `error`, as below too.
  bool open(const std::string &path, const std::vector<TensorType> &tensors, const Metadata &metadata,
            std::string &error);
  /// The bytes of the next one.
  bool add(const void *data, std::string &error);
  /// Of what has been written.
  uint64_t sum() const { return hash; }
  /// As `path`, a name in the folder of the one that was opened.
  void moveTo(const std::string &path) { file.moveTo(path); }
  /// All tensors have come: the file is on the disk, in its place.
  bool keep(std::string &error) { return file.keep(error, true); }

private:
  bool write(const void *data, size_t bytes, std::string &error);
  OutputFile file;
  std::vector<uint64_t> sizes;
  size_t next = 0;
  uint64_t hash = 0;
};

/// Row-major memory of the caller's.
struct NamedTensor {
  std::string name;
  int32_t dtype;
  std::vector<int64_t> shape;
  const void *data;
};

/// All of them, on the disk, or nothing. False and a sentence in `error`: a full disk, a dtype that the format lacks.
bool writeSafetensors(const std::string &path, const std::vector<NamedTensor> &tensors, const Metadata &metadata,
                      std::string &error);

} // namespace astra::tool

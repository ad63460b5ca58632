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

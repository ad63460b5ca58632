//===- SafetensorsHeader.h: the header of a .safetensors file --------------===//
// Takes:    the JSON header of a .safetensors file (github.com/huggingface/safetensors), and how many bytes of data
//           follow it; the JSON index of several such files (model.safetensors.index.json).
// Gives:    names, element types, shapes and places of the tensors, in the order of their data, and the strings of
//           "__metadata__"; of an index the file of each tensor, and its "metadata".
// Keeps:    a file is input from outside: grammar, lengths, names and places are checked before anything is
//           trusted, and the tensors cover the data, each byte once.
// Does not: need more than the standard library, since tools that know the runtime alone read it too; read the
//           header as general JSON: what the format does not have is refused.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace astra {

struct SafetensorsPlace {
  std::string name;
  std::string_view type; // "F32": one of the format's names, from a table
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0; // of the data
};

struct SafetensorsHeader {
  std::vector<SafetensorsPlace> tensors;
  std::map<std::string, std::string> metadata;
};

/// False and a sentence in `error`, without the file's name.
bool readSafetensorsHeader(std::string_view json, uint64_t dataBytes, SafetensorsHeader &out, std::string &error);

struct SafetensorsIndex {
  std::map<std::string, std::string> files;    // of each tensor: the name of a file in the index's folder
  std::map<std::string, std::string> metadata; // strings, and whole numbers as text
};

/// False and a sentence in `error`, without the file's name: also where a file is not of the index's folder.
bool readSafetensorsIndex(std::string_view json, SafetensorsIndex &out, std::string &error);
/// The bytes of an element; 0 for a name that the format does not have.
unsigned safetensorsElementBytes(std::string_view type);

} // namespace astra

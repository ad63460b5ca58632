//===- TensorFiles.h: tensors in one file, or in several with an index -------===//
// Takes:    a path: NAME.safetensors is one file, NAME.safetensors.index.json the index of several that are beside it,
//           in the form of model.safetensors.index.json.
// Gives:    types of the tensors, and their bytes one at a time; which of several files has which tensor.
// Keeps:    a file of an index that is written here has in its name the checksum of its bytes: it takes the place of
//           none that has others, and whoever reads it can tell that it is whole. The index comes last, and then those
//           files go that it does not name. So what an index names is there and belongs together at every moment.
// Does not: lock: one job at a time writes at a path.
#pragma once
#include "Safetensors.h"

namespace astra::tool {

inline constexpr std::string_view kSafetensorsEnding = ".safetensors", kIndexEnding = ".safetensors.index.json";
/// Whether the path is that of an index.
bool isIndex(std::string_view path);

//===- Reading ----------------------------------------------------------------===//

class TensorFiles {
public:
  struct Item : TensorType {
    size_t file; // of files()
    uint64_t begin, bytes;
  };
  /// The types of all tensors; of an index those that it names and no others. False and a sentence in `error`.
  bool open(const std::string &path, std::string &error);
  const std::vector<Item> &items() const { return list; }
  const Item *find(const std::string &name) const;
  const std::vector<std::string> &files() const { return paths; }
  /// False and a sentence if a file's name has a checksum, and that is not the one of its bytes.
  bool verify(size_t file, std::string &error) const;
  bool read(const Item &item, std::vector<uint8_t> &out, std::string &error) const;
  Metadata metadata;

private:
  bool openFile(const std::string &path, Metadata &itsMetadata, std::string &error);
  std::vector<std::string> paths;
  std::vector<Item> list;
  std::map<std::string, size_t> index; // of list
};

//===- Writing ----------------------------------------------------------------===//

/// What each of at most `most` files has: numbers of `tensors`, in the order of the file. The files have about as many
/// bytes each, and at least one tensor.
std::vector<std::vector<size_t>> planFiles(const std::vector<TensorType> &tensors, size_t most);
/// The path of a file of an index: NAME-SUM-00001-of-00004.safetensors.
std::string partPath(const std::string &indexPath, const std::string &sum, size_t file, size_t files);
/// Writes the index, on the disk; `parts` are paths of partPath. Then removes other such files.
bool writeIndex(const std::string &path, const std::vector<TensorType> &tensors,
                const std::vector<std::vector<size_t>> &plan, const std::vector<std::string> &parts,
                const Metadata &metadata, std::string &error);

} // namespace astra::tool

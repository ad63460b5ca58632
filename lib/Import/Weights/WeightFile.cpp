//===- WeightFile.cpp: opening weight files ---------------------------------===//
// Takes:    a path.
// Gives:    see WeightFile.h: the file mapped and read by what its first bytes say, or all shards of a folder.
// Keeps:    a shard is a file of the folder itself: names with a folder in them are refused.
#include "astra/Import/WeightFile.h"
#include "../JsonDepth.h"
#include "Readers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace astra;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

// ---- what a file has

const WeightTensor *WeightFile::find(StringRef tensor) const {
  auto at = tensorIndex.find(tensor);
  return at == tensorIndex.end() ? nullptr : &all[at->second];
}

Expected<const WeightTensor *> WeightFile::get(StringRef tensor) const {
  if (const WeightTensor *t = find(tensor)) return t;
  return refused(name + ": has no tensor " + shown(tensor));
}

const WeightValue *WeightFile::value(StringRef key) const {
  auto at = valueIndex.find(key);
  return at == valueIndex.end() ? nullptr : &values[at->second].second;
}

template <class T> static const T *valueAs(const WeightFile &file, StringRef key) {
  const WeightValue *v = file.value(key);
  return v ? std::get_if<T>(&v->value) : nullptr;
}

std::optional<int64_t> WeightFile::integer(StringRef key) const {
  auto *v = valueAs<int64_t>(*this, key);
  return v ? std::optional(*v) : std::nullopt;
}

std::optional<double> WeightFile::number(StringRef key) const {
  if (auto *v = valueAs<double>(*this, key)) return *v;
  if (auto v = integer(key)) return double(*v);
  return std::nullopt;
}

const std::string *WeightFile::string(StringRef key) const { return valueAs<std::string>(*this, key); }
const std::vector<int64_t> *WeightFile::integers(StringRef key) const {
  return valueAs<std::vector<int64_t>>(*this, key);
}
const std::vector<double> *WeightFile::numbers(StringRef key) const { return valueAs<std::vector<double>>(*this, key); }
const std::vector<std::string> *WeightFile::strings(StringRef key) const {
  return valueAs<std::vector<std::string>>(*this, key);
}

// ---- for the readers

std::string astra::shown(StringRef name) {
  std::string text = "'";
  for (char c : name.take_front(80)) text += uint8_t(c) < 32 || c == 127 ? '?' : c;
  return text + (name.size() > 80 ? "...'" : "'");
}

Error astra::addTensor(WeightFile &out, WeightTensor tensor) {
  if (!out.tensorIndex.try_emplace(tensor.name, out.all.size()).second)
    return refused(shown(tensor.name) + " is there twice");
  out.all.push_back(std::move(tensor));
  return Error::success();
}

Error astra::addValue(WeightFile &out, std::string key, WeightValue value) {
  if (!out.valueIndex.try_emplace(key, out.values.size()).second)
    return refused("the key " + shown(key) + " is there twice");
  out.values.push_back({std::move(key), std::move(value)});
  return Error::success();
}

Error astra::readWeights(llvm::ArrayRef<uint8_t> file, StringRef path, WeightFile &out) {
  StringRef text(reinterpret_cast<const char *>(file.data()), file.size());
  if (text.starts_with("GGUF")) return readGguf(file, out);
  if (text.starts_with("PK\3\4")) return readTorch(file, out);
  if (text.starts_with("\x80\2\x8a\x0al\xfc\x9c\x46\xf9"))
    return refused(
        "is of PyTorch before 1.6, which is not a zip file: load it in PyTorch, and torch.save its state_dict");
  if (path.ends_with(".safetensors") || (file.size() > 8 && text[8] == '{')) return readSafetensors(file, out);
  return refused("is no weight file that is known: .safetensors, GGUF, or a zip file of PyTorch's torch.save");
}

// ---- opening

constexpr StringRef indexEnding = ".safetensors.index.json";

/// A reader's sentence about a file: one line, whatever the file has in it.
static Error about(const llvm::Twine &file, Error e) {
  std::string text = llvm::toString(std::move(e));
  for (char &c : text)
    if (uint8_t(c) < 32 || c == 127) c = '?';
  return refused(file + ": " + text);
}

static Error readInto(WeightFile &out, const std::string &path) {
  auto fail = [&](const llvm::Twine &why) { return refused(path + ": " + why); };
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) return fail("cannot be read: " + buffer.getError().message());
  std::shared_ptr<llvm::MemoryBuffer> owner = std::move(*buffer);
  out.owners.push_back(owner);
  if (Error e = readWeights(llvm::arrayRefFromStringRef(owner->getBuffer()), path, out))
    return about(path, std::move(e));
  return Error::success();
}

/// What a shard has, put behind what the shards before it have. Each repeats the metadata of the whole: what the first
/// one says of a key holds.
static Error append(WeightFile &out, WeightFile shard) {
  if (out.all.empty()) out.kind = shard.kind, out.kindText = shard.kindText;
  for (WeightTensor &t : shard.all)
    if (Error e = addTensor(out, std::move(t))) return about(shard.name, std::move(e));
  for (auto &[key, value] : shard.values)
    if (!out.value(key))
      if (Error e = addValue(out, key, std::move(value))) return about(shard.name, std::move(e));
  llvm::append_range(out.owners, shard.owners);
  return Error::success();
}

/// The shards that an index names, in the order of their names, and of which shard each tensor is.
static Error readShards(WeightFile &out, StringRef folder, const std::string &index) {
  auto fail = [&](const llvm::Twine &why) { return refused(index + ": " + why); };
  auto buffer = llvm::MemoryBuffer::getFile(index, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) return fail("cannot be read: " + buffer.getError().message());
  StringRef text = (*buffer)->getBuffer();
  if (isNestedDeeper(text, 16)) return fail("is not the index of a sharded model: it is nested too deeply");
  auto json = llvm::json::parse(text);
  if (!json) return fail("is not JSON: " + llvm::toString(json.takeError()));
  const llvm::json::Object *root = json->getAsObject(), *map = root ? root->getObject("weight_map") : nullptr;
  if (!map) return fail("is not the index of a sharded model: it has no \"weight_map\"");
  std::map<std::string, std::vector<std::string>> shards;
  for (auto &[tensor, file] : *map) {
    auto shard = file.getAsString();
    if (!shard || shard->empty() || shard->contains('/') || shard->contains('\\') || *shard == "..")
      return fail(shown(tensor) + " is in no file of the folder");
    shards[shard->str()].push_back(tensor.str());
  }
  for (auto &[shard, names] : shards) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, shard);
    WeightFile one;
    one.name = path.str().str();
    if (Error e = readInto(one, one.name)) return e;
    for (const std::string &name : names)
      if (!one.find(name)) return fail("says that " + shown(name) + " is in " + shard + ", which does not have it");
    if (Error e = append(out, std::move(one))) return e;
  }
  return Error::success();
}

Expected<WeightFile> WeightFile::read(llvm::ArrayRef<uint8_t> bytes, StringRef name) {
  WeightFile out;
  out.name = name.str();
  if (Error e = readWeights(bytes, name, out)) return about(name, std::move(e));
  return out;
}

bool WeightFile::isLikely(StringRef path) {
  StringRef extension = llvm::sys::path::extension(path);
  if (llvm::is_contained({".safetensors", ".gguf", ".pt", ".pth", ".bin"}, extension) || path.ends_with(indexEnding) ||
      llvm::sys::fs::is_directory(path))
    return true;
  auto buffer = llvm::MemoryBuffer::getFileSlice(path, 4, 0);
  return buffer && llvm::is_contained({StringRef("GGUF"), StringRef("PK\3\4")}, (*buffer)->getBuffer());
}

Expected<WeightFile> WeightFile::open(StringRef path) {
  namespace fs = llvm::sys::fs;
  WeightFile out;
  out.name = path.str();
  if (path.ends_with(indexEnding)) {
    if (Error e = readShards(out, llvm::sys::path::parent_path(path), out.name)) return e;
    return out;
  }
  if (!fs::is_directory(path)) {
    if (Error e = readInto(out, out.name)) return e;
    return out;
  }
  for (const char *file :
       {"model.safetensors.index.json", "model.safetensors", "pytorch_model.bin.index.json", "pytorch_model.bin"}) {
    llvm::SmallString<128> inside(path);
    llvm::sys::path::append(inside, file);
    if (!fs::exists(inside)) continue;
    Error e = StringRef(file).ends_with(".json") ? readShards(out, path, inside.str().str())
                                                 : readInto(out, inside.str().str());
    if (e) return e;
    return out;
  }
  return refused(out.name + ": has none of model.safetensors, pytorch_model.bin and an index of their shards "
                            "(model.safetensors.index.json, pytorch_model.bin.index.json)");
}

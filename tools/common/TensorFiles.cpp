//===- TensorFiles.cpp: tensors in one file, or in several with an index -----===//
// Takes:    paths.
// Gives:    see TensorFiles.h.
#include "TensorFiles.h"
#include "Checksum.h"
#include "astra/Files/SafetensorsHeader.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>

using namespace astra;
using namespace astra::tool;
using std::string;
using std::string_view;

namespace {

constexpr string_view kEnding = kSafetensorsEnding, kPartial = "partial";
constexpr size_t kDigits = 5, kNumbers = 1 + kDigits + 4 + kDigits, kSum = 16; // -00001-of-00004
constexpr uint64_t kLongestHeader = 100000000;

struct Close {
  void operator()(FILE *f) const { std::fclose(f); }
};
using File = std::unique_ptr<FILE, Close>;

string folderOf(const string &path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "" : path.substr(0, slash + 1);
}
string nameOf(const string &path) { return path.substr(folderOf(path).size()); }

bool isHexadecimal(string_view s) { return s.find_first_not_of("0123456789abcdef") == s.npos; }
bool isDecimal(string_view s) { return !s.empty() && s.find_first_not_of("0123456789") == s.npos; }

/// The checksum in the name of a file that partPath gives, or "partial"; empty of any other name.
string_view sumIn(string_view name) {
  if (!name.ends_with(kEnding)) return "";
  name.remove_suffix(kEnding.size());
  if (name.size() < kNumbers) return "";
  string_view numbers = name.substr(name.size() - kNumbers);
  if (numbers[0] != '-' || !isDecimal(numbers.substr(1, kDigits)) || numbers.substr(1 + kDigits, 4) != "-of-" ||
      !isDecimal(numbers.substr(kNumbers - kDigits)))
    return "";
  name.remove_suffix(kNumbers);
  string_view sum = name.substr(name.rfind('-') + 1);
  bool known = sum == kPartial || (sum.size() == kSum && isHexadecimal(sum));
  return known && sum.size() < name.size() ? sum : "";
}

/// Files beside the index that a run has left which was killed, or that an index of before named.
void removeOthers(const string &path, const std::set<string> &kept) {
  namespace fs = std::filesystem;
  string folder = folderOf(path), stem = nameOf(path);
  stem.resize(stem.size() - kIndexEnding.size());
  std::error_code failed;
  std::vector<fs::path> others;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, failed), end; !failed && at != end;
       at.increment(failed)) {
    string name = at->path().filename().string(), whole = name;
    size_t temporary = name.rfind(".tmp-"); // as OutputFile names them
    if (temporary != name.npos) whole.resize(temporary);
    string_view sum = sumIn(whole);
    size_t tail = 1 + sum.size() + kNumbers + kEnding.size();
    bool isPart = !sum.empty() && whole.size() == stem.size() + tail && whole.starts_with(stem + "-");
    bool isIndex = temporary != name.npos && whole == stem + string(kIndexEnding);
    if ((!isPart && !isIndex) || kept.count(name)) continue;
    others.push_back(at->path());
  }
  for (const fs::path &p : others) fs::remove(p, failed); // one that stays is in nobody's way
}

} // namespace

bool astra::tool::isIndex(string_view path) {
  return path.ends_with(kIndexEnding) && path.size() > kIndexEnding.size();
}

//===- Reading ----------------------------------------------------------------===//

bool TensorFiles::openFile(const string &path, Metadata &itsMetadata, string &error) {
  auto fail = [&](const string &text) {
    error = path + ": " + text;
    return false;
  };
  File f(std::fopen(path.c_str(), "rb"));
  if (!f) return fail(std::strerror(errno));
  if (std::fseek(f.get(), 0, SEEK_END)) return fail("cannot be read from the beginning again");
  uint64_t size = uint64_t(std::ftell(f.get())), length = 0;
  std::rewind(f.get());
  uint8_t first[8];
  if (std::fread(first, 1, 8, f.get()) < 8) return fail("is not a .safetensors file: it has no header");
  for (int i = 0; i < 8; ++i) length |= uint64_t(first[i]) << (8 * i);
  if (length > size - 8 || length > kLongestHeader)
    return fail("is not a .safetensors file, or is truncated: its header leaves the file");
  string text(size_t(length), ' ');
  if (std::fread(text.data(), 1, text.size(), f.get()) < text.size()) return fail("could not be read");
  SafetensorsHeader header;
  string wrong;
  if (!readSafetensorsHeader(text, size - 8 - length, header, wrong)) return fail(wrong);
  itsMetadata = std::move(header.metadata);
  for (SafetensorsPlace &p : header.tensors) {
    if (!index.emplace(p.name, list.size()).second) return fail("has '" + p.name + "', which another file has too");
    int32_t dtype = safetensorsDtype(p.type);
    list.push_back(
        {{std::move(p.name), dtype, std::move(p.shape)}, paths.size(), 8 + length + p.begin, p.end - p.begin});
  }
  paths.push_back(path);
  return true;
}

bool TensorFiles::open(const string &path, string &error) {
  *this = {};
  if (!isIndex(path)) return openFile(path, metadata, error);
  std::vector<uint8_t> text;
  if (!readWhole(path, text, error)) return false;
  SafetensorsIndex named;
  string wrong;
  auto fail = [&](const string &why) {
    error = path + ": " + why;
    return false;
  };
  if (!readSafetensorsIndex({reinterpret_cast<const char *>(text.data()), text.size()}, named, wrong))
    return fail(wrong);
  metadata = std::move(named.metadata);
  std::set<string> files;
  for (auto &[tensor, file] : named.files) files.insert(file);
  for (const string &file : files) {
    Metadata ofFile;
    if (!openFile(folderOf(path) + file, ofFile, error)) return false;
  }
  for (auto &[tensor, file] : named.files) {
    const Item *item = find(tensor);
    if (!item || nameOf(paths[item->file]) != file)
      return fail("says that '" + tensor + "' is in " + file + ", which does not have it");
  }
  for (const Item &item : list)
    if (!named.files.count(item.name))
      return fail("does not name '" + item.name + "', which is in " + nameOf(paths[item.file]));
  return true;
}

const TensorFiles::Item *TensorFiles::find(const string &name) const {
  auto at = index.find(name);
  return at == index.end() ? nullptr : &list[at->second];
}

bool TensorFiles::verify(size_t file, string &error) const {
  const string &path = paths[file];
  string name = nameOf(path);
  string_view sum = sumIn(name);
  if (sum.empty()) return true;
  File f(std::fopen(path.c_str(), "rb"));
  uint64_t found = checksum("", 0);
  std::vector<uint8_t> block(1 << 20);
  for (size_t n; f && (n = std::fread(block.data(), 1, block.size(), f.get())) > 0;)
    found = checksum(block.data(), n, found);
  if (!f || std::ferror(f.get()))
    error = path + ": could not be read";
  else if (hexadecimal(found) != sum)
    error = path + ": its bytes are not those that it was written with: their checksum is " + hexadecimal(found);
  else
    return true;
  return false;
}

bool TensorFiles::read(const Item &item, std::vector<uint8_t> &out, string &error) const {
  out.resize(item.bytes);
  File f(std::fopen(paths[item.file].c_str(), "rb"));
  if (f && !std::fseek(f.get(), long(item.begin), SEEK_SET) &&
      std::fread(out.data(), 1, out.size(), f.get()) == out.size())
    return true;
  error = paths[item.file] + ": could not be read";
  return false;
}

//===- Writing ----------------------------------------------------------------===//

std::vector<std::vector<size_t>> astra::tool::planFiles(const std::vector<TensorType> &tensors, size_t most) {
  std::vector<std::vector<size_t>> plan(std::max<size_t>(std::min(most, tensors.size()), 1));
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    uint64_t of = safetensorsBytes(tensors[a]), than = safetensorsBytes(tensors[b]);
    return of > than || (of == than && a < b);
  });
  std::set<std::pair<uint64_t, size_t>> loads; // the file with the fewest bytes first
  for (size_t f = 0; f < plan.size(); ++f) loads.insert({0, f});
  for (size_t i : order) {
    auto [load, f] = *loads.begin();
    loads.erase(loads.begin());
    loads.insert({load + safetensorsBytes(tensors[i]) + 1, f}); // 1: one without bytes fills a file, too
    plan[f].push_back(i);
  }
  for (std::vector<size_t> &file : plan) {
    std::sort(file.begin(), file.end());
    std::vector<TensorType> types;
    for (size_t i : file) types.push_back(tensors[i]);
    std::vector<size_t> inFile;
    for (size_t at : safetensorsOrder(types)) inFile.push_back(file[at]);
    file = std::move(inFile);
  }
  return plan;
}

string astra::tool::partPath(const string &indexPath, const string &sum, size_t file, size_t files) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%0*zu-of-%0*zu", int(kDigits), file + 1, int(kDigits), files);
  return indexPath.substr(0, indexPath.size() - kIndexEnding.size()) + "-" + (sum.empty() ? string(kPartial) : sum) +
         numbers + string(kEnding);
}

bool astra::tool::writeIndex(const string &path, const std::vector<TensorType> &tensors,
                             const std::vector<std::vector<size_t>> &plan, const std::vector<string> &parts,
                             const Metadata &metadata, string &error) {
  std::map<string, string> files;
  std::set<string> kept;
  uint64_t total = 0;
  for (size_t f = 0; f < plan.size(); ++f)
    for (size_t i : plan[f]) {
      files[tensors[i].name] = nameOf(parts[f]);
      total += safetensorsBytes(tensors[i]);
    }
  for (const string &part : parts) kept.insert(nameOf(part));
  string text = "{\n  \"metadata\": {\n";
  for (auto &[key, value] : metadata) text += "    " + jsonText(key) + ": " + jsonText(value) + ",\n";
  text += "    \"total_size\": " + std::to_string(total) + "\n  },\n  \"weight_map\": {";
  for (auto &[tensor, file] : files)
    text += (text.back() == '{' ? "\n    " : ",\n    ") + jsonText(tensor) + ": " + jsonText(file);
  text += "\n  }\n}\n";
  OutputFile file;
  if (!file.open(path, error) || !file.write(text.data(), text.size(), error) || !file.keep(error, true)) return false;
  removeOthers(path, kept);
  return true;
}

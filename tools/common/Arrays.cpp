//===- Arrays.cpp: an array, wherever it lies ---------------------------------===//
// Takes:    a place and a name.
// Gives:    see Arrays.h.
#include "Arrays.h"
#include "OutputFile.h"
#include "Safetensors.h"
#include "astra/Files/Zip.h"
#include <algorithm>

using namespace astra;
using namespace astra::tool;
using std::string;

namespace {

constexpr const char *kNpz = ".npz", *kSafetensors = ".safetensors";

/// "FILE.npz:NAME" as FILE.npz and NAME.
void split(const string &place, string &path, string &name) {
  path = place;
  for (const char *ending : {kNpz, kSafetensors})
    if (size_t at = place.rfind(string(ending) + ":"); at != place.npos) {
      at += string(ending).size();
      path = place.substr(0, at), name = place.substr(at + 1);
    }
}

string listOf(const std::vector<string> &names) {
  string out;
  for (const string &n : names) out += (out.empty() ? "" : ", ") + n;
  return out.empty() ? "nothing" : out;
}

bool lacks(const string &path, const string &name, const std::vector<string> &names, string &error) {
  error = path + ": has no array '" + name + "'; it has " + listOf(names);
  return false;
}

bool readNpz(const string &path, const string &name, Npy &out, string &error) {
  std::vector<uint8_t> archive, file;
  std::vector<ZipMember> members;
  if (!readWhole(path, archive, error)) return false;
  auto fail = [&] {
    error = path + ": " + error;
    return false;
  };
  if (!zipMembers(archive, members, error)) return fail();
  auto m = std::find_if(members.begin(), members.end(), [&](const ZipMember &x) { return x.name == name + ".npy"; });
  if (m == members.end()) {
    std::vector<string> names;
    for (const ZipMember &x : members) names.push_back(x.name.substr(0, x.name.rfind(".npy")));
    return lacks(path, name, names, error);
  }
  if (!unzip(archive, *m, file, error)) return fail();
  if (parseNpy(file, out, error)) return true;
  error = "its array '" + name + "' " + error;
  return fail();
}

} // namespace

std::string astra::tool::fileOf(const string &place) {
  string path, name;
  split(place, path, name);
  return path;
}

bool astra::tool::holdsSeveral(const string &path) { return path.ends_with(kNpz) || path.ends_with(kSafetensors); }

bool astra::tool::readArray(const string &place, const string &wanted, Npy &out, string &error) {
  string path, name = wanted;
  split(place, path, name);
  if (path.ends_with(kNpz)) return readNpz(path, name, out, error);
  if (!path.ends_with(kSafetensors)) return readNpy(path, out, error);
  Safetensors file;
  if (!readSafetensors(path, file, error)) return false;
  const Npy *array = file.find(name);
  if (array) {
    out = *array;
    return true;
  }
  std::vector<string> names;
  for (auto &[n, tensor] : file.tensors) names.push_back(n);
  return lacks(path, name, names, error);
}

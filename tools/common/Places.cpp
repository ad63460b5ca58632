//===- Places.cpp: outputs that are no inputs -------------------------------===//
// Takes:    places.
// Gives:    see Places.h.
#include "Places.h"
#include "OutputFile.h"
#include <map>
#include <sys/stat.h>

using namespace astra::tool;
using std::string;

namespace {

/// Equal for two names of one file; "" for what is no file.
string identity(const string &path) {
  struct stat there;
  if (path.empty()) return "";
  if (stat(path.c_str(), &there) == 0)
    return S_ISREG(there.st_mode) ? std::to_string(there.st_dev) + ":" + std::to_string(there.st_ino) : "";
  return destination(path); // not there yet
}

string words(const Place &p) { return p.option + (p.option.starts_with("--") ? "=" : " ") + p.path; }

} // namespace

string astra::tool::overwritten(const std::vector<Place> &inputs, const std::vector<Place> &outputs) {
  std::map<string, const Place *> read, written;
  for (const Place &p : inputs)
    if (string key = identity(p.path); !key.empty()) read.emplace(key, &p);
  for (const Place &p : outputs) {
    string key = identity(p.path);
    if (key.empty()) continue;
    if (auto other = read.find(key); other != read.end())
      return words(p) + " would overwrite the file of " + words(*other->second) + ": give another name";
    if (auto [other, isNew] = written.emplace(key, &p); !isNew)
      return words(*other->second) + " and " + words(p) + " are one file: give two names";
  }
  return "";
}

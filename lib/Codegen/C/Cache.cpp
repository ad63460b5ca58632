//===- Cache.cpp: objects that were compiled before ------------------------===//
// Takes:    see Cache.h.
// Gives:    a file of 32 bytes of SHA-256, of its name and the object, then the object.
// Keeps:    no error leaves this file: a cache that does not work costs time alone.
#include "Cache.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace astra;

static constexpr size_t hashBytes = 32;

static std::string hashOf(llvm::StringRef text) {
  auto hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
  return std::string(hash.begin(), hash.end());
}

/// Of an object at its place: a file that another's name was given is none.
static std::string hashAt(llvm::StringRef path, llvm::StringRef object) {
  return hashOf(hashOf(llvm::sys::path::filename(path)) + hashOf(object));
}

std::string ObjectCache::nameOf(llvm::ArrayRef<std::string> parts) const {
  std::string all;
  for (const std::string &part : parts) all += hashOf(part);
  return folder + "/" + llvm::toHex(hashOf(all), true) + ".o";
}

std::optional<std::string> ObjectCache::find(llvm::StringRef name) const {
  if (folder.empty()) return std::nullopt;
  auto file = llvm::MemoryBuffer::getFile(name, false, false);
  if (!file) return std::nullopt;
  llvm::StringRef bytes = (*file)->getBuffer();
  if (bytes.size() < hashBytes || bytes.take_front(hashBytes) != hashAt(name, bytes.drop_front(hashBytes)))
    return std::nullopt;
  return bytes.drop_front(hashBytes).str();
}

void ObjectCache::store(llvm::StringRef name, llvm::StringRef object) const {
  if (folder.empty() || llvm::sys::fs::create_directories(folder, true, llvm::sys::fs::owner_all)) return;
  llvm::SmallString<128> aside;
  int descriptor;
  if (llvm::sys::fs::createUniqueFile(folder + "/%%%%%%%%.tmp", descriptor, aside, llvm::sys::fs::OF_None,
                                      llvm::sys::fs::owner_read | llvm::sys::fs::owner_write))
    return;
  llvm::raw_fd_ostream out(descriptor, true);
  out << hashAt(name, object) << object;
  out.close();
  bool whole = !out.has_error();
  out.clear_error();
  if (!whole || llvm::sys::fs::rename(aside, name)) llvm::sys::fs::remove(aside);
}

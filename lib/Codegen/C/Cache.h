//===- Cache.h: objects that were compiled before --------------------------===//
// Takes:    a folder of the user's; what an object is a function of.
// Gives:    the object's bytes, if they were stored and are whole.
// Keeps:    a file is named by the SHA-256 of what it is a function of and begins with the SHA-256 of its name and what
//           it holds, so a damaged or misplaced one is one that is not there; files appear whole (written aside, then
//           renamed).
// Does not: forget: a folder that grew too large is the user's to empty.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace astra {

class ObjectCache {
public:
  /// Empty: nothing is found and nothing stored.
  explicit ObjectCache(llvm::StringRef folder) : folder(folder) {}
  /// Of the parts in order; no two lists of parts have one name.
  std::string nameOf(llvm::ArrayRef<std::string> parts) const;
  std::optional<std::string> find(llvm::StringRef name) const;
  /// A folder that cannot be written is no error: the object is compiled again next time.
  void store(llvm::StringRef name, llvm::StringRef object) const;

private:
  std::string folder;
};

} // namespace astra

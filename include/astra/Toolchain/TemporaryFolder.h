//===- TemporaryFolder.h: where other programs find their input ------------===//
// Takes:    the system's folder for temporary files (TMPDIR).
// Gives:    a folder of its own, 0700, that goes away with the object.
// Keeps:    what a killed process left is removed by the next one of the same user: each holds a lock on a file in its
//           folder, and a folder whose lock is free is nobody's.
// Does not: remove a folder without such a file.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <utility>

namespace astra {

class TemporaryFolder {
public:
  /// An error names the folder that it could not be made in, and the reason.
  static llvm::Expected<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder &&o) : path(std::exchange(o.path, {})), lock(std::exchange(o.lock, -1)) {}
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  ~TemporaryFolder();

  std::string at(llvm::StringRef name) const { return path + "/" + name.str(); }
  /// A file of the folder, 0600.
  llvm::Error write(llvm::StringRef name, llvm::StringRef bytes) const;

private:
  TemporaryFolder(std::string path, int lock) : path(std::move(path)), lock(lock) {}
  std::string path;
  int lock;
};

} // namespace astra

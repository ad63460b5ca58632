//===- FileLock.h: one process at a time writes a file ----------------------===//
// Takes:    paths that the user named as outputs.
// Gives:    a lock on each of them, PATH.lock beside the file, until the object goes; a sentence where another process
//           has it.
// Keeps:    the place is locked, not its name: links are seen through. A process that ends in any way gives its locks
//           back; one that was killed leaves an empty claim, the file PATH.lock, which the next one takes over.
// Does not: lock devices, pipes, or places on file systems without locks.
#pragma once
#include <string>
#include <vector>

namespace astra::tool {

class FileLock {
public:
  FileLock() = default;
  FileLock(const FileLock &) = delete;
  FileLock &operator=(const FileLock &) = delete;
  ~FileLock();
  /// False and a sentence in `error` if another process has the place, or a lock cannot be made there.
  bool take(const std::string &path, std::string &error);

private:
  struct Held {
    int fd;
    std::string name;
  };
  std::vector<Held> held;
};

} // namespace astra::tool

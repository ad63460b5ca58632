//===- FileLock.cpp: one process at a time writes a file --------------------===//
// Takes:    paths.
// Gives:    see FileLock.h.
// Keeps:    a lock counts while its file is the one in the folder: who gives it back removes the file first, and who
//           has opened a removed one tries again.
#include "FileLock.h"
#include "OutputFile.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace astra::tool;
using std::string;

namespace {

/// "process 123" of the lock's holder; "another process" where it has not said.
string holderOf(int fd) {
  char text[24];
  ssize_t n = pread(fd, text, sizeof text - 1, 0);
  size_t digits = 0;
  while (n > 0 && digits < size_t(n) && text[digits] >= '0' && text[digits] <= '9') ++digits;
  return digits ? "process " + string(text, digits) : "another process";
}

/// Of a name of a device or of a descriptor (/dev/stdout, /dev/fd/3): what is there is not replaced.
bool namesDescriptor(const string &path) {
  std::error_code failed;
  string folder = std::filesystem::canonical(std::filesystem::absolute(path, failed).parent_path(), failed).string();
  return !failed && (folder == "/dev" || folder.starts_with("/proc/"));
}

bool isAt(int fd, const string &name) {
  struct stat mine, there;
  return fstat(fd, &mine) == 0 && stat(name.c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
         mine.st_ino == there.st_ino;
}

} // namespace

FileLock::~FileLock() {
  for (const Held &h : held) unlink(h.name.c_str()), close(h.fd);
}

bool FileLock::take(const string &path, string &error) {
  struct stat there;
  if (stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) return true;
  if (namesDescriptor(path)) return true;
  string name = destination(path) + ".lock";
  for (;;) {
    int fd = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
      error = path + ": " + std::strerror(errno) + " (its lock would be " + name + ")";
      return false;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      int why = errno;
      if (why == EWOULDBLOCK)
        error = path + ": " + holderOf(fd) + " is writing it: wait until it ends, or give another name";
      close(fd);
      if (why == EINTR) continue;
      return why != EWOULDBLOCK; // a file system without locks
    }
    if (!isAt(fd, name)) {
      close(fd);
      continue;
    }
    held.push_back({fd, name});
    string number = std::to_string(getpid()) + "\n";
    if (ftruncate(fd, 0) == 0) [[maybe_unused]]
      ssize_t n = pwrite(fd, number.data(), number.size(), 0); // for the sentence only
    return true;
  }
}

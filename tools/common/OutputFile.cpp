//===- OutputFile.cpp: where a tool's output goes --------------------------===//
// Takes:    a path that the user named.
// Gives:    see OutputFile.h.
// Keeps:    nothing is removed or renamed but a temporary file of this object.
// Does not: follow links more often than the system does.
#include "OutputFile.h"
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace astra::tool;
using std::string;

namespace {

constexpr int kMostLinks = 40;

string folderOf(const string &path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// What a symbolic link holds; empty if `path` is none.
string linkAt(const string &path) {
  char text[PATH_MAX];
  ssize_t n = readlink(path.c_str(), text, sizeof text);
  return n > 0 ? string(text, size_t(n)) : "";
}

/// The real name of a folder; empty if there is none.
string realFolder(const string &path) {
  char *real = realpath(path.c_str(), nullptr);
  string out = real ? real : "";
  std::free(real);
  return out;
}

/// Follows links up to a name that is none; a descriptor of this process on the way gives its number in `number`.
string follow(string path, int &number) {
  const string own = realFolder("/proc/self/fd");
  for (int i = 0; i < kMostLinks; ++i) {
    string link = linkAt(path);
    if (link.empty()) return path;
    if (!own.empty() && realFolder(folderOf(path)) == own) {
      number = std::atoi(path.c_str() + path.rfind('/') + 1);
      return path;
    }
    path = link[0] == '/' ? link : folderOf(path) + "/" + link;
  }
  return path;
}

} // namespace

OutputFile::~OutputFile() {
  if (fd >= 0) ::close(fd);
  if (!temporary.empty()) unlink(temporary.c_str());
}

bool OutputFile::open(const string &path, string &error) {
  named = path;
  auto opened = [&](int descriptor) {
    fd = descriptor;
    if (fd < 0) error = path + ": " + std::strerror(errno);
    return fd >= 0;
  };
  int number = -1;
  place = follow(path, number);
  if (number >= 0) return opened(fcntl(number, F_DUPFD_CLOEXEC, 3));
  struct stat there;
  bool exists = stat(path.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) {
    error = path + ": is a folder; give the name of a file";
    return false;
  }
  if (exists && !S_ISREG(there.st_mode)) return opened(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  for (int i = 0; i < 1000; ++i) {
    string name = place + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(i);
    fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) continue;
    if (!opened(fd)) return false;
    temporary = name;
    break;
  }
  if (!opened(fd)) return false;
  if (exists && fchmod(fd, there.st_mode & 07777) != 0) return opened(-1);
  return true;
}

bool OutputFile::write(const void *bytes, size_t count, string &error) {
  for (auto *next = static_cast<const char *>(bytes); count;) {
    ssize_t n = ::write(fd, next, count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      error = named + ": " + std::strerror(errno);
      return false;
    }
    next += n, count -= size_t(n);
  }
  return true;
}

bool OutputFile::keep(string &error, bool durable) {
  durable = durable && !temporary.empty(); // a pipe has no disk behind it
  bool good = !durable || fsync(fd) == 0;
  good = ::close(fd) == 0 && good;
  fd = -1;
  if (good && !temporary.empty()) good = rename(temporary.c_str(), place.c_str()) == 0;
  if (good)
    temporary.clear();
  else
    error = named + ": " + std::strerror(errno);
  if (!good || !durable) return good;
  // The new name is in the folder, which reaches the disk by itself. A folder that cannot be opened stays as it is.
  int folder = ::open(folderOf(place).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) fsync(folder), ::close(folder);
  return true;
}

string astra::tool::destination(const string &path) {
  int number = -1;
  std::error_code failed;
  string end = follow(path, number);
  auto real = std::filesystem::weakly_canonical(std::filesystem::absolute(end, failed), failed);
  return failed ? end : real.string();
}

bool astra::tool::readWhole(const string &path, std::vector<uint8_t> &out, string &error) {
  out.clear();
  FILE *f = std::fopen(path.c_str(), "rb");
  if (!f) {
    error = path + ": " + std::strerror(errno);
    return false;
  }
  uint8_t block[65536];
  for (size_t n; (n = std::fread(block, 1, sizeof block, f)) > 0;) out.insert(out.end(), block, block + n);
  bool broken = std::ferror(f);
  std::fclose(f);
  if (broken) error = path + ": could not be read";
  return !broken;
}

bool astra::tool::writeWhole(const string &path, const void *bytes, size_t count, string &error) {
  OutputFile file;
  return file.open(path, error) && file.write(bytes, count, error) && file.keep(error);
}

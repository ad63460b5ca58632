//===- TemporaryFolder.cpp: where other programs find their input ----------===//
// Takes:    see TemporaryFolder.h.
// Gives:    TMPDIR/astra-UID-XXXXXX, and the removal of those that no process holds.
// Keeps:    a lock is on its file before the file has the name by which others look for it.
// Does not: follow links, or touch folders of other users.
#include "astra/Toolchain/TemporaryFolder.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace astra;

static std::string prefix() { return "astra-" + std::to_string(getuid()) + "-"; }

static llvm::Error failed(const llvm::Twine &what, int error) {
  return llvm::createStringError(std::error_code(error, std::generic_category()),
                                 what + ": " + std::generic_category().message(error));
}

/// A folder and all that is in it; LLVM's remove_directories leaves pipes.
static void removeAll(const std::string &path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

/// Removes folders of this user whose process is gone.
static void sweep(llvm::StringRef where) {
  std::error_code ec;
  for (llvm::sys::fs::directory_iterator it(where, ec, false), end; !ec && it != end; it.increment(ec)) {
    if (!llvm::sys::path::filename(it->path()).starts_with(prefix())) continue;
    struct stat info;
    if (lstat(it->path().c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != getuid()) continue;
    int lock = open((it->path() + "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0) continue;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) removeAll(it->path());
    close(lock);
  }
}

llvm::Expected<TemporaryFolder> TemporaryFolder::make() {
  llvm::SmallString<128> where;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, where);
  static std::once_flag once;
  std::call_once(once, [&] { sweep(where); });
  std::string path = (where + "/" + prefix() + "XXXXXX").str();
  if (!mkdtemp(path.data()))
    return failed("cannot make a temporary folder in '" + where + "', which TMPDIR names or the system's default is",
                  errno);
  std::string own = path + "/own", name = path + "/lock";
  int lock = open(own.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (lock < 0 || flock(lock, LOCK_EX) != 0 || rename(own.c_str(), name.c_str()) != 0) {
    int error = errno;
    if (lock >= 0) close(lock);
    removeAll(path);
    return failed("cannot write in the temporary folder '" + path + "'", error);
  }
  return TemporaryFolder(std::move(path), lock);
}

TemporaryFolder::~TemporaryFolder() {
  if (!path.empty()) removeAll(path);
  if (lock >= 0) close(lock);
}

llvm::Error TemporaryFolder::write(llvm::StringRef name, llvm::StringRef bytes) const {
  int file = open(at(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return failed("cannot write '" + at(name) + "'", errno);
  llvm::raw_fd_ostream out(file, /*shouldClose=*/true);
  out << bytes;
  out.close();
  if (!out.has_error()) return llvm::Error::success();
  std::error_code why = out.error();
  out.clear_error();
  return failed("cannot write '" + at(name) + "'", why.value());
}

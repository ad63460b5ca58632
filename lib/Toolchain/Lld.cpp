//===- Lld.cpp: lld in the process ------------------------------------------===//
// Takes:    see Toolchain.h.
// Keeps:    one link at a time, on one thread, which ends with the link: lld keeps sections in memory of the
//           thread, and would keep them for as long as it runs. The output comes through a pipe with a name: for a
//           file lld makes a temporary one, and LLVM never forgets the name of any (RemoveFileOnSignal). So links
//           leave nothing in memory. After a crash inside of lld its state is not known: what comes later is
//           refused.
#include "Guard.h"
#include "astra/Toolchain/TemporaryFolder.h"
#include "astra/Toolchain/Toolchain.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace astra;

static llvm::Error run(llvm::ArrayRef<std::string> arguments) {
  static std::mutex lock;
  static bool broken = false;
  std::lock_guard<std::mutex> hold(lock);
  if (broken) return llvm::createStringError("lld crashed before in this process and links no more");
  std::vector<const char *> all{"ld.lld"};
  for (const std::string &a : arguments) all.push_back(a.c_str());
  std::string text;
  llvm::raw_string_ostream said(text);
  lld::Result result{1, false};
  if (auto e =
          toolchain::guarded("lld", [&] { result = lld::lldMain(all, said, said, {{lld::Gnu, &lld::elf::link}}); })) {
    broken = true;
    return e;
  }
  broken = !result.canRunAgain;
  if (result.retCode && text.empty())
    return llvm::createStringError("lld crashed (code " + llvm::Twine(result.retCode) +
                                   "): please report it with what was compiled");
  if (result.retCode) return llvm::createStringError("lld failed: " + text);
  return llvm::Error::success();
}

namespace {

/// A link on a thread of its own, and the pipe that its output comes through.
class Worker {
public:
  explicit Worker(llvm::ArrayRef<std::string> arguments) : arguments(arguments) {}
  Worker(const Worker &) = delete;
  ~Worker() {
    for (int end : {reader, writer})
      if (end >= 0) close(end);
  }

  /// What lld writes into the file `path`, which is made here.
  llvm::Expected<std::string> outputOf(const std::string &path) {
    // The reader does not wait for a writer; then there is one, so that lld, which may write nothing, is not waited
    // for.
    if (mkfifo(path.c_str(), 0600) != 0 || (reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0 ||
        (writer = open(path.c_str(), O_WRONLY | O_CLOEXEC)) < 0 || fcntl(reader, F_SETFL, 0) != 0)
      return failed("cannot make the pipe '" + path + "'", errno);
    pthread_t thread;
    if (int error = pthread_create(&thread, nullptr, start, this))
      return failed("cannot start a thread for lld", error);
    std::string output;
    while (!ended) readInto(output); // waits
    pthread_join(thread, nullptr);
    fcntl(reader, F_SETFL, O_NONBLOCK);
    while (readInto(output) > 0) {
    }
    if (told) output.pop_back();
    if (*result) return std::move(*result);
    llvm::consumeError(std::move(*result));
    if (output.empty()) return llvm::createStringError("lld gave no file");
    return output;
  }

private:
  static llvm::Error failed(const llvm::Twine &what, int error) {
    return llvm::createStringError(what + ": " + std::generic_category().message(error));
  }
  static void *start(void *self) {
    auto *worker = static_cast<Worker *>(self);
    worker->result.emplace(run(worker->arguments));
    worker->ended = true;
    // Wakes the reader. That nobody writes any more would not: a process that another thread forked has the pipe too.
    // A full pipe wakes it as well, and would make this thread wait for a reader that has seen `ended` and waits for
    // it.
    fcntl(worker->writer, F_SETFL, O_NONBLOCK);
    while (!(worker->told = write(worker->writer, "", 1) == 1) && errno == EINTR) {
    }
    return nullptr;
  }
  ssize_t readInto(std::string &output) {
    char part[65536]; // all that a pipe holds
    ssize_t n = read(reader, part, sizeof part);
    output.append(part, size_t(std::max<ssize_t>(n, 0)));
    return n;
  }

  llvm::ArrayRef<std::string> arguments;
  std::optional<llvm::Error> result;
  std::atomic<bool> ended = false;
  bool told = false; ///< the last byte of the output is the thread's
  int reader = -1, writer = -1;
};

} // namespace

llvm::Expected<std::string> toolchain::link(llvm::ArrayRef<LinkInput> inputs, llvm::ArrayRef<std::string> arguments,
                                            llvm::StringRef script) {
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.takeError();
  std::vector<std::string> all(arguments.begin(), arguments.end());
  all.insert(all.end(), {"--threads=1", "-o", folder->at("linked")});
  if (!script.empty()) {
    if (auto e = folder->write("script.ld", script)) return std::move(e);
    all.insert(all.end(), {"-T", folder->at("script.ld")});
  }
  for (const LinkInput &input : inputs) {
    if (auto e = folder->write(input.name, input.bytes)) return std::move(e);
    all.push_back(folder->at(input.name));
  }
  return Worker(all).outputOf(folder->at("linked"));
}

//===- Lld.cpp: lld in the process ------------------------------------------===//
// Takes:    see Toolchain.h.
// Keeps:    one link at a time, on one thread. After a crash inside of lld its state is not known: what comes later is
//           refused.
#include "Guard.h"
#include "astra/Toolchain/TemporaryFolder.h"
#include "astra/Toolchain/Toolchain.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

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
  uint64_t most = 65536; // bytes of the result: headers and the names of sections, beside what comes in
  for (const LinkInput &input : inputs) {
    most += input.bytes.size();
    if (auto e = folder->write(input.name, input.bytes)) return std::move(e);
    all.push_back(folder->at(input.name));
  }
  if (auto e = folder->hasRoom("linked", most)) return std::move(e);
  if (auto e = run(all)) return std::move(e);
  auto file = llvm::MemoryBuffer::getFile(folder->at("linked"), false, false);
  if (!file) return llvm::createStringError("lld gave no file");
  return (*file)->getBuffer().str();
}

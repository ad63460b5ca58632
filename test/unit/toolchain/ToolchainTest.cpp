//===- ToolchainTest.cpp: clang and lld in the process ----------------------===//
#include "astra/Toolchain/Toolchain.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <atomic>
#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace astra;
using toolchain::CCompiler;

namespace {

constexpr const char good[] = "float twice(float x) { return x + x; }\n"
                              "void *copy(char *d, const char *s) { return __builtin_memcpy(d, s, 4096); }\n";

const std::vector<std::string> &flags() {
  static const std::vector<std::string> list{
      "--target=x86_64-unknown-linux-gnu", "-march=x86-64-v3", "-O2", "-fPIC", "-ffreestanding", "-fno-ident", "-c"};
  return list;
}

std::string compiled(const char *source, std::vector<std::string> all = flags()) {
  auto compiler = CCompiler::make(all);
  if (!compiler) return "error: " + llvm::toString(compiler.takeError());
  auto object = compiler->compile(source);
  return object ? *object : "error: " + llvm::toString(object.takeError());
}

bool isError(const std::string &result, const char *part) {
  return llvm::StringRef(result).starts_with("error: ") && llvm::StringRef(result).contains(part);
}

TEST(Toolchain, TheSameBytesFromEveryThread) {
  std::string alone = compiled(good);
  ASSERT_TRUE(llvm::StringRef(alone).starts_with("\x7f"
                                                 "ELF"))
      << alone;
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  for (std::string &r : results) threads.emplace_back([&r] { r = compiled(good); });
  for (std::thread &t : threads) t.join();
  for (const std::string &r : results) EXPECT_TRUE(r == alone);
}

// What clang-22 gives as a program, headers and GCC of this machine beside it.
TEST(Toolchain, TheBytesOfTheProgram) {
  auto program = llvm::sys::findProgramByName("clang-22");
  if (!program) GTEST_SKIP() << "there is no clang-22";
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("toolchain", folder));
  std::string source = (folder + "/kernels.c").str(), object = (folder + "/kernels.o").str();
  std::error_code ec;
  llvm::raw_fd_ostream(source, ec) << good;
  for (const char *target : {"--target=x86_64-unknown-linux-gnu", "--target=aarch64-unknown-linux-gnu"}) {
    std::vector<std::string> all = flags();
    all[0] = target;
    if (llvm::StringRef(target).contains("aarch64")) all[1] = "-march=armv8-a";
    std::vector<llvm::StringRef> arguments{*program};
    arguments.insert(arguments.end(), all.begin(), all.end());
    arguments.insert(arguments.end(), {source, "-o", object});
    ASSERT_EQ(llvm::sys::ExecuteAndWait(*program, arguments), 0);
    auto file = llvm::MemoryBuffer::getFile(object, false, false);
    ASSERT_TRUE(bool(file));
    EXPECT_TRUE((*file)->getBuffer() == compiled(good, all)) << target;
  }
  llvm::sys::fs::remove_directories(folder);
}

TEST(Toolchain, WhatIsWrongIsSaid) {
  EXPECT_TRUE(isError(compiled("int f(void) { return }"), "kernels.c:1:22: error: expected expression"));
  EXPECT_TRUE(isError(compiled("#include <stdint.h>\n"), "'stdint.h' file not found"));
  std::vector<std::string> unknown = flags();
  unknown.push_back("--no-such-flag");
  EXPECT_TRUE(isError(compiled(good, unknown), "no-such-flag"));
}

// The process goes on, and so does the next compilation.
TEST(Toolchain, CrashesAndFatalErrorsAreErrors) {
  std::string before = compiled(good);
  EXPECT_TRUE(isError(compiled("#pragma clang __debug llvm_fatal_error\n"), "clang failed: "));
  EXPECT_TRUE(isError(compiled("#pragma clang __debug crash\n"), "clang crashed (code "));
  std::string other;
  std::thread([&] { other = compiled("#pragma clang __debug crash\n"); }).join();
  EXPECT_TRUE(isError(other, "clang crashed (code "));
  EXPECT_TRUE(compiled(good) == before);
}

TEST(Toolchain, LinksAfterAnError) {
  std::string object = compiled("int other(void); int f(void) { return other(); }"), plain = compiled(good);
  for (int i = 0; i < 2; ++i) {
    auto wrong = toolchain::link({{"a.o", object}}, {"-static", "--no-undefined", "-e", "0"});
    ASSERT_FALSE(bool(wrong));
    std::string text = llvm::toString(wrong.takeError());
    EXPECT_NE(text.find("undefined symbol: other"), std::string::npos) << text;
    auto right = toolchain::link({{"a.o", plain}}, {"-shared", "--build-id=none"});
    EXPECT_TRUE(bool(right)) << llvm::toString(right.takeError());
  }
}

TEST(Toolchain, LinksFromSeveralThreads) {
  std::string object = compiled(good), alone;
  alone = llvm::cantFail(toolchain::link({{"a.o", object}}, {"-shared", "--build-id=none"}));
  std::vector<std::thread> threads;
  std::vector<std::string> results(4);
  for (std::string &r : results)
    threads.emplace_back(
        [&] { r = llvm::cantFail(toolchain::link({{"a.o", object}}, {"-shared", "--build-id=none"})); });
  for (std::thread &t : threads) t.join();
  for (const std::string &r : results) EXPECT_TRUE(r == alone);
}

// More than a pipe holds, and while a process that was forked meanwhile has all that this one has open.
TEST(Toolchain, LinksWhatIsLargeWhileOthersFork) {
  std::string object = compiled("const char large[1 << 20] = {1};"), first;
  std::atomic<bool> done = false;
  std::thread other([&] {
    std::vector<pid_t> children;
    while (!done && children.size() < 50) {
      pid_t child = fork();
      if (!child) pause();
      children.push_back(child);
      usleep(2000);
    }
    for (pid_t child : children) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  });
  for (int i = 0; i < 10; ++i) {
    auto linked = llvm::cantFail(toolchain::link({{"a.o", object}}, {"-shared", "--build-id=none"}));
    EXPECT_GT(linked.size(), size_t(1) << 20);
    if (first.empty()) first = linked;
    EXPECT_TRUE(linked == first);
  }
  done = true;
  other.join();
}

// Whole pages, the last of which fill the pipe: nobody waits for ever. Other threads take the CPUs meanwhile, so that
// the reader is late.
TEST(Toolchain, LinksWhatFillsThePipe) {
  const std::vector<std::string> shared{"-shared", "--build-id=none"};
  std::string object;
  for (size_t size = 0, bytes = 1 << 17; size % 65536 || !size; bytes += 65536 - size % 65536) {
    object = compiled(("const char large[" + std::to_string(bytes) + "] = {1};").c_str());
    size = llvm::cantFail(toolchain::link({{"a.o", object}}, shared)).size();
  }
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
    others.emplace_back([&] {
      while (!done) {
      }
    });
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(llvm::cantFail(toolchain::link({{"a.o", object}}, shared)).size() % 65536, 0u);
  done = true;
  for (std::thread &t : others) t.join();
}

} // namespace

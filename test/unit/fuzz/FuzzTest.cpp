//===- FuzzTest.cpp: a short, seeded run of the fuzzer's alterations --------===//
// Takes:    the folder that make_cases.py wrote; without it there is nothing to alter.
// Gives:    each conformance case altered a few times, alone and with parts of another; every promise kept.
// Keeps:    seeds: a failure names the case and the round, and leaves the model as a file; so does a crash.
#include "Check.h"
#include "Mutate.h"
#include "onnx.pb.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace astra::fuzz {
namespace {

std::vector<std::string> listCases() {
  std::vector<std::string> paths;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator i(ASTRA_ONNX_CASES, code), end; !code && i != end; i.increment(code))
    paths.push_back(i->path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool read(const std::string &folder, onnx::proto::Model &model) {
  std::ifstream file(folder + "/model.onnx", std::ios::binary);
  return model.ParseFromIstream(&file) && model.ByteSizeLong() < 1 << 16;
}

const std::string *underTest;

void leaveModel(int crash) {
  if (int file = open("fuzz-crash.onnx", O_WRONLY | O_CREAT | O_TRUNC, 0666); file >= 0 && underTest) {
    ssize_t written = write(file, underTest->data(), underTest->size());
    (void)written;
  }
  std::signal(crash, SIG_DFL);
  std::raise(crash);
}

TEST(Fuzz, EveryCaseAltered) {
  const std::vector<std::string> cases = listCases();
  const unsigned rounds = std::getenv("ASTRA_NIGHTLY") ? 400 : 40;
  for (int crash : {SIGSEGV, SIGABRT, SIGFPE}) std::signal(crash, leaveModel);
  for (size_t i = 0; i < cases.size(); ++i)
    for (unsigned round = 0; round < rounds; ++round) {
      onnx::proto::Model model, donor;
      if (!read(cases[i], model)) continue;
      uint32_t seed = uint32_t(i * 400 + round);
      bool crossed = round % 2 && read(cases[seed * 2654435761u % cases.size()], donor);
      for (unsigned step = 0; step <= round / 8; ++step)
        mutate(model, crossed ? &donor : nullptr, seed + step * 1000003);
      std::string bytes = model.SerializePartialAsString();
      underTest = &bytes;
      if (std::string broken = brokenPromise(bytes); !broken.empty()) {
        std::string left = "fuzz-" + llvm::sys::path::filename(cases[i]).str() + "-" + std::to_string(round) + ".onnx";
        std::ofstream(left, std::ios::binary) << bytes;
        ADD_FAILURE() << cases[i] << ", round " << round << " (" << left << "): " << broken;
      }
    }
}

} // namespace
} // namespace astra::fuzz

//===- FuzzTest.cpp: altered StableHLO programs ----------------------------===//
// Takes:    the programs of test/stablehlo/sample.
// Gives:    a check that no prefix and no alteration of them stops the importer otherwise than by a sentence.
#include "astra/Import/StableHLO.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

namespace astra {
namespace {

std::vector<std::string> sample(size_t longest) {
  std::vector<std::string> paths, texts;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator i(ASTRA_STABLEHLO_SAMPLE, error), end; i != end && !error; i.increment(error))
    if (llvm::sys::path::extension(i->path()) == ".mlir") paths.push_back(i->path());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths)
    if (auto file = llvm::MemoryBuffer::getFile(path); file && (*file)->getBufferSize() <= longest)
      texts.push_back((*file)->getBuffer().str());
  return texts;
}

const StableHLOOptions options = {{{"*", 1, 4}}};

void tryImport(const std::string &text) {
  llvm::Expected<Module> m = importStableHLO(text, "m.mlir", options);
  if (m) return;
  std::string sentence = llvm::toString(m.takeError());
  EXPECT_EQ(sentence.substr(0, 7), "m.mlir:") << sentence;
}

TEST(StableHLOFuzz, EveryPrefixOfShortPrograms) {
  std::vector<std::string> texts = sample(3000);
  ASSERT_GE(texts.size(), 5u);
  for (const std::string &text : texts)
    for (size_t length = 0; length < text.size(); length += 7) tryImport(text.substr(0, length));
}

/// Words of a program in the places of others: numbers, names of ops, types, lines.
TEST(StableHLOFuzz, Alterations) {
  std::vector<std::string> texts = sample(12000);
  ASSERT_GE(texts.size(), 20u);
  const char *numbers[] = {"0", "-1", "1", "2", "7", "99999999999", "-9223372036854775808", "?", "x", "1099511627776"};
  const char *words[] = {"i1", "i8", "ui64", "f16", "f64", "complex<f32>", "index", "tensor<2xf32>", "dense<1>", "add"};
  const int rounds = std::getenv("ASTRA_NIGHTLY") ? 100000 : 3000;
  std::mt19937 random(7);
  auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (int round = 0; round < rounds; ++round) {
    std::string text = texts[below(texts.size())];
    for (size_t edits = 1 + below(3); edits > 0; --edits) {
      size_t at = below(text.size());
      switch (below(6)) {
      case 0: // a number
        at = text.find_first_of("0123456789", at);
        if (at != std::string::npos)
          text.replace(at, text.find_first_not_of("0123456789", at) - at, numbers[below(10)]);
        break;
      case 1: // a type
        at = text.find("f32", at);
        if (at != std::string::npos) text.replace(at, 3, words[below(10)]);
        break;
      case 2: text.erase(at, below(20)); break;
      case 3: text[at] = char(below(128)); break;
      case 4: { // a line twice, or not at all
        size_t begin = text.rfind('\n', at), end = text.find('\n', at);
        if (begin == std::string::npos || end == std::string::npos || begin == end) break;
        std::string line = text.substr(begin, end - begin);
        below(2) ? text.insert(begin, line) : text.erase(begin, end - begin);
        break;
      }
      case 5: { // an operand in the place of another
        size_t from = text.find('%', below(text.size())), to = text.find('%', at);
        if (from == std::string::npos || to == std::string::npos) break;
        std::string name = text.substr(from, text.find_first_of(" ,):#", from) - from);
        text.replace(to, text.find_first_of(" ,):#", to) - to, name);
      }
      }
      if (text.empty()) text = " ";
    }
    tryImport(text);
    if (HasFailure()) {
      ADD_FAILURE() << text;
      return;
    }
  }
}

} // namespace
} // namespace astra

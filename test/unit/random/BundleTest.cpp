//===- BundleTest.cpp: bundles of random modules, run through the C API ----===//
// Takes:    seeds: ASTRA_RANDOM_BUNDLES of them (40 unless set; 1,000 under ASTRA_NIGHTLY) from ASTRA_RANDOM_SEED on (0
//           unless set), 20 entries to a bundle.
// Gives:    for each CPU level that this machine runs or emulates: the bytes that compiled code gives are the
//           evaluator's, with 1 thread and with 3; and every kernel stays in its buffers at the corners of its dims.
#include "RandomGraph.h"
#include "RunBundle.h"
#include "astra/Numerics/EvalFunctions.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "gtest/gtest.h"
#include <cstdlib>

using namespace astra;
using namespace astra::test;

namespace {
uint64_t setting(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// What differs between two results, or nothing.
std::string difference(const Entry &e, llvm::Expected<EvalResult> want, const BundleResult &answer) {
  if (!want) return "the evaluator refuses: " + llvm::toString(want.takeError());
  if (!answer.refusal.empty()) return "refused: " + answer.refusal;
  const EvalResult *got = &answer.result;
  for (size_t i = 0; i < want->outputs.size(); ++i)
    if (got->outputs[i] != want->outputs[i]) return "output " + std::to_string(i) + " differs";
  for (const StateUpdate &u : e.updates)
    if (got->states.at(u.state) != want->states[u.state]) return "state " + u.state + " differs";
  return "";
}

class RandomBundles : public testing::TestWithParam<const char *> {
protected:
  llvm::SmallString<128> path;
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("random", "astra", path)); }
  void TearDown() override { llvm::sys::fs::remove(path); }

  /// Compiles m and compares each entry; gives the first difference with the entry's number, or nothing.
  std::optional<std::pair<size_t, std::string>> compare(const Module &source, llvm::ArrayRef<EvalInputs> inputs) {
    const Target &target = *targetNamed(GetParam());
    Module m = source;
    EvalOptions options;
    options.function = evalFunction;
    if (auto e = prepare(m)) return std::pair(size_t(0), llvm::toString(std::move(e)));
    if (auto e = writeBundleOf(m, target, path)) return std::pair(size_t(0), llvm::toString(std::move(e)));
    std::vector<BundleCall> calls;
    for (size_t i = 0; i < m.entries.size(); ++i) calls.push_back({&m.entries[i], &inputs[i]});
    for (unsigned threads : {1u, 3u}) {
      auto results = runCalls(path, target, threads, m, calls);
      if (!results) return std::pair(size_t(0), llvm::toString(results.takeError()));
      for (size_t i = 0; i < m.entries.size(); ++i) {
        std::string what =
            difference(m.entries[i], evalEntry(source, source.entries[i], inputs[i], options), (*results)[i]);
        if (!what.empty()) return std::pair(i, what);
      }
    }
    return std::nullopt;
  }
};

TEST_P(RandomBundles, GiveTheEvaluatorsBytes) {
  if (!canRun(*targetNamed(GetParam()))) GTEST_SKIP() << "this machine does not run " << GetParam();
  uint64_t first = setting("ASTRA_RANDOM_SEED", 0),
           end = first + setting("ASTRA_RANDOM_BUNDLES", std::getenv("ASTRA_NIGHTLY") ? 1000 : 40);
  guard::CheckResult all;
  for (uint64_t begin = first; begin < end && !HasFailure(); begin += 20) {
    Module m;
    m.name = "random";
    std::vector<EvalInputs> inputs;
    for (uint64_t seed = begin; seed < std::min(end, begin + 20); ++seed)
      inputs.push_back(addRandomEntry(m, "e" + std::to_string(seed), seed));
    auto wrong = compare(m, inputs);
    if (!wrong) {
      auto guarded = runGuarded(path, *targetNamed(GetParam()));
      ASSERT_TRUE(bool(guarded)) << llvm::toString(guarded.takeError());
      for (const std::string &finding : guarded->findings)
        ADD_FAILURE() << finding << "\nthe bundle has the seeds from " << begin;
      all += *guarded;
      continue;
    }
    // Which entry, if one alone fails: that one, shrunk.
    for (uint64_t seed = begin; seed < begin + inputs.size(); ++seed) {
      auto fails = [&](const RandomCase &c) {
        auto d = compare(c.module, c.inputs);
        return d && !llvm::StringRef(d->second).starts_with("the evaluator refuses"); // a cut may take what bound a dim
      };
      RandomCase c = randomCase(seed);
      if (!fails(c)) continue;
      RandomCase small = shrink(c, fails);
      ADD_FAILURE() << compare(small.module, small.inputs)->second << "\n"
                    << text(small) << "ASTRA_RANDOM_SEED=" << seed
                    << " ASTRA_RANDOM_BUNDLES=1 build/bin/unit-random-bundle";
      break;
    }
    if (!HasFailure())
      ADD_FAILURE() << wrong->second << ", in the bundle of the seeds from " << begin << ", entry " << wrong->first;
  }
  std::printf("%s\n", all.summary().c_str());
}
INSTANTIATE_TEST_SUITE_P(Levels, RandomBundles, testing::Values("cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64"),
                         [](const auto &i) { return llvm::StringRef(i.param).take_back(2).str(); });
} // namespace

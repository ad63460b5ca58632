//===- VectorBundleTest.cpp: the committed vectors through bundles ---------===//
// Takes:    test/vectors/*.vec, 100 cases to a bundle.
// Gives:    for each CPU level that this machine runs or emulates: compiled code gives the expected bytes, for every op
//           and dtype that has a vector.
#include "../eval/VectorFile.h"
#include "RunBundle.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace astra;
using namespace astra::test;

namespace {
class VectorBundles : public testing::TestWithParam<std::tuple<const char *, const char *>> {
protected:
  llvm::SmallString<128> path;
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("vectors", "astra", path)); }
  void TearDown() override { llvm::sys::fs::remove(path); }

  void check(llvm::ArrayRef<VectorCase> cases, const Target &target) {
    Module m;
    for (const VectorCase &v : cases) {
      auto node = v.node(m.ctx());
      ASSERT_TRUE(bool(node)) << v.line << "\n" << llvm::toString(node.takeError());
      Entry e{"e" + std::to_string(m.entries.size()), {}, {{"y", *node}}, {}};
      Builder b(m.ctx());
      for (const Tensor &t : v.inputs) {
        llvm::SmallVector<UOpRef> shape;
        for (int64_t d : t.shape) shape.push_back(b.idx(d));
        e.inputs.push_back({"x" + std::to_string(e.inputs.size()), b.arg(e.inputs.size(), t.dtype, shape)});
      }
      m.entries.push_back(std::move(e));
    }
    auto refused = [&](llvm::Error e) { ADD_FAILURE() << cases[0].line << " ...\n" << llvm::toString(std::move(e)); };
    if (auto e = prepare(m)) return refused(std::move(e));
    if (auto e = writeBundleOf(m, target, path)) return refused(std::move(e));
    std::vector<EvalInputs> inputs;
    std::vector<BundleCall> calls;
    for (const VectorCase &v : cases) inputs.push_back({v.inputs, {}, {}, {}});
    for (size_t i = 0; i < cases.size(); ++i) calls.push_back({&m.entries[i], &inputs[i]});
    auto results = runCalls(path, target, 1, m, calls);
    if (!results) return refused(results.takeError());
    for (size_t i = 0; i < cases.size(); ++i) {
      Tensor want = cases[i].want;
      canonicalizeNaN(want); // as every output of an entry (N6)
      const BundleResult &got = (*results)[i];
      if (!got.refusal.empty())
        ADD_FAILURE() << cases[i].line << "\n" << got.refusal;
      else if (got.result.outputs[0] != want)
        ADD_FAILURE() << cases[i].line << "\n" << VectorFile::difference(got.result.outputs[0], want, cases[i].inputs);
    }
  }
};

TEST_P(VectorBundles, AreGivenByteForByte) {
  auto [name, level] = GetParam();
  if (!canRun(*targetNamed(level))) GTEST_SKIP() << "this machine does not run " << level;
  // unit-codegen-c has every elementwise op on every type, each level and width.
  bool elementwise = llvm::is_contained({"floats", "integers", "conversions"}, llvm::StringRef(name));
  if (elementwise && llvm::StringRef(level) != "cpu:x86-64-v3" && !getenv("ASTRA_NIGHTLY"))
    GTEST_SKIP() << "one level a day";
  VectorFile file(std::string(ASTRA_VECTORS "/") + name + ".vec");
  std::vector<VectorCase> batch;
  bool more = true;
  while (more) {
    auto v = file.next();
    more = v.has_value();
    if (v) batch.push_back(std::move(*v));
    if (batch.empty() || (more && batch.size() < 100)) continue;
    check(batch, *targetNamed(level));
    batch.clear();
  }
}
INSTANTIATE_TEST_SUITE_P(Levels, VectorBundles,
                         testing::Combine(testing::Values("floats", "integers", "conversions", "leaves", "movement",
                                                          "reductions", "cumulations", "contractions", "indexing",
                                                          "random", "complexes"),
                                          testing::Values("cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64")),
                         [](const auto &i) {
                           llvm::StringRef level = std::get<1>(i.param);
                           return std::string(std::get<0>(i.param)) + "_" +
                                  level.rsplit(level.contains('-') ? '-' : ':').second.str();
                         });
} // namespace

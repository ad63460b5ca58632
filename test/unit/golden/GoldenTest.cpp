//===- GoldenTest.cpp: bits that no later compiler may change --------------===//
// Takes:    test/golden/hashes.txt: lines "FILE DIMS SHA256", DIMS as n=5,m=3 or -. The file only grows: a line that is
//           there is a promise of astra-num/1.
// Gives:    one test per line: the graph's outputs and new states, on inputs that are a function of their types alone,
//           have this hash, both as it stands and after the numerics stage and all rewriting.
//
// To add a graph: put it into test/golden, add a line with its dims and `?` for the hash, and put what the test reports
// there.
#include "astra/IR/Text.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "gtest/gtest.h"
#include <fstream>
#include <sstream>

using namespace astra;

namespace {
struct Line {
  std::string file, dims, hash;
};
std::vector<Line> lines() {
  std::vector<Line> all;
  std::ifstream in(ASTRA_GOLDEN "/hashes.txt");
  for (std::string text; std::getline(in, text);) {
    std::istringstream words(text);
    Line l;
    if (text.rfind("//", 0) != 0 && words >> l.file >> l.dims >> l.hash) all.push_back(l);
  }
  return all;
}

/// Floats of 16 exponents around 1 and sometimes an edge; small integers, so that they index and divide. Frozen: hashes
/// depend on it.
Tensor inputOf(UOpRef node, const std::map<std::string, int64_t> &dims, uint64_t state) {
  Tensor t{node->dtype, {}, {}};
  for (UOpRef d : node->shape)
    t.shape.push_back(*idxEvaluate(d, [&](UOpRef x) {
      auto it = dims.find(x->str.str());
      return x->op == Op::Dim && it != dims.end() ? std::optional(it->second) : std::nullopt;
    }));
  const DTypeInfo &f = info(t.dtype);
  for (int64_t i = 0, n = t.count(); i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t r = state >> 16, bits;
    if (f.exponentBits) {
      uint64_t sign = (r & 1) << (f.bits - 1), one = (1ull << (f.exponentBits - 1)) - 1, m = f.mantissaBits;
      uint64_t edges[] = {0, 1, ((one * 2 + 1) << m), (one * 2 << m) + 1, one << m, 1ull << m};
      bits = sign | (state >> 58 ? (one - 8 + (r >> 4) % 16) << m | (r >> 8 & ((1ull << m) - 1)) : edges[(r >> 4) % 6]);
    } else
      bits = t.dtype == DType::Bool ? r & 1 : state >> 59 ? (r >> 4) % 8 : state ^ state >> 32;
    for (unsigned k = 0; k < byteSize(t.dtype); ++k) t.bytes.push_back(bits >> 8 * k);
  }
  return t;
}

std::string hashOf(const Module &m, const EvalInputs &in) {
  EvalOptions options;
  options.function = evalFunction;
  auto r = evalEntry(m, m.entries[0], in, options);
  if (!r) return llvm::toString(r.takeError());
  llvm::SHA256 sha;
  for (const Tensor &t : r->outputs) sha.update(t.bytes);
  for (auto &[name, t] : r->states) sha.update(t.bytes);
  return llvm::toHex(sha.final(), true);
}

class Golden : public testing::TestWithParam<Line> {};

TEST_P(Golden, KeepsItsBits) {
  const Line &l = GetParam();
  std::ifstream file(ASTRA_GOLDEN "/" + l.file);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  auto m = parse(text, l.file);
  ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
  EvalInputs in;
  llvm::SmallVector<llvm::StringRef> dims;
  if (l.dims != "-") llvm::StringRef(l.dims).split(dims, ',');
  for (llvm::StringRef d : dims) {
    auto [name, value] = d.split('=');
    in.dims[name.str()] = std::stoll(value.str());
  }
  for (const Value &v : m->entries[0].inputs) in.inputs.push_back(inputOf(v.value, in.dims, in.inputs.size() + 1));
  EXPECT_EQ(hashOf(*m, in), l.hash);
  ASSERT_FALSE(bool(runNumerics(*m)));
  RewriteOptions options;
  auto roots = rewrite(m->ctx(), m->roots(), graphRules, options);
  ASSERT_TRUE(bool(roots)) << llvm::toString(roots.takeError());
  auto it = roots->begin();
  for (Value &v : m->entries[0].outputs) v.value = *it++;
  for (StateUpdate &u : m->entries[0].updates) u.value = *it++;
  EXPECT_EQ(hashOf(*m, in), l.hash) << "after the numerics stage and rewriting";
}
INSTANTIATE_TEST_SUITE_P(Graphs, Golden, testing::ValuesIn(lines()), [](const auto &i) {
  std::string name = i.param.file.substr(0, i.param.file.find('.'));
  for (char &c : name)
    if (c == '-') c = '_';
  return name;
});

TEST(GoldenList, HasEveryLineItEverHad) { EXPECT_GE(lines().size(), 28u); }
} // namespace

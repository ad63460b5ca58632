//===- VectorTest.cpp: the committed vectors, byte for byte ----------------===//
// Takes:    test/vectors/*.vec (its format: test/vectors/make.py).
// Gives:    one test per file: the evaluator gives the expected bytes, NaNs compared in canonical form (N6); and a test
//           that every op of the table and every dtype of every elementwise op has a vector.
#include "VectorFile.h"
#include "gtest/gtest.h"
#include <set>

using namespace astra;
using namespace astra::test;

namespace {
/// Evaluates every case of a file; gives how many there are, and adds "op dtype", "op source result" to `seen`.
int run(const std::string &name, std::set<std::string> &seen) {
  VectorFile file(std::string(ASTRA_VECTORS "/") + name + ".vec");
  EXPECT_TRUE(file.good());
  int cases = 0;
  for (auto v = file.next(); v; v = file.next(), ++cases) {
    Context c;
    auto node = v->node(c);
    if (!node) {
      ADD_FAILURE() << v->line << "\n" << llvm::toString(node.takeError());
      continue;
    }
    auto got = evalNodes({*node}, {v->inputs, {}, {}, {}});
    if (!got) {
      ADD_FAILURE() << v->line << "\n" << llvm::toString(got.takeError());
      continue;
    }
    std::string op = info(v->op).mnemonic,
                source = info(v->inputs.empty() ? v->want.dtype : v->inputs.back().dtype).text;
    seen.insert({op, op + " " + source, op + " " + source + " " + info(v->want.dtype).text});
    if (v->op != Op::Bitcast) canonicalizeNaN((*got)[0]);
    if ((*got)[0] != v->want) ADD_FAILURE() << v->line << "\n" << VectorFile::difference((*got)[0], v->want, v->inputs);
  }
  return cases;
}
const char *const files[] = {"floats",      "integers",     "conversions", "leaves", "movement", "reductions",
                             "cumulations", "contractions", "indexing",    "random", "complexes"};

class Vectors : public testing::TestWithParam<const char *> {};

TEST_P(Vectors, AreGivenByteForByte) {
  std::set<std::string> seen;
  EXPECT_GT(run(GetParam(), seen), 10);
}
INSTANTIATE_TEST_SUITE_P(Files, Vectors, testing::ValuesIn(files), [](const auto &i) { return std::string(i.param); });

TEST(VectorsCover, EveryOpAndEveryDtypeOfElementwiseOps) {
  std::set<std::string> seen;
  for (const char *name : files) run(name, seen);
  const std::set<Op> elsewhere = {Op::Arg,    Op::Param, Op::State, Op::Dim,
                                  Op::Extent, Op::Tap,   Op::After, Op::WithGradient, // EvalTest.cpp
                                  Op::Place};                                         // test/IR/Custom
  for (unsigned i = 0; i < numOps; ++i) {
    Op op = Op(i);
    if (isCollective(op) || op == Op::Reshard) continue; // test/unit/distribute
    if (has(op, Function) || has(op, Control) || has(op, KernelLevel) || elsewhere.count(op)) continue;
    EXPECT_TRUE(seen.count(info(op).mnemonic)) << info(op).mnemonic << " has no vector";
    if (!has(op, Elementwise)) continue;
    for (unsigned s = 0; s < numDTypes; ++s)
      for (unsigned r = 0; r < numDTypes; ++r) {
        Context c;
        Builder b(c);
        if (DType(s) == DType::Void || DType(s) == DType::Index || DType(r) == DType::Void || s == r) continue;
        UOpRef x = b.arg(0, DType(s), {});
        llvm::SmallVector<UOpRef> src(info(op).sources, x);
        llvm::SmallVector<int64_t> ints;
        if (op == Op::Select) src[0] = b.arg(1, DType::Bool, {});
        if (op == Op::Scale2) src[1] = b.arg(1, DType::I32, {});
        if (op == Op::Cast) ints.push_back(0);
        if (op == Op::Lookup16) ints.assign(16, 0);
        auto node = c.tryMake(op, src, ints, {}, DType(r));
        if (!node) {
          llvm::consumeError(node.takeError());
          continue;
        }
        bool converts = op == Op::Cast || op == Op::Bitcast || op == Op::Lookup16;
        std::string key = std::string(info(op).mnemonic) + " " + info(op == Op::Scale2 ? DType::I32 : DType(s)).text;
        if (op == Op::Scale2) key += std::string(" ") + info(DType(s)).text;
        if (converts) key += std::string(" ") + info(DType(r)).text;
        EXPECT_TRUE(seen.count(key)) << key << " has no vector";
      }
  }
}
} // namespace

//===- RecomputeTest.cpp: gradients over values that are computed again ----===//
#include "Check.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/Numerics/Random.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace astra;
using namespace astra::test;

namespace {
struct Recomputed : testing::Test {
  Context c;
  Builder b{c};

  std::vector<UOpRef> derivatives(UOpRef y, std::vector<UOpRef> wrt, unsigned segments) {
    auto d = vjp(c, y, b.lit(y->dtype, 1), wrt, nullptr, {}, segments);
    if (d) return d->derivatives;
    ADD_FAILURE() << llvm::toString(d.takeError());
    return {};
  }
  size_t count(llvm::ArrayRef<UOpRef> roots, Op op) {
    return llvm::count_if(topoSort(roots), [&](UOpRef n) { return n->op == op; });
  }
};
} // namespace

// Layers of tanh, with dropout between them: equal bits, and each segment but the last has its nodes twice.
TEST_F(Recomputed, HasTheSameBits) {
  std::vector<UOpRef> x = arguments(b, {{8, 4}, {4, 4}, {4, 4}, {4, 4}, {4, 4}, {4, 4}, {4, 4}}), wrt = x;
  UOpRef h = x[0], seed = b.bits(DType::U32, 7);
  for (uint32_t layer = 1; layer < x.size(); ++layer) {
    h = b.un(Op::Tanh, b.matmul(h, x[layer]));
    UOpRef u = randomUniform(b, seed, b.bits(DType::U32, layer), DType::F64, h->shape);
    h = b.select(b.lt(u, b.splat(b.lit(DType::F64, 0.25), h->shape)), b.splat(b.lit(DType::F64, 0), h->shape), h);
  }
  UOpRef y = b.reduce(ReduceKind::Sum, b.mul(h, h), {0, 1});
  std::vector<Tensor> in;
  for (size_t i = 0; i < x.size(); ++i) {
    Array values(i ? 16 : 32);
    for (size_t k = 0; k < values.size(); ++k) values[k] = double((k * 7 + i * 5) % 11) / 7 - 0.6;
    in.push_back(tensorOf(i ? std::vector<int64_t>{4, 4} : std::vector<int64_t>{8, 4}, values));
  }
  std::vector<UOpRef> plain = derivatives(y, wrt, 1);
  std::vector<Array> expected = evaluate(plain, in);
  EXPECT_EQ(count(plain, Op::After), 0u);
  for (unsigned segments : {2u, 3u, 6u, 100u}) {
    std::vector<UOpRef> again = derivatives(y, wrt, segments);
    std::vector<Array> got = evaluate(again, in);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].size(), expected[i].size());
      EXPECT_EQ(memcmp(got[i].data(), expected[i].data(), got[i].size() * 8), 0) << segments << " segments, " << i;
    }
    EXPECT_GT(count(again, Op::After), 0u) << segments;
    EXPECT_GT(count(again, Op::Tanh), count(plain, Op::Tanh)) << segments;
    if (segments < 100) { // there every node is a segment, and nothing lies inside of one
      EXPECT_GT(count(again, Op::Random), count(plain, Op::Random)) << segments << ": what was drawn is kept";
    }
  }
}

// What is kept is what a later segment reads; the cut goes where the least does: behind each layer's narrow end.
TEST_F(Recomputed, CutsWhereLittleCrosses) {
  std::vector<UOpRef> x = arguments(b, {{8, 2}, {2, 64}, {64, 2}, {2, 64}, {64, 2}});
  UOpRef h = x[0];
  for (int layer = 0; layer < 2; ++layer) {
    h = b.un(Op::Tanh, b.matmul(h, x[1 + 2 * layer]));
    h = b.un(Op::Tanh, b.matmul(h, x[2 + 2 * layer]));
  }
  std::vector<UOpRef> again = derivatives(b.reduce(ReduceKind::Sum, h, {0, 1}), x, 2);
  for (UOpRef n : topoSort(again)) {
    if (!n->is(Op::After) || !n->rank() || n->src[0]->is(Op::Arg)) continue;
    EXPECT_EQ(n->shape[1]->constIndex(), 2) << "a wide value is kept";
  }
}

TEST_F(Recomputed, LongChain) { // no recursion, no quadratic pass
  UOpRef x = b.arg(0, DType::F64, {}), y = x;
  for (int i = 0; i < 100000; ++i) y = b.add(b.mul(y, x), x);
  EXPECT_EQ(derivatives(y, {x}, 50).size(), 1u);
}

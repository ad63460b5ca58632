//===- GraphTest.cpp: rules on graphs, the driver --------------------------===//
#include "astra/IR/Builder.h"
#include "astra/Rewrite/Rewrite.h"
#include <ctime>
#include <gtest/gtest.h>

using namespace astra;

namespace {
struct GraphRewrite : testing::Test {
  Context c;
  Builder b{c};
  UOpRef n = b.dim("n", 1, 64);
  UOpRef x = b.arg(0, DType::F32, {n, b.idx(6)}), y = b.arg(1, DType::F32, {n, b.idx(6)});
  UOpRef u = b.arg(2, DType::I32, {n}), v = b.arg(3, DType::I32, {n});
  UOpRef run(UOpRef root, RewriteOptions options = {}, unsigned sets = graphRules) {
    auto r = rewrite(c, root, sets, options);
    if (!r) ADD_FAILURE() << llvm::toString(r.takeError());
    return r ? r->front() : nullptr;
  }
  UOpRef f(double value) { return b.lit(DType::F32, value); }
  UOpRef i(int64_t value) { return b.litInt(DType::I32, value); }
};
} // namespace

TEST_F(GraphRewrite, FloatsKeepTheirBits) {
  EXPECT_EQ(run(b.add(x, f(-0.0))), x);
  EXPECT_EQ(run(b.add(x, f(0.0))), b.add(x, f(0.0)));
  EXPECT_EQ(run(b.mul(f(1), x)), x);
  EXPECT_EQ(run(b.div(x, f(4))), b.mul(x, f(0.25)));
  EXPECT_EQ(run(b.div(x, f(3))), b.div(x, f(3)));
  EXPECT_EQ(run(b.sub(x, x)), b.sub(x, x));
  EXPECT_EQ(run(b.mul(b.un(Op::Neg, x), b.un(Op::Neg, y))), b.mul(x, y));
}

TEST_F(GraphRewrite, IntegersAreARing) {
  EXPECT_EQ(run(b.sub(u, u)), b.splat(i(0), u->shape));
  EXPECT_EQ(run(b.add(b.mul(u, v), b.mul(v, u))), run(b.mul(b.mul(u, v), i(2))));
  EXPECT_EQ(run(b.add(b.add(u, i(5)), i(-5))), u);
  EXPECT_EQ(run(b.bin(Op::FloorDiv, u, i(8))), b.bin(Op::Shr, u, i(3)));
  EXPECT_EQ(run(b.bin(Op::Mod, u, i(8))), b.bin(Op::And, u, i(7)));
  EXPECT_EQ(run(b.un(Op::Not, b.lt(u, v))), b.bin(Op::Le, v, u));
}

TEST_F(GraphRewrite, LiteralsFold) {
  EXPECT_EQ(run(b.add(b.splat(f(1.5), x->shape), b.splat(f(2), x->shape))), b.splat(f(3.5), x->shape));
  EXPECT_EQ(run(b.select(b.splat(b.bits(DType::Bool, 1), x->shape), x, y)), x);
  EXPECT_EQ(run(b.add(x, b.permute(b.splat(f(-0.0), {b.idx(6), n}), {1, 0}))), x);
}

TEST_F(GraphRewrite, MovementMerges) {
  UOpRef six = b.idx(6), all = idxMul(c, n, six);
  EXPECT_EQ(run(b.reshape(b.reshape(x, {all}), x->shape)), x);
  EXPECT_EQ(run(b.permute(b.permute(x, {1, 0}), {1, 0})), x);
  EXPECT_EQ(run(b.flip(b.flip(x, {0, 1}), {1})), b.flip(x, {0}));
  UOpRef zero = b.idx(0), one = b.idx(1), two = b.idx(2);
  UOpRef padded = b.pad(x, {zero, one}, {one, two}, 7);
  EXPECT_EQ(run(b.shrink(padded, {zero, one}, x->shape)), x);
  EXPECT_EQ(run(b.pad(padded, {one, one}, {zero, zero}, 7)), b.pad(x, {one, two}, {one, two}, 7));
  UOpRef row = b.arg(4, DType::F32, {b.idx(1), six});
  EXPECT_EQ(run(b.permute(b.expand(row, {n, six}), {1, 0})), b.expand(b.permute(row, {1, 0}), {six, n}));
}

TEST_F(GraphRewrite, CastsMerge) {
  EXPECT_EQ(run(b.cast(b.cast(u, DType::I64), DType::I32)), u);
  EXPECT_EQ(run(b.cast(b.cast(u, DType::F64), DType::F32)), b.cast(u, DType::F32));
  UOpRef lossy = b.cast(b.cast(x, DType::F16), DType::F32);
  EXPECT_EQ(run(lossy), lossy);
}

TEST_F(GraphRewrite, GatesOfLoadsAndStores) {
  UOpRef size = b.idx(32), from = c.make(Op::Buffer, {size}, {0}, {}, DType::F32),
         to = c.make(Op::Buffer, {size}, {1}, {}, DType::F32);
  UOpRef r = c.make(Op::Range, {b.idx(8)}, {0, int64_t(RangeKind::Loop)}),
         q = c.make(Op::Range, {b.idx(4)}, {1, int64_t(RangeKind::Vector)});
  UOpRef at = idxAdd(c, idxMul(c, r, b.idx(4)), q);
  UOpRef gate = c.make(Op::Lt, {at, size}),
         index = idxAdd(c, idxMul(c, idxDiv(c, at, b.idx(4)), b.idx(4)), idxMod(c, at, b.idx(4)));
  UOpRef load = c.make(Op::Load, {from, gate, index}, {1}), store = c.make(Op::Store, {to, load, gate, at}, {1});
  UOpRef never = c.make(Op::Store, {to, load, c.make(Op::Lt, {size, at}), at}, {1});
  RewriteOptions kernel;
  kernel.level = Level::Kernel;
  UOpRef expected = c.make(Op::Sink, {c.make(Op::Store, {to, c.make(Op::Load, {from, at}, {1}), at}, {1})});
  EXPECT_EQ(run(c.make(Op::Sink, {store, never}), kernel, kernelRules), expected);
}

TEST_F(GraphRewrite, RuleLimitAndTrace) {
  UOpRef root = b.add(b.mul(b.un(Op::Neg, b.un(Op::Neg, x)), f(1)), f(-0.0));
  RewriteOptions all;
  std::string text;
  llvm::raw_string_ostream stream(text);
  all.trace = &stream;
  auto r = rewrite(c, root, graphRules, all);
  ASSERT_TRUE(bool(r));
  EXPECT_EQ(r->front(), x);
  EXPECT_EQ(all.fired, 3u);
  EXPECT_NE(text.find("1: neg-neg (Algebra.h:"), std::string::npos) << text;
  EXPECT_NE(text.find("add-neg-zero"), std::string::npos) << text;
  RewriteOptions two;
  two.ruleLimit = 2;
  auto cut = rewrite(c, root, graphRules, two);
  ASSERT_TRUE(bool(cut));
  EXPECT_EQ(cut->front(), b.add(x, f(-0.0)));
}

TEST_F(GraphRewrite, FunctionsOfControlOpsAreRewritten) {
  UOpRef s = b.arg(0, DType::F32, {}), go = b.arg(1, DType::Bool, {});
  UOpRef then = c.make(Op::Func, {b.mul(s, f(1))}, {1}), other = c.make(Op::Func, {s}, {1});
  UOpRef cond = c.make(Op::Cond, {go, s}, {}, {}, DType::Void, {then, other});
  EXPECT_EQ(run(cond), c.make(Op::Cond, {go, s}, {}, {}, DType::Void, {other, other}));
}

TEST_F(GraphRewrite, ReplacementsInheritOrigins) {
  Origins origins;
  UOpRef root = b.add(b.mul(x, y), f(-0.0));
  origins.add(root, "user_node");
  RewriteOptions options;
  options.origins = &origins;
  UOpRef made = run(root, options);
  ASSERT_EQ(made, b.mul(x, y));
  ASSERT_NE(origins.find(made), nullptr);
  EXPECT_EQ(origins.find(made)->names, std::vector<std::string>{"user_node"});
}

TEST_F(GraphRewrite, FuelRunsOut) {
  UOpRef root = b.add(b.add(b.add(u, i(1)), i(2)), i(3));
  RewriteOptions options;
  options.fuel = 0;
  auto r = rewrite(c, root, graphRules, options);
  ASSERT_FALSE(bool(r));
  EXPECT_EQ(llvm::toString(r.takeError()),
            "rewriting does not end: the rules add-literals chase each other (fuel of 0 is used up)");
}

TEST_F(GraphRewrite, RulesThatChaseEachOtherAreNamed) {
  RewriteOptions options; // le becomes not lt, which becomes le
  auto r = rewrite(c, b.bin(Op::Le, u, v), LogicRules | ExpandRules, options);
  ASSERT_FALSE(bool(r));
  EXPECT_EQ(llvm::toString(r.takeError()),
            "rewriting does not end: the rules expand-le, not-lt chase each other at le(arg, arg) : bool[n]");
}

TEST(GraphRewriteTime, ChainsAreLinear) {
  double perNode[3];
  int64_t lengths[] = {10'000, 100'000, 1'000'000};
  for (int k = 0; k < 3; ++k) {
    Context c;
    Builder b(c);
    UOpRef x = b.arg(0, DType::F32, {b.idx(8)}), y = x;
    UOpRef one = b.splat(b.lit(DType::F32, 1), x->shape), half = b.splat(b.lit(DType::F32, 0.5), x->shape);
    for (int64_t i = 0; i < lengths[k]; ++i) // every third node goes, the others stay
      y = i % 3 == 0 ? c.make(Op::Mul, {y, one}) : i % 3 == 1 ? c.make(Op::Add, {y, half}) : c.make(Op::Sqrt, {y});
    RewriteOptions options;
    std::clock_t start = std::clock(); // the processor's time: other programs do not count
    auto r = rewrite(c, y, graphRules, options);
    double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    ASSERT_TRUE(bool(r));
    EXPECT_EQ(options.fired, uint64_t(lengths[k] + 2) / 3);
    perNode[k] = seconds / lengths[k];
    printf("%8ld nodes: %.3f s, %.0f ns a node\n", long(lengths[k]), seconds, perNode[k] * 1e9);
  }
  EXPECT_LT(perNode[2], 8 * perNode[0]); // caches, not the algorithm
}

//===- StageTest.cpp: what the numerics stage makes of a module ------------===//
#include "astra/IR/Builder.h"
#include "astra/Numerics/Numerics.h"
#include <gtest/gtest.h>

using namespace astra;

namespace {

struct Made {
  Module m;
  Builder b{m.ctx()};
  UOpRef x(DType t, int64_t n = 8) { return b.arg(0, t, {b.idx(n)}); }
  std::string run(UOpRef out) {
    Entry e;
    e.name = "main";
    e.outputs.push_back({"y", out});
    m.entries.push_back(e);
    if (auto error = runNumerics(m)) return llvm::toString(std::move(error));
    if (auto error = verifyNumerics(m)) return llvm::toString(std::move(error));
    return "";
  }
  UOpRef result() { return m.entries[0].outputs[0].value; }
  unsigned count(Op op) {
    unsigned n = 0;
    for (UOpRef u : topoSort(m.roots())) n += u->is(op);
    return n;
  }
};

TEST(NumericsStage, EveryFunctionInEveryFormat) {
  for (unsigned i = 0; i < numOps; ++i)
    for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
      if (!has(Op(i), Function)) continue;
      Made g;
      UOpRef x = g.x(t), y = info(Op(i)).sources == 2 ? g.b.bin(Op(i), x, x) : g.b.un(Op(i), x);
      EXPECT_EQ(g.run(y), "") << info(Op(i)).mnemonic;
      EXPECT_EQ(g.result()->dtype, t);
      EXPECT_EQ(g.result()->shape, x->shape);
    }
}

TEST(NumericsStage, NarrowArithmeticIsF32ThenOneRounding) {
  Made g;
  UOpRef x = g.x(DType::BF16);
  ASSERT_EQ(g.run(g.b.add(x, x)), "");
  for (UOpRef u : topoSort(g.m.roots()))
    if (u->is(Op::Add)) {
      EXPECT_EQ(u->dtype, DType::F32);
    }
  EXPECT_EQ(g.count(Op::Add), 1u);
}

TEST(NumericsStage, NarrowContractKeepsItsOrderAndRoundsOnce) {
  Made g;
  UOpRef a = g.b.arg(0, DType::F16, {g.b.idx(4), g.b.idx(6)}), c = g.b.arg(1, DType::F16, {g.b.idx(6), g.b.idx(5)});
  UOpRef product = g.b.matmul(a, c);
  ASSERT_EQ(g.run(product), "");
  for (UOpRef u : topoSort(g.m.roots()))
    if (u->is(Op::Contract)) {
      EXPECT_EQ(u->dtype, DType::F32);
      EXPECT_EQ(u->ints, product->ints);
    }
}

TEST(NumericsStage, OutputsHaveCanonicalNaNs) {
  Made g;
  UOpRef x = g.x(DType::F32);
  ASSERT_EQ(g.run(x), "");
  UOpRef y = g.result();
  ASSERT_TRUE(y->is(Op::Select));
  EXPECT_EQ(y->src[0], g.b.eq(x, x));
  EXPECT_EQ(y->src[1], x);
  EXPECT_EQ(y, g.b.select(g.b.eq(x, x), x, g.b.bits(DType::F32, 0x7fc00000)));
  ASSERT_FALSE(bool(runNumerics(g.m)));
  EXPECT_EQ(g.result(), y);
}

TEST(NumericsStage, OneRowOfAStateIsMadeCanonicalNotAllOfIt) {
  Made g;
  UOpRef cache = g.b.state("cache", DType::F32, {g.b.idx(128), g.b.idx(8)});
  UOpRef row = g.b.arg(0, DType::F32, {g.b.idx(1), g.b.idx(8)}), at = g.b.arg(1, DType::I64, {});
  UOpRef start[] = {at, g.b.litInt(DType::I64, 0)};
  ASSERT_EQ(g.run(g.b.updateAt(cache, row, start)), "");
  UOpRef y = g.result();
  ASSERT_TRUE(y->is(Op::UpdateAt));
  EXPECT_EQ(y->src[0], cache);
  EXPECT_TRUE(y->src[1]->is(Op::Select));
}

TEST(NumericsStage, WhatMovesAStateIsCanonical) {
  Made g;
  UOpRef cache = g.b.state("cache", DType::F32, {g.b.idx(4), g.b.idx(8)});
  UOpRef y = g.b.reshape(g.b.permute(cache, {1, 0}), {g.b.idx(32)});
  ASSERT_EQ(g.run(y), "");
  EXPECT_EQ(g.result(), y);
}

TEST(NumericsStage, GatheredElementsAreMadeCanonicalNotTheTable) {
  Made g;
  UOpRef table = g.b.param("table", DType::F32, {g.b.idx(1000), g.b.idx(8)}), i = g.b.arg(0, DType::I64, {g.b.idx(2)});
  UOpRef y = g.b.gather(table, i, 0);
  ASSERT_EQ(g.run(y), "");
  EXPECT_TRUE(g.result()->is(Op::Select));
  EXPECT_EQ(g.result()->src[1], y);
}

TEST(NumericsStage, InitialStatesBecomeCanonical) {
  Made g;
  UOpRef s = g.b.state("s", DType::F16, {g.b.idx(2)});
  g.m.states.push_back({s, std::make_shared<const std::vector<uint8_t>>(std::vector<uint8_t>{1, 0xfc, 0, 0x3c})});
  ASSERT_EQ(g.run(s), "");
  EXPECT_EQ(*g.m.states[0].initial, (std::vector<uint8_t>{0, 0x7e, 0, 0x3c}));
}

TEST(NumericsStage, IntegersStay) {
  Made g;
  UOpRef x = g.x(DType::I32), y = g.b.bin(Op::FloorDiv, x, g.b.add(x, x));
  ASSERT_EQ(g.run(y), "");
  EXPECT_EQ(g.result(), y);
}

TEST(NumericsStage, FunctionBodiesAreLowered) {
  Made g;
  UOpRef x = g.x(DType::F32), index = g.b.arg(0, DType::F32, {g.b.idx(8)});
  Context &c = g.m.ctx();
  UOpRef yes = c.make(Op::Func, {g.b.un(Op::Exp, index)}, {1}), no = c.make(Op::Func, {g.b.un(Op::Tanh, index)}, {1});
  UOpRef p = g.b.arg(1, DType::Bool, {});
  UOpRef cond = c.make(Op::Cond, {p, x}, {}, {}, DType::Void, {yes, no});
  UOpRef y = c.make(Op::Proj, {cond, g.b.idx(8)}, {0}, {}, DType::F32);
  ASSERT_EQ(g.run(y), "");
}

TEST(NumericsStage, RandomBecomesIntegers) {
  Made g;
  UOpRef seed = g.b.arg(0, DType::U32, {}), stream = g.b.arg(1, DType::U32, {});
  ASSERT_EQ(g.run(g.b.random(seed, stream, {g.b.idx(3), g.b.idx(5)})), "");
  EXPECT_EQ(g.result()->dtype, DType::U32);
  EXPECT_EQ(g.result()->rank(), 2u);
}

TEST(NumericsStage, MillionNodesInOneChain) {
  Made g;
  UOpRef y = g.x(DType::F32);
  for (int i = 0; i < 1000000; ++i) y = g.b.un(i % 2 ? Op::Neg : Op::Abs, y);
  EXPECT_EQ(g.run(y), "");
}

} // namespace

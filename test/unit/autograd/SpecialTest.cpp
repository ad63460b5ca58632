//===- SpecialTest.cpp: conventions, casts, symbolic dims, size ------------===//
// What differences cannot show: values at points that are not smooth, as PyTorch gives them (numbers from PyTorch 2
// where they are not plain), narrow types, dims that are symbols, the order of a contract's labels, long graphs.
#include "Check.h"
#include "astra/IR/Contract.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/EvalFunctions.h"
#include <cmath>

using namespace astra;
using namespace astra::test;

namespace {
struct Special : testing::Test {
  Context c;
  Builder b{c};
  UOpRef arg(int64_t i, std::vector<int64_t> shape, DType t = DType::F64) {
    llvm::SmallVector<UOpRef, 4> s;
    for (int64_t d : shape) s.push_back(b.idx(d));
    return b.arg(i, t, s);
  }
  Array of(UOpRef y, UOpRef x, std::vector<int64_t> shape, const Array &at) {
    return gradient(b, y, x, tensorOf(std::move(shape), at))[0];
  }
  Array unary(Op op, const Array &at) {
    UOpRef x = arg(0, {int64_t(at.size())});
    return of(b.un(op, x), x, {int64_t(at.size())}, at);
  }
};
const double inf = INFINITY;
} // namespace

TEST_F(Special, PointsThatAreNotSmooth) {
  EXPECT_EQ(unary(Op::Abs, {0, -0.0, -3, 3}), (Array{0, 0, -1, 1}));
  EXPECT_EQ(unary(Op::Sqrt, {0, 4}), (Array{inf, 0.25}));
  EXPECT_EQ(unary(Op::Asin, {1, -1, 0}), (Array{inf, inf, 1}));
  EXPECT_EQ(unary(Op::Acos, {1, -1, 0}), (Array{-inf, -inf, -1}));
  EXPECT_EQ(unary(Op::Log, {0, -0.0}), (Array{inf, -inf}));
  for (Op op : {Op::Floor, Op::Ceil, Op::Trunc, Op::RoundEven, Op::Detach})
    EXPECT_EQ(unary(op, {0, 0.5, -1}), (Array{0, 0, 0})) << info(op).mnemonic;
  UOpRef x = arg(0, {4}), y = arg(1, {4});
  std::vector<Tensor> at = {tensorOf({4}, {1, 0, -2, 3}), tensorOf({4}, {1, -0.0, 5, 2})};
  EXPECT_EQ(gradient(b, b.max(x, y), {x, y}, at), (std::vector<Array>{{0.5, 0.5, 0, 1}, {0.5, 0.5, 1, 0}}));
  EXPECT_EQ(gradient(b, b.min(x, y), {x, y}, at), (std::vector<Array>{{0.5, 0.5, 1, 0}, {0.5, 0.5, 0, 1}}));
  at = {tensorOf({4}, {0, -0.0, -2, 3}), tensorOf({4}, {1, -1, -5, -2})};
  EXPECT_EQ(gradient(b, b.bin(Op::CopySign, x, y), {x, y}, at), (std::vector<Array>{{0, 0, 1, -1}, {0, 0, 0, 0}}));
}

TEST_F(Special, Pow) {
  UOpRef x = arg(0, {6}), y = arg(1, {6});
  std::vector<Tensor> at = {tensorOf({6}, {0, 0, 0, 2, -2, 3}), tensorOf({6}, {0, 2, 1, 0, 2, 2})};
  auto g = gradient(b, b.bin(Op::Pow, x, y), {x, y}, at);
  EXPECT_EQ(g[0], (Array{0, 0, 1, 0, -4, 6}));
  EXPECT_EQ(Array(g[1].begin(), g[1].begin() + 3), (Array{0, 0, 0})); // 0^y, y >= 0
  EXPECT_DOUBLE_EQ(g[1][3], std::log(2));
  EXPECT_TRUE(std::isnan(g[1][4])); // of a negative base
}

TEST_F(Special, TiesShareAnExtreme) {
  UOpRef x = arg(0, {2, 3});
  EXPECT_EQ(of(b.reduce(ReduceKind::Max, x, {1}), x, {2, 3}, {1, 1, 0, -0.0, 0, -1}),
            (Array{0.5, 0.5, 0, 0.5, 0.5, 0}));
  EXPECT_EQ(of(b.reduce(ReduceKind::Min, x, {0, 1}), x, {2, 3}, {1, 2, 2, 1, 1, 1}),
            (Array{0.25, 0, 0, 0.25, 0.25, 0.25}));
  // cummax: the last of equal elements
  EXPECT_EQ(of(b.cumulate(CumulateKind::Max, x, 1), x, {2, 3}, {1, 1, 0, 2, 3, 3}), (Array{1, 2, 0, 1, 1, 1}));
  UOpRef row = arg(0, {3}), u = arg(1, {3}), at = b.splat(b.litInt(DType::I64, 0), row->shape);
  auto g = gradient(b, b.scatter(ScatterKind::Max, row, at, u, 0), {row, u},
                    {tensorOf({3}, {4, 9, 0}), tensorOf({3}, {4, 1, 4})});
  EXPECT_EQ(g[0], (Array{1 / 3.0, 1, 1}));
  EXPECT_EQ(g[1], (Array{1 / 3.0, 0, 1 / 3.0}));
  // set: the update that wrote last
  g = gradient(b, b.scatter(ScatterKind::Set, row, at, u, 0), {row, u},
               {tensorOf({3}, {4, 9, 0}), tensorOf({3}, {4, 1, 4})});
  EXPECT_EQ(g[0], (Array{0, 1, 1}));
  EXPECT_EQ(g[1], (Array{0, 0, 1}));
}

TEST_F(Special, ProductsWithZeros) {
  UOpRef x = arg(0, {3});
  UOpRef y = b.reduce(ReduceKind::Prod, x, {0});
  EXPECT_EQ(of(y, x, {3}, {2, 3, 4}), (Array{12, 8, 6}));
  EXPECT_EQ(of(y, x, {3}, {2, 0, 4}), (Array{0, 8, 0}));
  EXPECT_EQ(of(y, x, {3}, {0, 0, 4}), (Array{0, 0, 0}));
  EXPECT_EQ(of(b.cumulate(CumulateKind::Prod, x, 0), x, {3}, {2, 0, 4}), (Array{1, 10, 0}));
}

// Integers and bools carry nothing; casts between float types do.
TEST_F(Special, TypesOnThePath) {
  UOpRef x = arg(0, {3}, DType::F32);
  UOpRef narrow = b.cast(b.cast(x, DType::F16), DType::BF16), whole = b.cast(b.cast(x, DType::I32), DType::BF16);
  UOpRef y = b.cast(b.mul(narrow, whole), DType::F64);
  auto d = vjp(c, y, b.splat(b.lit(DType::F64, 1), y->shape), x);
  ASSERT_TRUE(bool(d)) << llvm::toString(d.takeError());
  EXPECT_EQ(d->derivatives[0]->dtype, DType::F32);
  UOpRef wide = b.cast(d->derivatives[0], DType::F64);
  Tensor at{DType::F32, {3}, {}};
  for (float v : {1.5f, -2.75f, 3.0f}) at.bytes.insert(at.bytes.end(), (uint8_t *)&v, (uint8_t *)&v + 4);
  EXPECT_EQ(evaluate(wide, at)[0], (Array{1, -2, 3}));
  auto bits = vjp(c, b.cast(b.bitcast(b.cast(x, DType::F32), DType::I32), DType::F32),
                  b.splat(b.lit(DType::F32, 1), x->shape), x);
  ASSERT_TRUE(bool(bits)) << llvm::toString(bits.takeError()); // to an integer: nothing flows, nothing is refused
  EXPECT_EQ(evaluate(b.cast(bits->derivatives[0], DType::F64), at)[0], (Array{0, 0, 0}));
}

TEST_F(Special, SymbolicDims) {
  UOpRef n = b.dim("n", 0, 64), m = b.dim("m", 1, 8);
  UOpRef x = b.arg(0, DType::F64, {n, m}), w = b.arg(1, DType::F64, {m, b.idx(3)});
  UOpRef h = b.un(Op::Tanh, b.matmul(x, w));
  UOpRef best = b.reduce(ReduceKind::Max, h, {1}), rest = b.reduce(ReduceKind::Prod, h, {0});
  UOpRef shifted = b.pad(b.shrink(x, {b.idx(0), b.idx(0)}, {n, b.idx(1)}), {b.idx(1), b.idx(0)}, {n, b.idx(2)});
  UOpRef y = b.add(b.add(b.reduce(ReduceKind::Sum, best, {0}), b.reduce(ReduceKind::Sum, rest, {0})),
                   b.reduce(ReduceKind::Sum, b.mul(shifted, shifted), {0, 1}));
  auto d = vjp(c, y, b.lit(DType::F64, 1), {x, w});
  ASSERT_TRUE(bool(d)) << llvm::toString(d.takeError());
  EXPECT_EQ(d->derivatives[0]->shape, x->shape);
  EXPECT_EQ(d->derivatives[1]->shape, w->shape);
  for (int64_t rows : {0, 1, 5}) {
    Array at;
    for (int64_t i = 0; i < rows * 2; ++i) at.push_back(0.25 * i - 0.75);
    auto got = evaluate(d->derivatives, {tensorOf({rows, 2}, at), tensorOf({2, 3}, {1, 2, -1, 0.5, -0.25, 3})});
    EXPECT_EQ(got[0].size(), at.size());
    EXPECT_EQ(got[1].size(), 6u);
  }
}

// Clause N4: the forward's remaining reduced labels, then its remaining kept ones. Convolution: input gradient kh, kw,
// oc; weight gradient n, oh, ow.
TEST_F(Special, OrderOfLabels) {
  UOpRef x = arg(0, {2, 3, 6, 6}), w = arg(1, {4, 3, 3, 3});
  auto l = [](int64_t i) { return AffineForm{{{i, 1}}, 0, 1}; };
  ContractSpec s; // n, oc, oh, ow; kh, kw, ic
  s.kept = 4, s.reduced = 3;
  s.a = {l(0), l(6), AffineForm{{{2, 2}, {4, 1}}, -1, 1}, AffineForm{{{3, 2}, {5, 1}}, -1, 1}};
  s.b = {l(1), l(6), l(4), l(5)};
  UOpRef y = b.contract(s, x, w, {b.idx(2), b.idx(4), b.idx(3), b.idx(3), b.idx(3), b.idx(3), b.idx(3)});
  UOpRef g = b.arg(2, DType::F64, y->shape);
  auto d = vjp(c, y, g, {x, w});
  ASSERT_TRUE(bool(d)) << llvm::toString(d.takeError());
  EXPECT_EQ(print(d->derivatives, {true, false}),
            "%0 = arg [2, 4, 3, 3] index=2 : f64[2, 4, 3, 3]\n"
            "%1 = arg [4, 3, 3, 3] index=1 : f64[4, 3, 3, 3]\n"
            "%2 = contract %0[i0, k2, (i2 - k0 + 1)/2, (i3 - k1 + 1)/2], %1[k2, i1, k0, k1] -> [i0, i1, i2: 6, i3: 6] "
            "sum [k0, k1, k2]\n"
            "%3 = arg [2, 3, 6, 6] index=0 : f64[2, 3, 6, 6]\n"
            "%4 = contract %3[k0, i1, i2 + k1*2 - 1, i3 + k2*2 - 1], %0[k0, i0, k1, k2] -> [i0, i1, i2: 3, i3: 3] "
            "sum [k0, k1, k2]\n");
}

// Contributions to one cotangent: the uses in reverse depth-first order, added from left to right.
TEST_F(Special, OrderOfContributions) {
  UOpRef x = arg(0, {}), s = b.un(Op::Sin, x), e = b.un(Op::Exp, x), t = b.un(Op::Tanh, x);
  UOpRef y = b.add(b.add(s, e), t);
  auto d = vjp(c, y, b.lit(DType::F64, 1), x);
  ASSERT_TRUE(bool(d)) << llvm::toString(d.takeError());
  UOpRef sum = d->derivatives[0], one = b.lit(DType::F64, 1); // (of tanh + of exp) + of sin
  ASSERT_EQ(sum->op, Op::Add);
  EXPECT_EQ(sum->src[1], b.mul(b.un(Op::Cos, x), one));
  EXPECT_EQ(sum->src[0]->src[1], b.mul(e, one));
  EXPECT_EQ(sum->src[0]->src[0], b.mul(b.sub(one, b.mul(t, t)), one));
}

TEST_F(Special, UnusedAndDetached) {
  UOpRef x = arg(0, {2}), z = arg(1, {2});
  UOpRef y = b.mul(c.make(Op::Detach, {x}), x);
  auto g = gradient(b, y, {x, z}, {tensorOf({2}, {3, 4}), tensorOf({2}, {1, 1})});
  EXPECT_EQ(g[0], (Array{3, 4}));
  EXPECT_EQ(g[1], (Array{0, 0}));
}

// A value in the middle of a graph is a value to differentiate by like any other, and taken as independent.
TEST_F(Special, ByAnInnerValue) {
  UOpRef x = arg(0, {2}), s = b.mul(x, x), y = b.mul(s, x);
  auto g = gradient(b, y, {s, x}, tensorOf({2}, {3, 4}));
  EXPECT_EQ(g[0], (Array{3, 4}));
  EXPECT_EQ(g[1], (Array{9, 16}));
}

// A million nodes in all: no recursion, no quadratic pass.
TEST_F(Special, LongChain) {
  UOpRef x = arg(0, {}), y = x;
  for (int i = 0; i < 200000; ++i) y = b.add(b.mul(y, x), x);
  auto d = vjp(c, y, b.lit(DType::F64, 1), x);
  ASSERT_TRUE(bool(d)) << llvm::toString(d.takeError());
  EXPECT_GT(c.size(), 1000000u);
  auto t = jvp(c, y, x, b.lit(DType::F64, 1));
  ASSERT_TRUE(bool(t)) << llvm::toString(t.takeError());
}

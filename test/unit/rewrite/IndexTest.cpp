//===- IndexTest.cpp: symbolic integers simplify as lowering needs them ----===//
#include "astra/IR/Builder.h"
#include "astra/IR/Text.h"
#include "astra/Rewrite/Rewrite.h"
#include <gtest/gtest.h>

using namespace astra;

namespace {
struct IndexRewrite : testing::Test {
  Context c;
  Builder b{c};
  int64_t axis = 0;
  UOpRef range(UOpRef extent) { return c.make(Op::Range, {extent}, {axis++, int64_t(RangeKind::Loop)}); }
  UOpRef range(int64_t extent) { return range(b.idx(extent)); }
  UOpRef k(int64_t v) { return b.idx(v); }
  UOpRef add(UOpRef x, UOpRef y) { return idxAdd(c, x, y); }
  UOpRef mul(UOpRef x, UOpRef y) { return idxMul(c, x, y); }
  UOpRef div(UOpRef x, UOpRef y) { return idxDiv(c, x, y); }
  UOpRef mod(UOpRef x, UOpRef y) { return idxMod(c, x, y); }
  void same(UOpRef x, UOpRef y) {
    UOpRef s = simplifyIndex(c, x);
    EXPECT_EQ(s, y) << indexText(x) << " became " << indexText(s) << ", expected " << indexText(y);
  }
  void truth(Op op, UOpRef x, UOpRef y, bool value) {
    UOpRef s = simplifyIndex(c, c.make(op, {x, y}));
    EXPECT_EQ(s, c.literal(DType::Bool, value)) << indexText(x) << " " << info(op).mnemonic << " " << indexText(y);
  }
};
} // namespace

TEST_F(IndexRewrite, TilesOfLiterals) {
  UOpRef i = range(8), j = range(4);
  UOpRef flat = add(mul(i, k(4)), j);
  same(div(flat, k(4)), i);
  same(mod(flat, k(4)), j);
  same(div(flat, k(8)), div(i, k(2)));
  same(mod(flat, k(8)), add(mul(mod(i, k(2)), k(4)), j));
  same(div(flat, k(32)), k(0));
  same(mod(flat, k(32)), flat);
  same(div(div(flat, k(2)), k(2)), i);
  same(mod(mod(flat, k(16)), k(4)), j);
  same(div(add(flat, k(7)), k(4)), add(div(add(j, k(3)), k(4)), add(i, k(1))));
}

TEST_F(IndexRewrite, TilesOfDims) {
  UOpRef n = b.dim("n", 0, 64), m = b.dim("m", 0, 64);
  UOpRef h = range(5), i = range(n), j = range(m), l = range(3);
  UOpRef flat = add(mul(mul(h, n), m), add(mul(i, m), j));
  same(div(flat, m), add(mul(h, n), i));
  same(mod(flat, m), j);
  same(mod(div(flat, m), n), i);
  same(div(div(flat, m), n), h);
  same(div(flat, mul(n, m)), h);
  same(mod(flat, mul(n, m)), add(mul(i, m), j));
  same(div(add(mul(flat, k(3)), l), mul(m, k(3))), add(mul(h, n), i));
}

TEST_F(IndexRewrite, SumsOfQuotientAndRemainder) {
  UOpRef x = b.dim("x", 0, 4096);
  same(add(mul(div(x, k(12)), k(12)), mod(x, k(12))), x);
  UOpRef hi = div(x, k(12)), mid = mod(div(x, k(3)), k(4)), lo = mod(x, k(3));
  same(add(mul(hi, k(12)), add(mul(mid, k(3)), lo)), x);
}

TEST_F(IndexRewrite, ComparisonsByBounds) {
  UOpRef n = b.dim("n", 0, 64), i = range(n), j = range(4), t = range(div(n, k(4)));
  truth(Op::Lt, i, n, true);
  truth(Op::Lt, n, i, false);
  truth(Op::Le, add(i, k(1)), n, true);
  truth(Op::Lt, add(mul(t, k(4)), j), n, true);
  truth(Op::Eq, i, n, false);
  truth(Op::Ne, i, add(n, k(1)), true);
  UOpRef lt = simplifyIndex(c, c.make(Op::Lt, {add(mul(i, k(4)), j), mul(n, k(4))}));
  EXPECT_EQ(lt, c.literal(DType::Bool, 1));
  UOpRef m = b.dim("m", 0, 64);
  EXPECT_EQ(simplifyIndex(c, c.make(Op::Lt, {add(mul(i, k(4)), j), mul(m, k(4))})), c.make(Op::Lt, {i, m}));
}

TEST_F(IndexRewrite, MinAndMaxByBounds) {
  UOpRef n = b.dim("n", 1, 64), i = range(n);
  same(idxMin(c, i, idxSub(c, n, k(1))), i);
  same(idxMax(c, i, n), n);
  same(idxMin(c, idxMin(c, b.dim("m", 0, 100), k(7)), k(9)), idxMin(c, b.dim("m", 0, 100), k(7)));
}

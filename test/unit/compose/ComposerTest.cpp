//===- ComposerTest.cpp: checked building ----------------------------------===//
#include "Compose.h"
#include "astra/IR/Index.h"

namespace astra::compose {
namespace {

TEST(Composer, Broadcasts) {
  Context c;
  Composer b(c);
  UOpRef x = tensor(b, {2, 1}, {1, 2}), y = tensor(b, {3}, {10, 20, 30});
  expectValues(b, b.bin(Op::Add, x, y), {2, 3}, {11, 21, 31, 12, 22, 32});
  expectValues(b, b.select(b.bin(Op::Lt, x, 1.5), y, b.literal(y, 0)), {2, 3}, {10, 20, 30, 0, 0, 0});
}

TEST(Composer, KeepsTheFirstFailure) {
  Context c;
  Composer b(c);
  UOpRef x = tensor(b, {2}, {1, 2}), y = tensor(b, {3}, {1, 2, 3});
  UOpRef wrong = b.bin(Op::Add, x, y);
  EXPECT_EQ(wrong, nullptr);
  EXPECT_EQ(b.un(Op::Neg, x), nullptr) << "after a failure nothing is made";
  b.fail("a later one");
  expectRefusal(b, wrong, "extents 2 and 3 of axis 0 do not broadcast");
  expectValues(b, b.un(Op::Neg, x), {2}, {-1, -2});
}

TEST(Composer, TellsWhatIsNotSupported) {
  Context c;
  Composer b(c);
  UOpRef n = b.b.dim("n", 1, 8), x = b.b.param("x", DType::F32, {n}), y = b.b.param("y", DType::F32, {b.idx(4)});
  expectRefusal(b, b.bin(Op::Add, x, y), "extents n and 4 of axis 0 are not known to be equal",
                std::errc::not_supported);
  b.requireLeast(idxSub(c, n, b.idx(3)), 0, "the extent", "negative");
  expectRefusal(b, nullptr, "the extent n - 3 may be negative", std::errc::not_supported);
}

TEST(Composer, Promotes) {
  Context c;
  Composer b(c);
  auto [x, y] = b.promoted(tensor(b, {1}, {3}, DType::I8), tensor(b, {1}, {200}, DType::U8));
  ASSERT_TRUE(x && y);
  EXPECT_EQ(x->dtype, DType::I16);
  expectValues(b, b.bin(Op::Add, x, y), {1}, {203});
}

TEST(Composer, HintsAreTheFrontDoors) {
  struct Words : Hints {
    std::string bound(UOpRef, int64_t least) const override { return "; raise it to " + std::to_string(least); }
    std::string operand(UOpRef) const override { return "argument 'x'"; }
  } words;
  Context c;
  Composer b(c, &words);
  UOpRef n = b.b.dim("n", 1, 8), x = b.b.param("x", DType::F32, {n});
  b.requireLeast(n, 2, "the extent", "1");
  expectRefusal(b, nullptr, "the extent n may be 1; raise it to 2", std::errc::not_supported);
  b.requireRank(x, 2);
  expectRefusal(b, nullptr, "argument 'x' has rank 1, expected 2 or more");
}

TEST(Composer, KnowsIntegers) {
  Context c;
  Composer b(c);
  UOpRef n = b.b.dim("n", 1, 8);
  UOpRef sizes = b.concat({b.unsqueeze(b.fromIndex(n, DType::I64), {0}), tensor(b, {1}, {3}, DType::I64)}, 0);
  const std::vector<UOpRef> *known = b.elements(b.bin(Op::Mul, sizes, 2));
  ASSERT_TRUE(known);
  EXPECT_EQ(dimsText(*known), "[n*2, 6]");
}

} // namespace
} // namespace astra::compose

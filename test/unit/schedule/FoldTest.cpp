//===- FoldTest.cpp: what is computed while compiling, and what is not -----===//
// Takes:    modules in text.
// Gives:    the params that schedules store: bytes as the evaluator gives them, and the rule of what is folded.
#include "astra/IR/Eval.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Schedule/Program.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace astra;

namespace {
/// Types of the folded params, in order, a star behind those that depend on no parameter.
std::string folded(const std::string &head, const std::string &signature, const std::string &body,
                   FoldLevel level = FoldLevel::Small) {
  auto m = parse("module @m {\n dim n in 1..64\n" + head + "\n entry @main" + signature + " {\n" + body + "\n}\n}",
                 "test.uop");
  if (!m) return llvm::toString(m.takeError());
  if (auto e = runNumerics(*m)) return llvm::toString(std::move(e));
  auto s = schedule(*m, {level});
  if (!s) return llvm::toString(s.takeError());
  std::string out;
  for (const StoredParam &p : s->params) {
    EXPECT_EQ(p.fixed, m->param(p.param->str) == nullptr);
    std::vector<int64_t> shape;
    for (UOpRef d : p.declared->shape) shape.push_back(*d->constIndex());
    EXPECT_TRUE(!p.data || p.data->size() == tensorBytes(p.declared->dtype, shape));
    if (p.fixed) out += (out.empty() ? "" : " ") + typeText(p.param->dtype, p.param->shape) + (p.derive < 0 ? "*" : "");
  }
  return out;
}
const char *const row = "(%x : f32[n, 64]) -> (%y : f32[n, 64])";
/// The tail that multiplies x by a value of 64 elements.
std::string times(const char *value) {
  return std::string("%r = reshape ") + value + " [1, 64]\n%e = expand %r [n, 64]\n%y = mul %x, %e";
}

TEST(Fold, ArithmeticOnParametersIsDoneOnce) {
  EXPECT_EQ(folded("param @g : f32[64] = splat 2.0\n param @v : f32[64] = splat 3.0", row,
                   "%s = sqrt @v\n%q = div @g, %s\n" + times("%q")),
            "f32[64]");
  EXPECT_EQ(folded("param @g : f32[64] = splat 2.0", row, "%q = mul @g, @g\n" + times("%q"), FoldLevel::None), "");
  EXPECT_EQ(folded("param @g : f32[64]", row, "%q = mul @g, @g\n" + times("%q")), "") << "it has no data";
  EXPECT_EQ(folded("state @g : f32[64]", row, "%q = mul @g, @g\n" + times("%q")), "") << "a state changes";
}

TEST(Fold, ViewsStayUnlessAContractMultipliesByThem) {
  EXPECT_EQ(folded("param @g : f32[8, 8] = splat 2.0", row,
                   "%p = permute @g perm=[1, 0]\n%q = reshape %p [64]\n" + times("%q")),
            "");
  const char *product = "(%x : f32[n, 64]) -> (%y : f32[n, 48])";
  EXPECT_EQ(folded("param @w : f32[48, 64] = splat 2.0", product,
                   "%p = permute @w perm=[1, 0]\n%y = contract %x[i, k], %p[k, j] -> [i, j] sum [k]"),
            "");
  EXPECT_EQ(folded("param @w : f32[4, 64, 12] = splat 2.0", product,
                   "%p = permute @w perm=[1, 0, 2]\n%q = reshape %p [64, 48]\n"
                   "%y = contract %x[i, k], %q[k, j] -> [i, j] sum [k]"),
            "f32[64, 48]");
}

TEST(Fold, ABundleGrowsByLittle) {
  // Four times the weight: not unless it is asked for.
  const char *product = "(%x : f32[n, 300]) -> (%y : f32[n, 300])";
  std::string body = "%c = cast @w : f32[300, 300]\n%y = contract %x[i, k], %c[k, j] -> [i, j] sum [k]";
  EXPECT_EQ(folded("param @w : i8[300, 300] = zeros", product, body), "");
  EXPECT_EQ(folded("param @w : i8[300, 300] = zeros", product, body, FoldLevel::All), "f32[300, 300]");
  // What is expanded is folded before.
  EXPECT_EQ(folded("param @g : f32[64] = splat 2.0", "(%x : f32[700, 64]) -> (%y : f32[700, 64])",
                   "%q = mul @g, @g\n%r = reshape %q [1, 64]\n%e = expand %r [700, 64]\n%y = mul %x, %e"),
            "f32[64]");
  // Four values as large as the one parameter: it may double.
  std::string many = "(%x : f32[100, 100]) -> (";
  std::string steps, sum = "%x";
  for (int i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    steps += "%l" + n + " = const " + n + ".5 : f32\n%r" + n + " = reshape %l" + n + " [1, 1]\n%e" + n +
             " = expand %r" + n + " [100, 100]\n%w" + n + " = mul @w, %e" + n + "\n%y" + n + " = add %x, %w" + n + "\n";
    many += (i ? ", %y" : "%y") + n + " : f32[100, 100]";
  }
  std::string found = folded("param @w : f32[100, 100] = splat 1.0", many + ")", steps);
  EXPECT_EQ(found, "f32[100, 100]") << "each takes 40000 bytes, 16384 of them free";
}

TEST(Fold, TablesOfConstants) {
  EXPECT_EQ(folded("", row, "%i = iota [64] axis=0 : f32[64]\n%q = exp %i\n" + times("%q")), "f32[64]*");
  EXPECT_EQ(folded("", row, "%i = iota [64] axis=0 : f32[64]\n%q = mul %i, %i\n" + times("%q")), "")
      << "one operation is cheaper than memory";
}

TEST(Fold, BytesAreThoseOfTheEvaluator) {
  auto m = parse("module @m {\n param @g : f32[3] = [2.0, -1.0, 0.5]\n entry @main(%x : f32[3]) -> (%y : f32[3]) {\n"
                 "%s = sqrt @g\n%y = add %x, %s\n}\n}",
                 "test.uop");
  ASSERT_TRUE(m && !runNumerics(*m));
  auto s = schedule(*m);
  ASSERT_TRUE(bool(s));
  ASSERT_TRUE(s->params[0].fixed);
  uint32_t bits[3];
  memcpy(bits, s->params[0].data->data(), 12);
  EXPECT_EQ(bits[0], 0x3fb504f3u);
  EXPECT_EQ(bits[1], 0x7fc00000u) << "a NaN is canonical";
  EXPECT_EQ(bits[2], 0x3f3504f3u);
  EXPECT_EQ(print(*s), print(*schedule(*m))) << "names do not depend on what was scheduled before";
}
} // namespace

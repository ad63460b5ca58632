//===- BytesTest.cpp: products of 8-bit integers as products of words ------===//
// Takes:    modules in text.
// Gives:    equal values before and after, which products are joined, where their bytes lie, what types are refused.
#include "RunSchedule.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Schedule/ByteProducts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <random>

using namespace astra;

namespace {

/// `count` random bytes, the extreme ones of both kinds among them where there is room.
std::string randomHex(std::mt19937 &gen, int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) bytes.push_back(char(gen()));
  for (unsigned char extreme : {0, 127, 128, 255})
    if (count > 4) bytes[gen() % count] = char(extreme);
  return llvm::toHex(bytes, /*LowerCase=*/true);
}

Tensor randomBytes(std::mt19937 &gen, DType t, std::vector<int64_t> shape) {
  Tensor x{t, shape, {}};
  int64_t count = 1;
  for (int64_t e : shape) count *= e;
  for (int64_t i = 0; i < count; ++i) x.bytes.push_back(uint8_t(gen()));
  return x;
}

unsigned countWords(const Module &m) {
  return unsigned(llvm::count_if(topoSort(m.roots()), [](UOpRef n) { return n->op == Op::Words; }));
}

/// x[3, k] - zx times w[k, n] - zw, each zero point left out, the same for all, or one a row and column.
std::string product(std::mt19937 &gen, const char *x, const char *w, int64_t k, int64_t n, int zeros) {
  std::string K = std::to_string(k), N = std::to_string(n), X = "i32[3, " + K + "]", W = "i32[" + K + ", " + N + "]";
  std::string text = "module @m {\n param @w : " + std::string(w) + "[" + K + ", " + N + "] = hex \"" +
                     randomHex(gen, k * n) + "\"\n param @zw : " + w + "[1, " + (zeros == 2 ? N : "1") + "] = hex \"" +
                     randomHex(gen, zeros == 2 ? n : 1) + "\"\n entry @main(%x : " + x + "[3, " + K + "], %zx : " + x +
                     (zeros == 2 ? "[3, 1]" : "[1, 1]") + ") -> (%y : i32[3, " + N + "]) {\n %a = cast %x : " + X +
                     "\n %b = cast @w : " + W + "\n";
  if (zeros) {
    std::string rows = zeros == 2 ? "3" : "1", columns = zeros == 2 ? N : "1";
    text += " %c = cast %zx : i32[" + rows + ", 1]\n %d = expand %c [3, " + K + "]\n %e = sub %a, %d\n" +
            " %f = cast @zw : i32[1, " + columns + "]\n %g = expand %f [" + K + ", " + N + "]\n %h = sub %b, %g\n";
  }
  return text + (zeros ? " %y = contract %e[i, l], %h[l, j]" : " %y = contract %a[i, l], %b[l, j]") +
         " -> [i, j] sum [l]\n }\n}\n";
}

TEST(Bytes, SameValues) {
  std::mt19937 gen(3);
  for (const char *x : {"u8", "i8"})
    for (const char *w : {"u8", "i8"})
      for (int64_t k : {1, 2, 3, 4, 5, 6, 7, 8, 9, 63, 64, 65, 66, 130})
        for (int zeros : {0, 1, 2}) {
          std::string text = product(gen, x, w, k, 5, zeros);
          SCOPED_TRACE(text);
          auto m = parse(text, "test.uop");
          ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
          ASSERT_FALSE(bool(runNumerics(*m)));
          EvalInputs in;
          in.inputs = {randomBytes(gen, *dtypeNamed(x), {3, k}),
                       randomBytes(gen, *dtypeNamed(x), {zeros == 2 ? 3 : 1, 1})};
          auto expected = evalEntry(*m, m->entries[0], in);
          ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
          joinBytes(*m);
          EXPECT_EQ(countWords(*m), k < 3 ? 0u : 2u);
          auto found = evalEntry(*m, m->entries[0], in);
          ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError());
          EXPECT_TRUE(found->outputs[0].bytes == expected->outputs[0].bytes);
          auto s = schedule(*m);
          ASSERT_TRUE(bool(s)) << llvm::toString(s.takeError());
          for (bool expand : {false, true}) {
            auto run = ScheduleRun(*m, *s, *targetNamed("cpu:x86-64-v4+avx512vnni"), expand).run(0, in);
            ASSERT_TRUE(bool(run)) << llvm::toString(run.takeError());
            EXPECT_TRUE(run->outputs[0].bytes == expected->outputs[0].bytes) << print(*s);
          }
        }
}

// Weights are stored once; of a product of two inputs, or by weights that are set at run time, the rows of the second
// are made words, four at a time, and those of the first are words as they lie.
TEST(Bytes, WhichAndWhere) {
  auto scheduled = [](const char *body, unsigned words) {
    auto m = parse("module @m {\n param @w : i8[30, 40] = splat 3\n param @unset : i8[30, 40]\n entry @main(%x : "
                   "u8[7, 30], %q : i8[30, 40]) -> (%y : i32[7, 40]) {\n %a = cast %x : i32[7, 30]\n" +
                       std::string(body) + " %y = contract %a[i, k], %b[k, j] -> [i, j] sum [k]\n }\n}\n",
                   "test.uop");
    EXPECT_TRUE(bool(m)) << llvm::toString(m.takeError());
    EXPECT_FALSE(bool(runNumerics(*m)));
    joinBytes(*m);
    EXPECT_EQ(countWords(*m), words) << body;
    return print(llvm::cantFail(schedule(*m)));
  };
  std::string text = scheduled(" %b = cast @w : i32[30, 40]\n", 2);
  EXPECT_NE(text.find("param w: i8[30, 40] [1/16][0/4][1%16][0%4]"), std::string::npos) << text;
  EXPECT_EQ(text.find("folded"), std::string::npos) << text;
  scheduled(" %b = cast %q : i32[30, 40]\n", 1);
  scheduled(" %b = cast @unset : i32[30, 40]\n", 1);
}

// An operand of groups is looked at as far as its zero point, not behind: sums of sums would double at each step.
TEST(Bytes, LongSumsOfGroups) {
  std::string text = "module @m {\n entry @main(%x : i32[7, 24], %w : i32[3, 8, 40]) -> (%y : i32[7, 3, 40]) {\n"
                     " %a0 = neg %x\n";
  unsigned steps = 60;
  for (unsigned i = 0; i < steps; ++i) {
    std::string from = "%a" + std::to_string(i);
    text += " %a" + std::to_string(i + 1) + " = add " + from + ", " + from + "\n";
  }
  text += " %y = contract %a" + std::to_string(steps) + "[i, 8*g + k], %w[g, k, j] -> [i, g, j] sum [k]\n }\n}\n";
  auto m = parse(text, "test.uop");
  ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
  joinBytes(*m);
  EXPECT_EQ(countWords(*m), 0u);
}

TEST(Bytes, TypesAreRefused) {
  Context c;
  Builder b(c);
  auto refusal = [&](Op op, llvm::ArrayRef<UOpRef> src) {
    auto x = c.tryMake(op, src);
    return x ? std::string() : llvm::toString(x.takeError());
  };
  EXPECT_EQ(refusal(Op::Words, {b.arg(0, DType::U8, {b.idx(2), b.idx(6)})}),
            "words: of u8[2, 6], expected u8 or i8 and a last axis of a multiple of 4");
  EXPECT_EQ(refusal(Op::Words, {b.arg(0, DType::I16, {b.idx(4)})}),
            "words: of i16[4], expected u8 or i8 and a last axis of a multiple of 4");
  UOpRef f = b.arg(0, DType::F32, {}), i = b.arg(0, DType::I32, {});
  EXPECT_EQ(refusal(Op::Dot4, {f, f, f}), "dot4: found f32, expected i32");
  EXPECT_EQ(refusal(Op::Dot4, {i, i, i}), "");
}

} // namespace

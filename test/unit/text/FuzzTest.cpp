//===- FuzzTest.cpp: mutated .uop text is refused or read, never more ------===//
// Run under the asan preset this is the fuzzer of the parser: no mutation may crash, hang or read outside.
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include <gtest/gtest.h>
#include <random>

using namespace astra;

static const char *const seeds[] = {R"(module @m {
  dim n in 1..64
  dim "odd name" in 1..8
  require n == "odd name"*8
  param @w : f32[64, 10] = zeros
  param @"a b" : i4[2, 3] = hex "21013412"
  param @t : f32[3] = [1.5, -0.0, 0x7fc00001]
  state @q : i64
  func @f0[len in 0..8](%0 : f32[len], _, _) {
    %3 = reduce %0 kind=sum order=lane64 axes=[0] : f32
    %4 = const 7.0 : f32
    %5 = lt %3, %4 : bool
    return %5
  }
  func @f1(_, %1 : i64, %2 : i64) {
    %3 = add %1, %2 : i64
    %4 = extent %3 in 0..8
    %5 = iota [%4] axis=0 : f32[%4]
    return %5, %3, %2
  }
  entry @main(%x : f32[n, 3], %mask : bool[n], %i : i64) -> (%y : f32[%2, 3]) {
    %0 = cast %mask : i64[n]
    %1 = reduce %0 kind=sum order=exact axes=[0] : i64
    %2 = extent %1 in 0..64
    %y = compact %x, %mask [%2] : f32[%2, 3]
    %3 = const 0.0 : f32
    %4 = reshape %3 [1] : f32[1]
    %5 = while(@f0, @f1) %4, %i, %i [1] names=len
    %6 = proj %5 [] index=3 : i64
    set @q = %6
  }
}
)",
                                    R"(module @m {
  dim t in 1..8
  entry @conv(%x : f32[2, 3, 9, 9], %w : f32[4, 3, 3, 3]) -> (%y : f32[2, 4, 4, 4]) {
    %y = contract %x[n, c, oh*2 + kh - 1, (ow + kw - 1)/2], %w[o, c, kh, kw] -> [n, o, oh: 4, ow: 4] sum [kh, kw, c]
  }
  entry @causal(%q : f32[t, 4], %v : f32[4, t]) -> (%y, %m, %p, %s) {
    %y = contract %q[a, k], %v[k, b] -> [a, b] sum [k] where b <= a, k < t, 3 > a
    %m = reduce %q kind=max order=exact axes=[1] where i1 <= i0, t - 1 >= i0
    %p = pad %q [1, floordiv(t, 2)] [0, min(t, 3)*2] value=-inf
    %0 = shrink %q [0, 1] [max(t, 1), mod(t + 5, 3)]
    %s = window %v axis=0 size=2 stride=1 dilation=1
  }
}
)"};

static std::string mutate(std::string s, std::mt19937_64 &random) {
  static const char *const words[] = {
      "%0",    "%y",      "@w",    "[",         "]",         "(",          ")",        ",",   "->",
      "-",     "1",       "0",     "n",         "t",         "= zeros",    "*",        "f32", "i64",
      "sum",   "where",   "99999", "\"a\\",     ":",         "while",      "contract", "0x",  "-9223372036854775808",
      "1e999", "splat 1", "..",    "floordiv(", "set @q = ", "complex128", "axes=[0]"};
  for (unsigned edits = 1 + random() % 3; edits--;) {
    size_t at = random() % (s.size() + 1), to = random() % (s.size() + 1);
    switch (random() % 5) {
    case 0: s.erase(at, random() % 8); break;
    case 1: s.insert(at, words[random() % std::size(words)]); break;
    case 2: s.insert(at, s.substr(to, random() % 40)); break;
    case 3:
      if (at < s.size()) s[at] = char(random());
      break;
    default: // a number replaced
      at = s.find_first_of("0123456789", at);
      if (at != s.npos) s.replace(at, 1, words[random() % std::size(words)]);
    }
  }
  return s;
}

TEST(Text, MutatedTextIsRefusedOrRead) {
  std::mt19937_64 random(1);
  unsigned read = 0, verified = 0;
  for (unsigned i = 0; i < 60000; ++i) {
    std::string text = mutate(seeds[i % 2], random);
    auto m = parse(text, "fuzz.uop");
    if (!m) {
      std::string error = llvm::toString(m.takeError());
      ASSERT_EQ(error.find("fuzz.uop:"), 0u) << error;
      continue;
    }
    ++read;
    if (auto e = verify(*m, Stage::Graph)) {
      llvm::consumeError(std::move(e));
      continue;
    }
    ++verified;
    std::string once = print(*m);
    auto again = parse(once, "again.uop");
    ASSERT_TRUE(bool(again)) << text << once << llvm::toString(again.takeError());
    ASSERT_EQ(print(*again), once) << text;
  }
  EXPECT_GT(read, 1000u);
  EXPECT_GT(verified, 500u);
}

TEST(Text, HugeProductsAreRefused) {
  std::string sum = "n0", text = "module @m {\n";
  for (int i = 0; i < 200; ++i) {
    text += "  dim n" + std::to_string(i) + " in 0..1\n";
    if (i) sum += " + n" + std::to_string(i);
  }
  text += "  entry @e(%x : f32[" + sum + ", " + sum + "]) -> (%y) {\n    %y = reshape %x [" + sum + ", " + sum +
          "]\n  }\n}\n";
  auto m = parse(text, "t.uop");
  ASSERT_FALSE(bool(m));
  EXPECT_NE(llvm::toString(m.takeError()).find("2^14 terms"), std::string::npos);
}

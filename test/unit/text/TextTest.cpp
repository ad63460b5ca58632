//===- TextTest.cpp: round trips and diagnostics of .uop text --------------===//
#include "astra/IR/Text.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Fields.h"
#include <gtest/gtest.h>

using namespace astra;

static std::string again(const std::string &text) {
  auto m = parse(text, "t.uop");
  if (!m) return llvm::toString(m.takeError());
  return print(*m);
}
static std::string errorOf(llvm::StringRef text) {
  auto m = parse(text, "t.uop");
  return m ? "no error" : llvm::toString(m.takeError());
}

TEST(Text, CanonicalTextComesBackAsItIs) {
  const char *text = R"(module @affine {
  dim n in 0..64
  dim "odd name" in 1..8
  require n == "odd name"*8
  param @w : f32[64, 10] = zeros
  param @b : f32[10]
  param @"a b" : i4[2, 3] = hex "21013412"
  param @t : f32[3] = [1.5, -0.0, 0x7fc00001]
  state @cache : f32[16, 8]
  entry @main(%x : f32[n, 64], %"0" : bool) -> (%y : f32[n, 10], %z : f32[n, 10], %x : f32[n, 64]) {
    %0 = contract %x[i0, k0], @w[k0, i1] -> [i0, i1] sum [k0] : f32[n, 10]
    %1 = reshape @b [1, 10] : f32[1, 10]
    %2 = expand %1 [n, 10] : f32[n, 10]
    %y = add %0, %2 : f32[n, 10]
    %z = %y
    set @cache = @cache
  }
}
)";
  EXPECT_EQ(again(text), text);
}

TEST(Text, FunctionsAndDataDims) {
  const char *text = R"(module @m {
  dim n in 1..64
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
)";
  EXPECT_EQ(again(text), text);
}

TEST(Text, Listings) {
  Context c;
  const char *text = R"(dim n in 0..64
%0 = buffer [n*4 + 4] slot=1 : f32
%1 = buffer [n*4 + 4] slot=0 : f32
%2 = range [n + 1] axis=0 kind=parallel
%3 = range [4] axis=1 kind=vector
%4 = load %1 [%2*4 + %3] : f32
%5 = const 2.0 : f32
%6 = mul %4, %5 : f32
%7 = lt [%3, n] : bool
%8 = store %0, %6, %7 [%2*4 + %3]
%9 = sink %8
)";
  auto nodes = parseListing(c, text, "k.uop");
  ASSERT_TRUE(bool(nodes)) << llvm::toString(nodes.takeError());
  std::string first = print(nodes->back());
  Context d;
  auto same = parseListing(d, first, "k.uop");
  ASSERT_TRUE(bool(same)) << llvm::toString(same.takeError());
  EXPECT_EQ(print(same->back()), first);
  EXPECT_EQ(nodes->back()->hash, same->back()->hash);
}

TEST(Text, ContractForms) {
  const char *text = R"(module @m {
  dim t in 1..8
  dim i0 in 1..8
  entry @conv(%x : f32[2, 3, 9, 9], %w : f32[4, 3, 3, 3]) -> (%y : f32[2, 4, 4, 4]) {
    %y = contract %x[n, c, oh*2 + kh - 1, ow*2 + kw - 1], %w[o, c, kh, kw] -> [n, o, oh: 4, ow: 4] sum [kh, kw, c]
  }
  entry @back(%g : f32[2, 4, 4, 4], %w : f32[4, 3, 3, 3]) -> (%y) {
    %y = contract %g[n, o, (ih + 1 - kh)/2, (iw + 1 - kw)/2], %w[o, c, kh, kw] -> [n, c, ih: 9, iw: 9] sum [kh, kw, o]
  }
  entry @causal(%q : f32[t, i0], %v : f32[i0, t]) -> (%y, %m) {
    %y = contract %q[a, k], %v[k, b] -> [a, b] sum [k] where b <= a, k < t, 3 > a
    %m = reduce %q kind=max order=exact axes=[1] where i1 <= i0_, t - 1 >= i0_
  }
}
)";
  std::string first = again(text);
  EXPECT_EQ(again(first), first);
  EXPECT_NE(first.find("%x[i0_, k2, i2*2 + k0 - 1, i3*2 + k1 - 1], %w[i1, k2, k0, k1] -> [i0_, i1, i2: 4, i3: 4] sum "
                       "[k0, k1, k2] : f32[2, 4, 4, 4]"),
            std::string::npos)
      << first;
  EXPECT_NE(first.find("where i0_ - i1 >= 0, -k0 + (t - 1) >= 0, -i0_ + 2 >= 0"), std::string::npos) << first;
  EXPECT_NE(first.find("where i0_ - i1 >= 0, -i0_ + (t - 1) >= 0"), std::string::npos) << first;
}

TEST(Text, Diagnostics) {
  EXPECT_EQ(errorOf("module @m {\n  entry @f(%x : f32[n]) -> (%y) {\n  }\n}\n"),
            "t.uop:2:21: error: no dim is called n\n  entry @f(%x : f32[n]) -> (%y) {\n                    ^");
  EXPECT_EQ(errorOf("module @m {\n  entry @f(%x : f32[2], %y : f32[3]) -> (%z) {\n    %z = add %x, %y\n  }\n}\n"),
            "t.uop:3:10: error: add: sources differ: f32[2] and f32[3] (cast or expand one)\n    %z = add %x, %y\n"
            "         ^");
  EXPECT_EQ(errorOf("module @m {\n  dim n in 0..99999999999999999999\n}"),
            "t.uop:2:15: error: 99999999999999999999 is not a 64-bit integer\n  dim n in 0..99999999999999999999\n"
            "              ^");
  EXPECT_EQ(errorOf("module @m {\n  param @w : f32[2] = [1.0]\n}").substr(0, 50),
            "t.uop:2:23: error: found 1 literals, expected 2\n  ");
  EXPECT_EQ(errorOf("module @m {\n  param @w : f32[2] = file(\"../w.safetensors\", \"w\")\n}").substr(0, 76),
            "t.uop:2:23: error: ../w.safetensors is not inside the folder of the text\n  p");
  std::string deep = "module @m {\n  dim n in 1..2\n  require " + std::string(1000, '(') + "n";
  EXPECT_NE(errorOf(deep).find("nested more than 64 deep"), std::string::npos);
  EXPECT_NE(errorOf("module @m { \"").find("the string has no end"), std::string::npos);
}

/// What is left out is filled in, and printed.
TEST(Text, ShortForms) {
  auto module = [](const std::string &body, const char *arguments = "%x : f32[n, 3]", const char *results = "%y") {
    return std::string(
               "module @m {\n  dim n in 1..64\n  func @go(%a : i64, _) {\n    %more = lt %a, 5\n    return %more\n"
               "  }\n  func @step(%a : i64, %b : f32[n]) {\n    %c = add 1, %a\n    return %c, %b\n  }\n"
               "  func @once(%a : f32, %b : f32) {\n    %c = mul %a, %b\n    return %c, %c, %b\n  }\n"
               "  entry @main(") +
           arguments + ") -> (" + results + ") {\n" + body + "  }\n}\n";
  };
  auto same = [&](const char *what, const std::string &text, const std::string &whole) {
    EXPECT_EQ(again(text.c_str()), again(whole.c_str())) << what;
    std::string canonical = again(whole.c_str());
    EXPECT_EQ(again(canonical.c_str()), canonical) << what;
  };
  const std::string constant = "    %c = const -1.5 : f32\n    %r = reshape %c [1, 1]\n    %e = expand %r [n, 3]\n";
  same("second", module("    %y = add %x, -1.5\n"), module(constant + "    %y = add %x, %e\n"));
  same("first", module("    %y = sub -1.5, %x\n"), module(constant + "    %y = sub %e, %x\n"));
  same("two", module("    %y = fma %x, -1.5, -1.5\n"), module(constant + "    %y = fma %x, %e, %e\n"));
  same("scalar", module("    %y = max %x, -inf\n", "%x : f64"),
       module("    %c = const -inf : f64\n    %y = max %x, %c\n", "%x : f64"));
  same("bool", module("    %y = and %x, true\n", "%x : bool"),
       module("    %c = const true : bool\n    %y = and %x, %c\n", "%x : bool"));
  same("compared", module("    %y = lt %x, 0x3f800000\n", "%x : f32"),
       module("    %c = const 1.0 : f32\n    %y = lt %x, %c\n", "%x : f32"));
  same("scaled", module("    %y = scale2 %x, -3\n", "%x : f32"),
       module("    %c = const -3 : i32\n    %y = scale2 %x, %c\n", "%x : f32"));
  same("chosen", module("    %y = select %m, %x, nan\n", "%m : bool, %x : f16"),
       module("    %c = const nan : f16\n    %y = select %m, %x, %c\n", "%m : bool, %x : f16"));
  same("typed", module("    %y = select %m, 1, 2 : i8\n", "%m : bool"),
       module("    %a = const 1 : i8\n    %b = const 2 : i8\n    %y = select %m, %a, %b\n", "%m : bool"));
  same("while",
       module("    %l = while(@go, @step) %i, %x\n    %y = proj %l index=0\n    %z = proj %l index=1\n",
              "%i : i64, %x : f32[n]", "%y, %z"),
       module("    %l = while(@go, @step) %i, %x [] names=\"\"\n    %y = proj %l [] index=0 : i64\n    %z = proj %l "
              "[n] index=1 : f32[n]\n",
              "%i : i64, %x : f32[n]", "%y, %z"));
  same("scan",
       module(
           "    %l = scan(@once) %i, %x [n] ncarry=1 nxs=1\n    %y = proj %l index=0 : f32\n    %z = proj %l index=2\n",
           "%i : f32, %x : f32[n]", "%y, %z"),
       module("    %l = scan(@once) %i, %x [n] ncarry=1 nxs=1\n    %y = proj %l [] index=0 : f32\n    %z = proj %l [n] "
              "index=2 : f32[n]\n",
              "%i : f32, %x : f32[n]", "%y, %z"));
  for (auto [kind, order, type] : {std::tuple("max", "exact", "f32"),
                                   {"sum", "lane64", "f32"},
                                   {"sum", "exact", "i8"},
                                   {"and", "exact", "bool"},
                                   {"sum", "lane64", "complex64"},
                                   {"prod", "pairs", "complex64"}})
    same(kind,
         module(std::string("    %y = reduce %x kind=") + kind + " axes=[1]\n",
                (std::string("%x : ") + type + "[n, 3]").c_str()),
         module(std::string("    %y = reduce %x kind=") + kind + " order=" + order + " axes=[1]\n",
                (std::string("%x : ") + type + "[n, 3]").c_str()));
  auto refused = [&](const std::string &text, const char *sentence) {
    EXPECT_NE(errorOf(text.c_str()).find(sentence), std::string::npos) << errorOf(text.c_str());
  };
  refused(module("    %y = add 1.0, 2.0\n"), "t.uop:16:14: error: add of literals alone: write const for one of them");
  refused(module("    %y = add %x, 1.5e40\n"), "t.uop:16:18: error: 1.5e40 is not a literal of f32: too large");
  refused(module("    %y = shl %x, 0.5\n", "%x : i32"), "0.5 is not a literal of i32: expected an integer that fits");
  refused(module("    %y = select %m, 1, 2\n", "%m : bool"), "no operand gives the type of 1: write the result's type");
  refused(module("    %y = neg 1.0\n"), "t.uop:16:10: error: neg: takes 1 sources, found 0");
  refused(module("    %l = while(@go, @step) %i, %x\n    %y = proj %l index=2\n", "%i : i64, %x : f32[n]"),
          "result 2 of 2");
  refused(module("    %l = while(@go, @step) %i, %x\n    %y = proj %l\n", "%i : i64, %x : f32[n]"),
          "proj needs index=");
  refused("module @m {\n  func @go[len in 1..8](%a : f32[len]) {\n    %s = reduce %a kind=sum axes=[0]\n    %m = lt "
          "%s, 9.0\n    return %m\n  }\n"
          "  func @step[len in 1..8](%a : f32[len]) {\n    %b = neg %a\n    return %b\n  }\n  entry @e(%x : f32[2]) -> "
          "(%y) {\n"
          "    %l = while(@go, @step) %x [2] names=len\n    %y = proj %l index=0\n  }\n}\n",
          "t.uop:13:10: error: the shape of result 0 is known inside of the function only: write it, proj %x [...] "
          "index=0");
}

/// What is missing at the end of a line is reported there, not where the next line begins.
TEST(Text, MissingPartsAreReportedWhereTheyAreMissing) {
  auto in = [](const std::string &line) {
    return errorOf(("module @m {\n  dim n in 1..9\n  entry @e(%x : f32[n, 2]) -> (%y) {\n    " + line +
                    "\n\n    // a comment\n    %y = neg %x\n  }\n}\n")
                       .c_str());
  };
  auto at = [&](const std::string &line, const char *what) {
    std::string wanted = "t.uop:4:" + std::to_string(5 + line.size()) + ": error: " + what;
    EXPECT_EQ(in(line).substr(0, wanted.size()), wanted) << in(line);
    EXPECT_EQ(in(line).substr(wanted.size()), "\n    " + line + "\n" + std::string(4 + line.size(), ' ') + "^");
  };
  at("%0 = reshape %x [2, n", "expected ]");
  at("%0 = reshape %x [2,", "expected a symbolic integer");
  at("%0 = reshape %x [2, n*", "expected a symbolic integer");
  at("%0 = reshape %x [2, min(n, 2", "expected )");
  at("%0 = reshape %x", "expected [");
  at("%0 = permute %x perm=[1, 0", "expected ]");
  at("%0 = permute %x perm=", "expected a literal");
  at("%0 = add %x,", "expected a value: %name or @name");
  at("%0 = add", "expected a value: %name or @name");
  at("%0 =", "expected an op");
  at("%0", "expected =");
  at("%0 = cast %x :", "expected a type");
  at("%0 = cast %x : f64[n, 2", "expected ]");
  at("%0 = contract %x[i, k], %x[j, k] -> [i, j", "expected ]");
  at("%0 = contract %x[i, k], %x[j, k] ->", "expected [");
  at("%0 = extent %x in 0", "expected ..");
  EXPECT_EQ(in("%0 = add %x %x"),
            "t.uop:4:17: error: expected , between two values\n    %0 = add %x %x\n                ^");
  EXPECT_EQ(errorOf("module @m {\n  entry @e(%x : f32[2]) -> (%y : f32[2])\n    %y = neg %x\n  }\n}\n"),
            "t.uop:2:41: error: expected {\n  entry @e(%x : f32[2]) -> (%y : f32[2])\n                                 "
            "       ^");
  EXPECT_EQ(errorOf("module @m {\n  dim n in 1..9\n  require n ==\n  entry @e(%x : f32[n]) -> (%x) {\n  }\n}\n")
                .substr(0, 45),
            "t.uop:3:15: error: expected a symbolic intege");
  EXPECT_EQ(errorOf("module @m {\n  param @w : f32[2] = [1.0, 2.0\n  param @v : f32[2]\n}\n").substr(0, 30),
            "t.uop:2:32: error: expected ]\n");
  EXPECT_EQ(errorOf("module @m {\n  func @f(%x : f32[2]) {\n    return %x\n  entry @e(%x : f32[2]) -> (%x) {\n  }\n}\n")
                .substr(0, 30),
            "t.uop:3:14: error: expected }\n");
}

TEST(Text, LiteralsKeepTheirBits) {
  for (unsigned i = 0; i < numDTypes; ++i) {
    DType t = DType(i);
    unsigned w = bitWidth(t);
    if (!isArithmetic(t) && (w == 0 || w > 8)) continue;
    uint64_t mask = w == 64 ? ~0ull : (1ull << w) - 1;
    uint64_t x = 88172645463325252ull;
    uint64_t count = w <= 16 ? mask + 1 : 100000;
    if (t == DType::Bool) count = 2;
    for (uint64_t k = 0; k < count; ++k) {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      uint64_t bits = w <= 16 ? k : x & mask;
      auto back = literalBits(t, literalText(t, bits));
      ASSERT_TRUE(bool(back)) << llvm::toString(back.takeError());
      ASSERT_EQ(*back, bits) << info(t).text << " " << literalText(t, bits);
    }
  }
}

TEST(Text, LongChainsAndSharedIndices) {
  Module m;
  Builder b(m.ctx());
  UOpRef x = b.arg(0, DType::F32, {b.idx(4)}), y = x;
  for (int i = 0; i < 200000; ++i) y = i % 2 ? b.add(y, x) : b.mul(y, y);
  m.entries.push_back({"main", {{"x", x}}, {{"y", y}}, {}});
  std::string text = print(m);
  EXPECT_EQ(again(text), text);

  Module s; // each level mentions the one below twice: 2^100 characters if written out
  Builder bs(s.ctx());
  UOpRef n = bs.dim("n", 1, 8), e = n;
  s.dims.push_back(n);
  for (int i = 0; i < 100; ++i)
    e = idxMin(s.ctx(), idxAdd(s.ctx(), idxDiv(s.ctx(), e, bs.idx(3)), bs.idx(i)),
               idxAdd(s.ctx(), idxMod(s.ctx(), e, bs.idx(7)), bs.idx(i)));
  UOpRef f = bs.fromIndex(e, DType::I64);
  s.entries.push_back({"main", {}, {{"y", f}}, {}});
  text = print(s);
  EXPECT_LT(text.size(), 40000u);
  EXPECT_EQ(again(text), text);
}

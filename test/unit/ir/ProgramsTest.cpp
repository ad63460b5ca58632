//===- ProgramsTest.cpp: kernels of text whose programs store one element ---===//
// Takes:    kernels that copy tiles to where they stood, and that scatter: with and without races; kernels that are
//           drawn.
// Gives:    checks that what is refused is what the evaluator refuses, with its programs and its element, and that
//           correct kernels are shown.
#include "astra/IR/Eval.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include "gtest/gtest.h"
#include <random>

using namespace astra;

namespace {
struct Kernel {
  const char *dims; // of the module: "n 1 64, m 0 9"
  const char *grid; // name, its greatest value and the extent of each axis: "i 7 n, j 3 4"
  std::string begin, size, whole;
  const char *wanted = ""; // of the refusal
};
std::vector<std::string> parts(llvm::StringRef text, llvm::StringRef at) {
  llvm::SmallVector<llvm::StringRef, 4> found;
  text.split(found, at, -1, false);
  std::vector<std::string> out;
  for (llvm::StringRef p : found) out.push_back(p.trim().str());
  return out;
}
std::string textOf(const Kernel &k) {
  std::string text = "module @m {\n", ranges, extents, names;
  for (const std::string &d : parts(k.dims, ",")) {
    auto part = parts(d, " ");
    text += "  dim " + part[0] + " in " + part[1] + ".." + part[2] + "\n";
  }
  for (const std::string &g : parts(k.grid, ";")) {
    auto part = parts(g, " ");
    std::string comma = names.empty() ? "" : ", ";
    ranges += comma + part[0] + " in 0.." + part[1];
    names += (names.empty() ? "" : ",") + part[0];
    extents += comma + g.substr(g.find(part[1], part[0].size() + 1) + part[1].size() + 1);
  }
  return text + "  func @f[" + ranges + "](%x : f32[" + k.whole + "]) {\n    %t = shrink %x [" + k.begin + "] [" +
         k.size + "]\n    %y = place %t [" + k.begin + "] [" + k.whole + "] value=0.0\n    return %y\n  }\n" +
         "  entry @main(%x : f32[" + k.whole + "]) -> (%y : f32[" + k.whole + "]) {\n    %k = custom(@f) %x [" +
         extents + "] names=\"" + names + "\"\n    %y = proj %k index=0\n  }\n}\n";
}
/// A scatter of 1 to where the statements say that %at is: an i64 tensor of this shape, into a tensor of 64.
std::string scatterOf(const char *grid, const char *shape, const char *statements) {
  auto part = parts(grid, " ");
  return "module @m {\n  func @f[" + part[0] + " in 0.." + part[1] + "](%x : f32[64]) {\n" + statements +
         "    %one = const 1.0 : f32\n    %o1 = reshape %one [1]\n    %o = expand %o1 [" + shape +
         "]\n    %y = scatter %x, %at, %o axis=0 kind=set\n    return %y\n  }\n" +
         "  entry @main(%x : f32[64]) -> (%y : f32[64]) {\n    %k = custom(@f) %x [" + part[2] + "] names=" + part[0] +
         "\n    %y = proj %k index=0\n  }\n}\n";
}

/// What verifyPrograms says: "shown", "not shown" or why it refuses.
std::string said(const Module &m) {
  if (llvm::Error e = verify(m, m.stage)) return "wrong: " + llvm::toString(std::move(e));
  auto unshown = verifyPrograms(m);
  if (!unshown) return llvm::toString(unshown.takeError());
  return unshown->empty() ? "shown" : "not shown";
}
std::string saidOf(const std::string &text) {
  auto m = parse(text, "test");
  return m ? said(*m) : llvm::toString(m.takeError()) + text;
}
/// What the evaluator refuses for these sizes; nothing where it runs, "large" where it is not asked.
std::string evaluated(const Module &m, const std::map<std::string, int64_t> &dims) {
  const Entry &e = m.entries[0];
  auto value = [&](UOpRef x) -> std::optional<int64_t> {
    auto it = dims.find(x->str.str());
    return it == dims.end() ? std::nullopt : std::optional(it->second);
  };
  EvalInputs in;
  in.dims = dims;
  Tensor x{DType::F32, {}, {}};
  for (UOpRef n : e.inputs[0].value->shape) x.shape.push_back(*idxEvaluate(n, value));
  constexpr int64_t most = 1 << 16; // more take seconds
  if (x.count() > most) return "large";
  x.bytes.resize(size_t(x.count()) * 4);
  in.inputs.push_back(std::move(x));
  auto r = evalEntry(m, e, in);
  return r ? "" : llvm::toString(r.takeError());
}
/// "programs .. of" of a sentence: two programs and an element.
std::string meeting(llvm::StringRef sentence) {
  size_t from = sentence.find("programs ("), to = sentence.find(" of ", from);
  return from == llvm::StringRef::npos ? "" : sentence.slice(from, to).str();
}
/// The sizes behind "where".
std::map<std::string, int64_t> sizesOf(llvm::StringRef sentence) {
  std::map<std::string, int64_t> sizes;
  for (const std::string &d : parts(sentence.split(" where ").second, ","))
    sizes[parts(d, " = ")[0]] = std::stoll(parts(d, " = ")[1]);
  return sizes;
}
/// Sizes within the bounds of a module's dims: the least, the greatest up to 40 more, some between.
std::vector<std::map<std::string, int64_t>> someSizes(const Module &m) {
  std::vector<std::map<std::string, int64_t>> out(4);
  for (UOpRef d : m.dims) {
    int64_t far = std::min<int64_t>(d->hi, d->lo + 40);
    int64_t values[] = {d->lo, far, d->lo + (far - d->lo) / 3, d->lo + (far - d->lo) * 2 / 3};
    for (size_t i = 0; i < 4; ++i) out[i][d->str.str()] = values[i];
  }
  return out;
}
} // namespace

TEST(Programs, RacesAreRefusedAsTheEvaluatorRefusesThem) {
  const Kernel races[] = {
      {"", "i 7 8", "i*2", "8", "24", "programs (0) and (1) both store element (2) of result 0"},
      {"", "i 1 2", "i", "2", "4", "programs (0) and (1) both store element (1) of result 0"},
      {"", "i 9 10", "0", "1", "1", "programs (0) and (1) both store element (0) of result 0"},
      {"", "i 3 4; j 3 4", "i*4, j*3", "4, 4", "16, 16",
       "programs (0, 0) and (0, 1) both store element (0, 3) of result 0"},
      {"", "i 3 4; j 3 4", "i*4, i*4", "4, 4", "16, 16",
       "programs (0, 0) and (0, 1) both store element (0, 0) of result 0"},
      {"", "i 3 4; j 3 4", "i*4 + j*2", "4", "32", "programs (0, 0) and (0, 1) both store element (2) of result 0"},
      {"", "i 3 4; j 3 4", "i*3 + j", "1", "32", "programs (0, 3) and (1, 0) both store element (3) of result 0"},
      {"", "i 31 32", "mod(i, 31)", "1", "31", "programs (0) and (31) both store element (0) of result 0"},
      {"", "i 31 32", "mod(i*2, 32)", "1", "32", "programs (0) and (16) both store element (0) of result 0"},
      {"", "i 31 32", "floordiv(i, 2)", "1", "16", "programs (0) and (1) both store element (0) of result 0"},
      {"", "i 31 32", "floordiv(i, 4), mod(i, 2)", "1, 1", "8, 2",
       "programs (0) and (2) both store element (0, 0) of result 0"},
      {"", "i 9 10", "min(i, 8)", "1", "9", "programs (8) and (9) both store element (8) of result 0"},
      {"", "i 9 10", "max(i, 1)", "1", "10", "programs (0) and (1) both store element (1) of result 0"},
      {"", "i 3 4", "min(i*8, 22)", "8", "30", "programs (2) and (3) both store element (22) of result 0"},
      {"", "i 2 3; j 2 3", "i + j, 0", "1, 5", "5, 5",
       "programs (0, 1) and (1, 0) both store element (1, 0) of result 0"},
      {"", "i 2 3; j 2 3; k 2 3", "i*9 + j*3 + k*3", "1", "40",
       "programs (0, 0, 1) and (0, 1, 0) both store element (3) of result 0"},
      {"", "i 999999 1000000", "floordiv(i, 999999)", "1", "2",
       "programs (0) and (1) both store element (0) of result 0"},
      {"", "i 4 5", "-i*3 + 20", "4", "24", "programs (0) and (1) both store element (20) of result 0"},
      {"n 1 9", "i 8 n", "min(i, 7)", "2", "10", "programs (0) and (1) both store element (1) of result 0 where n = 2"},
      {"n 1 64", "i 63 n", "min(i, n - 1)", "1", "n + 1", "shown"},
      {"n 1 64", "i 64 n + 1", "min(i, n - 1)", "1", "n",
       "programs (0) and (1) both store element (0) of result 0 where n = 1"},
      {"n 16 64", "i 3 floordiv(n + 15, 16)", "min(i*16, n - 16)", "16", "n",
       "programs (0) and (1) both store element (1) of result 0 where n = 17"},
      {"n 1 64", "i 7 floordiv(n + 7, 8)", "min(n, i*7)", "min(8, n - min(n, i*7))", "n",
       "programs (0) and (1) both store element (7) of result 0 where n = 9"},
      {"n 1 1000", "i 999 n; j 9 10", "min(i*9 + j, n*9)", "1", "9*n + 10",
       "programs (0, 9) and (1, 0) both store element (9) of result 0 where n = 2"},
      {"n 1 8, m 1 8", "i 7 n; j 7 m", "i*n + j", "1", "8*n + 8",
       "programs (0, 2) and (1, 0) both store element (2) of result 0 where n = 2, m = 3"},
      {"n 1 100000, m 1 7", "i 99999 n", "mod(i, m)", "1", "7",
       "programs (0) and (1) both store element (0) of result 0 where n = 2, m = 1"},
      {"n 0 40", "i 39 n", "mod(i*5, 30)", "1", "30",
       "programs (0) and (6) both store element (0) of result 0 where n = 7"},
  };
  size_t refused = 0;
  for (const Kernel &k : races) {
    SCOPED_TRACE(textOf(k));
    auto m = parse(textOf(k), "test");
    ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
    std::string found = said(*m);
    if (llvm::StringRef(k.wanted) == "shown") {
      EXPECT_EQ(found, "shown");
      continue;
    }
    ++refused;
    EXPECT_EQ(found, "at custom (line " + std::to_string(8 + m->dims.size()) + "): " + k.wanted);
    EXPECT_EQ(meeting(found), meeting(evaluated(*m, sizesOf(found))));
  }
  EXPECT_GE(refused, 25u);
}

TEST(Programs, CorrectKernelsAreShown) {
  const Kernel kernels[] = {
      {"", "i 7 8", "i*8", "8", "64"},
      {"", "i 7 8", "i*8", "5", "64"},
      {"", "i 0 1", "0", "8", "8"},
      {"", "i 7 8", "-i*8 + 56", "8", "64"},
      {"", "i 99999 100000; j 6 7", "i*63 + j*9", "9", "6300000"},
      {"", "i 99999 100000; j 6 7", "j*900000 + i*9", "9", "6300000"},
      {"", "i 99999 100000", "floordiv(i, 8)*4, mod(i, 8)*4", "4, 4", "50000, 32"},
      {"", "i 99999 100000", "mod(i, 8)*4, floordiv(i, 8)*4", "4, 4", "32, 50000"},
      {"", "i 99999 100000", "mod(i, 8)*100000 + floordiv(i, 8)*4", "4", "900000"},
      {"", "i 99999 100000", "floordiv(i, 64), mod(floordiv(i, 8), 8), mod(i, 8)", "1, 1, 1", "1563, 8, 8"},
      {"", "i 999999 1000000; j 1 2", "j, i", "1, 1", "2, 1000000"},
      {"", "i 15 16", "mod(i*3, 16)", "1", "16"},
      {"", "i 15 16", "mod(i*5 + 3, 16)*2", "2", "32"},
      {"", "i 7 8", "i*3 + floordiv(i, 2)", "3", "40"},
      {"", "i 3 4; j 3 4", "i*4, j*4", "4, 4", "16, 16"},
      {"", "i 3 4; j 3 4", "i*4, i*2 + j*4", "4, 4", "16, 24"},
      {"", "i 3 4; j 3 4", "i + j, j", "1, 1", "8, 4"},
      {"", "i 3 4; j 3 4; k 1 2", "i*32 + j*8 + k*4", "4", "128"},
      {"", "i 3 4; j 0 1; k 1 2", "i*32 + k*4 + j", "4", "128"},
      {"", "i 5 6", "min(i, 5)", "1", "6"},
      {"", "i 5 6", "max(i*4, 0)", "4", "24"},
      {"", "i 63 64", "mod(i, 64)", "1", "64"},
      {"", "i 2047 2048; j 511 512", "i, j", "1, 1", "2048, 512"},
      {"", "i 1 2", "i*25", "25", "50"},
      {"", "i 2 3", "i*4", "min(4, 10 - i*4)", "10"},
      {"n 0 1000", "i 249 floordiv(n + 3, 4)", "min(n, i*4)", "min(4, n - min(n, i*4))", "n"},
      {"n 1 2147483646", "i 2147483645 n", "i", "1", "n + 2147483646"},
      {"n 1 2147483647", "i 2147483646 n", "min(i, n - 1)", "1", "n"},
      {"n 1 65535, m 1 32767", "i 2147385344 n*m", "min(i, n*m - 1)", "1", "n*m"},
      {"n 1 65535, m 1 32767", "i 2147385344 n*m", "min(i, n*m - 1), 0", "1, 8", "n*m, 8"},
      {"n 1 127, m 1 4095, k 1 4095", "i 2129666174 n*m*k", "min(i, n*m*k - 1)", "1", "n*m*k"},
      {"n 1 5000", "i 4999 n", "min(n, i*16)", "min(16, n - min(n, i*16))", "n"},
      {"n 1 64, m 1 1000", "i 999 m", "i*n", "n", "1000*n"},
      {"n 1 64, m 1 1000", "i 999 m", "i*n, 0", "n, 1", "1000*n, m"},
      {"n 1 64, m 1 64", "i 63 n; j 63 m", "min(i*m + j, n*m - 1)", "1", "n*m"},
      {"n 1 64, m 1 64", "i 63 n; j 63 m", "min(j*n + i, n*m - 1)", "1", "n*m"},
      {"n 1 64, m 1 64", "i 63 n; j 63 m", "i*64 + j", "1", "4096"},
      {"n 1 64, m 1 64, k 1 64", "i 63 n; j 63 m; l 63 k", "i*m*k + j*k + l", "1", "64*m*k + 64*k + 64"},
      {"n 1 64, m 1 64, k 1 64", "i 63 n; j 63 m", "i*m*k + j*k", "k", "64*m*k + 64*k"},
      {"n 1 64, m 1 64", "i 4095 n*m", "floordiv(i, m), mod(i, m)", "1, 1", "4096, 64"},
      {"n 1 64, m 1 64", "i 4095 n*m", "mod(i, m), floordiv(i, m)", "1, 1", "64, 4096"},
      {"n 1 64, m 1 64", "i 4095 n*m", "mod(i, m)*64 + min(floordiv(i, m), 63)", "1", "5000"},
      {"n 1 640, m 1 640", "i 39 floordiv(n + 15, 16); j 39 floordiv(m + 15, 16)", "min(n, i*16), min(m, j*16)",
       "min(16, n - min(n, i*16)), min(16, m - min(m, j*16))", "n, m"},
      {"n 1 640, m 1 640", "i 39 floordiv(n + 15, 16); j 39 floordiv(m + 15, 16)", "min(m, j*16), min(n, i*16)",
       "min(16, m - min(m, j*16)), min(16, n - min(n, i*16))", "m, n"},
      {"n 1 640, m 1 640", "i 1599 floordiv(n + 15, 16)*floordiv(m + 15, 16)",
       "min(n, floordiv(i, floordiv(m + 15, 16))*16), min(m, mod(i, floordiv(m + 15, 16))*16)",
       "min(16, n - min(n, floordiv(i, floordiv(m + 15, 16))*16)), min(16, m - min(m, mod(i, floordiv(m + 15, "
       "16))*16))",
       "n, m"},
      {"n 8 100000", "i 12499 floordiv(n, 8)", "max(0, n - 8 - i*8)", "8", "n"},
      {"n 8 100000", "i 99999 n", "max(0, n - 1 - i)", "1", "n"},
      {"n 1 100000", "i 99999 n", "i*2 + 1", "1", "200000"},
      {"n 0 300, m 0 7", "i 299 n; j 6 m", "i*7 + j", "1", "2107"},
      {"n 1 9", "i 4 floordiv(n + 1, 2)", "min(i*2, n)", "min(2, n - min(i*2, n))", "n"},
      {"n 1 12", "i 11 n", "mod(i + 5, n)", "1", "12"},
      {"n 1 12", "i 11 n", "mod(i*13, 12)", "1", "12"},
      {"n 1 12, m 1 3", "i 11 n", "min(i*m, 40)", "1", "41"},
      {"n 4 64", "i 15 floordiv(n, 4)", "min(i*4, n - 4)", "4", "n"},
      {"b 1 16, n 1 4096", "b0 15 b; i 63 floordiv(n + 63, 64)", "min(b0, b - 1), min(n, i*64)",
       "1, min(64, n - min(n, i*64))", "b, n"},
  };
  EXPECT_GE(std::size(kernels), 50u);
  size_t asked = 0;
  for (const Kernel &k : kernels) {
    SCOPED_TRACE(textOf(k));
    auto m = parse(textOf(k), "test");
    ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
    EXPECT_EQ(said(*m), "shown");
    for (const auto &sizes : someSizes(*m)) {
      std::string refused = evaluated(*m, sizes);
      asked += refused != "large";
      EXPECT_TRUE(refused.empty() || refused == "large") << refused;
    }
  }
  EXPECT_GE(asked, 100u);
}

TEST(Programs, WhatIsNotLookedAtIsNotShownAndNotRefused) {
  const Kernel kernels[] = {
      {"", "i 2097151 2097152", "mod(i*3, 2097152)", "1", "2097152"},
      {"n 1 100000", "i 99999 n", "mod(i*7, 100000)", "1", "100000"},
  };
  for (const Kernel &k : kernels) EXPECT_EQ(saidOf(textOf(k)), "not shown");
}

/// Places of values that programs compute: one of all programs, a digit of its own, one that may be any.
TEST(Programs, PlacesThatDataDecide) {
  auto text = [](const char *of, const char *begin) {
    return std::string("module @m {\n  func @f[i in 0..3](%x : f32[2], %k : i64[4]) {\n    %o = shrink %k [") + of +
           "] [1]\n    %s = reshape %o []\n    %d = extent %s in 0..4\n    %y = place %x [" + begin +
           "] [40] value=0.0\n    return %y\n  }\n  entry @main(%x : f32[2], %k : i64[4]) -> (%y : f32[40]) {\n" +
           "    %c = custom(@f) %x, %k [4] names=i\n    %y = proj %c index=0\n  }\n}\n";
  };
  EXPECT_EQ(saidOf(text("0", "i*2 + %d")), "shown");
  EXPECT_EQ(saidOf(text("i", "i*6 + %d")), "shown");
  EXPECT_EQ(saidOf(text("i", "i*5 + %d")), "not shown");
  EXPECT_EQ(saidOf(text("i", "%d*7")), "not shown");
}

TEST(Programs, Scatters) {
  const char *lanes = "    %l = iota [4] axis=0 : i64[4]\n    %p = from_index [i*%s] : i64\n    %p1 = reshape %p [1]\n"
                      "    %p4 = expand %p1 [4]\n    %at = add %p4, %l\n";
  auto at = [&](const char *step) {
    return llvm::StringRef(lanes).str().replace(llvm::StringRef(lanes).find("%s"), 2, step);
  };
  for (const char *step : {"4", "5", "16", "60"}) {
    std::string text = scatterOf("i 3 4", "4", at(step).c_str());
    EXPECT_EQ(saidOf(text), "shown");
    auto m = parse(text, "test");
    EXPECT_EQ(evaluated(*m, {}), "");
  }
  for (auto [step, wanted] : {std::pair("3", "programs (0) and (1) both store element (3) of result 0"),
                              std::pair("1", "programs (0) and (1) both store element (1) of result 0"),
                              std::pair("0", "programs (0) and (1) both store element (0) of result 0")}) {
    std::string text = scatterOf("i 3 4", "4", at(step).c_str()), found = saidOf(text);
    EXPECT_EQ(meeting(found), meeting(wanted)) << found;
    auto m = parse(text, "test");
    EXPECT_EQ(meeting(found), meeting(evaluated(*m, {})));
  }
  std::string data = "    %c = cast %x : i64[64]\n    %at = shrink %c [i*4] [4]\n"; // where, the data say
  EXPECT_EQ(saidOf(scatterOf("i 3 4", "4", data.c_str())), "not shown");
}

/// Kernels that are drawn: refused where the evaluator refuses them for some size, else shown.
TEST(Programs, DrawnKernels) {
  std::mt19937 rng(42);
  auto draw = [&](int lo, int hi) { return int(lo + rng() % unsigned(hi - lo + 1)); };
  size_t refused = 0, shown = 0;
  for (int i = 0; i < 400; ++i) {
    int axes = draw(1, 2), rank = draw(1, 2);
    bool isSized = draw(0, 2) == 0;
    int extent[] = {draw(2, 6), draw(1, 4)};
    std::string names[] = {"i", "j"}, grid, begin, size, whole;
    for (int a = 0; a < axes; ++a)
      grid += (a ? "; " : "") + names[a] + " " + std::to_string((isSized && a == 0 ? 5 : extent[a]) - 1) + " " +
              (isSized && a == 0 ? "n" : std::to_string(extent[a]));
    for (int r = 0; r < rank; ++r) {
      std::string x = std::to_string(draw(0, 3));
      for (int a = 0; a < axes; ++a) {
        const std::string &p = names[a];
        std::string forms[] = {p, "mod(" + p + ", " + std::to_string(draw(2, 4)) + ")",
                               "floordiv(" + p + ", " + std::to_string(draw(2, 3)) + ")",
                               "min(" + p + ", " + std::to_string(draw(1, 5)) + ")",
                               "mod(" + p + "*" + std::to_string(draw(2, 5)) + ", " + std::to_string(draw(3, 9)) + ")"};
        if (draw(0, 3)) x += " + " + forms[draw(0, 2) ? 0 : draw(1, 4)] + "*" + std::to_string(draw(1, 6));
      }
      if (isSized && draw(0, 2) == 0) x += " + n*i";
      begin += (r ? ", " : "") + x, size += (r ? ", " : "") + std::to_string(draw(1, 4)), whole += r ? ", 120" : "120";
    }
    Kernel k{isSized ? "n 1 5" : "", grid.c_str(), begin, size, whole};
    SCOPED_TRACE(textOf(k));
    auto m = parse(textOf(k), "test");
    ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
    std::string wanted;
    for (int64_t n = 1; n <= (isSized ? 5 : 1) && wanted.empty(); ++n) wanted = evaluated(*m, {{"n", n}});
    std::string found = said(*m);
    if (wanted.empty()) {
      ++shown;
      EXPECT_EQ(found, "shown");
    } else {
      ++refused;
      EXPECT_EQ(meeting(found), meeting(wanted));
    }
  }
  EXPECT_GE(refused, 100u);
  EXPECT_GE(shown, 100u);
}

//===- TuningTest.cpp: the tuning file -------------------------------------===//
// Checks:   a kernel's hash is of what it computes; the file is read as it was written; what is wrong in it is refused
//           with its line.
#include "astra/Codegen/Tuning.h"
#include "Scheduled.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace astra::test;

namespace {

/// Hashes of all kernels of an entry that multiplies and one that sums, with these words in it.
std::vector<std::string> hashes(const std::string &dims, const std::string &n, const std::string &type,
                                const std::string &shape, const std::string &body) {
  Scheduled s("module @m {\n" + dims + "entry @main(%" + n + "x : " + type + "[" + shape + "]) -> (%y : " + type + "[" +
              shape + "]) {\n" + body + "\n}\n}");
  std::vector<std::string> out;
  for (const KernelSpec &k : s.schedule.kernels) out.push_back(contentHash(k));
  return out;
}
std::vector<std::string> doubled(const std::string &dim, const std::string &bounds, const std::string &type,
                                 const std::string &op = "add") {
  return hashes("dim " + dim + " in " + bounds + "\n", dim, type, dim + ", 2*" + dim + " + 5",
                "%y = " + op + " %" + dim + "x, %" + dim + "x");
}

TEST(ContentHash, IsOfWhatIsComputed) {
  auto first = doubled("n", "1..64", "f32");
  ASSERT_FALSE(first.empty());
  for (const std::string &h : first) EXPECT_TRUE(h.size() == 32 && llvm::all_of(h, llvm::isHexDigit)) << h;
  EXPECT_EQ(first, doubled("n", "1..64", "f32"));
  EXPECT_EQ(first, doubled("rows", "1..64", "f32")); // names are none of it
  EXPECT_NE(first, doubled("n", "1..65", "f32"));
  EXPECT_NE(first, doubled("n", "1..64", "f64"));
  EXPECT_NE(first, doubled("n", "1..64", "f32", "mul"));
}

TEST(ContentHash, HasTheNamesOfDimsNowhere) {
  // Terms of polynomials are ordered by hashes of names; several pairs of names see several orders.
  auto pair = [](const std::string &a, const std::string &b) {
    return hashes("dim " + a + " in 1..64\ndim " + b + " in 1..64\n", "", "f32", a + ", " + b + ", " + a + "*" + b,
                  "%y = mul %x, %x");
  };
  auto first = pair("a", "b");
  for (const char *other : {"batch", "z", "length", "q7", "heads"}) {
    EXPECT_EQ(first, pair(other, "b")) << other;
    EXPECT_EQ(first, pair("a", other)) << other;
  }
}

TEST(ContentHash, IsNotTheKernelsName) {
  Scheduled s("module @m {\nentry @main(%x : f32[8]) -> (%y : f32[8]) {\n%y = add %x, %x\n}\n}");
  KernelSpec k = s.schedule.kernels.at(0);
  k.name = "another";
  EXPECT_EQ(contentHash(k), contentHash(s.schedule.kernels[0]));
  k.mostRows = 4;
  EXPECT_NE(contentHash(k), contentHash(s.schedule.kernels[0]));
}

const std::string a(32, 'a'), b(32, 'b');

TEST(TuningFile, IsReadAsItWasWritten) {
  std::string file = "astra-tuning 1\n" + a + " cpu:aarch64 map: merge 1; vector 4; unroll 2\n" + a +
                     " cpu:x86-64-v4 rows: merge 1; vector 16; unroll 1; prefetch 8\n" + b +
                     " cpu:x86-64-v4 contract: n 1; m 0 2; mr 8; vector 16; nr 3; mc 16; kc 256\n";
  Tuning t;
  EXPECT_EQ(llvm::toString(readTuning(file, "f", t)), "");
  EXPECT_EQ(t.size(), 3u);
  EXPECT_EQ(text(t), file);
}

TEST(TuningFile, ALaterOneGoesFirst) {
  Tuning t;
  std::string head = "astra-tuning 1\n" + a + " cpu:aarch64 map: merge 1; vector 4; unroll ";
  EXPECT_EQ(llvm::toString(readTuning(head + "2\n", "first", t)), "");
  EXPECT_EQ(llvm::toString(readTuning(head + "4", "second", t)), "");
  EXPECT_EQ(text(t), head + "4\n");
  EXPECT_EQ(t.begin()->second.origin, "second:2");
}

TEST(TuningFile, WhatIsWrongIsRefused) {
  std::string plan = " map: merge 1; vector 4; unroll 2";
  const std::pair<std::string, std::string> rows[] = {
      {"", "f:1: found '', expected 'astra-tuning 1'"},
      {"astra-tuning 2\n", "f:1: found 'astra-tuning 2', expected 'astra-tuning 1'"},
      {"astra-tuning 1\n" + a.substr(1) + " cpu:a" + plan,
       "f:2: found '" + a.substr(1) + "', expected the 32 hexadecimal digits of a kernel"},
      {"astra-tuning 1\n\n" + a.substr(1) + "A cpu:a" + plan,
       "f:3: found '" + a.substr(1) + "A', expected the 32 hexadecimal digits of a kernel"},
      {"astra-tuning 1\n" + a + plan, "f:2: found 'map:', expected the name of a target"},
      {"astra-tuning 1\n" + a, "f:2: found '', expected the name of a target"},
      {"astra-tuning 1\n" + a + " cpu:a",
       "f:2: plan '': found '', expected map, rows, columns, contract or programs, and a colon"},
      {"astra-tuning 1\n" + a + " cpu:a map: merge x",
       "f:2: plan 'map: merge x': found 'x', expected a number in 0..4096"},
      {"astra-tuning 1\n" + a + " cpu:a" + plan + "\n" + b + " cpu:a" + plan + "\n" + a + " cpu:a" + plan,
       "f:4: a plan of this kernel for cpu:a is at f:2 already"},
  };
  for (const auto &[file, sentence] : rows) {
    Tuning t;
    EXPECT_EQ(llvm::toString(readTuning(file, "f", t)), sentence);
    EXPECT_TRUE(t.empty());
  }
}

TEST(TuningFile, PlansAreFoundByContentAndChecked) {
  Scheduled s("module @m {\nentry @main(%x : f32[8]) -> (%y : f32[8]) {\n%y = add %x, %x\n}\n}");
  const auto &kernels = s.schedule.kernels;
  std::string hash = contentHash(kernels.at(0));
  auto plans = [&](const std::string &line) {
    Tuning t;
    EXPECT_EQ(llvm::toString(readTuning("astra-tuning 1\n" + line, "f", t)), "");
    return tunedPlans(kernels, "cpu:x86-64-v3", t, checkPlan);
  };
  auto found = plans(hash + " cpu:x86-64-v3 map: merge 1; vector 4; unroll 2");
  ASSERT_TRUE(bool(found));
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(text(found->at(kernels[0].name)), "map: merge 1; vector 4; unroll 2");
  for (const std::string &other : {hash + " cpu:aarch64", a + " cpu:x86-64-v3"}) { // not looked at further
    found = plans(other + " map: merge 7; vector 4; unroll 2");
    ASSERT_TRUE(bool(found));
    EXPECT_TRUE(found->empty());
  }
  found = plans(hash + " cpu:x86-64-v3 map: merge 7; vector 4; unroll 2");
  ASSERT_FALSE(bool(found));
  EXPECT_EQ(llvm::toString(found.takeError()), "f:2: plan of kernel '" + kernels[0].name +
                                                   "', 'map: merge 7; vector 4; unroll 2': merge 7; the output has 1 "
                                                   "dims in memory, expected 1..1");
}

} // namespace

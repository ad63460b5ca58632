//===- FusionTest.cpp: what shares a kernel, and what does not -------------===//
// Takes:    modules in text.
// Gives:    the number of launches, which is how each limit of Fusion.cpp shows: recomputation only while it is cheap.
#include "astra/IR/Text.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Schedule/Program.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace astra;

namespace {
size_t launches(const std::string &inputs, const std::string &outputs, const std::string &body) {
  auto m =
      parse("module @m {\n dim n in 1..64\n entry @main(" + inputs + ") -> (" + outputs + ") {\n" + body + "\n}\n}",
            "test.uop");
  if (!m) return ADD_FAILURE() << llvm::toString(m.takeError()), 0;
  if (auto e = runNumerics(*m)) return ADD_FAILURE() << llvm::toString(std::move(e)), 0;
  auto s = schedule(*m);
  if (!s) return ADD_FAILURE() << llvm::toString(s.takeError()), 0;
  return llvm::count_if(s->entries[0].routine.programs[0],
                        [](const Instr &i) { return std::holds_alternative<LaunchInstr>(i); });
}
std::string name(const char *stem, int i) { return stem + std::to_string(i); }

/// `count` additions of the value `from` to itself, one after another; the last is called `to`.
std::string chain(int count, const std::string &from, const std::string &to) {
  std::string text, last = "%" + from;
  for (int i = 1; i <= count; ++i) {
    std::string next = i == count ? "%" + to : "%" + to + name(".", i);
    text += next + " = add " + last + ", %x\n";
    last = next;
  }
  return text;
}
} // namespace

TEST(Fusion, ElementwiseGoesIntoAReduceAndBehindIt) {
  EXPECT_EQ(launches("%x : f32[n, 9]", "%y : f32[n]",
                     "%a = mul %x, %x\n%s = reduce %a kind=sum order=lane64 axes=[1]\n%y = sqrt %s"),
            1u);
}

TEST(Fusion, WhatTwoKernelsReadIsComputedTwiceOnlyWhileItIsCheap) {
  auto twoReaders = [](int steps) {
    return launches("%x : f32[n, 9]", "%y : f32[n], %z : f32[9]",
                    chain(steps, "x", "a") + "%y = reduce %a kind=sum order=lane64 axes=[1]\n"
                                             "%z = reduce %a kind=sum order=chain axes=[0]");
  };
  EXPECT_EQ(twoReaders(3), 2u);
  EXPECT_EQ(twoReaders(40), 3u);
}

TEST(Fusion, WhatIsMadeOfOneValueInMemoryIsComputedByEachReader) {
  // %q is made of two values by many steps, but lies in memory: what is made of it costs one.
  EXPECT_EQ(launches("%x : f32[n, 9], %r : f32[n, 9]", "%q : f32[n, 9], %y : f32[n], %z : f32[9]",
                     chain(20, "r", "q") + "%a = mul %q, %q\n%b = mul %a, %x\n%d = add %a, %x\n"
                                           "%y = reduce %b kind=sum order=lane64 axes=[1]\n"
                                           "%z = reduce %d kind=sum order=chain axes=[0]"),
            3u);
}

TEST(Fusion, WhatIsRepeatedIsComputedOnceUnlessItIsNearlyFree) {
  auto repeated = [](int steps) {
    return launches("%x : f32[n, 1], %w : f32[n, 33]", "%y : f32[n, 33]",
                    chain(steps, "x", "a") + "%e = expand %a [n, 33]\n%y = add %e, %w");
  };
  EXPECT_EQ(repeated(1), 1u);
  EXPECT_EQ(repeated(12), 2u);
}

TEST(Fusion, WhatIsReadAtTwoAddressesIsComputedTwiceOnlyWhileItIsCheap) {
  auto flipped = [](int steps) {
    return launches("%x : f32[n]", "%y : f32[n]", chain(steps, "x", "a") + "%f = flip %a axes=[0]\n%y = add %a, %f");
  };
  EXPECT_EQ(flipped(4), 1u);
  EXPECT_EQ(flipped(20), 2u);
  // Not twice in each of 30 steps, which would be 2^30 times.
  std::string text;
  for (int i = 0; i < 30; ++i) {
    std::string from = i ? name("%v", i) : "%x", to = i == 29 ? "%y" : name("%v", i + 1);
    text += name("%f", i) + " = flip " + from + " axes=[0]\n" + to + " = add " + from + ", " + name("%f", i) + "\n";
  }
  size_t count = launches("%x : f32[n]", "%y : f32[n]", text);
  EXPECT_GE(count, 20u);
  EXPECT_LE(count, 30u);
}

TEST(Fusion, KernelsOfManyNodesAreCut) {
  EXPECT_EQ(launches("%x : f32[n]", "%y : f32[n]", chain(100, "x", "y")), 1u);
  EXPECT_EQ(launches("%x : f32[n]", "%y : f32[n]", chain(200, "x", "y")), 2u);
  EXPECT_GE(launches("%x : f32[n]", "%y : f32[n]", chain(2000, "x", "y")), 8u);
}

/// A kernel of the runtime has at most 256 buffers. Values side by side, one after another, by halves.
TEST(Fusion, KernelsOfManyInputsAreCut) {
  for (int count : {100, 240, 241, 600}) {
    std::string in, row = "%s1 = add %x0, %x1\n",
                    laid = "%c0 = pad %x0 [0] [" + std::to_string(8 * count - 8) + "] value=0\n";
    for (int i = 0; i < count; ++i) in += (i ? ", %" : "%") + name("x", i) + " : f32[8]";
    for (int i = 2; i < count; ++i)
      row += (i + 1 < count ? "%" + name("s", i) : "%y") + " = add %" + name("s", i - 1) + ", %" + name("x", i) + "\n";
    for (int i = 1; i < count; ++i) {
      std::string to = i + 1 < count ? "%" + name("c", i) : "%y";
      laid += "%" + name("p", i) + " = pad %" + name("x", i) + " [" + std::to_string(8 * i) + "] [" +
              std::to_string(8 * (count - 1 - i)) + "] value=0\n" + to + " = add %" + name("c", i - 1) + ", %" +
              name("p", i) + "\n";
    }
    std::string halves;
    std::vector<std::string> level;
    for (int i = 0; i < count; ++i) level.push_back(name("x", i));
    for (int number = 0; level.size() > 1; level.resize((level.size() + 1) / 2))
      for (size_t i = 0; i + 1 < level.size(); i += 2) {
        std::string to = level.size() == 2 ? "y" : name("h", number++);
        halves += "%" + to + " = add %" + level[i] + ", %" + level[i + 1] + "\n";
        level[i / 2] = to;
        if (i + 3 == level.size()) level[i / 2 + 1] = level[i + 2];
      }
    for (const std::string &body : {row, halves}) {
      auto m = parse("module @m {\n entry @main(" + in + ") -> (%y : f32[8]) {\n" + body + "\n}\n}", "test.uop");
      ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
      auto s = schedule(*m);
      ASSERT_TRUE(bool(s)) << llvm::toString(s.takeError());
      for (const KernelSpec &k : s->kernels) EXPECT_LE(k.inputs.size(), 240u);
      EXPECT_EQ(s->kernels.size() > 1, count > 128); // a sum is cut at a single live value
    }
    auto m = parse("module @m {\n entry @main(" + in + ") -> (%y : f32[" + std::to_string(8 * count) + "]) {\n" + laid +
                       "\n}\n}",
                   "test.uop");
    ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
    auto s = schedule(*m);
    ASSERT_TRUE(bool(s)) << llvm::toString(s.takeError());
    for (const KernelSpec &k : s->kernels) EXPECT_LE(k.inputs.size(), 240u);
  }
}

namespace {
/// Text that repeats %`of`, one value a row of [n, m], along the rows as %`to`.
std::string spread(const std::string &of, const std::string &to, const std::string &m) {
  return "%" + to + ".1 = reshape %" + of + " [n, 1]\n%" + to + " = expand %" + to + ".1 [n, " + m + "]\n";
}
std::string rowSum(const std::string &of, const std::string &to) {
  return "%" + to + " = reduce %" + of + " kind=sum order=lane64 axes=[1]\n";
}
} // namespace

TEST(Fusion, ReductionsAlongTheSameRowsShareAKernel) {
  std::string softmax = "%m = reduce %x kind=max order=exact axes=[1]\n" + spread("m", "m.r", "99") +
                        "%d = sub %x, %m.r\n%e = exp %d\n" + rowSum("e", "s") + spread("s", "s.r", "99");
  EXPECT_EQ(launches("%x : f32[n, 99]", "%y : f32[n, 99]", softmax + "%y = div %e, %s.r"), 1u);
  // Its gradient, from what the forward pass kept.
  EXPECT_EQ(launches("%e : f32[n, 99], %s : f32[n], %p : f32[n, 99], %g : f32[n, 99]", "%y : f32[n, 99]",
                     spread("s", "s.r", "99") + "%a = div %g, %s.r\n%b = div %p, %s.r\n%c = mul %b, %g\n" +
                         rowSum("c", "t") + spread("t", "t.r", "99") + "%u = sub %a, %t.r\n%y = mul %e, %u"),
            1u);
  // The gradient of a layer norm: two sums, arithmetic on one value a row between.
  EXPECT_EQ(launches("%x : f32[n, 99], %i : f32[n], %g : f32[n, 99]", "%y : f32[n, 99]",
                     rowSum("g", "a") + "%h = mul %g, %x\n" + rowSum("h", "b") + "%b2 = mul %b, %i\n%b3 = sqrt %b2\n" +
                         spread("a", "a.r", "99") + spread("b3", "b.r", "99") + spread("i", "i.r", "99") +
                         "%k = mul %x, %b.r\n%l = sub %g, %a.r\n%o = sub %l, %k\n%y = mul %o, %i.r"),
            1u);
  // A variance: the mean of the row is computed in the kernel of the sum that it goes into.
  EXPECT_EQ(launches("%x : f32[n, 99]", "%y : f32[n]",
                     rowSum("x", "a") + spread("a", "a.r", "99") + "%d = sub %x, %a.r\n%q = mul %d, %d\n" +
                         rowSum("q", "s") + "%y = sqrt %s"),
            1u);
}

TEST(Fusion, RowsOfOtherLengthsAndLongOnesHaveKernelsOfTheirOwn) {
  EXPECT_EQ(launches("%x : f32[n, 99], %z : f32[n, 33]", "%y : f32[n, 99]",
                     rowSum("z", "a") + spread("a", "a.r", "99") + "%y = mul %x, %a.r"),
            2u);
  EXPECT_EQ(launches("%x : f32[n, 40000]", "%y : f32[n, 40000]",
                     rowSum("x", "a") + spread("a", "a.r", "40000") + "%y = mul %x, %a.r"),
            2u);
}

//===- RankingTest.cpp: plans that costs choose, and those that they do not -===//
// Checks:   a cheaper plan takes the place of the rules' where the target's row ranks, nowhere else.
//           Each row of Exceptions.def keeps a plan that the cost would not.
#include "Choosing.h"
#include "Scheduled.h"
#include "gtest/gtest.h"

using namespace astra;

namespace {

const Target &v3() { return *targetNamed("cpu:x86-64-v3"); }

struct Row {
  const char *exception, *inputs, *output, *body;
};

/// The kernel of `%out = body`.
struct Planned {
  test::Scheduled m;
  const KernelSpec &spec;
  Planned(const Row &r)
      : m(std::string("module @m {\n  entry @main(") + r.inputs + ") -> (%out : " + r.output +
          ") {\n    %out = " + r.body + "\n  }\n}\n"),
        spec(kernel(m.schedule)) {}
  /// The one that computes: not the copies of operands around it.
  static const KernelSpec &kernel(const Schedule &s) {
    for (const KernelSpec &k : s.kernels)
      if (k.rootOp || s.kernels.size() == 1) return k;
    return s.kernels.back();
  }
  Plan on(const Target &t) { return choosePlan(*m.module.context, spec, t); }
};

const Row turned{nullptr, "%a : f32[7, 500, 33]", "f32[500, 33, 7]", "permute %a perm=[1, 2, 0]"};

TEST(Ranking, ACheaperPlanIsTakenWhereTheRowRanks) {
  Planned p(turned);
  EXPECT_EQ(text(p.on(v3())), "map: merge 1; vector 4; unroll 1; tail overlapped");
  KernelFacts f(*p.m.module.context, p.spec);
  EXPECT_EQ(text(cheapest(f, v3(), p.on(v3()))), text(p.on(v3()))); // and no other one beside it
}

TEST(Ranking, RowsThatDoNotRankKeepTheRulesPlan) {
  const Target &zen4 = *targetNamed("cpu:x86-64-v4@zen4");
  ASSERT_FALSE(speedsOf(zen4).ranks);
  Planned p({nullptr, "%a : f32[1000, 2, 2, 64]", "f32[1000, 2, 2, 64]", "neg %a"});
  EXPECT_EQ(text(p.on(zen4)), text(p.on(*zen4.level)));
}

const Row exceptions[] = {
    {"contract", "%a : f32[7, 1], %b : f32[1, 10000]", "f32[7, 10000]",
     "contract %a[i, k], %b[k, j] -> [i, j] sum [k]"},
    {"transpose", "%a : f32[8, 12, 64, 33]", "f32[8, 64, 33, 12]", "permute %a perm=[0, 2, 3, 1]"},
    {"scalar", "%a : f32[20000, 3]", "f32[20000]", "reduce %a kind=max order=exact axes=[1]"},
};

TEST(Ranking, EachExceptionHasAKernelHere) {
#define EXCEPTION(name, holds, why)                                                                                    \
  EXPECT_TRUE(llvm::any_of(exceptions, [](const Row &r) { return llvm::StringRef(r.exception) == #name; })) << #name;
#include "Exceptions.def"
}

TEST(Ranking, EachExceptionKeepsAPlanThatIsNotTheCheapest) {
  for (const Row &r : exceptions) {
    Planned k(r);
    Plan p = k.on(v3());
    const PlanException *e = exceptionOf(p);
    ASSERT_TRUE(e) << r.exception << ": " << text(p);
    EXPECT_STREQ(e->name, r.exception) << text(p);
    KernelFacts f(*k.m.module.context, k.spec);
    EXPECT_NE(text(cheapest(f, v3(), p)), text(p)) << r.body;
  }
}

} // namespace

//===- LinearTest.cpp: a chain of a million nodes --------------------------===//
#include "astra/IR/Builder.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/Program.h"
#include <chrono>
#include <gtest/gtest.h>

using namespace astra;

namespace {
struct Times {
  double rewrite, schedule;
  size_t kernels;
};

/// Seconds for a chain of n elementwise nodes through rewriting and scheduling.
Times chain(int64_t n) {
  Module m;
  Builder b(m.ctx());
  UOpRef x = b.arg(0, DType::F32, {b.idx(1024)}), v = x;
  for (int64_t i = 0; i < n; ++i) v = b.bin(i % 2 ? Op::Add : Op::Mul, v, i % 3 ? x : b.un(Op::Neg, x));
  m.entries.push_back({"main", {{"x", x}}, {{"y", v}}, {}});
  if (auto e = runNumerics(m)) ADD_FAILURE() << llvm::toString(std::move(e));
  auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  double begin = now();
  RewriteOptions options;
  auto roots = rewrite(m.ctx(), m.roots(), graphRules, options);
  if (!roots) ADD_FAILURE() << llvm::toString(roots.takeError());
  m.entries[0].outputs[0].value = (*roots)[0];
  double middle = now();
  auto s = schedule(m);
  if (!s) ADD_FAILURE() << llvm::toString(s.takeError());
  return {middle - begin, now() - middle, s->entries[0].routine.programs[0].size()};
}

TEST(Schedule, AMillionNodesInLinearTime) {
  Times last{};
  for (int64_t n : {10000, 100000, 1000000}) {
    Times t = chain(n);
    printf("%8lld nodes: rewriting %.3f s, scheduling %.3f s, %zu launches\n", (long long)n, t.rewrite, t.schedule,
           t.kernels);
    // Ten times the nodes take about ten times as long; a quadratic pass would take a hundred times.
    if (last.schedule > 0.01) {
      EXPECT_LT(t.schedule, 40 * last.schedule);
    }
    last = t;
  }
}
} // namespace

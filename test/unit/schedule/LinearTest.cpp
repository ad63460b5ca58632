//===- LinearTest.cpp: chains of a million nodes ---------------------------===//
// Checks:   a node costs rewriting and scheduling about the same CPU time in a graph of 10^6 nodes as in one of 10^5.
// Keeps:    the CPU time of this process is measured, so that other work on the machine does not count.
#include "astra/IR/Builder.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Rewrite/Rewrite.h"
#include "astra/Schedule/Program.h"
#include <ctime>
#include <gtest/gtest.h>

using namespace astra;

namespace {

double cpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

struct Times {
  double rewrite, schedule; // CPU seconds
  size_t launches;
};

/// A chain of n elementwise nodes through rewriting and scheduling.
Times chain(int64_t n) {
  Module m;
  Builder b(m.ctx());
  UOpRef x = b.arg(0, DType::F32, {b.idx(1024)}), v = x;
  for (int64_t i = 0; i < n; ++i) v = b.bin(i % 2 ? Op::Add : Op::Mul, v, i % 3 ? x : b.un(Op::Neg, x));
  m.entries.push_back({"main", {{"x", x}}, {{"y", v}}, {}});
  if (auto e = runNumerics(m)) ADD_FAILURE() << llvm::toString(std::move(e));
  double begin = cpuSeconds();
  RewriteOptions options;
  auto roots = rewrite(m.ctx(), m.roots(), graphRules, options);
  if (!roots) ADD_FAILURE() << llvm::toString(roots.takeError());
  m.entries[0].outputs[0].value = (*roots)[0];
  double middle = cpuSeconds();
  auto s = schedule(m);
  if (!s) ADD_FAILURE() << llvm::toString(s.takeError());
  return {middle - begin, cpuSeconds() - middle, s->entries[0].routine.programs[0].size()};
}

/// The best of a few runs: what disturbs a run only makes it longer.
Times best(int64_t n, int runs) {
  Times b = chain(n);
  while (--runs > 0) {
    Times t = chain(n);
    b = {std::min(b.rewrite, t.rewrite), std::min(b.schedule, t.schedule), t.launches};
  }
  printf("%8lld nodes: CPU time of rewriting %.3f s, scheduling %.3f s; %zu launches\n", (long long)n, b.rewrite,
         b.schedule, b.launches);
  return b;
}

// A quadratic pass would take ten times as long for each node. Caches hold less of the larger graph: that is the 3.
TEST(Linear, AMillionNodes) {
  best(10000, 1);
  Times few = best(100000, 3), many = best(1000000, 2);
  EXPECT_LT(many.rewrite, 3 * 10 * few.rewrite);
  EXPECT_LT(many.schedule, 3 * 10 * few.schedule);
}

} // namespace

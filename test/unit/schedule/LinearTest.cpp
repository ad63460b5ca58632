//===- LinearTest.cpp: large graphs in linear time -------------------------===//
// Checks:   a node costs rewriting and scheduling about the same CPU time in a graph of 10^6 nodes as in one of 10^5; a
//           layer of a network with parameters, states and dims in one of 20000 layers as in one of 500.
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

Times run(Module &m) {
  if (auto e = runNumerics(m)) ADD_FAILURE() << llvm::toString(std::move(e));
  double begin = cpuSeconds();
  RewriteOptions options;
  auto roots = rewrite(m.ctx(), m.roots(), graphRules, options);
  if (!roots) ADD_FAILURE() << llvm::toString(roots.takeError());
  auto next = roots->begin();
  for (Value &v : m.entries[0].outputs) v.value = *next++;
  for (StateUpdate &u : m.entries[0].updates) u.value = *next++;
  double middle = cpuSeconds();
  auto s = schedule(m);
  if (!s) ADD_FAILURE() << llvm::toString(s.takeError());
  return {middle - begin, cpuSeconds() - middle, s->entries[0].routine.programs[0].size()};
}

/// A chain of n elementwise nodes.
Times chain(int64_t n) {
  Module m;
  Builder b(m.ctx());
  UOpRef x = b.arg(0, DType::F32, {b.idx(1024)}), v = x;
  for (int64_t i = 0; i < n; ++i) v = b.bin(i % 2 ? Op::Add : Op::Mul, v, i % 3 ? x : b.un(Op::Neg, x));
  m.entries.push_back({"main", {{"x", x}}, {{"y", v}}, {}});
  return run(m);
}

/// n layers on rows of a dim: a product with a parameter, and a state that is set by a rate that all of them read.
Times layers(int64_t n) {
  Module m;
  Builder b(m.ctx());
  m.dims.push_back(m.ctx().make(Op::Dim, {}, {1, 8}, "n"));
  UOpRef rate = b.arg(1, DType::F32, {}), four = b.idx(4), x = b.arg(0, DType::F32, {m.dims[0], four}), v = x;
  m.entries.push_back({"main", {{"x", x}, {"rate", rate}}, {}, {}});
  for (int64_t i = 0; i < n; ++i) {
    std::string name = std::to_string(i);
    m.params.push_back({b.param("w" + name, DType::F32, {four, four}), nullptr, "", ""});
    m.states.push_back({b.state("s" + name, DType::F32, {four}), nullptr});
    UOpRef s = m.states.back().value;
    v = b.add(b.matmul(v, m.params.back().value), b.expand(b.reshape(s, {b.idx(1), four}), v->shape));
    m.entries[0].updates.push_back({"s" + name, b.mul(s, b.splat(rate, {four}))});
  }
  m.entries[0].outputs.push_back({"y", v});
  return run(m);
}

/// The best of a few runs: what disturbs a run only makes it longer.
Times best(Times (*graph)(int64_t), int64_t n, const char *what, int runs) {
  Times b = graph(n);
  while (--runs > 0) {
    Times t = graph(n);
    b = {std::min(b.rewrite, t.rewrite), std::min(b.schedule, t.schedule), t.launches};
  }
  printf("%8lld %s: CPU time of rewriting %.3f s, scheduling %.3f s; %zu launches\n", (long long)n, what, b.rewrite,
         b.schedule, b.launches);
  return b;
}

// A quadratic pass would take ten times as long for each node. Caches hold less of the larger graph: that is the 3.
TEST(Linear, AMillionNodes) {
  best(chain, 10000, "nodes", 1);
  Times few = best(chain, 100000, "nodes", 3), many = best(chain, 1000000, "nodes", 2);
  EXPECT_LT(many.rewrite, 3 * 10 * few.rewrite);
  EXPECT_LT(many.schedule, 3 * 10 * few.schedule);
}

TEST(Linear, ThousandsOfLayers) {
  Times few = best(layers, 500, "layers", 3), many = best(layers, 20000, "layers", 2);
  EXPECT_LT(many.rewrite, 3 * 40 * few.rewrite);
  EXPECT_LT(many.schedule, 3 * 40 * few.schedule);
}

} // namespace

//===- SearchTest.cpp: plans that a search tries ---------------------------===//
// Checks:   every plan that a walk from neighbour to neighbour meets is compiled and gives the bits of the heuristic's;
//           kernels are found at the extents at which they are launched; what a search leaves in a tuning.
// Does not: compare times.
#include "astra/Search/Search.h"
#include "../KernelCache.h"
#include "Bench.h"
#include "Scheduled.h"
#include "astra/Codegen/Candidates.h"
#include "astra/Codegen/Compile.h"
#include "astra/Codegen/Lower.h"
#include "astra/Search/Occasions.h"
#include "llvm/ADT/StringSet.h"
#include <random>

using namespace astra;
using namespace astra::test;

namespace {

constexpr const char *several = R"(module @m {
  dim n in 1..40
  param @w : f32[40, 96] = splat 0.5
  param @t : f32[24, 8, 3, 3] = splat 0.25
  state @cache : f32[16, 64] = splat 0.0
  entry @products(%x : f32[2, n, 40], %z : f32[130, 300], %v : f32[300, 96], %g : f32[3, 24, 10, 10], %i : f32[3, 8, 12, 12]) -> (%p : f32[2, n, 96], %q : f32[130, 96], %r : f32[24, 8, 3, 3], %s : f32[3, 24, 10, 10]) {
    %p = contract %x[h, i, k], @w[k, j] -> [h, i, j] sum [k]
    %q = contract %z[i, k], %v[k, j] -> [i, j] sum [k]
    %r = contract %g[b, o, h, w], %i[b, c, h + r, w + s] -> [o, c, r: 3, s: 3] sum [b, h, w]
    %s = contract @t[o, c, r, s], %i[b, c, h + r, w + s] -> [b, o, h: 10, w: 10] sum [c, r, s]
  }
  entry @sums(%x : f32[n, 300], %y : f32[70, 90]) -> (%a : f32[n], %b : f32[90], %c : f32[n, 300], %d : f32[90, 70], %e : f32[70, 90]) {
    %a = reduce %x kind=sum order=lane64 axes=[1]
    %b = reduce %y kind=max order=exact axes=[0]
    %m = reduce %x kind=max order=exact axes=[1]
    %1 = reshape %m [n, 1]
    %2 = expand %1 [n, 300]
    %3 = sub %x, %2
    %4 = exp %3
    %5 = reduce %4 kind=sum order=lane64 axes=[1]
    %6 = reshape %5 [n, 1]
    %7 = expand %6 [n, 300]
    %c = div %4, %7
    %d = permute %y perm=[1, 0]
    %e = cumulate %y kind=sum axis=0
  }
  entry @places(%x : f32[n, 64], %at : i64[30], %to : i64[30, 64], %row : f32[1, 64], %p : i64, %z : i64) -> (%a : f32[30, 64], %b : f32[n, 64]) {
    %a = gather %x, %at axis=0
    %b = scatter %x, %to, %a axis=0 kind=add
    %c = update_at @cache, %row, %p, %z
    set @cache = %c
  }
  func @product[i in 0..4](%x : f32[n, 96], %w : f32[96, 64]) {
    %a = shrink %x [min(n, i*8), 0] [min(8, n - min(n, i*8)), 96]
    %p = contract %a[r, k], %w[k, c] -> [r, c] sum [k]
    %y = place %p [min(n, i*8), 0] [n, 64] value=0.0
    return %y
  }
  func @normed[r in 0..39](%x : f32[n, 96]) {
    %row = shrink %x [min(n, r), 0] [min(1, n - min(n, r)), 96]
    %low = pad %row [0, 0] [1 - min(1, n - min(n, r)), 0] value=0.0
    %sum = reduce %low kind=sum order=lane64 axes=[1]
    %s1 = reshape %sum [1, 1]
    %ss = expand %s1 [1, 96]
    %d = sub %low, %ss
    %c = shrink %d [0, 0] [min(1, n - min(n, r)), 96]
    %y = place %c [min(n, r), 0] [n, 96] value=0.0
    return %y
  }
  entry @users(%x : f32[n, 96], %w : f32[96, 64]) -> (%y : f32[n, 64], %z : f32[n, 96]) {
    %k = custom(@product) %x, %w [floordiv(n + 7, 8)] names=i
    %y = proj %k index=0
    %j = custom(@normed) %x [n] names=r
    %z = proj %j index=0
  }
})";

const Target *hostTarget() {
  const Target *best = nullptr;
  for (const Target &t : allTargets())
    if (hostRuns(t) && (!best || t.rank > best->rank)) best = &t;
  return best;
}

/// Plans that a walk of so many steps meets, the heuristic's first.
std::vector<Plan> walk(Context &c, const KernelSpec &spec, const Target &target, unsigned steps, unsigned seed) {
  std::mt19937 random(seed);
  Plan first = choosePlan(c, spec, target);
  std::vector<Plan> met{first};
  llvm::StringSet<> texts;
  texts.insert(text(first));
  for (unsigned i = 0; i < steps; ++i) {
    std::vector<Plan> beside = candidates(spec, met[random() % met.size()], target, CandidatesFor::Measuring);
    if (beside.empty()) break;
    Plan p = beside[random() % beside.size()];
    EXPECT_EQ(llvm::toString(checkPlan(spec, p)), "");
    if (texts.insert(text(p)).second) met.push_back(p);
  }
  return met;
}

TEST(Search, NeighboursHaveTheSameBits) {
  constexpr double patience = 1e12; // every plan to its end
  const Target *target = hostTarget();
  if (!target) GTEST_SKIP() << "this machine runs no target";
  Scheduled m(several);
  Context &c = *m.module.context;
  auto occasions = findOccasions(m.module, m.schedule);
  for (auto [i, spec] : llvm::enumerate(m.schedule.kernels)) {
    if (!occasions[i].launches) continue;
    std::vector<Plan> plans = walk(c, spec, *target, std::getenv("ASTRA_NIGHTLY") ? 60 : 14, unsigned(i));
    Schedule part;
    part.dims = m.schedule.dims, part.moduleDims = m.schedule.moduleDims;
    CompileOptions o;
    o.jobs = 2;
    o.cache = kernelCache();
    for (auto [j, p] : llvm::enumerate(plans)) {
      part.kernels.push_back(spec);
      part.kernels.back().name = "plan" + std::to_string(j);
      o.plans[part.kernels.back().name] = p;
    }
    auto code = compileKernels(c, part, *target, o);
    ASSERT_TRUE(bool(code)) << spec.name << ": " << llvm::toString(code.takeError());
    auto loaded = LoadedCode::load(code->image);
    ASSERT_TRUE(bool(loaded)) << llvm::toString(loaded.takeError());
    auto bench = Bench::make(spec, code->kernels[0].kernel, part.dims, occasions[i].dims, 1 << 24);
    ASSERT_TRUE(bench);
    for (auto [j, k] : llvm::enumerate(code->kernels)) {
      auto items = idxEvaluate(itemCount(c, k.kernel.sink), [&](UOpRef d) -> std::optional<int64_t> {
        auto it = llvm::find(part.dims, d);
        return it == part.dims.end() ? std::nullopt : std::optional<int64_t>(occasions[i].dims[it - part.dims.begin()]);
      });
      ASSERT_TRUE(items);
      EXPECT_EQ(bench->tryOut({loaded->at(k.offset), *items, k.scratch}, patience), Bench::Verdict::Same)
          << spec.name << ": " << text(plans[j]);
    }
  }
}

TEST(Search, KernelsOfUsersHaveNeighbours) {
  Scheduled m(several);
  for (const char *name : {"cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64"}) {
    const Target *target = targetNamed(name);
    ASSERT_TRUE(target);
    unsigned kernels = 0;
    for (const KernelSpec &spec : m.schedule.kernels) {
      if (spec.grid.empty()) continue;
      EXPECT_GE(
          candidates(spec, choosePlan(*m.module.context, spec, *target), *target, CandidatesFor::Measuring).size(), 4u)
          << spec.name;
      ++kernels;
    }
    EXPECT_EQ(kernels, 2u);
  }
}

// Steps that are not in a kernel's nodes tell its plans apart too, or a search would not try them.
// Stores past the caches are tried where a store writes a whole line.
TEST(Search, StepsBesideTheNodesAreTried) {
  Scheduled m(several);
  Context &c = *m.module.context;
  for (const char *name : {"cpu:x86-64-v3", "cpu:x86-64-v4"}) {
    const Target *target = targetNamed(name);
    ASSERT_TRUE(target);
    unsigned past = 0, ahead = 0;
    for (const KernelSpec &spec : m.schedule.kernels) {
      Plan first = choosePlan(c, spec, *target);
      auto chosen = identity(lowerKernel(c, spec, first));
      for (const Plan &p : candidates(spec, first, *target, CandidatesFor::Measuring)) {
        if (p.nonTemporal == first.nonTemporal && p.prefetch == first.prefetch) continue;
        EXPECT_NE(identity(lowerKernel(c, spec, p)), chosen) << text(p);
        ++(p.nonTemporal != first.nonTemporal ? past : ahead);
      }
    }
    EXPECT_EQ(past > 0, storesLines(*target)) << name;
    EXPECT_GT(ahead, 0u) << name;
  }
}

// A tuning file may come from anywhere: what the check lets pass is lowered.
TEST(Search, PlansOfRandomNumbersAreRefusedOrLowered) {
  Scheduled m(several);
  Context &c = *m.module.context;
  std::mt19937 random(1);
  auto pick = [&](std::initializer_list<unsigned> from) { return *(from.begin() + random() % from.size()); };
  const unsigned count = std::getenv("ASTRA_NIGHTLY") ? 4000 : 60;
  unsigned lowered = 0;
  for (const KernelSpec &spec : m.schedule.kernels)
    for (unsigned i = 0; i < count; ++i) {
      Plan p;
      p.kind = spec.vectorIndex >= 0 && random() % 4 ? PlanKind::Contract : PlanKind(random() % 4);
      p.merge = random() % 5, p.lanes = 1u << random() % 7, p.unroll = pick({1, 2, 3, 4, 7});
      p.mapTile = p.rowBlock = p.columnSteps = p.chainBlocks = pick({0, 0, 1, 5, 16}),
      p.prefetch = pick({0, 0, 1, 24, 4096});
      p.nLabel = random() % 8 ? spec.vectorIndex : int64_t(random() % 4);
      for (unsigned l = random() % 4; l--;) p.mLabels.push_back(random() % 5);
      p.mr = pick({1, 1, 2, 5, 8, 14}), p.packB = pick({0, 0, 1, 7, 64});
      p.tail = pick({0, 0, 1, 2}), p.prefetchPanel = random() % 4 == 0, p.nonTemporal = random() % 4 == 0;
      if (!p.packB) p.mc = pick({0, 1, 2, 9, 300}), p.kc = p.mc ? pick({1, 3, 64, 4096}) : 0;
      if (p.kind == PlanKind::Columns) p.unrollK = p.kc;
      if (llvm::Error refused = checkPlan(spec, p)) {
        llvm::consumeError(std::move(refused));
        continue;
      }
      ++lowered;
      SCOPED_TRACE(spec.name + ": " + text(p));
      auto linear = linearize(c, expandKernel(c, lowerKernel(c, spec, p)));
      EXPECT_TRUE(bool(linear)) << llvm::toString(linear.takeError());
    }
  EXPECT_GT(lowered, count);
}

TEST(Search, KernelsAreTimedWhereTheyAreLaunched) {
  Scheduled m(R"(module @m {
    dim n in 1..64
    param @w : f32[64, 200] = splat 0.5
    entry @main(%x : f32[n, 64]) -> (%y : f32[n, 200]) {
      %y = contract %x[i, k], @w[k, j] -> [i, j] sum [k]
    }
  })");
  auto found = findOccasions(m.module, m.schedule);
  unsigned products = 0;
  for (auto [spec, o] : llvm::zip_equal(m.schedule.kernels, found)) {
    if (!o.launches) continue; // prepares the weight
    ++products;
    EXPECT_EQ(o.launches, 1);
    ASSERT_EQ(o.dims.size(), 1u);
    if (spec.mostRows)
      EXPECT_LE(o.dims[0], spec.mostRows); // the variant of few rows, at the lower bound
    else
      EXPECT_EQ(o.dims[0], 8); // the geometric middle
  }
  EXPECT_EQ(products, 2u);
}

TEST(Search, ATuningKeepsWhatIsOfOthers) {
  const Target *target = hostTarget();
  if (!target) GTEST_SKIP() << "this machine runs no target";
  Scheduled m(
      "module @m {\nentry @main(%x : f32[800, 900]) -> (%y : f32[900, 800]) {\n%y = permute %x perm=[1, 0]\n}\n}");
  Tuning tuning;
  std::string other(32, 'a'), here = contentHash(m.schedule.kernels.at(0));
  tuning[{other, target->name}] = {Plan(), ""};
  tuning[{here, "cpu:elsewhere"}] = {Plan(), ""};
  SearchOptions o;
  o.seconds = 0.5;
  auto report = searchPlans(m.module, m.schedule, *target, o, tuning);
  ASSERT_TRUE(bool(report)) << llvm::toString(report.takeError());
  EXPECT_EQ(report->kernels, 1u);
  EXPECT_EQ(report->skipped, 0u);
  EXPECT_GT(report->plans, 0u);
  EXPECT_EQ(tuning.count({other, target->name}), 1u);
  EXPECT_EQ(tuning.count({here, "cpu:elsewhere"}), 1u);
  EXPECT_EQ(tuning.count({here, target->name}), report->faster.size());
}

TEST(Search, APlanThatCannotBeIsRefused) {
  const Target *target = hostTarget();
  if (!target) GTEST_SKIP() << "this machine runs no target";
  Scheduled m("module @m {\nentry @main(%x : f32[8]) -> (%y : f32[8]) {\n%y = add %x, %x\n}\n}");
  Plan wrong;
  wrong.merge = 7;
  Tuning tuning{{{contentHash(m.schedule.kernels.at(0)), target->name}, {wrong, "f:2"}}};
  auto report = searchPlans(m.module, m.schedule, *target, {}, tuning);
  ASSERT_FALSE(bool(report));
  EXPECT_EQ(llvm::toString(report.takeError()).substr(0, 5), "f:2: ");
  EXPECT_EQ(tuning.size(), 1u);
}

} // namespace

//===- RandomTest.cpp: every stage keeps the bits of random modules --------===//
// Takes:    seeds: ASTRA_RANDOM_COUNT of them (500 unless set; 10,000 under ASTRA_NIGHTLY) from ASTRA_RANDOM_SEED on (0
//           unless set).
// Gives:    for each stage a test that the evaluator gives the same bytes before and after it; a failure is shrunk and
//           printed with the command that shows it again.
#include "../schedule/RunSchedule.h"
#include "RandomGraph.h"
#include "astra/Autograd/Autograd.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Text.h"
#include "astra/IR/Verify.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Rewrite/Rewrite.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "gtest/gtest.h"
#include <chrono>
#include <cstdlib>

using namespace astra;
using namespace astra::test;
using llvm::Error;

namespace {
using Answer = llvm::Expected<EvalResult>;

uint64_t setting(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

Answer evaluated(const Module &m, const EvalInputs &in) {
  EvalOptions options;
  options.function = evalFunction;
  return evalEntry(m, m.entries[0], in, options);
}
Error rewriteModule(Module &m) {
  RewriteOptions options;
  auto roots = rewrite(m.ctx(), m.roots(), graphRules, options);
  if (!roots) return roots.takeError();
  auto it = roots->begin();
  for (Value &v : m.entries[0].outputs) v.value = *it++;
  for (StateUpdate &u : m.entries[0].updates) u.value = *it++;
  return Error::success();
}

// ---- stages: from a case to what it computes after the stage
Answer throughText(const RandomCase &c) {
  std::string before = print(c.module);
  auto m = parse(before, "random.uop");
  if (!m) return m.takeError();
  if (print(*m) != before) return llvm::createStringError("printing what was parsed gives another text");
  return evaluated(*m, c.inputs);
}
Answer throughRewrite(const RandomCase &c) {
  Module m = c.module;
  if (Error e = rewriteModule(m)) return std::move(e);
  return evaluated(m, c.inputs);
}
Answer throughNumerics(const RandomCase &c) {
  Module m = c.module;
  if (Error e = runNumerics(m)) return std::move(e);
  if (Error e = verifyNumerics(m)) return std::move(e);
  return evaluated(m, c.inputs);
}
Answer throughNumericsAndRewrite(const RandomCase &c) {
  Module m = c.module;
  if (Error e = runNumerics(m)) return std::move(e);
  if (Error e = rewriteModule(m)) return std::move(e);
  return evaluated(m, c.inputs);
}
template <bool Expanded> Answer throughSchedule(const RandomCase &c) {
  Module m = c.module;
  if (Error e = runNumerics(m)) return std::move(e);
  if (Error e = rewriteModule(m)) return std::move(e);
  auto s = schedule(m);
  if (!s) return s.takeError();
  if (setting("ASTRA_RANDOM_PRINT", 0) > 1) std::fputs(print(*s).c_str(), stderr);
  const Target *target = targetNamed(Expanded ? "cpu:x86-64-v4" : "cpu:x86-64-v3");
  return ScheduleRun(m, *s, *target, Expanded).run(0, c.inputs);
}

/// The entry with derivatives of its float outputs by every float input, parameter and state as further outputs, or
/// nothing where a derivative is refused.
llvm::Expected<bool> differentiate(Module &m, bool reverse) {
  Entry &e = m.entries[0];
  Builder b(m.ctx());
  std::vector<UOpRef> outputs, beside, wrt, ones;
  for (const Value &v : e.outputs) (isDifferentiable(v.value->dtype) ? outputs : beside).push_back(v.value);
  size_t differentiated = outputs.size();
  for (const StateUpdate &u : e.updates) beside.push_back(u.value);
  for (UOpRef n : topoSort(m.roots()))
    if ((n->op == Op::Arg || n->op == Op::Param || n->op == Op::State) && isDifferentiable(n->dtype)) wrt.push_back(n);
  for (UOpRef x : reverse ? outputs : wrt) ones.push_back(b.splat(b.litInt(x->dtype, 1), x->shape));
  auto d = reverse ? vjp(m.ctx(), outputs, ones, wrt, &m.origins, beside)
                   : jvp(m.ctx(), outputs, wrt, ones, &m.origins, beside);
  if (!d) {
    std::string why = llvm::toString(d.takeError());
    if (why.find("(detach stops gradients)") == std::string::npos) return llvm::createStringError(why);
    return false;
  }
  auto first = d->values.begin(), rest = first + differentiated;
  for (Value &v : e.outputs) v.value = isDifferentiable(v.value->dtype) ? *first++ : *rest++;
  for (StateUpdate &u : e.updates) u.value = *rest++;
  for (size_t i = 0; i < d->derivatives.size(); ++i)
    e.outputs.push_back({"derivative" + std::to_string(i), d->derivatives[i]});
  return true;
}
/// A module with derivatives verifies, keeps its values, and its schedule gives the evaluator's bytes.
template <bool Reverse> Answer throughDerivatives(const RandomCase &c) {
  Module m = c.module;
  auto done = differentiate(m, Reverse);
  if (!done) return done.takeError();
  if (!*done) return evaluated(c.module, c.inputs);
  if (Error e = verify(m, astra::Stage::Graph)) return std::move(e);
  auto want = evaluated(m, c.inputs);
  if (!want) return want;
  if (Error e = runNumerics(m)) return std::move(e);
  if (Error e = rewriteModule(m)) return std::move(e);
  auto s = schedule(m);
  if (!s) return s.takeError();
  auto got = ScheduleRun(m, *s, *targetNamed("cpu:x86-64-v3"), false).run(0, c.inputs);
  if (!got) return got;
  for (size_t i = 0; i < want->outputs.size(); ++i)
    if (got->outputs[i] != want->outputs[i])
      return llvm::createStringError("scheduled, " + m.entries[0].outputs[i].name + " differs");
  return got;
}

/// The element around a byte.
llvm::ArrayRef<uint8_t> bytesAt(const Tensor &t, size_t at) {
  size_t size = std::max(1u, byteSize(t.dtype));
  return llvm::ArrayRef(t.bytes).slice(at / size * size, size);
}

/// What differs, or nothing.
std::string difference(const RandomCase &c, Answer (*stage)(const RandomCase &)) {
  auto want = evaluated(c.module, c.inputs);
  if (!want) return "the evaluator refuses: " + llvm::toString(want.takeError());
  auto got = stage(c);
  if (!got) return "refused: " + llvm::toString(got.takeError());
  for (size_t i = 0; i < want->outputs.size(); ++i)
    if (got->outputs[i] != want->outputs[i]) {
      const Tensor &g = got->outputs[i], &w = want->outputs[i];
      if (g.shape != w.shape) return "output " + std::to_string(i) + " has another shape";
      size_t at = std::mismatch(g.bytes.begin(), g.bytes.end(), w.bytes.begin()).first - g.bytes.begin();
      return "output " + std::to_string(i) + " differs at byte " + std::to_string(at) + " of " +
             std::to_string(g.bytes.size()) + ": found " + llvm::toHex(bytesAt(g, at)) + ", expected " +
             llvm::toHex(bytesAt(w, at));
    }
  for (const StateUpdate &u : c.entry().updates)
    if (got->states[u.state] != want->states[u.state]) return "state " + u.state + " differs";
  return "";
}

struct StageRow {
  const char *name;
  Answer (*run)(const RandomCase &);
  unsigned share = 1; // of the seeds: every one, every fifth ...
};
class RandomGraphs : public testing::TestWithParam<StageRow> {};

TEST_P(RandomGraphs, KeepTheirBits) {
  llvm::EnablePrettyStackTrace();
  uint64_t first = setting("ASTRA_RANDOM_SEED", 0),
           count = setting("ASTRA_RANDOM_COUNT", std::getenv("ASTRA_NIGHTLY") ? 10000 : 500), failures = 0;
  for (uint64_t seed = first; seed < first + count && failures < 3; seed += GetParam().share) {
    llvm::PrettyStackTraceFormat crash("seed %llu, stage %s", (unsigned long long)seed, GetParam().name);
    RandomCase c = randomCase(seed);
    if (setting("ASTRA_RANDOM_PRINT", 0)) std::fputs(text(c).c_str(), stderr);
    std::string what = difference(c, GetParam().run);
    if (what.empty()) continue;
    ++failures;
    RandomCase small = shrink(c, [&](const RandomCase &x) {
      std::string d = difference(x, GetParam().run);
      return !d.empty() &&
             !llvm::StringRef(d).starts_with("the evaluator refuses"); // what is cut off may have bound a dim
    });
    ADD_FAILURE() << GetParam().name << ": " << what << "\nshrunk: " << difference(small, GetParam().run) << "\n"
                  << text(small) << "ASTRA_RANDOM_SEED=" << seed
                  << " ASTRA_RANDOM_COUNT=1 build/bin/unit-random --gtest_filter='*/" << GetParam().name << "'";
  }
}
INSTANTIATE_TEST_SUITE_P(Stages, RandomGraphs,
                         testing::Values(StageRow{"text", throughText}, StageRow{"rewrite", throughRewrite},
                                         StageRow{"numerics", throughNumerics},
                                         StageRow{"numerics_rewrite", throughNumericsAndRewrite},
                                         StageRow{"schedule", throughSchedule<false>},
                                         StageRow{"schedule_expanded", throughSchedule<true>},
                                         StageRow{"gradient", throughDerivatives<true>, 5},
                                         StageRow{"tangent", throughDerivatives<false>, 2}),
                         [](const auto &i) { return std::string(i.param.name); });

TEST(RandomGraph, IsAFunctionOfItsSeed) {
  for (uint64_t seed : {1, 2, 3}) EXPECT_EQ(text(randomCase(seed)), text(randomCase(seed)));
  EXPECT_NE(text(randomCase(1)), text(randomCase(2)));
}

TEST(RandomGraph, UsesEveryOp) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomCase c = randomCase(seed);
    for (UOpRef n : topoSort(c.module.roots())) seen.insert(info(n->op).mnemonic);
  }
  for (unsigned i = 0; i < numOps; ++i)
    if (Op op = Op(i); !has(op, KernelLevel) && op != Op::Func && op != Op::Detach && op != Op::Tap &&
                       op != Op::After && op != Op::WithGradient && op != Op::External && !isCollective(op) &&
                       op != Op::Reshard && // of modules with a mesh: test/unit/distribute
                       op != Op::Place) {   // which stands in functions
      EXPECT_TRUE(seen.count(info(op).mnemonic)) << info(op).mnemonic;
    }
}

TEST(Shrink, FindsTheOneNodeThatFails) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    RandomCase c = randomCase(seed);
    auto hasDiv = [](const RandomCase &x) { // stands for a stage that breaks division
      auto nodes = topoSort(x.module.roots());
      return llvm::any_of(nodes, [](UOpRef n) { return n->op == Op::Div; });
    };
    if (!hasDiv(c)) continue;
    RandomCase small = shrink(c, hasDiv);
    EXPECT_TRUE(hasDiv(small));
    EXPECT_EQ(small.entry().outputs.size(), 1u);
    EXPECT_EQ(small.entry().outputs[0].value->op, Op::Div) << text(small);
  }
}
} // namespace

//===- FunctionsCTest.cpp: compiled functions equal the programs on numbers ===//
// Takes:    every function in f32 and f64, scheduled, lowered and compiled for each CPU level.
// Gives:    equality of bytes with Functions.h over Host<T>, over arguments that are neither a multiple of a vector nor
//           all ordinary.
#include "Reference.h"
#include "Run.h"
#include "astra/Codegen/Compile.h"
#include "astra/Numerics/GraphValue.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Rewrite/Rewrite.h"

using namespace astra;
using namespace astra::numerics;

namespace {

constexpr int64_t count = 5003;

template <class T> struct Suite {
  Module m;
  Builder b{m.ctx()};
  std::vector<std::vector<T>> expected, first, second;

  template <unsigned arguments, class Program> void add(Op op, Program program) {
    std::vector<T> x, y, z;
    for (int64_t i = 0; i < count; ++i) {
      auto [base, exponent] = powArguments<T>(i);
      x.push_back(arguments == 2 ? base : sampleArgument<T>(i));
      y.push_back(exponent);
      if constexpr (arguments == 2)
        z.push_back(program(Host<T>(x[i]), Host<T>(y[i])).v);
      else
        z.push_back(program(Host<T>(x[i])).v);
      if (std::isnan(z[i])) z[i] = quietNaN<T>;
    }
    Entry e;
    e.name = info(op).mnemonic;
    std::vector<UOpRef> args;
    for (unsigned i = 0; i < arguments; ++i) {
      args.push_back(b.arg(i, dtypeOf<T>, {b.idx(count)}));
      e.inputs.push_back({i ? "y" : "x", args.back()});
    }
    e.outputs.push_back({"z", m.ctx().make(op, args)});
    m.entries.push_back(e);
    first.push_back(x), second.push_back(y), expected.push_back(z);
  }

  Suite() {
#define FUNCTION(Name, program, arguments, ulp32, ulp64)                                                               \
  add<arguments>(Op::Name, [](auto... x) { return program(x...); });
#include "astra/Numerics/Functions.def"
#undef FUNCTION
  }

  std::string compare(const Target &target) {
    auto s = schedule(m);
    if (!s) return llvm::toString(s.takeError());
    CompileOptions options;
    options.image = false;
    auto compiled = compileKernels(m.ctx(), *s, target, options);
    if (!compiled) return llvm::toString(compiled.takeError());
    std::vector<test::Job> jobs;
    for (size_t i = 0; i < m.entries.size(); ++i) {
      const Routine &r = s->entries[i].routine;
      if (r.programs[0].size() != 1) return m.entries[i].name + ": more than one instruction";
      const auto *launch = std::get_if<LaunchInstr>(&r.programs[0][0]);
      if (!launch) return m.entries[i].name + ": no launch";
      test::Job j;
      j.kernel = compiled->kernels[launch->variants.back().kernel].kernel;
      for (uint32_t at : launch->buffers) {
        const ProgramBuffer &p = r.buffers[at];
        j.buffers.push_back(p.kind == BufferKind::Output ? std::vector<uint8_t>(count * sizeof(T))
                                                         : test::bytesOf(p.index ? second[i] : first[i]));
      }
      j.parts = 3;
      jobs.push_back(j);
    }
    if (std::string e = test::run(m.ctx(), jobs, target, s->dims); !e.empty()) return e;
    for (size_t i = 0; i < jobs.size(); ++i) {
      auto got = test::valuesOf<T>(jobs[i].buffers.back());
      for (int64_t k = 0; k < count; ++k)
        if (std::bit_cast<Word<T>>(got[k]) != std::bit_cast<Word<T>>(expected[i][k])) {
          char line[200];
          snprintf(line, sizeof line, "%s(%a, %a) gave %a, expected %a", m.entries[i].name.c_str(), double(first[i][k]),
                   double(second[i][k]), double(got[k]), double(expected[i][k]));
          return line;
        }
    }
    return "";
  }
};

template <class T> void everyTarget() {
  Suite<T> suite;
  ASSERT_FALSE(bool(runNumerics(suite.m)));
  for (const Target &target : allTargets()) {
    if (test::canRun(target)) {
      EXPECT_EQ(suite.compare(target), "") << target.name;
    }
  }
}

/// Where a machine scales in one instruction, exp does (Scale.h): 2^22 of the 2^32 f32 numbers, of which the results
/// are normal, subnormal, 0, infinite and NaN, in vectors and in what is left of them.
TEST(FunctionsC, ExpOfManyNumbers) {
  constexpr int64_t many = (1 << 22) + 5;
  std::vector<float> x, expected;
  for (int64_t i = 0; i < many; ++i) {
    // every other one within and around what exp is neither 0 nor infinite for
    float moderate = -106 + float(i) * (197.0f / float(many));
    x.push_back(i % 2 ? moderate : sampleOf32(uint32_t(i)));
    expected.push_back(numerics::exp(Host<float>(x.back())).v);
    if (std::isnan(expected.back())) expected.back() = quietNaN<float>;
  }
  for (bool simplify : {false, true}) {
    Module m;
    Builder b(m.ctx());
    UOpRef arg = b.arg(0, DType::F32, {b.idx(many)});
    Entry e;
    e.name = "exp", e.inputs = {{"x", arg}}, e.outputs = {{"y", b.un(Op::Exp, arg)}};
    m.entries.push_back(e);
    ASSERT_FALSE(bool(runNumerics(m)));
    if (simplify) {
      RewriteOptions options;
      m.entries[0].outputs[0].value =
          llvm::cantFail(rewrite(m.ctx(), {m.entries[0].outputs[0].value}, graphRules, options))[0];
    }
    auto s = llvm::cantFail(schedule(m));
    for (const Target &target : allTargets()) {
      if (!test::canRun(target)) continue;
      CompileOptions options;
      options.image = false;
      auto compiled = llvm::cantFail(compileKernels(m.ctx(), s, target, options));
      EXPECT_EQ(compiled.source.find("scale2_f32x16(") != std::string::npos, target.scalesInOne) << target.name;
      test::Job j;
      j.kernel = compiled.kernels[0].kernel;
      j.buffers = {test::bytesOf(x), std::vector<uint8_t>(many * sizeof(float))};
      j.parts = 3;
      std::vector<test::Job> jobs{j};
      ASSERT_EQ(test::run(m.ctx(), jobs, target, s.dims), "") << target.name;
      auto got = test::valuesOf<float>(jobs[0].buffers[1]);
      for (int64_t i = 0; i < many; ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected[i]))
            << target.name << " exp of " << x[i];
    }
  }
}

TEST(FunctionsC, F32) { everyTarget<float>(); }
TEST(FunctionsC, F64) { everyTarget<double>(); }

} // namespace

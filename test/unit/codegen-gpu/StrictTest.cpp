//===- StrictTest.cpp: no instruction fuses or flushes ----------------------===//
// Checks what LLVM's back ends and ptxas make of every elementwise op on every type: PTX rounds explicitly and fuses
// only where a fma was asked for; ptxas with and without -fmad=false gives the same code; AMDGPU assembly has no fused
// instruction that was not asked for, but in LLVM's own expansions that are listed here; kernel descriptors keep
// denormals and round to nearest.
#include "OpCases.h"
#include "StrictCode.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

using namespace astra;
using namespace astra::test;
using llvm::StringRef;

namespace {

/// One kernel for each op and type, one element an item, and the kernels' names by what they do.
struct Strict : testing::Test {
  Cases all;
  std::vector<GpuKernel> kernels;
  std::map<std::string, const Case *> cases;

  void SetUp() override {
    all.addAll(1);
    for (const Case &k : all.cases) {
      std::string name = "op" + std::to_string(kernels.size());
      kernels.push_back({name, &k.job.kernel, llvm::cantFail(linearize(all.c, k.job.kernel)), 64, 1});
      cases[name] = &k;
    }
  }
  GpuModule lowered(const char *target) {
    auto m = lowerGpu(all.c, kernels, *gpuTargetNamed(target), {});
    EXPECT_TRUE(bool(m)) << llvm::toString(m.takeError());
    return std::move(*m);
  }
};

bool begins(StringRef name, std::initializer_list<const char *> prefixes) {
  return llvm::any_of(prefixes, [&](const char *p) { return name.starts_with(p); });
}

TEST_F(Strict, PtxRoundsExplicitly) {
  auto text = gpuAssembly(lowered("cuda:sm_90"));
  ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
  llvm::SmallVector<StringRef> lines;
  StringRef(*text).split(lines, '\n');
  llvm::Regex arithmetic(
      "^(add|sub|mul|fma|div|sqrt|rcp|mad|ex2|lg2|sin|cos|tanh|rsqrt)\\.[a-z0-9.]*(f16|bf16|f32|f64)"),
      entry("\\.entry ([a-z0-9]+)");
  std::string kernel;
  unsigned rounded = 0, fused = 0;
  for (StringRef line : lines) {
    line = line.trim();
    llvm::SmallVector<StringRef> found;
    if (entry.match(line, &found)) kernel = found[1].str();
    if (!arithmetic.match(line, &found)) continue;
    const std::string &what = cases.at(kernel)->name;
    EXPECT_TRUE(line.contains(".rn.")) << what << ": " << line.str();
    EXPECT_FALSE(line.contains(".ftz") || line.contains(".approx") || line.contains(".full"))
        << what << ": " << line.str();
    EXPECT_FALSE(line.contains("f16")) << what << " computes in a narrow type: " << line.str();
    if (line.starts_with("fma")) {
      EXPECT_TRUE(begins(what, {"fma "})) << what << ": " << line.str();
      ++fused;
    }
    ++rounded;
  }
  EXPECT_GT(rounded, 100u);
  EXPECT_EQ(fused, 4u); // f16, bf16, f32, f64
  EXPECT_FALSE(StringRef(*text).contains(".ftz"));
}

/// x * y + z, which everyone would like to fuse.
TEST_F(Strict, ProductsAndSumsStayApart) {
  Context &c = all.c;
  Builder b(c);
  kernels.clear();
  std::vector<Kernel> storage(2);
  for (unsigned number : {0u, 1u}) {
    DType t = number ? DType::F64 : DType::F32;
    UOpRef n = b.idx(64), at = c.make(Op::Range, {n}, {0, int64_t(RangeKind::Parallel)});
    UOpRef x[3];
    for (int64_t i = 0; i < 3; ++i) x[i] = c.make(Op::Load, {c.make(Op::Buffer, {n}, {i}, {}, t), at}, {1});
    UOpRef sum = c.make(Op::Add, {c.make(Op::Mul, {x[0], x[1]}), x[2]});
    storage[number].sink = c.make(Op::Sink, {c.make(Op::Store, {c.make(Op::Buffer, {n}, {3}, {}, t), sum, at}, {1})});
    storage[number].buffers = {{t, true, false, n}, {t, true, false, n}, {t, true, false, n}, {t, false, true, n}};
    kernels.push_back(
        {"sum" + std::to_string(number), &storage[number], llvm::cantFail(linearize(c, storage[number])), 64, 1});
  }
  for (const GpuTarget &t : allGpuTargets()) {
    auto text = gpuAssembly(lowered(t.name));
    ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
    llvm::Regex fused("(^|[^a-z])(v_(pk_)?(fma|fmac|mac|mad)_f|fma\\.)");
    EXPECT_FALSE(fused.match(*text)) << t.name << "\n" << *text;
  }
}

TEST_F(Strict, PtxasFusesNothing) {
  if (ptxasPath().empty()) GTEST_SKIP() << "ptxas is not installed";
  std::vector<GpuKernel> every = std::move(kernels);
  for (const char *target :
       {"cuda:sm_90", "cuda:sm_75", "cuda:sm_80", "cuda:sm_86", "cuda:sm_89", "cuda:sm_100", "cuda:sm_120"}) {
    kernels.clear(); // all for one chip, some for the others
    for (size_t i = 0; i < every.size(); i += StringRef(target) == "cuda:sm_90" ? 1 : 12) kernels.push_back(every[i]);
    GpuModule m = lowered(target);
    auto fusing = buildGpu(m), strict = buildGpu(m, true);
    ASSERT_TRUE(bool(fusing)) << llvm::toString(fusing.takeError());
    ASSERT_TRUE(bool(strict)) << llvm::toString(strict.takeError());
    std::string code = codeOf(fusing->code);
    EXPECT_GT(code.size(), 4000u);
    EXPECT_TRUE(code == codeOf(strict->code)) << target;
    for (const GpuUse &k : fusing->kernels) {
      EXPECT_GT(k.registers, 0u) << k.name;
      EXPECT_EQ(k.spills, 0u) << k.name;
    }
  }
}

TEST_F(Strict, AmdgpuFusesNothing) {
  for (const char *target : {"hip:gfx90a", "hip:gfx942", "hip:gfx1100"}) {
    auto text = gpuAssembly(lowered(target));
    ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
    llvm::SmallVector<StringRef> lines;
    StringRef(*text).split(lines, '\n');
    llvm::Regex fused("^v_(pk_|dual_)?(fma|fmac|mac|mad)[a-z_]*_(f16|bf16|f32|f64|legacy)"), label("^(op[0-9]+):");
    std::string kernel;
    unsigned seen = 0;
    for (StringRef line : lines) {
      line = line.trim();
      llvm::SmallVector<StringRef> found;
      if (label.match(line, &found)) kernel = found[1].str();
      if (!fused.match(line)) continue;
      // LLVM's own: correctly rounded division and square root, integer division through floats with its correction,
      // and the exact split of a float into two halves of a 64-bit integer.
      const std::string &what = cases.at(kernel)->name;
      bool asked = begins(what, {"fma ", "div ", "sqrt ", "floordiv ", "mod ", "truncdiv ", "rem "}) ||
                   (begins(what, {"cast "}) && StringRef(what).contains("64 x1"));
      EXPECT_TRUE(asked) << target << ": " << what << ": " << line.str();
      ++seen;
    }
    EXPECT_GT(seen, 4u);
  }
}

TEST_F(Strict, DescriptorsKeepDenormalsAndRoundToNearest) {
  kernels.resize(40);
  for (const char *target : {"hip:gfx90a", "hip:gfx942", "hip:gfx1100"}) {
    auto built = buildGpu(lowered(target));
    ASSERT_TRUE(bool(built)) << llvm::toString(built.takeError());
    EXPECT_EQ(strictDescriptors(built->code), 40u);
    for (const GpuUse &k : built->kernels) EXPECT_GT(k.registers, 0u) << k.name;
  }
}

// The same module twice: the same bytes.
TEST_F(Strict, CodeIsAFunctionOfTheKernels) {
  kernels.resize(60);
  for (const GpuTarget *t : flavours()) {
    auto one = buildGpu(lowered(t->name)), two = buildGpu(lowered(t->name));
    ASSERT_TRUE(one && two);
    EXPECT_EQ(one->assembly, two->assembly);
    EXPECT_EQ(one->code, two->code);
  }
}

} // namespace

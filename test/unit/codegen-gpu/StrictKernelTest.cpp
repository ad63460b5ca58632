//===- StrictKernelTest.cpp: no product, no reduction fuses or flushes -------===//
// Checks, for products of every kind of plan, convolutions, reductions, softmax and a layer norm, step by step:
// the lowered module multiplies and adds at once as often as the kernel's UOps say so and has no fast-math flag, so
// that LLVM's optimizer may copy and move, but not fuse; LLVM's back ends make of each operation of the optimized
// module one instruction, rounded explicitly; ptxas with and without -fmad=false gives the same code; descriptors keep
// denormals and round to nearest.
#include "Layers.h"
#include "RunGraph.h"
#include "StrictCode.h"
#include "astra/Codegen/Machinery.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/SourceMgr.h"

using namespace astra;
using namespace astra::test;
using llvm::StringRef;

namespace {

struct Work {
  const char *name;
  std::string text;
  bool divides = false; // floats, or takes roots, or integers by a dim: LLVM's expansions for AMD fuse
};

const Work work[] = {
    {"product",
     one("%x : f32[64, 96], %w : f32[96, 64]", "f32[64, 64]", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"productOdd",
     one("%x : f32[75, 1037], %w : f32[66, 1037]", "f32[75, 66]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]")},
    {"productDoubles",
     one("%x : f64[64, 96], %w : f64[96, 64]", "f64[64, 64]", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"productHalves",
     one("%x : f16[64, 96], %w : f16[96, 64]", "f16[64, 64]", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"productIntegers",
     one("%x : i32[64, 96], %w : i32[96, 64]", "i32[64, 64]", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"productSymbolic",
     "dim m in 0..100\ndim k in 0..2000\n" +
         one("%x : f32[m, k], %w : f32[k, 64]", "f32[m, 64]", "contract %x[i, l], %w[l, j] -> [i, j] sum [l]"),
     true},
    {"oneRow",
     one("%x : f32[1, 2048], %w : f32[2048, 100]", "f32[1, 100]", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"dot", one("%x : f32[9999], %z : f32[9999]", "f32", "contract %x[k], %z[k] -> [] sum [k]")},
    {"convolution", convolution(resnet50[9])},
    {"convolution3x3", convolution(resnet50[2])},
    {"depthwise", one("%x : f32[1, 9, 9, 96], %w : f32[3, 3, 96]", "f32[1, 7, 7, 96]",
                      "contract %x[n, h + r, w + s, c], %w[r, s, c] -> [n, h: 7, w: 7, c] sum [r, s]")},
    {"weightGradient", one("%x : f32[2, 9, 9, 16], %g : f32[2, 7, 7, 32]", "f32[3, 3, 16, 32]",
                           "contract %x[n, h + r, w + s, c], %g[n, h, w, o] -> [r: 3, s: 3, c, o] sum [n, h, w]")},
    {"sumOfSquares", R"(entry @main(%x : f32[100, 5000]) -> (%y : f32[100]) {
       %0 = mul %x, %x
       %y = reduce %0 kind=sum order=lane64 axes=[1]
     })"},
    {"sumOfProducts", R"(entry @main(%x : f32[5000, 64], %z : f32[5000, 64]) -> (%y : f32[64]) {
       %0 = mul %x, %z
       %y = reduce %0 kind=sum order=lane64 axes=[0]
     })"},
    {"scaledSum", R"(entry @main(%x : f64[3000], %z : f64) -> (%y : f64) {
       %0 = reduce %x kind=sum order=lane64 axes=[0]
       %1 = mul %0, %z
       %y = add %1, %z
     })"},
    {"softmax", softmax(100, 1000), true},
    {"softmaxShared", softmax(10, 4096), true},
    {"layerNorm", norm(100, 768, true), true},
};

/// Additions (subtractions among them), multiplications, divisions and roots, both at once, of floats.
struct Count {
  int64_t add = 0, mul = 0, div = 0, fma = 0;
  bool operator==(const Count &) const = default;
};
std::ostream &operator<<(std::ostream &os, const Count &c) {
  return os << c.add << " add, " << c.mul << " mul, " << c.div << " div and sqrt, " << c.fma << " fma";
}

Count countIR(const llvm::Module &m, bool &flags) {
  Count n;
  for (const llvm::Function &f : m)
    for (const llvm::Instruction &i : llvm::instructions(f)) {
      if (auto *op = llvm::dyn_cast<llvm::FPMathOperator>(&i)) flags |= op->getFastMathFlags().any();
      auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(i.getType());
      int64_t lanes = vector ? vector->getNumElements() : 1;
      auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
      switch (i.getOpcode()) {
      case llvm::Instruction::FAdd:
      case llvm::Instruction::FSub: n.add += lanes; break;
      case llvm::Instruction::FMul: n.mul += lanes; break;
      case llvm::Instruction::FDiv: n.div += lanes; break;
      default:
        if (call && call->getIntrinsicID() == llvm::Intrinsic::fma) n.fma += lanes;
        if (call && call->getIntrinsicID() == llvm::Intrinsic::sqrt) n.div += lanes;
        EXPECT_FALSE(call && call->getIntrinsicID() == llvm::Intrinsic::fmuladd);
      }
    }
  return n;
}

Count countPtx(StringRef text) {
  Count n;
  llvm::Regex arithmetic(
      "^(add|sub|mul|fma|div|sqrt|rcp|mad|ex2|lg2|sin|cos|tanh|rsqrt)\\.[a-z0-9.]*(f16|bf16|f32|f64)(x2)?");
  llvm::SmallVector<StringRef> lines, found;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    line = line.trim();
    if (!arithmetic.match(line, &found)) continue;
    EXPECT_TRUE(line.contains(".rn.")) << line.str();
    EXPECT_FALSE(line.contains(".ftz") || line.contains(".approx") || line.contains(".full")) << line.str();
    EXPECT_FALSE(line.contains("f16")) << line.str();
    int64_t lanes = found[3].empty() ? 1 : 2;
    StringRef op = found[1];
    (op == "fma" ? n.fma : op == "mul" ? n.mul : op == "div" || op == "sqrt" ? n.div : n.add) += lanes;
    EXPECT_TRUE(op == "fma" || op == "mul" || op == "div" || op == "sqrt" || op == "add" || op == "sub") << line.str();
  }
  return n;
}

/// Fused instructions alone: of others AMD's back end makes what is the same (a doubling is an addition).
int64_t fusedOnAmd(StringRef text) {
  int64_t n = 0;
  llvm::Regex fused("v_(pk_|dual_)?(fma|fmac|mac|mad)[a-z_]*_(f16|bf16|f32|f64|legacy)");
  llvm::SmallVector<StringRef> lines, found;
  text.split(lines, '\n');
  for (StringRef line : lines)
    for (; fused.match(line, &found); line = line.drop_front(line.find(found[0]) + found[0].size()))
      n += found[1] == "pk_" ? 2 : 1;
  return n;
}

/// How often the kernels' instructions multiply and add at once.
int64_t fusedByUOps(llvm::ArrayRef<GpuKernel> kernels) {
  int64_t n = 0;
  for (const GpuKernel &k : kernels)
    for (const Inst &i : k.linear.insts) {
      int64_t lanes = i.uop->rank() ? *i.uop->shape[0]->constIndex() : 1;
      if (!isFloat(i.uop->dtype)) continue;
      if (i.kind == InstKind::Define && i.uop->op == Op::Fma) n += lanes;
      if (i.kind == InstKind::AccUpdate && Combine(i.uop->ints[0]) == Combine::Fma) n += lanes;
    }
  return n;
}

class GpuStrict : public testing::TestWithParam<const GpuTarget *> {};
INSTANTIATE_TEST_SUITE_P(All, GpuStrict,
                         testing::Values(gpuTargetNamed("cuda:sm_80"), gpuTargetNamed("cuda:sm_90"),
                                         gpuTargetNamed("cuda:sm_100"), gpuTargetNamed("cuda:sm_75"),
                                         gpuTargetNamed("cuda:sm_120"), gpuTargetNamed("hip:gfx90a"),
                                         gpuTargetNamed("hip:gfx942"), gpuTargetNamed("hip:gfx1100")),
                         [](const auto &i) { return std::string(i.param->chip); });

TEST_P(GpuStrict, KernelsFuseWhatTheyAreAsked) {
  const GpuTarget &target = *GetParam();
  bool cuda = target.flavour == GpuFlavour::CUDA;
  int64_t all = 0;
  for (const Work &w : work) {
    SCOPED_TRACE(w.name);
    GraphOnGpu g(w.text, target, /*build=*/false);
    ASSERT_EQ(g.wrong, "");
    auto m = lowerGpu(g.lowered->ctx(), g.kernels, target, g.schedule->dims);
    ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
    llvm::LLVMContext context;
    bool flags = false;
    int64_t asked = fusedByUOps(g.kernels);
    Count lowered = countIR(*llvm::cantFail(gpu::readBitcode(m->bitcode, context)), flags);
    EXPECT_EQ(lowered.fma, asked);
    auto text = gpuOptimizedIR(*m);
    ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
    llvm::SMDiagnostic wrong;
    auto optimized = llvm::parseAssemblyString(*text, wrong, context);
    ASSERT_TRUE(bool(optimized)) << wrong.getMessage().str();
    Count kept = countIR(*optimized, flags);
    EXPECT_FALSE(flags) << "fast-math flags";
    EXPECT_EQ(kept.fma > 0, asked > 0);
    auto assembly = gpuAssembly(*m);
    ASSERT_TRUE(bool(assembly)) << llvm::toString(assembly.takeError());
    if (cuda) {
      EXPECT_EQ(countPtx(*assembly), kept);
    } else if (!w.divides) { // AMD's back end may have a block twice; where there is nothing to fuse that is all it
                             // does
      bool couldFuse = kept.add && kept.mul;
      EXPECT_GE(fusedOnAmd(*assembly), kept.fma);
      if (couldFuse) {
        EXPECT_EQ(fusedOnAmd(*assembly), kept.fma);
      }
    }
    all += kept.fma;
    if (cuda && ptxasPath().empty()) continue;
    auto built = buildGpu(*m);
    ASSERT_TRUE(bool(built)) << llvm::toString(built.takeError());
    if (cuda) {
      auto strict = buildGpu(*m, /*noFuse=*/true);
      ASSERT_TRUE(bool(strict)) << llvm::toString(strict.takeError());
      EXPECT_TRUE(codeOf(built->code) == codeOf(strict->code)) << "ptxas fuses";
    } else {
      EXPECT_EQ(strictDescriptors(built->code), g.kernels.size());
    }
  }
  EXPECT_GT(all, 400);
}

} // namespace

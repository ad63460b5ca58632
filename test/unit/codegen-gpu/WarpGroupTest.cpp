//===- WarpGroupTest.cpp: tiles that warp groups multiply --------------------===//
// Takes:    products of matrix units for sm_90a.
// Checks:   the evaluator's bytes, also where edges cut tiles, boxes and steps, in batches, with epilogues; that the
//           emulator objects to each barrier, arrival, wait and fence that is missing or wrong; which plans are
//           refused.
#include "RemoveBarrier.h"
#include "astra/Codegen/Machinery.h"
#include "astra/Codegen/PtxCalls.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace astra;
using namespace astra::test;
namespace is = astra::gpu::ptxName;

namespace {

const GpuTarget &hopper() { return *gpuTargetNamed("cuda:sm_90a"); }

/// The plan of each kernel that has one for warp groups.
std::function<void(Plan &)> under(std::string plan) {
  return [plan](Plan &p) {
    if (p.warpGroups) p = llvm::cantFail(parsePlan(plan));
  };
}

bool hasGroups(const GraphOnGpu &g) {
  return llvm::any_of(g.kernels, [](const GpuKernel &k) { return k.kernel->warpGroups.has_value(); });
}

struct Case {
  const char *text, *plan; // "": the chosen one
  std::vector<std::vector<int64_t>> dims;
};

// A sum of 5 boxes and a part of one, no multiple of a step either.
const char *const product = R"(
  dim n in 1..140
  entry @main(%x : f32[n, 333], %w : f32[333, 40]) -> (%y : f32[n, 40]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k] order="hopper16 bf16"
  })";
const char *const halves = R"(
  dim n in 1..140
  entry @main(%x : f16[n, 96], %w : f16[35, 96], %b : f16[35]) -> (%y : f16[n, 35]) {
    %p = contract %x[i, k], %w[j, k] -> [i, j] sum [k] order="hopper16 f16"
    %c = reshape %b [1, 35]
    %d = expand %c [n, 35]
    %y = add %p, %d
  })";
// Batches, both operands turned, rows of which a tile reads those of the next product too.
const char *const batch = R"(
  dim n in 1..90
  entry @main(%t : f32[3, 70, n], %u : f32[3, 33, 70]) -> (%y : f32[3, n, 33]) {
    %y = contract %t[b, k, i], %u[b, j, k] -> [b, i, j] sum [k] order="hopper16 bf16"
  })";
// A sum over two labels.
const char *const twice = R"(
  dim n in 1..70
  entry @main(%x : f32[n, 5, 20], %w : f32[5, 20, 24]) -> (%y : f32[n, 24]) {
    %y = contract %x[i, h, k], %w[h, k, j] -> [i, j] sum [h, k] order="hopper16 bf16"
  })";
const char *const tf32 = R"(
  dim n in 1..70
  entry @main(%x : f32[n, 75], %w : f32[75, 24]) -> (%y : f32[n, 24]) {
    %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k] order="hopper8-tf32 tf32"
  })";
const char *const fp8 = R"(
  dim n in 1..70
  entry @main(%x : f8e4m3fn[n, 300], %w : f8e4m3fn[300, 24]) -> (%y : f32[n, 24]) {
    %a = cast %x : f32[n, 300]
    %b = cast %w : f32[300, 24]
    %y = contract %a[i, k], %b[k, j] -> [i, j] sum [k] order="hopper32-fp8 f8e4m3fn"
  })";
const char *const fp8wide = R"(
  dim n in 1..70
  entry @main(%x : f8e5m2[n, 100], %w : f8e5m2[100, 24]) -> (%y : f32[n, 24]) {
    %a = cast %x : f32[n, 100]
    %b = cast %w : f32[100, 24]
    %y = contract %a[i, k], %b[k, j] -> [i, j] sum [k] order="hopper32-fp8 f8e5m2"
  })";

const Case cases[] = {
    {product, "", {{16}, {140}}},
    {product,
     "contract: n 1; m 0; mr 2; vector 2; nr 4; threads 128; mc 32; kc 32; stages 2; warp-groups 1",
     {{64}, {65}}},
    {product,
     "contract: n 1; m 0; mr 4; vector 2; nr 2; row-block 2; threads 128; mc 32; kc 32; stages 3; warp-groups 1",
     {{140}}},
    {product,
     "contract: n 1; m 0; mr 2; vector 2; nr 8; threads 256; mc 64; kc 32; stages 4; warp-groups 2",
     {{1}, {129}}},
    {product,
     "contract: n 1; m 0; mr 2; vector 2; nr 4; threads 128; mc 32; kc 32; stages 2; warp-groups 1; tiles 4",
     {{64}, {140}}},
    {product,
     "contract: n 1; m 0; mr 2; vector 2; nr 2; row-block 2; threads 256; mc 64; kc 32; stages 4; warp-groups 2; tiles "
     "2",
     {{1}, {129}}},
    {batch,
     "contract: n 1; m 2; mr 2; vector 2; nr 4; threads 128; mc 32; kc 32; stages 5; warp-groups 1; tiles 8",
     {{90}}},
    {halves, "", {{17}, {140}}},
    {batch, "", {{90}, {1}}},
    {twice, "", {{70}}},
    {tf32, "", {{70}}},
    {fp8, "", {{70}}},
    {fp8wide, "", {{3}}},
};

TEST(GpuWarpGroups, KeepTheirBits) {
  for (const Case &t : cases) {
    GraphOnGpu g(t.text, hopper(), true, *t.plan ? under(t.plan) : nullptr);
    ASSERT_EQ(g.wrong, "") << t.text << t.plan;
    ASSERT_TRUE(hasGroups(g)) << t.text << g.plans();
    if (*t.plan)
      for (auto [spec, kernel] : llvm::zip_equal(g.schedule->kernels, g.kernels))
        if (kernel.kernel->warpGroups)
          EXPECT_EQ(llvm::toString(checkGpuPlan(spec, llvm::cantFail(parsePlan(t.plan)), hopper())), "");
    for (const auto &dims : t.dims)
      for (uint64_t seed : {3, 8})
        EXPECT_EQ(g.difference(dims, seed), "") << t.text << g.plans() << ", dim " << dims[0];
  }
}

/// Changes call number `which` of those of this name; false when there are fewer.
bool change(GpuModule &m, llvm::StringRef name, unsigned which, llvm::function_ref<void(llvm::CallInst &)> how) {
  llvm::LLVMContext context;
  auto module = llvm::cantFail(astra::gpu::readBitcode(m.bitcode, context));
  for (llvm::Function &f : *module)
    for (llvm::Instruction &i : llvm::instructions(f)) {
      auto *call = llvm::dyn_cast<llvm::CallInst>(&i);
      if (!call || !call->getCalledFunction() || !call->getCalledFunction()->getName().starts_with(name) || which--)
        continue;
      how(*call);
      m.bitcode.clear();
      llvm::raw_string_ostream out(m.bitcode);
      llvm::WriteBitcodeToFile(*module, out);
      return true;
    }
  return false;
}

void erase(llvm::CallInst &c) {
  if (!c.getType()->isVoidTy()) { // sums that nobody waits for
    llvm::IRBuilder<> b(&c);
    llvm::Value *all = llvm::PoisonValue::get(c.getType());
    for (unsigned i = 0; i < c.arg_size(); ++i) all = b.CreateInsertValue(all, c.getArgOperand(i), i);
    c.replaceAllUsesWith(all);
  }
  c.eraseFromParent();
}
/// Number `n` of its arguments is another one.
auto plus(unsigned n, int64_t more) {
  return [n, more](llvm::CallInst &c) {
    llvm::IRBuilder<> b(&c);
    c.setArgOperand(n, b.CreateAdd(c.getArgOperand(n), b.getInt32(uint32_t(more))));
  };
}
void otherParity(llvm::CallInst &c) {
  llvm::IRBuilder<> b(&c);
  c.setArgOperand(1, b.CreateXor(c.getArgOperand(1), 1));
}
/// Waits for one group fewer.
void waitsLess(llvm::CallInst &c) {
  llvm::Module &m = *c.getModule();
  llvm::StringRef name = c.getCalledFunction()->getName();
  auto [left, count] = name.drop_front(strlen(is::wait)).split('.');
  std::string one = (is::wait + llvm::Twine(left[0] - '0' + 1) + "." + count).str();
  c.setCalledFunction(m.getOrInsertFunction(one, c.getFunctionType()));
}

TEST(GpuWarpGroups, NoFenceIsForNothing) {
  const char *text = R"(
    entry @main(%x : f32[70, 333], %w : f32[333, 24]) -> (%y : f32[70, 24]) {
      %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k] order="hopper16 bf16"
    })";
  using How = std::function<void(llvm::CallInst &)>;
  const std::pair<const char *, How> ways[] = {
      {"llvm.nvvm.barrier", erase},
      {is::barrierInit, erase},
      {is::barrierInit, plus(1, 1)},
      {is::barrierFence, erase},
      {is::barrierExpect, erase},
      {is::barrierExpect, plus(1, -128)},
      {is::barrierExpect, plus(1, 128)},
      {is::barrierArrive, erase},
      {is::barrierWait, erase},
      {is::barrierWait, otherParity},
      {is::copyBox, erase},
      {is::fence, erase},
      {is::commit, erase},
      {is::wait, erase},
      {is::wait, waitsLess},
  };
  unsigned caught = 0;
  for (const char *plan : {"mr 2; vector 2; nr 4; threads 128; mc 32; kc 32; stages 2; warp-groups 1",
                           "mr 2; vector 2; nr 2; threads 256; mc 64; kc 32; stages 3; warp-groups 2",
                           "mr 2; vector 2; nr 2; threads 128; mc 32; kc 32; stages 3; warp-groups 1; tiles 2"}) {
    GraphOnGpu g(text, hopper(), true, under(std::string("contract: n 1; m 0; ") + plan));
    ASSERT_EQ(g.wrong, "");
    ASSERT_TRUE(hasGroups(g));
    ASSERT_EQ(g.difference({}, 1), "") << plan;
    GpuModule whole = *g.module;
    for (const auto &[name, how] : ways)
      for (unsigned which = 0;; ++which, ++caught) {
        GpuModule m = whole;
        if (!change(m, name, which, how)) break;
        g.use(std::move(m));
        ASSERT_EQ(g.wrong, "");
        std::string why = g.difference({}, 1);
        // A fault, not another result: what is wrong is seen whatever the numbers are.
        EXPECT_NE(why.find("': thread "), std::string::npos) << name << " " << which << ": " << why << "\n" << plan;
      }
    g.use(std::move(whole));
  }
  EXPECT_GE(caught, 60u);
}

TEST(GpuWarpGroups, AreRefusedWhereTheyCannotBe) {
  auto refusal = [](const char *text, const char *target, const std::string &steps) {
    GraphOnGpu g(text, hopper(), false);
    EXPECT_EQ(g.wrong, "");
    std::string plan = "contract: n 1; m 0; vector 2; " + steps;
    const KernelSpec &spec = g.schedule->kernels.back();
    std::string said = llvm::toString(checkGpuPlan(spec, llvm::cantFail(parsePlan(plan)), *gpuTargetNamed(target)));
    return said.substr(said.rfind("': ") == said.npos ? 0 : said.rfind("': ") + 3);
  };
  const std::string possible = "warp-groups 1 is not possible: ", ring = "kc 32; stages 4; warp-groups 1";
  EXPECT_EQ(refusal(product, "cuda:sm_90a", "mr 2; nr 8; threads 128; mc 32; " + ring), "");
  EXPECT_EQ(refusal(product, "cuda:sm_90", "mr 2; nr 8; threads 128; mc 32; " + ring),
            possible + "warp groups of cuda:sm_90 do no step of this sum");
  EXPECT_EQ(refusal(product, "cuda:sm_90a", "mr 2; nr 8; threads 256; mc 32; " + ring),
            possible + "threads 256 with mc 32; each group has 128, four side by side");
  EXPECT_EQ(refusal(product, "cuda:sm_90a", "mr 2; nr 64; threads 128; mc 32; " + ring),
            possible + "vector 2 with nr 64; expected 2, and 2 to 32");
  EXPECT_EQ(refusal(product, "cuda:sm_90a", "mr 4; nr 32; threads 128; mc 32; " + ring),
            possible + "mr 4; a thread has two rows of each 64 of its group, 128 sums, a block 256 rows at most");
  EXPECT_EQ(refusal(product, "cuda:sm_90a", "mr 2; nr 8; threads 128; mc 32; kc 16; stages 4; warp-groups 1"),
            possible + "kc 16 with stages 4; expected 32, and a ring");
  EXPECT_EQ(refusal(product, "cuda:sm_90a", "mr 2; nr 8; threads 128; mc 32; " + ring + "; tiles 3"),
            "tiles 3; of warp groups a power of two is expected, 2 to 64");
  EXPECT_EQ(refusal(product, "cuda:sm_90", "mr 2; nr 8; threads 128; mc 32; kc 16; tiles 2"),
            "tiles 2; of warp groups a power of two is expected, 2 to 64");
  const char *unknown = R"(
    dim n in 1..64
    entry @main(%x : f32[64, n], %w : f32[n, 32]) -> (%y : f32[64, 32]) {
      %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k] order="hopper16 bf16"
    })";
  EXPECT_EQ(refusal(unknown, "cuda:sm_90a", "mr 2; nr 8; threads 128; mc 32; " + ring),
            possible + "the length of the sum is not fixed");
}

} // namespace

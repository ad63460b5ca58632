//===- BuildTest.cpp: what cannot be launched, what needs no ptxas ----------===//
// Checks:   the limits of a target refuse a kernel in one sentence, before any tool runs; without ptxas there is PTX.
#include "RunGpu.h"

using namespace astra;
using namespace astra::test;

namespace {

TEST(Build, WhatCannotBeLaunchedIsRefused) {
  const GpuTarget &cuda = *gpuTargetNamed("cuda:sm_90"), &hip = *gpuTargetNamed("hip:gfx942");
  auto refusal = [](unsigned threads, uint64_t shared, const GpuTarget &target) {
    GpuLaunch k{"k", threads, 1, {}, shared, 0};
    auto e = checkLaunch(k, target);
    std::string text = e ? llvm::toString(std::move(e)) : "";
    GpuModule m{&target, {k}, "", ""};
    auto binary = buildGpu(m); // of no code: only the check can refuse in this way
    std::string built = binary ? "built" : llvm::toString(binary.takeError());
    EXPECT_EQ(built == text, !text.empty()) << built;
    return text;
  };
  EXPECT_EQ(refusal(1024, 49152, cuda), "");
  EXPECT_EQ(refusal(1024, 65536, hip), "");
  EXPECT_EQ(refusal(2048, 0, cuda), "kernel 'k' takes 2048 threads a block on cuda:sm_90; there are 1024");
  EXPECT_EQ(refusal(256, 49153, cuda),
            "kernel 'k' takes 49153 bytes of shared memory a block on cuda:sm_90; there are 49152");
  EXPECT_EQ(refusal(256, 65537, hip),
            "kernel 'k' takes 65537 bytes of shared memory a block on hip:gfx942; there are 65536");
  EXPECT_EQ(refusal(96, 0, hip), "kernel 'k' has blocks of 96 threads; warps of hip:gfx942 have 64");
}

TEST(Build, WithoutPtxasThereIsPtx) {
  Context c;
  Builder b{c};
  UOpRef n = b.idx(128), item = c.make(Op::Range, {n}, {0, int64_t(RangeKind::Parallel)});
  Kernel k;
  k.name = "copy";
  UOpRef x = c.make(Op::Load, {c.make(Op::Buffer, {n}, {0}, {}, DType::F32), item}, {1});
  k.sink = c.make(Op::Sink, {c.make(Op::Store, {c.make(Op::Buffer, {n}, {1}, {}, DType::F32), x, item}, {1})});
  k.buffers = {{DType::F32, true, false, n}, {DType::F32, false, true, n}};
  std::vector<GpuKernel> kernels{{"copy", &k, llvm::cantFail(linearize(c, k)), 64, 1}};
  auto module = lowerGpu(c, kernels, *gpuTargetNamed("cuda:sm_90"), {});
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  auto binary = buildGpu(*module, false, "");
  ASSERT_TRUE(bool(binary)) << llvm::toString(binary.takeError());
  EXPECT_NE(binary->assembly.find(".entry copy"), std::string::npos);
  EXPECT_TRUE(binary->code.empty());
  EXPECT_TRUE(binary->kernels.empty());
}

} // namespace

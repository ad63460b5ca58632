//===- BuildTest.cpp: code for bundles, launched by the runtime's hook -------===//
// Checks:   the limits of a target refuse a kernel in one sentence, before any tool runs; without ptxas there is PTX;
//           a host build runs by the hook that the runtime is given.
#include "../HostLevel.h"
#include "RunGpu.h"
#include "astra/Emulator/Machine.h"
#include <sys/mman.h>

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
  EXPECT_EQ(refusal(256, 232449, cuda),
            "kernel 'k' takes 232449 bytes of shared memory a block on cuda:sm_90; there are 232448");
  EXPECT_EQ(refusal(256, 65537, hip),
            "kernel 'k' takes 65537 bytes of shared memory a block on hip:gfx942; there are 65536");
  EXPECT_EQ(refusal(96, 0, hip), "kernel 'k' has blocks of 96 threads; warps of hip:gfx942 have 64");
}

/// One thread copies one of 128 elements.
GpuModule copyModule(const char *target) {
  Context c;
  Builder b{c};
  UOpRef n = b.idx(128), item = c.make(Op::Range, {n}, {0, int64_t(RangeKind::Parallel)});
  Kernel k;
  k.name = "copy";
  UOpRef x = c.make(Op::Load, {c.make(Op::Buffer, {n}, {0}, {}, DType::F32), item}, {1});
  k.sink = c.make(Op::Sink, {c.make(Op::Store, {c.make(Op::Buffer, {n}, {1}, {}, DType::F32), x, item}, {1})});
  k.buffers = {{DType::F32, true, false, n}, {DType::F32, false, true, n}};
  std::vector<GpuKernel> kernels{{"copy", &k, llvm::cantFail(linearize(c, k)), 64, 1}};
  return llvm::cantFail(lowerGpu(c, kernels, *gpuTargetNamed(target), {}));
}

TEST(Build, WithoutPtxasThereIsPtx) {
  auto binary = buildGpu(copyModule("cuda:sm_90"), false, "");
  ASSERT_TRUE(bool(binary)) << llvm::toString(binary.takeError());
  EXPECT_NE(binary->assembly.find(".entry copy"), std::string::npos);
  EXPECT_TRUE(binary->code.empty());
  EXPECT_TRUE(binary->kernels.empty());
}

/// As the runtime launches it: buffers that begin anywhere, a fault as a status.
TEST(Build, TheRuntimesHookLaunchesAHostBuild) {
  const Target *cpu = nullptr;
  for (const char *name : {"cpu:x86-64-v3", "cpu:aarch64"})
    if (hostRuns(*targetNamed(name))) cpu = targetNamed(name);
  if (!cpu) GTEST_SKIP() << "this CPU runs no host build";
  auto host = buildHost(copyModule("hip:gfx942"), *cpu);
  ASSERT_TRUE(bool(host)) << llvm::toString(host.takeError());
  const std::vector<uint8_t> &image = host->image.bytes;
  void *code = mmap(nullptr, image.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::copy(image.begin(), image.end(), static_cast<uint8_t *>(code));
  ASSERT_EQ(mprotect(code, image.size(), PROT_READ | PROT_EXEC), 0);

  alignas(16) float from[129], to[130] = {};
  for (int i = 0; i < 129; ++i) from[i] = float(i);
  void *buffers[] = {from + 1, to + 1};
  uint64_t bytes[] = {512, 512};
  uint8_t writes[] = {0, 1};
  astra_emulated_launch l = ASTRA_INIT(astra_emulated_launch);
  l.kernel = "copy", l.code = static_cast<uint8_t *>(code) + host->image.offsets[0];
  l.buffers = buffers, l.buffer_bytes = bytes, l.writes = writes, l.num_buffers = 2;
  l.items = 128, l.threads = 64, l.group = 1, l.warp = 64;
  EmulatedMachine machine(3);
  astra_emulator hooks = machine.hooks();
  astra_diag diag = ASTRA_INIT(astra_diag);
  EXPECT_EQ(hooks.launch(hooks.self, &l, &diag), ASTRA_OK) << diag.text;
  EXPECT_TRUE(std::equal(to + 1, to + 129, from + 1));
  EXPECT_EQ(to[0] + to[129], 0) << "what lies beside the buffer";
  EXPECT_EQ(machine.launches, 1u);
  EXPECT_EQ(machine.threads, 128u);

  bytes[1] = 508;
  EXPECT_EQ(hooks.launch(hooks.self, &l, &diag), ASTRA_KERNEL_FAULT);
  EXPECT_EQ(diag.status, ASTRA_KERNEL_FAULT);
  EXPECT_EQ(std::string(diag.text),
            "emulated kernel 'copy': thread 63 of block 1 writes 4 bytes outside of the buffers");
  munmap(code, image.size());
}

} // namespace

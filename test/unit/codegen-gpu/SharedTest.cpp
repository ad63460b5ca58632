//===- SharedTest.cpp: what the emulator must notice between threads ----------===//
// Kernels in LLVM IR that are wrong on purpose: shared memory read before it is written, or outside of it; races;
// barriers and exchanges that not all threads reach.
#include "Executed.h"
#include "RunGpu.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace astra;
using namespace astra::test;

namespace {

struct Between : testing::TestWithParam<const GpuTarget *> {
  bool cuda = GetParam()->flavour == GpuFlavour::CUDA;

  /// A launch of one block of 128 threads; %t is the thread's number, %s its word of 128 that are shared, %o its word
  /// of the output. `body` may end in other blocks, the last of which returns.
  std::string run(std::string body) {
    auto replace = [&](const std::string &from, const std::string &to) {
      for (size_t at = 0; (at = body.find(from, at)) != body.npos; at += to.size()) body.replace(at, from.size(), to);
    };
    replace("BARRIER",
            cuda ? "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)" : "call void @llvm.amdgcn.s.barrier()");
    replace("WARP", std::to_string(GetParam()->warp));
    std::string id = cuda ? "llvm.nvvm.read.ptx.sreg.tid.x" : "llvm.amdgcn.workitem.id.x";
    std::string text = "declare i32 @" + id + "()\n" +
                       (cuda ? "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
                               "declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)\n"
                             : "declare void @llvm.amdgcn.s.barrier()\n") +
                       "@array = internal addrspace(3) global [128 x i32] undef\n"
                       "define void @k(ptr addrspace(1) %out) {\nentry:\n%t = call i32 @" +
                       id +
                       "()\n%s = getelementptr i32, ptr addrspace(3) @array, i32 %t\n"
                       "%o = getelementptr i32, ptr addrspace(1) %out, i32 %t\n" +
                       body + "}\n";
    llvm::LLVMContext context;
    llvm::SMDiagnostic wrong;
    auto m = llvm::parseAssemblyString(text, wrong, context);
    if (!m) return "LLVM refuses: " + wrong.getMessage().str();
    GpuModule module{GetParam(), {{"k", 128, 1, {}, 512, 0}}, "", ""};
    llvm::raw_string_ostream out(module.bitcode);
    llvm::WriteBitcodeToFile(*m, out);
    auto emulator = Emulator::build(module);
    if (!emulator) return llvm::toString(emulator.takeError());
    for (uint64_t seed : {1, 2, 3}) {
      output.assign(512, 0);
      EmulatedRun run{seed, 0};
      std::string said = llvm::toString(emulator->launch(0, {{{output}, true}}, {}, 128, run));
      noteExecuted(*GetParam(), seed == 1, 1, run.threads);
      if (seed == 1) first = said;
      if (said.empty() != first.empty()) return "another order of threads hides it";
    }
    return first;
  }
  void expect(const std::string &body, const char *part) {
    std::string said = run(body);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }

  std::vector<uint8_t> output;
  std::string first;
};
INSTANTIATE_TEST_SUITE_P(Flavours, Between, testing::ValuesIn(flavours()), [](const auto &i) {
  return std::string(i.param->flavour == GpuFlavour::CUDA ? "cuda" : "hip");
});

// Each thread writes its word and reads that of the thread at the other end.
TEST_P(Between, NothingIsWrong) {
  EXPECT_EQ(run(R"(store i32 %t, ptr addrspace(3) %s
    BARRIER
    %n = sub i32 127, %t
    %p = getelementptr i32, ptr addrspace(3) @array, i32 %n
    %v = load i32, ptr addrspace(3) %p
    store i32 %v, ptr addrspace(1) %o
    ret void)"),
            "");
  for (uint32_t t = 0; t < 128; ++t) EXPECT_EQ(output[4 * t], 127 - t);
}

TEST_P(Between, ReadsWhatNobodyWrote) {
  expect(R"(%v = load i32, ptr addrspace(3) %s
    store i32 %v, ptr addrspace(1) %o
    ret void)",
         "of shared memory, which no thread of its block wrote");
  expect(R"(%low = icmp ult i32 %t, 127
    br i1 %low, label %fill, label %then
fill:
    store i32 %t, ptr addrspace(3) %s
    br label %then
then:
    BARRIER
    %v = load i32, ptr addrspace(3) %s
    store i32 %v, ptr addrspace(1) %o
    ret void)",
         "thread 127 of block 0 reads byte 508 of shared memory, which no thread of its block wrote");
}

TEST_P(Between, LeavesSharedMemory) {
  expect(R"(%n = add i32 %t, 1
    %p = getelementptr i32, ptr addrspace(3) @array, i32 %n
    store i32 %t, ptr addrspace(3) %p
    ret void)",
         "thread 127 of block 0 writes 4 bytes outside of shared memory");
}

TEST_P(Between, Races) {
  expect(R"(store i32 %t, ptr addrspace(3) @array
    ret void)",
         "writes byte 0 of shared memory, which another thread wrote with no barrier between");
  expect(R"(store i32 %t, ptr addrspace(3) %s
    %n = xor i32 %t, 1
    %p = getelementptr i32, ptr addrspace(3) @array, i32 %n
    %v = load i32, ptr addrspace(3) %p
    store i32 %v, ptr addrspace(1) %o
    ret void)",
         "of shared memory, which ");
}

TEST_P(Between, BarriersThatNotAllReach) {
  expect(R"(%low = icmp ult i32 %t, WARP
    br i1 %low, label %wait, label %then
wait:
    BARRIER
    br label %then
then:
    store i32 %t, ptr addrspace(1) %o
    ret void)",
         "waits where other threads do not");
  expect(R"(%low = icmp ult i32 %t, 5
    br i1 %low, label %wait, label %then
wait:
    BARRIER
    br label %then
then:
    store i32 %t, ptr addrspace(1) %o
    ret void)",
         "waits where other lanes of its warp do not");
  expect(R"(%low = icmp ult i32 %t, WARP
    br i1 %low, label %one, label %other
one:
    BARRIER
    br label %then
other:
    BARRIER
    br label %then
then:
    store i32 %t, ptr addrspace(1) %o
    ret void)",
         "waits where other threads do not");
}

TEST_P(Between, ExchangesBeyondTheWarp) {
  if (!cuda) GTEST_SKIP() << "AMD's exchanges have no lane beyond a wave";
  expect(R"(%v = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 32, i32 31)
    store i32 %v, ptr addrspace(1) %o
    ret void)",
         "reads a lane of another warp");
}

} // namespace

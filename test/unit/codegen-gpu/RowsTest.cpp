//===- RowsTest.cpp: reductions over warps, emulated, against Eval ----------===//
// Rows of lengths around 64 and 4096, types of every width, several passes over a row, on warps of 32 and waves of 64,
// with threads in several orders.
#include "RunGpu.h"
#include "RunSchedule.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/Numerics/Numerics.h"

using namespace astra;
using namespace astra::test;

namespace {

constexpr const char *source = R"(module @m {
  dim n in 0..9000
  dim m in 0..5
  entry @main(%x : f32[m, n], %d : f64[m, n], %h : f16[m, n], %i : i64[m, n], %b : i8[m, n]) -> (%s : f32[m], %t : f64[m], %u : f16[m], %v : f32[m], %w : i64[m], %k : i8[m], %p : f32[m], %y : f32[m, n], %c : f32[n]) {
    %s = reduce %x kind=sum order=lane64 axes=[1]
    %t = reduce %d kind=sum order=lane64 axes=[1]
    %u = reduce %h kind=sum order=lane64 axes=[1]
    %v = reduce %x kind=max order=exact axes=[1]
    %w = reduce %i kind=sum order=exact axes=[1]
    %k = reduce %b kind=min order=exact axes=[1]
    %p = reduce %x kind=prod order=lane64 axes=[1]
    %v0 = detach %v
    %v1 = reshape %v0 [m, 1]
    %v2 = expand %v1 [m, n]
    %e = sub %x, %v2
    %f = exp %e
    %g = reduce %f kind=sum order=lane64 axes=[1]
    %g1 = reshape %g [m, 1]
    %g2 = expand %g1 [m, n]
    %y = div %f, %g2
    %c = reduce %x kind=sum order=lane64 axes=[0]
  }
})";

Tensor random(DType t, std::vector<int64_t> shape, uint64_t seed) {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  Tensor x{t, shape, std::vector<uint8_t>(count * byteSize(t))};
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    double v = double(int64_t(seed >> 40) - (1 << 23)) * 0x1p-20;
    float f = float(v);
    uint64_t bits = seed >> 30;
    if (t == DType::F64) memcpy(&bits, &v, 8);
    if (t == DType::F32) memcpy(&bits, &f, 4);
    if (t == DType::F16) bits = (bits & 0x83ff) | 0x3800; // around 1
    memcpy(&x.bytes[i * byteSize(t)], &bits, byteSize(t));
  }
  return x;
}

class GpuRows : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Chips, GpuRows, testing::Values("cuda:sm_90", "hip:gfx942", "hip:gfx1100"),
                         [](const auto &i) { return llvm::StringRef(i.param).split(':').second.str(); });

TEST_P(GpuRows, KeepTheirBits) {
  auto parsed = parse(source, "rows.uop");
  ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
  Module original = *parsed, &m = *parsed;
  ASSERT_FALSE(bool(runNumerics(m)));
  auto s = schedule(m);
  ASSERT_TRUE(bool(s)) << llvm::toString(s.takeError());
  const GpuTarget &target = *gpuTargetNamed(GetParam());
  std::vector<Kernel> storage;
  auto kernels = gpuKernels(m.ctx(), *s, target, storage);
  ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
  unsigned byWarps = 0;
  for (const GpuKernel &k : *kernels) byWarps += k.group == target.warp;
  EXPECT_GE(byWarps, 7u);
  auto module = lowerGpu(m.ctx(), *kernels, target, s->dims);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  auto emulator = Emulator::build(*module);
  ASSERT_TRUE(bool(emulator)) << llvm::toString(emulator.takeError());
  uint64_t seed = 7;
  for (auto [rows, n] : {std::pair<int64_t, int64_t>{3, 0},
                         {2, 1},
                         {5, 31},
                         {1, 64},
                         {4, 65},
                         {2, 1000},
                         {0, 9},
                         {3, 4096},
                         {1, 8500}}) {
    EvalInputs in;
    for (DType t : {DType::F32, DType::F64, DType::F16, DType::I64, DType::I8})
      in.inputs.push_back(random(t, {rows, n}, ++seed));
    EvalOptions options;
    options.function = evalFunction;
    auto want = evalEntry(original, original.entries[0], in, options);
    ASSERT_TRUE(bool(want)) << llvm::toString(want.takeError());
    EmulatedRun run{seed, 0};
    ScheduleRun scheduled(m, *s, *targetNamed("cpu:x86-64-v3"), true);
    scheduled.execute = [&](uint32_t k, llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>> views,
                            llvm::ArrayRef<int64_t> dims, int64_t items) {
      std::vector<EmulatedBuffer> buffers;
      for (size_t i = 0; i < views.size(); ++i) buffers.push_back({views[i], storage[k].buffers[i].write});
      return emulator->launch(k, buffers, dims, items, run);
    };
    scheduled.useKernels(storage);
    auto got = scheduled.run(0, in);
    ASSERT_TRUE(bool(got)) << llvm::toString(got.takeError());
    for (size_t i = 0; i < want->outputs.size(); ++i)
      EXPECT_TRUE(got->outputs[i] == want->outputs[i]) << "rows " << rows << " of " << n << ": output " << i;
  }
}

} // namespace

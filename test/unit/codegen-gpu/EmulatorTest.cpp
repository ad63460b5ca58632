//===- EmulatorTest.cpp: what the emulator must notice ----------------------===//
// Kernels that are wrong on purpose.
#include "RunGpu.h"

using namespace astra;
using namespace astra::test;

namespace {

struct Wrong : testing::TestWithParam<const GpuTarget *> {
  Context c;
  Builder b{c};
  UOpRef n = b.idx(128), item = c.make(Op::Range, {n}, {0, int64_t(RangeKind::Parallel)});

  UOpRef buffer(int64_t slot) { return c.make(Op::Buffer, {n}, {slot}, {}, DType::F32); }
  /// Copies element from(item) of buffer 0 to element to(item) of buffer 1, which has `room` elements.
  std::string copy(UOpRef from, UOpRef to, bool write = true, int64_t room = 128, bool one = false) {
    Kernel k;
    k.name = "copy";
    UOpRef x = c.make(Op::Load, {buffer(one ? 1 : 0), from}, {1});
    k.sink = c.make(Op::Sink, {c.make(Op::Store, {buffer(1), x, to}, {1})});
    k.buffers = {{DType::F32, true, false, n}, {DType::F32, one, write, n}};
    std::vector<Job> jobs{{k, {std::vector<uint8_t>(128 * 4), std::vector<uint8_t>(room * 4)}, {}}};
    EmulatedRun run{1, 0};
    return emulate(c, jobs, *GetParam(), {}, run);
  }
};
INSTANTIATE_TEST_SUITE_P(Flavours, Wrong, testing::ValuesIn(flavours()), [](const auto &i) {
  return std::string(i.param->flavour == GpuFlavour::CUDA ? "cuda" : "hip");
});

TEST_P(Wrong, NothingIsWrong) {
  EXPECT_EQ(copy(item, item), "");
  EXPECT_EQ(copy(item, item, true, 128, true), "");
}

TEST_P(Wrong, ReadsOutside) {
  EXPECT_NE(copy(idxAdd(c, item, b.idx(1)), item).find("reads 4 bytes outside of the buffers"), std::string::npos);
  EXPECT_NE(copy(idxSub(c, item, b.idx(1)), item).find("reads 4 bytes outside of the buffers"), std::string::npos);
}

TEST_P(Wrong, WritesOutside) {
  EXPECT_NE(copy(item, item, true, 127).find("writes 4 bytes outside of the buffers"), std::string::npos);
}

TEST_P(Wrong, WritesWhatIsReadOnly) {
  EXPECT_NE(copy(item, item, false).find("writes to buffer 1, which is read-only"), std::string::npos);
}

TEST_P(Wrong, TwoThreadsWriteOneElement) {
  std::string why = copy(item, idxDiv(c, item, b.idx(2)));
  EXPECT_NE(why.find("of buffer 1, which another thread wrote"), std::string::npos) << why;
}

TEST_P(Wrong, OneThreadReadsWhatAnotherWrites) {
  std::string why = copy(idxSub(c, b.idx(127), item), item, true, 128, true);
  EXPECT_NE(why.find("of buffer 1, which another thread "), std::string::npos) << why;
}

} // namespace

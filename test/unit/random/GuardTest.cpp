//===- GuardTest.cpp: what leaves a buffer is seen --------------------------===//
// Takes:    loads and stores beside a buffer; bundles whose manifest says of a right kernel what is not so.
// Gives:    each is found between guard pages, with its place; what stays in its buffers is not.
#include "RunBundle.h"
#include "astra/Bundle/Assemble.h"
#include "astra/Codegen/Compile.h"
#include "astra/IR/Text.h"
#include "guard/Regions.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "gtest/gtest.h"

using namespace astra;
using namespace astra::guard;

namespace {

struct Touch {
  volatile uint8_t *at;
  bool stores;
  static void run(void *arg) {
    auto &t = *static_cast<Touch *>(arg);
    if (t.stores)
      *t.at = 1;
    else
      (void)*t.at;
  }
};

TEST(Guard, SeesBytesBesideABuffer) {
  for (uint64_t bytes : {0, 1, 40, 4096, 5000})
    for (Side side : {Side::End, Side::Begin}) {
      Regions regions;
      Region &region = regions.take(bytes);
      uint8_t *at = region.place(bytes, side, 1);
      EXPECT_EQ(region.at, at);
      Fault fault;
      for (uint64_t i = 0; i < bytes; ++i) {
        Touch inside{at + i, true};
        ASSERT_TRUE(survives(Touch::run, &inside, fault));
      }
      int64_t before, behind;
      EXPECT_TRUE(region.untouched(before, behind));
      bool atEnd = side == Side::End || bytes == 0;
      for (bool stores : {false, true}) {
        Touch outside{atEnd ? at + bytes : at - 1, stores};
        EXPECT_FALSE(survives(Touch::run, &outside, fault)) << bytes << " bytes";
        EXPECT_TRUE(fault.known);
        EXPECT_EQ(fault.address, outside.at);
        EXPECT_EQ(regions.around(fault.address), &region);
      }
      if (bytes % kPage == 0) continue; // nothing is left of the page
      Touch other{atEnd ? at - 3 : at + bytes + 2, true};
      EXPECT_TRUE(survives(Touch::run, &other, fault));
      EXPECT_FALSE(region.untouched(before, behind));
      EXPECT_EQ(atEnd ? before : behind, 3);
    }
}

class Bundles : public testing::Test {
protected:
  llvm::SmallString<128> path;
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("guard", "astra", path)); }
  void TearDown() override { llvm::sys::fs::remove(path); }

  /// What is found in a bundle whose manifest a function has changed.
  CheckResult check(llvm::function_ref<void(fmt::ManifestT &)> change) {
    const Target &target = *targetNamed("cpu:x86-64-v3");
    if (!test::canRun(target)) return {};
    Module m =
        llvm::cantFail(parse("module @m {\n  dim n in 1..8\n  entry @main(%x : f32[n, 3]) -> (%y : f32[n, 3]) {\n"
                             "    %y = add %x, %x\n  }\n}\n",
                             "m.uop"));
    llvm::cantFail(test::prepare(m));
    Schedule s = llvm::cantFail(schedule(m));
    std::vector<CompiledTarget> code;
    code.push_back(llvm::cantFail(compileKernels(m.ctx(), s, target, {})));
    BundleParts parts = llvm::cantFail(assemble(m, s, std::move(code)));
    change(parts.manifest);
    llvm::cantFail(test::writeBundleTo(parts, path));
    return llvm::cantFail(test::runGuarded(path, target));
  }
  /// Another expression for one over the dim n.
  static uint32_t add(fmt::ManifestT &m, std::vector<fmt::ExprOp> code) {
    auto e = std::make_unique<fmt::ExprT>();
    e->code = std::move(code);
    m.exprs.push_back(std::move(e));
    return uint32_t(m.exprs.size() - 1);
  }
};

TEST_F(Bundles, RightKernelsHaveNoFinding) {
  CheckResult r = check([](fmt::ManifestT &) {});
  if (r.modules == 0) GTEST_SKIP() << "this machine does not run the level";
  EXPECT_TRUE(r.findings.empty()) << r.findings[0];
  EXPECT_EQ(r.refused, 0u);
  EXPECT_EQ(r.corners, 8u); // each value of n
  EXPECT_EQ(r.launches, 16u);
}

TEST_F(Bundles, ABufferThatIsShorterThanItsKernelTakesIt) {
  CheckResult r = check([](fmt::ManifestT &m) {
    fmt::EntryT &e = *m.entries[0];
    e.outputs[0]->shape[1] = add(m, {{fmt::ExprCode::Const, 2}});
    for (auto &b : e.routine->buffers)
      if (b->kind == fmt::BufferKind::Output)
        b->bytes = add(m, {{fmt::ExprCode::Dim, 0}, {fmt::ExprCode::Const, 8}, {fmt::ExprCode::Mul, 0}});
  });
  if (r.modules == 0) GTEST_SKIP() << "this machine does not run the level";
  ASSERT_FALSE(r.findings.empty());
  std::string all;
  for (const std::string &f : r.findings) all += f + "\n";
  for (const char *part : {"of cpu:x86-64-v3 under plan '",
                           "items of n=1, stores at byte 0 behind the end of argument 1 (output y, 8 bytes)",
                           "buffers end at a guard page", "buffers begin at a guard page"})
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
}

TEST_F(Bundles, AStoreIntoAnInput) {
  CheckResult r = check([](fmt::ManifestT &m) { m.kernels[0]->access[1] = fmt::Access::Read; });
  if (r.modules == 0) GTEST_SKIP() << "this machine does not run the level";
  ASSERT_FALSE(r.findings.empty());
  EXPECT_NE(r.findings[0].find("stores into what it says to read only: argument 1"), std::string::npos)
      << r.findings[0];
}

} // namespace

//===- TableTest.cpp: what kernels take of a GPU ----------------------------===//
// Takes:    a product, every layer of ResNet-50, a softmax, a layer norm, attention; all GPU targets.
// Checks:   docs/gpu-kernels.md is what the compiled code says: registers, shared memory, stack, spills, and the
//           occupancy that follows; every fourth work unless ASTRA_NIGHTLY is set. Needs the ptxas with which the page
//           was made. After a change: ASTRA_UPDATE_DOCS=1 build/bin/unit-codegen-gpu --gtest_filter='GpuTable.*'
#include "Layers.h"
#include "RunGraph.h"
#include <fstream>
#include <sstream>

using namespace astra;
using namespace astra::test;

namespace {

std::string product(int64_t m, int64_t k, int64_t columns, bool turned = false) {
  return one("%x : f32[" + n(m) + ", " + n(k) + "], %w : f32[" +
                 (turned ? n(columns) + ", " + n(k) : n(k) + ", " + n(columns)) + "]",
             "f32[" + n(m) + ", " + n(columns) + "]",
             std::string("contract %x[i, k], %w[") + (turned ? "j, k" : "k, j") + "] -> [i, j] sum [k]");
}

struct Work {
  std::string name, text;
};

std::vector<Work> allWork() {
  std::vector<Work> all{{"matmul 1024", product(1024, 1024, 1024)}};
  for (const Layer &l : resnet50)
    all.push_back({"ResNet-50, " + n(l.kernel) + "x" + n(l.kernel) + (l.stride == 1 ? "" : "/" + n(l.stride)) + " " +
                       n(l.in) + "-" + n(l.out) + " @" + n(l.size) + (l.added ? ", added" : ""),
                   convolution(l)});
  all.push_back({"ResNet-50, mean @7", R"(dim b in 1..8
    entry @main(%x : f32[b, 7, 7, 2048]) -> (%y : f32[b, 2048]) {
      %0 = reduce %x kind=sum order=lane64 axes=[1, 2]
      %1 = const 49.0 : f32
      %2 = reshape %1 [1, 1]
      %3 = expand %2 [b, 2048]
      %y = div %0, %3
    })"});
  all.push_back({"ResNet-50, classes", R"(dim b in 1..8
    entry @main(%x : f32[b, 2048], %w : f32[2048, 1000]) -> (%y : f32[b, 1000]) {
      %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
    })"});
  for (int64_t w : {4096, 1024}) {
    all.push_back({"softmax 8192 x " + n(w), softmax(8192, w)});
    all.push_back({"layer norm 8192 x " + n(w), norm(8192, w, true)});
  }
  all.push_back({"one row by 768 x 2304", product(1, 768, 2304)});
  all.push_back({"one row by 50257 x 768, turned", product(1, 768, 50257, true)});
  all.push_back(
      {"dot 1000000", one("%x : f32[1000000], %z : f32[1000000]", "f32", "contract %x[k], %z[k] -> [] sum [k]")});
  all.push_back({"decode scores 12 x 1024 x 64", one("%q : f32[12, 64], %k : f32[12, 1024, 64]", "f32[12, 1024]",
                                                     "contract %q[h, d], %k[h, j, d] -> [h, j] sum [d]")});
  all.push_back({"decode values 12 x 1024 x 64", one("%p : f32[12, 1024], %v : f32[12, 1024, 64]", "f32[12, 64]",
                                                     "contract %p[h, j], %v[h, j, d] -> [h, d] sum [j]")});
  all.push_back({"attention 12 x 128 x 64", R"(
    entry @main(%q : f32[128, 12, 64], %k : f32[128, 12, 64], %v : f32[128, 12, 64]) -> (%y : f32[128, 12, 64]) {
      %s = contract %q[i, h, d], %k[j, h, d] -> [h, i, j] sum [d]
      %m = reduce %s kind=max order=exact axes=[2]
      %m1 = reshape %m [12, 128, 1]
      %m2 = expand %m1 [12, 128, 128]
      %d = sub %s, %m2
      %e = exp %d
      %t = reduce %e kind=sum order=lane64 axes=[2]
      %t1 = reshape %t [12, 128, 1]
      %t2 = expand %t1 [12, 128, 128]
      %p = div %e, %t2
      %y = contract %p[h, i, j], %v[j, h, d] -> [i, h, d] sum [j]
    })"});
  return all;
}

constexpr const char *head = R"(# What kernels take of a GPU

Made by `ASTRA_UPDATE_DOCS=1 build/bin/unit-codegen-gpu --gtest_filter='GpuTable.*'`, which also checks it; the figures are those that the
compiled code states (`ptxas -v`, the notes of HSACO). Nothing of this was measured on a GPU. Registers are of a thread (on AMD vector registers), shared memory and
threads of a block, stack and spills of a thread: bytes, but spills on AMD, which are registers. Occupancy is how many of a hundred warps that a
unit holds are there when it is full of such blocks, from the description of the target in `lib/Codegen/GPU/GpuTarget.cpp`. Layers of ResNet-50 are of any
batch up to 8, batch norm as scale and shift, with relu; `added`: with a residual.

)";

TEST(GpuTable, IsInTheDocs) {
  std::string path = ASTRA_SOURCE_DIR "/docs/gpu-kernels.md";
  std::ifstream file(path);
  std::stringstream committed;
  committed << file.rdbuf();
  if (ptxasPath().empty()) GTEST_SKIP() << "ptxas is not installed";
  auto version = ptxasVersion(ptxasPath());
  ASSERT_TRUE(bool(version)) << llvm::toString(version.takeError());
  bool update = std::getenv("ASTRA_UPDATE_DOCS"), all = update || std::getenv("ASTRA_NIGHTLY");
  std::string made = "ptxas " + *version + ".\n\n";
  if (!update && committed.str().find(made) == std::string::npos)
    GTEST_SKIP() << "docs/gpu-kernels.md was made with another ptxas than " << *version;
  std::string page = head + made +
                     "| work | kernel | target | threads | registers | shared | stack | spills | occupancy |\n"
                     "|---|---|---|---|---|---|---|---|---|\n";
  for (auto [i, w] : llvm::enumerate(allWork())) {
    if (!all && i % 4) continue;
    std::map<std::string, std::string> rows; // of a kernel, in the order of targets
    for (const GpuTarget &target : allGpuTargets()) {
      if (target.warpGroups) continue; // these kernels have no use for them: they are those of sm_90
      GraphOnGpu g(w.text, target, false);
      ASSERT_EQ(g.wrong, "") << w.name;
      auto m = lowerGpu(g.lowered->ctx(), g.kernels, target, g.schedule->dims);
      ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
      auto built = buildGpu(*m);
      ASSERT_TRUE(bool(built)) << llvm::toString(built.takeError());
      for (auto [k, use] : llvm::zip_equal(g.kernels, built->kernels)) {
        if (k.kernel->sink->src.empty()) continue; // the kernel that it follows does its work
        unsigned occupancy = gpuOccupancy(target, k.threads, use.registers, use.shared);
        EXPECT_GT(occupancy, 0u) << w.name;
        // ptxas prefers 80 registers and four words of stack to 84 registers here, which would be a block less a unit.
        // Of the rows of a softmax on sm_75 it prefers 80 and two words.
        bool chosen = llvm::StringRef(target.name) == "cuda:sm_80" && w.name == "ResNet-50, 3x3 64-64 @56";
        bool few = llvm::StringRef(target.name) == "cuda:sm_75" && w.name == "softmax 8192 x 1024";
        EXPECT_LE(use.stack + use.spills, chosen ? 48u : few ? 16u : 0u) << w.name << " on " << target.name;
        rows[k.name] += "| " + w.name + " | " + k.name + " | " + target.name + " | " + n(k.threads) + " | " +
                        n(use.registers) + " | " + n(use.shared) + " | " + n(use.stack) + " | " + n(use.spills) +
                        " | " + n(occupancy) + " % |\n";
      }
    }
    for (auto &[kernel, text] : rows) {
      page += text;
      EXPECT_TRUE(update || committed.str().find("|\n" + text) != std::string::npos) << "not in the page:\n" << text;
    }
  }
  if (!all) return;
  if (update) {
    std::ofstream(path) << page;
    return;
  }
  EXPECT_EQ(committed.str() == page, true) << "docs/gpu-kernels.md is stale; run this test with ASTRA_UPDATE_DOCS=1";
}

} // namespace

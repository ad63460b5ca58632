//===- AccessTest.cpp: how kernels meet memory, from their index expressions ===//
// Checks, for kernels of every form at sizes of real networks: loads and stores of the main loops are of neighbours (a
// warp touches at most twice the sectors that it needs), no more than two words of one bank meet in arrays that threads
// share, and no thread sums more than a thousand elements of a reduction alone.
#include "Layers.h"
#include "RunGraph.h"

using namespace astra;
using namespace astra::test;

namespace {

struct Shape {
  const char *name;
  std::string text;
  double waste = 2; // sectors, by how many would hold what a warp touches
};

std::string reduction(const char *from, const char *to, const char *axes, bool most = false) {
  std::string op =
      std::string("reduce %x ") + (most ? "kind=max order=exact" : "kind=sum order=lane64") + " axes=" + axes;
  return one((std::string("%x : ") + from).c_str(), to, op.c_str());
}
std::string permute(const char *from, const char *to, const char *perm) {
  return one((std::string("%x : ") + from).c_str(), to, (std::string("permute %x perm=") + perm).c_str());
}
/// b along some axes of x, and added.
std::string biased(const char *all, const char *extent, const char *shape) {
  std::string a = all;
  return "entry @main(%x : f32" + a + ", %b : f32[" + extent + "]) -> (%y : f32" + a + ") {\n%1 = reshape %b " + shape +
         "\n%2 = expand %1 " + a + "\n%y = add %x, %2\n}";
}
std::string joined(const char *a, const char *b, const char *to, const char *padA, const char *padB) {
  return std::string("entry @main(%a : f32") + a + ", %b : f32" + b + ") -> (%y : f32" + to + ") {\n%0 = pad %a " +
         padA + " value=-0.0\n%1 = pad %b " + padB + " value=-0.0\n%y = add %0, %1\n}";
}
/// A pool of `size` by `size` along two axes.
std::string pool(const char *from, const char *to, int64_t axis, int64_t size, bool most) {
  std::string window = " size=" + std::to_string(size) + " stride=2 dilation=1\n";
  return std::string("entry @main(%x : f32") + from + ") -> (%y : f32" + to +
         ") {\n%0 = window %x axis=" + std::to_string(axis) + window +
         "%1 = window %0 axis=" + std::to_string(axis + 1) + window + "%y = reduce %1 " +
         (most ? "kind=max order=exact" : "kind=sum order=chain") + " axes=[4, 5]\n}";
}

const Shape shapes[] = {
#define PRODUCT(name, m, k, n)                                                                                         \
  {name, "entry @main(%x : f32[" #m ", " #k "], %w : f32[" #k ", " #n "]) -> (%y : f32[" #m ", " #n "]) {\n"           \
         "%y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]\n}"}
    PRODUCT("matmul256", 256, 256, 256),
    PRODUCT("matmul1024", 1024, 1024, 1024),
    PRODUCT("ffn", 128, 768, 3072),
    {"xTransposed", R"(entry @main(%x : f32[512, 256], %w : f32[512, 128]) -> (%y : f32[256, 128]) {
       %y = contract %x[k, i], %w[k, j] -> [i, j] sum [k]
     })"},
    {"wTransposed", R"(entry @main(%x : f32[256, 512], %w : f32[128, 512]) -> (%y : f32[256, 128]) {
       %y = contract %x[i, k], %w[j, k] -> [i, j] sum [k]
     })"},
    {"scores", R"(entry @main(%q : f32[128, 12, 64], %k : f32[128, 12, 64]) -> (%y : f32[12, 128, 128]) {
       %y = contract %q[i, h, d], %k[j, h, d] -> [h, i, j] sum [d]
     })"},
    {"values", R"(entry @main(%p : f32[12, 128, 128], %v : f32[128, 12, 64]) -> (%y : f32[128, 12, 64]) {
       %y = contract %p[h, i, j], %v[j, h, d] -> [i, h, d] sum [j]
     })"},
    {"doubles", R"(entry @main(%x : f64[2048, 2048], %w : f64[2048, 2048]) -> (%y : f64[2048, 2048]) {
       %y = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
     })"},
    // Few results: the loads of the main loop, threads that share a sum, and stores.
    {"oneRow",
     one("%x : f32[1, 768], %w : f32[768, 2304]", "f32[1, 2304]", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"oneRowTurned",
     one("%x : f32[1, 768], %w : f32[50257, 768]", "f32[1, 50257]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]")},
    {"oneRowHalves",
     one("%x : f16[1, 768], %w : f16[2304, 768]", "f16[1, 2304]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]")},
    {"oneRowDoubles",
     one("%x : f64[1, 768], %w : f64[2304, 768]", "f64[1, 2304]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]")},
    {"twoRows",
     one("%x : f32[2, 2048], %w : f32[2048, 1000]", "f32[2, 1000]", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"fewRowsTurned",
     one("%x : f32[5, 2048], %w : f32[1000, 2048]", "f32[5, 1000]", "contract %x[i, k], %w[j, k] -> [i, j] sum [k]")},
    {"fewRowsSymbolic", "dim b in 1..8\n" + one("%x : f32[b, 2048], %w : f32[2048, 1000]", "f32[b, 1000]",
                                                "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"eightRows",
     one("%x : f32[8, 2048], %w : f32[2048, 1000]", "f32[8, 1000]", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"threeColumns",
     one("%x : f32[100000, 64], %w : f32[64, 3]", "f32[100000, 3]", "contract %x[i, k], %w[k, j] -> [i, j] sum [k]")},
    {"matrixVector",
     one("%x : f32[4096, 4096], %z : f32[4096]", "f32[4096]", "contract %x[i, k], %z[k] -> [i] sum [k]")},
    {"matrixColumn",
     one("%x : f32[4096, 4096], %z : f32[4096, 1]", "f32[4096, 1]", "contract %x[i, k], %z[k, j] -> [i, j] sum [k]")},
    {"vectorMatrix",
     one("%x : f32[4096, 4096], %z : f32[4096]", "f32[4096]", "contract %x[k, i], %z[k] -> [i] sum [k]")},
    {"dot", one("%x : f32[1000000], %z : f32[1000000]", "f32", "contract %x[k], %z[k] -> [] sum [k]")},
    {"dotDoubles", one("%x : f64[1000000], %z : f64[1000000]", "f64", "contract %x[k], %z[k] -> [] sum [k]")},
    {"dots", one("%x : f32[1000, 64], %z : f32[1000, 64]", "f32[1000]", "contract %x[b, k], %z[b, k] -> [b] sum [k]")},
    {"dotsLong",
     one("%x : f32[100, 65536], %z : f32[100, 65536]", "f32[100]", "contract %x[b, k], %z[b, k] -> [b] sum [k]")},
    {"decodeScores", "dim t in 1..1024\n" + one("%q : f32[1, 12, 1, 64], %k : f32[1, 12, t, 64]", "f32[1, 12, 1, t]",
                                                "contract %q[b, h, i, d], %k[b, h, j, d] -> [b, h, i, j] sum [d]")},
    {"decodeValues", "dim t in 1..1024\n" + one("%p : f32[1, 12, 1, t], %v : f32[1, 12, t, 64]", "f32[1, 12, 1, 64]",
                                                "contract %p[b, h, i, j], %v[b, h, j, d] -> [b, h, i, d] sum [j]")},
    {"pointwise7", one("%x : f32[1, 7, 7, 960], %w : f32[960, 160]", "f32[1, 7, 7, 160]",
                       "contract %x[n, h, w, c], %w[c, o] -> [n, h, w, o] sum [c]")},
    {"pointwise112", one("%x : f32[1, 112, 112, 32], %w : f32[32, 16]", "f32[1, 112, 112, 16]",
                         "contract %x[n, h, w, c], %w[c, o] -> [n, h, w, o] sum [c]")},
    {"pointwisePlanes", one("%x : f32[1, 960, 7, 7], %w : f32[160, 960]", "f32[1, 160, 7, 7]",
                            "contract %x[n, c, h, w], %w[o, c] -> [n, o, h, w] sum [c]")},
    {"depthwise", one("%x : f32[1, 30, 30, 384], %w : f32[3, 3, 384]", "f32[1, 28, 28, 384]",
                      "contract %x[n, h + r, w + s, c], %w[r, s, c] -> [n, h: 28, w: 28, c] sum [r, s]")},
    {"depthwise7", one("%x : f32[1, 9, 9, 960], %w : f32[3, 3, 960]", "f32[1, 7, 7, 960]",
                       "contract %x[n, h + r, w + s, c], %w[r, s, c] -> [n, h: 7, w: 7, c] sum [r, s]")},
    {"depthwiseHalf", one("%x : f32[1, 57, 57, 96], %w : f32[3, 3, 96]", "f32[1, 28, 28, 96]",
                          "contract %x[n, 2*h + r, 2*w + s, c], %w[r, s, c] -> [n, h: 28, w: 28, c] sum [r, s]")},
    {"depthwisePlanes", one("%x : f32[1, 384, 30, 30], %w : f32[384, 3, 3]", "f32[1, 384, 28, 28]",
                            "contract %x[n, c, h + r, w + s], %w[c, r, s] -> [n, c, h: 28, w: 28] sum [r, s]")},
    {"transpose", R"(entry @main(%x : f32[128, 256]) -> (%y : f32[256, 128]) {
       %y = permute %x perm=[1, 0]
     })"},
    {"heads", R"(entry @main(%x : f32[128, 12, 64]) -> (%y : f32[12, 64, 128]) {
       %y = permute %x perm=[1, 2, 0]
     })"},
    {"conv3x3", R"(entry @main(%x : f32[1, 16, 16, 64], %w : f32[3, 3, 64, 64]) -> (%y : f32[1, 14, 14, 64]) {
       %y = contract %x[n, h + r, w + s, c], %w[r, s, c, o] -> [n, h: 14, w: 14, o] sum [r, s, c]
     })"},
    {"conv1x1", R"(entry @main(%x : f32[1, 14, 14, 256], %w : f32[256, 64]) -> (%y : f32[1, 14, 14, 64]) {
       %y = contract %x[n, h, w, c], %w[c, o] -> [n, h, w, o] sum [c]
     })"},
    {"softmax768", softmax(128, 768)},
    {"softmax8192", softmax(64, 8192)},
    {"softmaxVocabulary", softmax(8, 50257)},
    {"softmaxShort", softmax(100000, 10)},
    {"layerNorm768", norm(4096, 768, true)},
    {"layerNorm16384", norm(16, 16384, true)},
    {"rmsNorm4096", norm(2048, 4096, false)},
    {"rmsNorm16384", norm(16, 16384, false)},
    {"sumOfAll", reduction("f32[64, 32, 32, 16]", "f32", "[0, 1, 2, 3]")},
    {"mostOfAll", reduction("f32[1000, 1000]", "f32", "[0, 1]", true)},
    {"sumLastShort", reduction("f32[1000000, 10]", "f32[1000000]", "[1]")},
    {"mostLastShort", reduction("f32[1000000, 10]", "f32[1000000]", "[1]", true)},
    {"sumLast", reduction("f32[1000, 64]", "f32[1000]", "[1]")},
    {"sumLastLong", reduction("f16[128, 16384]", "f16[128]", "[1]")},
    {"sumLastComplex", reduction("complex64[16, 16384]", "complex64[16]", "[1]")},
    {"sumLastSymbolic", "dim m in 0..4096\ndim n in 0..1000000\n" + reduction("f32[m, n]", "f32[m]", "[1]")},
    {"sumFirst", reduction("f32[4096, 768]", "f32[768]", "[0]")},
    {"sumFirstLong", reduction("f32[1000000, 64]", "f32[64]", "[0]")},
    {"sumFirstFew", reduction("f32[100000, 3]", "f32[3]", "[0]")},
    {"sumFirstMany", reduction("f32[10, 1000000]", "f32[1000000]", "[0]")},
    {"sumFirstDoubles", reduction("f64[16384, 128]", "f64[128]", "[0]")},
    {"sumFirstSymbolic", "dim m in 0..4096\ndim n in 0..1000000\n" + reduction("f32[n, m]", "f32[m]", "[0]")},
    {"mostFirst", reduction("f32[4096, 768]", "f32[768]", "[0]", true)},
    {"sumMiddle", reduction("f32[64, 300, 100]", "f32[64, 100]", "[1]")},
    {"sumMiddleFew", reduction("f32[8, 50176, 3]", "f32[8, 3]", "[1]")},
    // 60 neighbours a result of three: by threads that read every twentieth row of three, or every third element.
    {"sumMiddleShort", reduction("f32[100000, 20, 3]", "f32[100000, 3]", "[1]"), 4.25},
    {"sumOuterAndInner", reduction("f32[16, 64, 56, 56]", "f32[64]", "[0, 2, 3]")},
    {"mostOuterAndInner", reduction("f32[64, 32, 128]", "f32[32]", "[0, 2]", true)},
    {"indexOfMost", one("%x : f32[128, 50000]", "i64[128]", "argreduce %x kind=argmax axis=1")},
    {"transposeFew", permute("f32[100000, 3]", "f32[3, 100000]", "[1, 0]")},
    {"transposeFewRows", permute("f32[3, 100000]", "f32[100000, 3]", "[1, 0]")},
    {"transposeHalves", permute("f16[1024, 1024]", "f16[1024, 1024]", "[1, 0]")},
    {"transposeBytes", permute("i8[1024, 1024]", "i8[1024, 1024]", "[1, 0]")},
    {"permute201", permute("f32[256, 256, 256]", "f32[256, 256, 256]", "[2, 0, 1]")},
    {"permute120", permute("f32[256, 256, 256]", "f32[256, 256, 256]", "[1, 2, 0]")},
    {"permute210", permute("f32[256, 256, 256]", "f32[256, 256, 256]", "[2, 1, 0]")},
    {"permute102", permute("f32[256, 256, 256]", "f32[256, 256, 256]", "[1, 0, 2]")},
    {"rotateSix", permute("f32[8, 8, 8, 8, 8, 8]", "f32[8, 8, 8, 8, 8, 8]", "[5, 0, 1, 2, 3, 4]")},
    {"rotateSixOdd", permute("f32[4, 6, 8, 10, 12, 14]", "f32[14, 4, 6, 8, 10, 12]", "[5, 0, 1, 2, 3, 4]")},
    {"reverseSix", permute("f32[8, 8, 8, 8, 8, 8]", "f32[8, 8, 8, 8, 8, 8]", "[5, 4, 3, 2, 1, 0]")},
    {"channelsLastFew", permute("f32[8, 3, 224, 224]", "f32[8, 224, 224, 3]", "[0, 2, 3, 1]")},
    {"channelsLast", permute("f32[8, 64, 56, 56]", "f32[8, 56, 56, 64]", "[0, 2, 3, 1]")},
    {"embedding", one("%x : f32[50257, 768], %i : i64[8, 128]", "f32[8, 128, 768]", "gather %x, %i axis=0")},
    {"gatherLast", one("%x : f32[1000, 50000], %i : i64[128]", "f32[1000, 128]", "gather %x, %i axis=1")},
    {"gatherMiddle", one("%x : f32[64, 100, 96], %i : i64[50]", "f32[64, 50, 96]", "gather %x, %i axis=1")},
    {"bias", biased("[4096, 768]", "768", "[1, 768]")},
    {"biasOfRows", biased("[4096, 768]", "4096", "[4096, 1]")},
    {"biasOfChannels", biased("[8, 64, 56, 56]", "64", "[1, 64, 1, 1]")},
    {"biasOdd", biased("[1000, 77]", "1000", "[1000, 1]")},
    {"compare", one("%x : f32[1000, 1000], %z : f32[1000, 1000]", "bool[1000, 1000]", "lt %x, %z")},
    {"widen", one("%x : i8[1000, 1000]", "f64[1000, 1000]", "cast %x : f64[1000, 1000]")},
    {"flip", one("%x : f32[1000, 1000]", "f32[1000, 1000]", "flip %x axes=[1]")},
    {"joinLast", joined("[1000, 100]", "[1000, 60]", "[1000, 160]", "[0, 0] [0, 60]", "[0, 100] [0, 0]")},
    {"joinLastOdd", joined("[1000, 101]", "[1000, 60]", "[1000, 161]", "[0, 0] [0, 60]", "[0, 101] [0, 0]")},
    {"joinFirst", joined("[100, 1000]", "[60, 1000]", "[160, 1000]", "[0, 0] [60, 0]", "[100, 0] [0, 0]")},
    {"pad", one("%x : f32[8, 64, 56, 56]", "f32[8, 64, 58, 58]", "pad %x [0, 0, 1, 1] [0, 0, 1, 1] value=0.0")},
    {"padChannelsLast",
     one("%x : f32[8, 56, 56, 64]", "f32[8, 58, 58, 64]", "pad %x [0, 1, 1, 0] [0, 1, 1, 0] value=0.0")},
    {"maxPool", pool("[8, 113, 113, 64]", "[8, 56, 56, 64]", 1, 3, true)},
    {"averagePool", pool("[8, 113, 113, 64]", "[8, 56, 56, 64]", 1, 3, false)},
    // Every second element of rows of 113: the others are the next turn's.
    {"maxPoolOfPlanes", pool("[8, 64, 113, 113]", "[8, 64, 56, 56]", 2, 3, true), 2.25},
    {"everySecond", R"(entry @main(%x : f32[1000, 1999]) -> (%y : f32[1000, 1000]) {
       %0 = window %x axis=1 size=1 stride=2 dilation=1
       %y = reshape %0 [1000, 1000]
     })",
     2.25},
    {"globalAverage", reduction("f32[8, 7, 7, 2048]", "f32[8, 2048]", "[1, 2]")},
    {"globalAverageOfPlanes", reduction("f32[8, 2048, 7, 7]", "f32[8, 2048]", "[2, 3]")},
    {"globalMax", reduction("f32[8, 56, 56, 64]", "f32[8, 64]", "[1, 2]", true)},
};

class GpuAccesses : public testing::TestWithParam<std::tuple<Shape, const GpuTarget *>> {};
INSTANTIATE_TEST_SUITE_P(All, GpuAccesses, testing::Combine(testing::ValuesIn(shapes), testing::ValuesIn(flavours())),
                         [](const auto &i) {
                           return std::string(std::get<0>(i.param).name) +
                                  (std::get<1>(i.param)->flavour == GpuFlavour::CUDA ? "Cuda" : "Hip");
                         });

TEST_P(GpuAccesses, AreOfNeighbours) {
  auto [shape, target] = GetParam();
  GraphOnGpu g(shape.text, *target, /*build=*/false);
  ASSERT_EQ(g.wrong, "");
  for (const GpuKernel &k : g.kernels) {
    if (k.kernel->sink->src.empty()) continue; // the kernel that it follows does its work
    unsigned seen = 0;
    for (const GpuAccess &a : gpuAccesses(k, *target)) {
      ++seen;
      std::string where = text(k.kernel->plan) + (a.write ? "\nwrite of " : "\nread of ") +
                          (a.buffer < 0 ? "a shared array" : "buffer " + std::to_string(a.buffer)) + ", " +
                          std::to_string(a.loops) + " loops around, " + std::to_string(a.bytes) + " bytes a thread, " +
                          std::to_string(a.sectors) + " sectors";
      EXPECT_LE(a.waste, shape.waste) << where;
      EXPECT_LE(a.conflict, 2u) << where;
    }
    EXPECT_GT(seen, 1u);
    EXPECT_LE(longestFold(k), 1024) << text(k.kernel->plan);
  }
}

// Products of few results: blocks for a chip where there is work for it, and threads that have a chain each of a sum of
// several.
TEST(GpuAccesses, FewResultsHaveThreads) {
  struct {
    const char *name;
    int64_t blocks, chains; // at least; threads that share a sum
  } wanted[] = {
      {"oneRow", 100, 2},          {"oneRowTurned", 500, 2},  {"oneRowDoubles", 100, 2},
      {"twoRows", 100, 4},         {"fewRowsTurned", 100, 4}, {"eightRows", 100, 4},
      {"fewRowsSymbolic", 100, 4}, {"matrixVector", 100, 8},  {"matrixColumn", 100, 8},
      {"vectorMatrix", 100, 8},    {"dot", 1, 128},           {"dots", 8, 1},
      {"dotsLong", 100, 128},      {"decodeScores", 100, 1},  {"decodeValues", 24, 2},
      {"pointwise7", 100, 2},      {"pointwise112", 100, 1},  {"depthwise", 100, 1},
      {"depthwise7", 100, 1},
  };
  for (const GpuTarget *target : flavours())
    for (auto &w : wanted) {
      const Shape &shape = *llvm::find_if(shapes, [&](const Shape &s) { return llvm::StringRef(s.name) == w.name; });
      GraphOnGpu g(shape.text, *target, /*build=*/false);
      ASSERT_EQ(g.wrong, "");
      for (const GpuKernel &k : g.kernels) {
        Plan p = k.kernel->plan;
        if (p.kind != PlanKind::Contract) continue;
        int64_t items = itemCount(g.lowered->ctx(), k.kernel->sink)->hi, perBlock = k.threads / k.group;
        int64_t atLeast = target->warp == 32 ? w.blocks : (w.blocks + 1) / 2;
        EXPECT_GE((items + perBlock - 1) / perBlock, atLeast) << w.name << ": " << text(k.kernel->plan);
        EXPECT_GE(std::max(p.split, 1u), w.chains) << w.name << ": " << text(k.kernel->plan);
      }
    }
}

} // namespace

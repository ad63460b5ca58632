//===- TeamTest.cpp: reductions that threads share, emulated, against Eval --===//
// Long rows on the warps of a block, short ones on some lanes of a warp, sums along outer axes on several threads each:
// lengths around 64 and 4096 and of more than 64 chunks, types of every width, domains, epilogues, on warps of 32 and
// waves of 64, with threads in several orders; and each with every barrier removed, which must fail.
#include "Layers.h"
#include "RemoveBarrier.h"
#include "RunGraph.h"

using namespace astra;
using namespace astra::test;

namespace {

struct Shared {
  const char *name;
  std::string text;
  std::vector<std::vector<int64_t>> dims; // values of each dim, call by call
  const char *plan;                       // what its plans must have
};

std::string reduction(const char *from, const char *kind, const char *order, const char *axes, const char *to) {
  return std::string("entry @main(%x : ") + from + ") -> (%y : " + to + ") {\n%y = reduce %x kind=" + kind +
         " order=" + order + " axes=" + axes + "\n}";
}

const std::vector<std::vector<int64_t>> lengths = {{0, 3},    {1, 70},   {63, 5},   {64, 33},  {65, 2},
                                                   {4095, 3}, {4096, 2}, {4097, 9}, {12345, 3}};
const char *const kinds = R"(dim n in 0..20000
  dim m in 0..80
  entry @main(%x : f32[n, m], %d : f64[n, m], %h : f16[n, m], %i : i64[n, m], %b : i8[n, m], %z : f32[m]) ->
      (%s : f32[m], %t : f64[m], %u : f16[m], %v : f32[m], %w : i64[m], %k : i8[m], %p : f32[m]) {
    %s0 = reduce %x kind=sum order=lane64 axes=[0]
    %s1 = mul %s0, %z
    %s2 = sqrt %z
    %s = add %s1, %s2
    %t = reduce %d kind=sum order=lane64 axes=[0]
    %u = reduce %h kind=sum order=lane64 axes=[0]
    %v = reduce %x kind=max order=exact axes=[0]
    %w = reduce %i kind=sum order=exact axes=[0]
    %k = reduce %b kind=min order=exact axes=[0]
    %p = reduce %x kind=prod order=lane64 axes=[0]
  })";

const Shared reductions[] = {
    {"row", reduction("f32[262145]", "sum", "lane64", "[0]", "f32"), {{}}, "; cooperative 32"},
    {"rowOfMost", reduction("f32[1000003]", "max", "exact", "[0]", "f32"), {{}}, "; cooperative 32"},
    {"rowOfAll", reduction("f64[30, 7, 99]", "sum", "lane64", "[0, 1, 2]", "f64"), {{}}, "; cooperative 4"},
    {"rowOfChunksOfChunks",
     "dim n in 0..50000000\n" + reduction("f32[n]", "sum", "lane64", "[0]", "f32"),
     {{0}, {5}, {4097}, {262145}, {16777217}},
     "; cooperative 8"},
    {"rowsOfProducts", reduction("f32[2, 3, 12289]", "prod", "lane64", "[2]", "f32[2, 3]"), {{}}, "; cooperative 4"},
    {"rowsComplex", reduction("complex64[3, 8193]", "sum", "lane64", "[1]", "complex64[3]"), {{}}, "; cooperative 2"},
    {"rowsBool", reduction("bool[3, 9000]", "and", "exact", "[1]", "bool[3]"), {{}}, "; cooperative 8"},
    {"rowsKept", softmax(2, 8192), {{}}, "; width 4; cooperative 32"},
    {"rowsKeptOdd", softmax(3, 4097), {{}}, "; width 1; cooperative 32"},
    {"rowsKeptInAChunk", softmax(3, 4096), {{}}, "; width 4; cooperative 32"},
    {"rowsKeptInAChunkOdd", softmax(2, 1501), {{}}, "; width 1; cooperative 32"},
    {"rowsKeptByFew", softmax(3, 1024), {{}}, "threads 256; warp 32; width 4; cooperative 8"},
    {"rowsKeptInRegisters", softmax(3, 512), {{}}, "vector 16; unroll 1; threads 32; warp 32; width 4"},
    {"rowsKeptSymbolic",
     "dim n in 0..3000\n" + softmax(3, "n"),
     {{3000}, {0}, {1}, {64}, {65}, {1030}},
     "; cooperative 4"},
    {"rowsComputedAgain", softmax(2, 40000), {{}}, "; cooperative 8"},
    {"rowsInDomain",
     R"(dim n in 0..9000
        entry @main(%x : f32[70, n]) -> (%y : f32[70]) {
          %y = reduce %x kind=sum order=lane64 axes=[1] where i1 <= i0 + 4090
        })",
     {{9000}, {4096}, {7}},
     "; cooperative 2"},
    {"shortRows", softmax(77, 10), {{}}, "vector 8; unroll 1; threads 32; warp 32; width 2"},
    {"shorterRows", softmax(30, 3), {{}}, "vector 4;"},
    {"shortRowsSymbolic",
     R"(dim n in 0..15
        dim m in 0..90
        entry @main(%x : f32[m, n]) -> (%y : f32[m], %z : f32[m]) {
          %y = reduce %x kind=sum order=lane64 axes=[1]
          %z = reduce %x kind=max order=exact axes=[1]
        })",
     {{15, 90}, {0, 3}, {1, 5}, {8, 33}},
     "vector 16"},
    {"columns", kinds, lengths, "; cooperative 128"},
    {"columnsShort", reduction("f32[70, 45]", "sum", "lane64", "[0]", "f32[45]"), {{}}, "; cooperative 16"},
    {"columnsMiddle", reduction("f32[3, 300, 40]", "sum", "lane64", "[1]", "f32[3, 40]"), {{}}, "; cooperative 64"},
    {"columnsFew", reduction("f64[2, 9000, 3]", "sum", "lane64", "[1]", "f64[2, 3]"), {{}}, "; cooperative 128"},
    {"columnsLong", reduction("f32[262145, 2]", "sum", "lane64", "[0]", "f32[2]"), {{}}, "; cooperative 512"},
    {"columnsComplex", reduction("complex64[8200, 5]", "sum", "lane64", "[0]", "complex64[5]"), {{}}, "columns:"},
    {"columnsMost", reduction("i32[5000, 9]", "max", "exact", "[0]", "i32[9]"), {{}}, "; cooperative 128"},
    {"columnsProducts", reduction("f32[4097, 8]", "prod", "lane64", "[0]", "f32[8]"), {{}}, "; cooperative 128"},
    {"columnsInDomain",
     R"(entry @main(%x : f32[4200, 33]) -> (%y : f32[33]) {
          %y = reduce %x kind=sum order=lane64 axes=[0] where i0 <= i1*100 + 900
        })",
     {{}},
     "; cooperative 128"},
    {"columnsPermuted",
     R"(entry @main(%x : f32[600, 5, 16]) -> (%y : f32[16, 5]) {
          %0 = reduce %x kind=sum order=lane64 axes=[0]
          %y = permute %0 perm=[1, 0]
        })",
     {{}},
     "; cooperative 64"},
};

class GpuTeams : public testing::TestWithParam<std::tuple<Shared, const GpuTarget *>> {};
INSTANTIATE_TEST_SUITE_P(All, GpuTeams,
                         testing::Combine(testing::ValuesIn(reductions),
                                          testing::Values(gpuTargetNamed("cuda:sm_90"), gpuTargetNamed("hip:gfx942"),
                                                          gpuTargetNamed("hip:gfx1100"))),
                         [](const auto &i) {
                           return std::string(std::get<0>(i.param).name) + "_" + std::get<1>(i.param)->chip;
                         });

TEST_P(GpuTeams, KeepTheirBits) {
  auto [shared, target] = GetParam();
  GraphOnGpu g(shared.text, *target);
  ASSERT_EQ(g.wrong, "");
  if (target->warp == 32) {
    EXPECT_NE(g.plans().find(shared.plan), std::string::npos) << g.plans();
  }
  for (auto &dims : shared.dims)
    for (uint64_t seed : {1, 2}) EXPECT_EQ(g.difference(dims, seed), "") << g.plans() << testing::PrintToString(dims);
}

// A thread that goes on too early is noticed, wherever it is.
TEST(GpuTeams, NoBarrierIsForNothing) {
  for (const GpuTarget *target : flavours())
    for (const Shared &shared : reductions) {
      if (!llvm::is_contained({"rowsKeptOdd", "rowOfAll", "columnsFew", "columnsMiddle"}, llvm::StringRef(shared.name)))
        continue;
      GraphOnGpu g(shared.text, *target);
      ASSERT_EQ(g.wrong, "");
      ASSERT_EQ(g.difference({}, 1), "");
      EXPECT_GE(eachBarrierRemoved(g, {}), 1u) << shared.name;
    }
}

} // namespace

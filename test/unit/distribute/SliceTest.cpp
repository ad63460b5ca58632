//===- SliceTest.cpp: slices and pads along a cut axis ------------------------===//
// Takes:    slices, pads and pads of slices of a tensor whose rows are cut.
// Checks:   that elements are those of the whole tensor, at any number of ranks, and that nothing is gathered; that
//           halos are as small as they can be.
#include "Runs.h"

using namespace astra;
using namespace astra::test;

namespace {
struct Row {
  int64_t extent, result;
  const char *body;
  size_t shifts;
};

TEST(Slices, Move) {
  const Row rows[] = {
      // parts of one length: what is beyond an end comes from the next shard
      {24, 24, "%s = shrink %x [1, 0] [23, 3]\n%y = pad %s [0, 0] [1, 0] value=0.0", 1},
      {24, 24, "%s = shrink %x [0, 0] [21, 3]\n%y = pad %s [3, 0] [0, 0] value=0.0", 1},
      {24, 24, "%s = shrink %x [0, 0] [22, 3]\n%y = pad %s [2, 0] [0, 0] value=1.5", 1},  // filled by others than zeros
      {24, 24, "%s = shrink %x [6, 0] [18, 3]\n%y = pad %s [0, 0] [6, 0] value=0.0", 1},  // a whole part
      {24, 24, "%s = shrink %x [8, 0] [16, 3]\n%y = pad %s [0, 0] [8, 0] value=0.0", 2},  // a part and two rows
      {24, 24, "%s = shrink %x [2, 0] [20, 3]\n%y = pad %s [2, 0] [2, 0] value=0.0", 0},  // a frame of zeros
      {24, 24, "%s = shrink %x [5, 1] [14, 2]\n%y = pad %s [3, 0] [7, 1] value=-2.0", 1}, // columns too
      // with a step: what lies between is not read
      {24, 12, "%w = window %x axis=0 size=1 stride=2 dilation=1\n%y = reshape %w [12, 3]", 0},
      {24, 12,
       "%s = shrink %x [1, 0] [23, 3]\n%w = window %s axis=0 size=1 stride=2 dilation=1\n%y = reshape %w [12, 3]", 1},
      {24, 8, "%s = shrink %x [2, 0] [22, 3]\n%w = window %s axis=0 size=1 stride=3 dilation=1\n%y = reshape %w [8, 3]",
       1},
      {24, 4, "%s = shrink %x [3, 0] [18, 3]\n%w = window %s axis=0 size=1 stride=5 dilation=1\n%y = reshape %w [4, 3]",
       1},
      {24, 12, "%w = window %x axis=0 size=2 stride=2 dilation=1\n%y = reduce %w kind=max axes=[2]", 0},
      // parts of two lengths
      {24, 8, "%y = shrink %x [0, 0] [8, 3]", 2},
      {24, 8, "%y = shrink %x [8, 0] [8, 3]", 2},
      {24, 8, "%y = shrink %x [16, 0] [8, 3]", 2},
      {24, 12, "%y = shrink %x [7, 0] [12, 3]", 2},
      {24, 20, "%y = shrink %x [4, 0] [20, 3]", 1},
      {24, 4, "%y = shrink %x [20, 0] [4, 3]", 3},
      {8, 16, "%y = pad %x [3, 0] [5, 0] value=0.0", 2},
      {8, 32, "%y = pad %x [0, 0] [24, 0] value=7.0", 3},
      {8, 12, "%s = shrink %x [1, 0] [7, 3]\n%y = pad %s [4, 0] [1, 0] value=0.0", 1},
  };
  for (const Row &row : rows) {
    SCOPED_TRACE(row.body);
    std::string n = std::to_string(row.extent), m = std::to_string(row.result);
    Outcome o = run("module @m {\n mesh @mesh { data 4 }\n entry @main(%x : f32[" + n +
                        ", 3] shard (data, -)) -> (%y : f32[" + m + ", 3]) {\n" + row.body + "\n }\n}\n",
                    {{numbers({row.extent, 3}, 71)}, {}, {}, {}});
    EXPECT_TRUE(o.equal()) << o.perShard;
    EXPECT_EQ(count(o.perShard, "shift"), row.shifts) << o.perShard;
    EXPECT_EQ(count(o.perShard, "all_gather") + count(o.perShard, "all_reduce"), 0u) << o.perShard;
  }
}

/// Every slice of rows that shards divide, and of every translation.
TEST(Slices, All) {
  for (int64_t size = 3; size <= 12; size += 3)
    for (int64_t begin = 0; begin + size <= 12; ++begin) {
      std::string text = std::to_string(begin), count = std::to_string(size);
      Outcome o = run("module @m {\n mesh @mesh { data 3 }\n entry @main(%x : i64[12] shard (data)) -> (%y : i64[" +
                          count + "]) {\n %y = shrink %x [" + text + "] [" + count + "]\n }\n}\n",
                      {{numbers({12}, 72, DType::I64, 1000)}, {}, {}, {}});
      EXPECT_TRUE(o.equal()) << o.perShard;
    }
  for (int64_t by = -11; by <= 11; ++by) {
    std::string count = std::to_string(12 - std::abs(by)), on = std::to_string(std::max<int64_t>(by, 0)),
                back = std::to_string(std::max<int64_t>(-by, 0));
    Outcome o =
        run("module @m {\n mesh @mesh { data 3 }\n entry @main(%x : f32[12] shard (data)) -> (%y : f32[12]) {\n %s = "
            "shrink %x [" +
                back + "] [" + count + "]\n %y = pad %s [" + on + "] [" + back + "] value=0.25\n }\n}\n",
            {{numbers({12}, 73)}, {}, {}, {}});
    EXPECT_TRUE(o.equal()) << by << o.perShard;
  }
}

/// Tokens one behind another, of a length that is known when it runs; and the gradient, which goes back.
TEST(Slices, ADimAndItsGradient) {
  Outcome o = run(R"uop(
module @m {
  mesh @mesh { data 4 }
  dim n in 8..64
  entry @loss(%x : f32[n, 2] shard (data, -)) -> (%l : f32, %y : f32[n, 2]) {
    %s = shrink %x [0, 0] [n - 1, 2]
    %b = pad %s [1, 0] [0, 0] value=0.0
    %y = mul %b, %x
    %l = reduce %y axes=[0, 1]
  }
  grad @main = @loss wrt %x
}
)uop",
                  {{numbers({16, 2}, 74)}, {}, {}, {}});
  ASSERT_EQ(o.shards.outputs.size(), 3u);
  EXPECT_TRUE(o.whole.outputs[1] == o.shards.outputs[1] && o.whole.outputs[2] == o.shards.outputs[2]) << o.perShard;
  EXPECT_EQ(count(o.perShard, "shift"), 3u) << o.perShard; // of the loss, twice; back
}

TEST(Slices, WhatIsRefused) {
  auto refused = [](llvm::StringRef x, llvm::StringRef y, llvm::StringRef body) {
    return refusal(("module @m {\n mesh @mesh { data 4, model 2 }\n dim n in 4..64\n entry @main(%x : f32[" + x +
                    "] shard (data, model)) -> (%y : f32[" + y + "]) {\n " + body + "\n }\n}\n")
                       .str());
  };
  auto has = [](const std::string &text, llvm::StringRef what) {
    EXPECT_TRUE(llvm::StringRef(text).contains(what)) << text;
  };
  has(refused("8, 4", "7, 4", "%y = shrink %x [1, 0] [7, 4]"),
      "at shrink (line 5): along axis 0 of f32[7, 4], which is cut, its extent of 7 is not divided by the 4 shards: "
      "write a reshard before it that leaves this axis whole");
  has(refused("n, 4", "n*4, 4", "%y = pad %x [n, 0] [n*2, 0] value=0.0"), "what moves depends on an extent");
  has(refused("n, 4", "n + 4, 4", "%y = pad %x [4, 0] [0, 0] value=0.0"),
      "which is possible for extents that are constants");
  has(refused("n, 4", "n, 4", "%s = shrink %x [0, 0] [n - 3, 4]\n %y = pad %s [3, 0] [0, 0] value=0.0"),
      "elements move by -3, and parts may have 1");
  has(refused("8, 4", "4, 2", "%y = shrink %x [0, 0] [4, 2]"), "cutting off goes along axis 1");
}
} // namespace

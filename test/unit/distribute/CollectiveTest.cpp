//===- CollectiveTest.cpp: what shards exchange -----------------------------===//
// Takes:    modules that are written per shard.
// Checks:   what each collective gives, the order of folds, derivatives, batches.
#include "Runs.h"

using namespace astra;
using namespace astra::test;

namespace {
TEST(Collectives, Meaning) {
  Outcome o = run(R"uop(
module @m {
  mesh @mesh { data 3, model 2 } per_shard
  entry @main(%x : f32[2] shard (data+model)) -> (%sum : f32[2] shard (data+model), %most : f32[2], %all : f32[6, 2],
      %model : f32[2, 2] shard (data, -), %turned : f32[2] shard (data+model), %back : f32[2] shard (data+model),
      %scattered : f32 shard (), %number : i64[1] shard (data+model)) {
    %sum = all_reduce %x group="data=3,model=2/data" kind=sum
    %most = all_reduce %x group="data=3,model=2/data+model" kind=max same=1
    %all = all_gather %x group="data=3,model=2/data+model" same=1
    %model = all_gather %x group="data=3,model=2/model"
    %turned = shift %x group="data=3,model=2/data" by=1 wrap=1
    %back = shift %x group="data=3,model=2/data" by=-1
    %parts = reduce_scatter %x group="data=3,model=2/model" kind=sum
    %scattered = all_reduce %parts group="data=3,model=2/data+model" kind=sum same=1
    %i = rank_index group="data=3,model=2/data"
    %number = reshape %i [1]
  }
}
)uop",
                  {{{DType::F32, {12}, numbers({12}, 1).bytes}}, {}, {}, {}});
  ASSERT_EQ(o.shards.outputs.size(), 8u);
  EXPECT_EQ(o.shards.outputs[3].shape, (std::vector<int64_t>{6, 2}));
  EXPECT_EQ(listing(o.shards.outputs[7]), "0 0 1 1 2 2");
}

TEST(Collectives, AllToAllTurnsATable) {
  Tensor x = numbers({4, 4}, 2);
  Outcome o = run(R"uop(
module @m {
  mesh @mesh { data 4 } per_shard
  entry @main(%x : f32[1, 4] shard (data, -)) -> (%y : f32[1, 4] shard (data, -)) {
    %parts = reshape %x [4, 1]
    %other = all_to_all %parts group="data=4/data"
    %y = reshape %other [1, 4]
  }
}
)uop",
                  {{x}, {}, {}, {}});
  ASSERT_EQ(o.shards.outputs.size(), 1u);
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 4; ++k)
      EXPECT_EQ(memcmp(&o.shards.outputs[0].bytes[4 * (4 * i + k)], &x.bytes[4 * (4 * k + i)], 4), 0);
}

TEST(Collectives, TreeOverFive) {
  // ((0 1)(2 3)) 4, where another order rounds otherwise.
  Outcome o = run(R"uop(
module @m {
  mesh @mesh { data 5 } per_shard
  entry @main(%x : f32[1] shard (data)) -> (%y : f32[1]) {
    %y = all_reduce %x group="data=5/data" kind=sum same=1
  }
}
)uop",
                  {{numbers({5}, 3)}, {}, {}, {}});
  ASSERT_EQ(o.shards.outputs.size(), 1u);
  float x[5], y;
  memcpy(x, numbers({5}, 3).bytes.data(), 20);
  memcpy(&y, o.shards.outputs[0].bytes.data(), 4);
  EXPECT_EQ(y, ((x[0] + x[1]) + (x[2] + x[3])) + x[4]);
}

/// The gradient of what all shards give together: transposes bring cotangents to where values came from.
TEST(Collectives, Derivatives) {
  const char *text = R"uop(
module @m {
  mesh @mesh { data 4 } per_shard
  entry @loss(%x : f32[4, 3] shard (-, data), %w : f32[4, 3] shard (-, data)) -> (%l : f32) {
    %a = all_reduce %x group="data=4/data" kind=sum
    %b = all_gather %a group="data=4/data"
    %c = reduce_scatter %b group="data=4/data" kind=sum
    %d = all_to_all %c group="data=4/data"
    %e = shift %d group="data=4/data" by=1
    %f = mul %e, %w
    %g = reduce %f axes=[0, 1]
    %l = all_reduce %g group="data=4/data" kind=sum same=1
  }
  grad @main = @loss wrt %x
}
)uop";
  // Linear in x: the gradient is what unit vectors give. Its loss is given by each of four shards.
  EvalInputs in{{numbers({4, 12}, 4), numbers({4, 12}, 5)}, {}, {}, {}};
  for (Tensor &t : in.inputs) // whole numbers: sums are exact
    for (int64_t i = 0; i < t.count(); ++i) {
      float f = float(t.bytes[4 * i] % 7) - 3;
      memcpy(&t.bytes[4 * i], &f, 4);
    }
  Module m = parsed(text);
  for (Entry &e : m.entries)
    for (Value &v : e.outputs)
      if (v.name == "x.grad") v.sharding.axes = {0, 1};
  Outcome o = run(print(m), in);
  ASSERT_EQ(o.shards.outputs.size(), 2u);
  for (int64_t i = 0; i < 48; i += 5) {
    EvalInputs unit = in;
    unit.inputs[0].bytes.assign(48 * 4, 0);
    float one = 1, slope, given;
    memcpy(&unit.inputs[0].bytes[4 * i], &one, 4);
    auto r = evalEntry(m, *m.entry("loss"), unit, options());
    ASSERT_TRUE(bool(r)) << llvm::toString(r.takeError());
    memcpy(&slope, r->outputs[0].bytes.data(), 4);
    memcpy(&given, &o.shards.outputs[1].bytes[4 * i], 4);
    EXPECT_EQ(given, 4 * slope) << i;
  }
}

TEST(Collectives, Vmap) {
  const char *text = R"uop(
module @m {
  mesh @mesh { data 2 } per_shard
  entry @one(%x : f32[2, 3] shard (-, data)) -> (%y : f32[2, 3] shard (-, data), %z : f32[2, 2, 3] shard (-, -, data)) {
    %a = all_to_all %x group="data=2/data"
    %b = reduce_scatter %a group="data=2/data" kind=sum
    %c = all_gather %b group="data=2/data"
    %y = shift %c group="data=2/data" by=1
    %z = all_gather %x group="data=2/data"
  }
  vmap @main = @one over 5 in %x 0
}
)uop";
  Module m = parsed(text);
  const Entry &many = *m.entry("main");
  Tensor x = numbers({5, 2, 6}, 6);
  auto all = evalEntry(m, many, {{x}, {}, {}, {}}, options());
  ASSERT_TRUE(bool(all)) << llvm::toString(all.takeError());
  for (int64_t i = 0; i < 5; ++i) {
    Tensor mine{DType::F32, {2, 6}, {x.bytes.begin() + i * 48, x.bytes.begin() + (i + 1) * 48}};
    auto one = evalEntry(m, *m.entry("one"), {{mine}, {}, {}, {}}, options());
    ASSERT_TRUE(bool(one)) << llvm::toString(one.takeError());
    for (unsigned k = 0; k < 2; ++k) {
      const auto &part = one->outputs[k].bytes;
      EXPECT_EQ(memcmp(part.data(), &all->outputs[k].bytes[i * part.size()], part.size()), 0);
    }
  }
}
} // namespace

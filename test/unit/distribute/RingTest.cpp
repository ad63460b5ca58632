//===- RingTest.cpp: parts that go round a ring -------------------------------===//
// Takes:    products of operands that one axis of a mesh cuts along different labels; attention whose tokens are cut.
// Checks:   that nothing is gathered, that all shards and any number of ranks have equal bytes, that kept labels have
//           those of the whole tensors, and sums those of an all_reduce.
#include "Runs.h"

using namespace astra;
using namespace astra::test;

namespace {
std::string replaced(std::string text, llvm::StringRef what, llvm::StringRef by) {
  for (size_t at; (at = text.find(what)) != std::string::npos;) text.replace(at, what.size(), by);
  return text;
}
size_t transfers(const std::string &text) {
  return count(text, "all_gather") + count(text, "all_reduce") + count(text, "all_to_all");
}

/// Kept labels: each result is one sum, of the whole.
TEST(Ring, Scores) {
  for (const char *order : {"%q[t, d], %k[u, d]", "%k[u, d], %q[t, d]"})
    for (const char *domain : {"", " where u <= t", " where u + 3 <= t", " where t <= u + 5"}) {
      SCOPED_TRACE(std::string(order) + domain);
      Outcome o =
          run(std::string("module @m {\n mesh @mesh { seq 4 }\n entry @main(%q : f32[8, 3] shard (seq, -), %k : "
                          "f32[12, 3] shard (seq, -)) -> (%s : f32[8, 12]) {\n %s = contract ") +
                  order + " -> [t, u] sum [d]" + domain + "\n }\n}\n",
              {{numbers({8, 3}, 61), numbers({12, 3}, 62)}, {}, {}, {}});
      EXPECT_TRUE(o.equal()) << o.perShard;
      EXPECT_EQ(count(o.perShard, "shift"), 3u) << o.perShard;
      EXPECT_EQ(transfers(o.perShard), 0u) << o.perShard;
      EXPECT_NE(o.perShard.find("-> (%s : f32[2, 12] shard (seq, -))"), std::string::npos) << o.perShard;
    }
}

/// A label that is summed: the parts' sums are added as an all_reduce adds them, to the bit.
TEST(Ring, Values) {
  for (const char *mesh : {"seq 2", "seq 3", "seq 4"}) {
    auto module = [&](llvm::StringRef p) {
      std::string text =
          "module @m {\n mesh @mesh { MESH }\n entry @main(%p : f32[12, 24] shard P, %v : f32[24, 5] shard "
          "(seq, -)) -> (%y : f32[12, 5] shard OUT) {\n %y = contract %p[t, u], %v[u, d] -> [t, d] sum "
          "[u]\n }\n}\n";
      return replaced(replaced(replaced(text, "MESH", mesh), "P,", (p + ",").str()), "OUT", "(seq, -)");
    };
    EvalInputs in{{numbers({12, 24}, 63), numbers({24, 5}, 64)}, {}, {}, {}};
    Outcome ring = run(module("(seq, -)"), in), sum = run(module("(-, seq)"), in);
    ASSERT_EQ(ring.shards.outputs.size(), 1u);
    EXPECT_TRUE(ring.shards.outputs == sum.shards.outputs) << mesh;
    EXPECT_FALSE(ring.shards.outputs == ring.whole.outputs); // the sum is split
    EXPECT_EQ(transfers(ring.perShard), 0u) << ring.perShard;
  }
}

/// What takes no part is no term of a sum, not a product with zero: infinities behind a query show it.
TEST(Ring, CausalValues) {
  auto values = [](std::vector<float> all, std::vector<int64_t> shape) {
    Tensor t{DType::F32, shape, std::vector<uint8_t>(4 * all.size())};
    memcpy(t.bytes.data(), all.data(), t.bytes.size());
    return t;
  };
  std::vector<float> p, v;
  for (int t = 0; t < 8; ++t)
    for (int u = 0; u < 8; ++u) p.push_back(u < t ? 0.5f : u == t ? 0.25f : NAN);
  for (int u = 0; u < 8; ++u) v.push_back(u ? float(u) : -0.0f);
  Outcome o = run(R"uop(
module @m {
  mesh @mesh { seq 4 }
  entry @main(%p : f32[8, 8] shard (seq, -), %v : f32[8, 1] shard (seq, -)) -> (%y : f32[8, 1]) {
    %y = contract %p[t, u], %v[u, d] -> [t, d] sum [u] where u <= t
  }
}
)uop",
                  {{values(p, {8, 8}), values(v, {8, 1})}, {}, {}, {}});
  EXPECT_TRUE(o.equal()) << o.perShard;                       // these sums are exact in any order, and the first is -0
  EXPECT_EQ(count(o.perShard, "contract"), 4u) << o.perShard; // what is behind all queries of a part is not computed
}

/// Attention as models have it, and its gradients: tokens are cut, nothing else is said.
const char *attention = R"uop(
module @m {
  mesh @mesh { MESH }
  entry @loss(%q : f32[2, 8, 3] shard (-, seq, -), %k : f32[2, 8, 3] shard (-, seq, -), %v : f32[2, 8, 3] shard (-, seq, -))
      -> (%l : f32, %y : f32[2, 8, 3]) {
    %s = contract %q[h, t, d], %k[h, u, d] -> [h, t, u] sum [d] where u <= t
    %most = reduce %s kind=max axes=[2] where i2 <= i1
    %m1 = reshape %most [2, 8, 1]
    %m2 = expand %m1 [2, 8, 8]
    %below = sub %s, %m2
    %e = exp %below
    %sum = reduce %e axes=[2] where i2 <= i1
    %s1 = reshape %sum [2, 8, 1]
    %s2 = expand %s1 [2, 8, 8]
    %a = div %e, %s2
    %y = contract %a[h, t, u], %v[h, u, d] -> [h, t, d] sum [u] where u <= t
    %w = mul %y, %y
    %l = reduce %w axes=[0, 1, 2]
  }
  grad @main = @loss wrt %q, %k, %v
}
)uop";
TEST(Ring, AttentionAndItsGradients) {
  for (const char *mesh : {"seq 1", "seq 2", "seq 4"}) {
    EvalInputs in{{numbers({2, 8, 3}, 65), numbers({2, 8, 3}, 66), numbers({2, 8, 3}, 67)}, {}, {}, {}};
    Outcome o = run(replaced(attention, "MESH", mesh), in);
    ASSERT_EQ(o.shards.outputs.size(), 5u);
    EXPECT_EQ(count(o.perShard, "all_gather"), 0u) << o.perShard;
    for (size_t i = 0; i < 5; ++i)
      for (int64_t k = 0; k < o.whole.outputs[i].count(); ++k) {
        float a, b;
        memcpy(&a, &o.whole.outputs[i].bytes[4 * k], 4), memcpy(&b, &o.shards.outputs[i].bytes[4 * k], 4);
        EXPECT_NEAR(a, b, 1e-4 * (1 + std::abs(a))) << mesh << ", output " << i; // another order of sums
      }
  }
}

TEST(Ring, WhatIsRefused) {
  auto refused = [](llvm::StringRef product) {
    return refusal(
        ("module @m {\n mesh @mesh { seq 2 }\n entry @main(%p : f32[8, 8] shard (seq, -), %v : f32[8, 4] shard "
         "(seq, -)) -> (%y : f32[8, 4]) {\n %y = contract %p[t, u], %v[u, d] -> [t, d] sum [u] " +
         product + "\n }\n}\n")
            .str());
  };
  for (const char *domain : {"where u <= 5", "where u + u <= t"})
    EXPECT_TRUE(llvm::StringRef(refused(domain)).contains("not on how far two parts are apart alone"))
        << refused(domain);
  std::string twice =
      refusal("module @m {\n mesh @mesh { seq 2 }\n entry @main(%p : f32[8, 8] shard (seq, -), %v : f32[8, "
              "8] shard (seq, -)) -> (%y : f32) {\n %z = contract %p[t, d], %v[u, d] -> [] sum [t, u, "
              "d]\n %y = neg %z\n }\n}\n");
  EXPECT_TRUE(llvm::StringRef(twice).contains("two shardings meet that do not agree")) << twice;
}
} // namespace

//===- DistributeTest.cpp: bits are a function of the mesh ------------------===//
// Takes:    modules of whole tensors with shardings, and modules that are written per shard.
// Checks:   that all shards in one process (the evaluator of the form PerShard) and any number of ranks (the form
//           Stacked, calls as Engine.cpp answers them) give equal bytes; where no sum is split also those of the whole
//           tensors.
#include "Runs.h"

using namespace astra;
using namespace astra::test;

namespace {
// ---- parallelisms, from shardings alone
std::string training(llvm::StringRef w, llvm::StringRef b, llvm::StringRef moment, llvm::StringRef axes = "data 4") {
  std::string text = R"uop(
module @m {
  mesh @mesh { AXES }
  dim n in 1..64
  state @w : f32[6, 4] SHARD_W = hex "WEIGHTS"
  state @b : f32[4] SHARD_B
  state @w.m : f32[6, 4] SHARD_M
  entry @loss(%x : f32[n, 6] shard (data, -), %t : f32[n, 4] shard (data, -)) -> (%l : f32, %y : f32[n, 4]) {
    %p = contract %x[b, i], @w[i, j] -> [b, j] sum [i]
    %b1 = reshape @b [1, 4]
    %b2 = expand %b1 [n, 4]
    %q = add %p, %b2
    %y = tanh %q
    %d = sub %y, %t
    %s = mul %d, %d
    %sum = reduce %s axes=[0, 1]
    %count = from_index [n*4] : f32
    %l = div %sum, %count
  }
  grad @main = @loss wrt @w, @b
}
)uop";
  auto put = [&](llvm::StringRef what, std::string by) { text.replace(text.find(what), what.size(), by); };
  put("AXES", axes.str());
  put("SHARD_W", w.str());
  put("SHARD_B", b.str());
  put("SHARD_M", moment.str());
  put("WEIGHTS", llvm::toHex(numbers({6, 4}, 7).bytes, true));
  // One step of an optimizer with a moment.
  Module m = parsed(text);
  Context &c = m.ctx();
  Builder build(c);
  Entry &e = m.entries.back();
  auto constant = [&](double v) { return build.lit(DType::F32, v); };
  UOpRef g = e.outputs[2].value, old = m.states[2].value;
  UOpRef now = build.add(build.mul(old, constant(0.9)), build.mul(g, constant(0.1)));
  UOpRef step = build.div(now, build.add(build.un(Op::Sqrt, build.mul(now, now)), constant(0.125)));
  e.updates.push_back({"w", build.sub(m.states[0].value, build.mul(step, constant(0.01)))});
  e.updates.push_back({"b", build.sub(m.states[1].value, build.mul(e.outputs[3].value, constant(0.01)))});
  e.updates.push_back({"w.m", now});
  e.outputs.resize(2);
  m.entries.erase(m.entries.begin());
  return print(m);
}
EvalInputs batch() { return {{numbers({8, 6}, 8), numbers({8, 4}, 9)}, {}, {}, {{"w.m", numbers({6, 4}, 10)}}}; }

TEST(Parallel, Data) {
  Outcome o = run(training("", "", ""), batch());
  EXPECT_EQ(o.whole.outputs[1], o.shards.outputs[1]); // no sum of the predictions is split
  EXPECT_EQ(count(o.perShard, "all_reduce"), 3u) << o.perShard;
  EXPECT_EQ(count(o.perShard, "all_gather"), 0u) << o.perShard;
}

/// Calls that do not wait for each other are one; a tensor as large as a bucket, or where there are none, moves alone.
TEST(Parallel, Buckets) {
  auto calls = [](uint64_t most) {
    Module m = parsed(training("", "", ""));
    EXPECT_FALSE(partition(m));
    EXPECT_FALSE(stackShards(m));
    joinCollectives(m, most);
    stageHolds(m);
    return std::pair(count(print(m), "external"), bucketList(m));
  };
  EXPECT_EQ(calls(0), std::pair(size_t(3), std::string()));
  EXPECT_EQ(calls(96).first, 2u); // the weight's gradient has so many bytes
  EXPECT_EQ(calls(1 << 20), std::pair(size_t(1), std::string("// entry @main: 3 tensors, 116 bytes a shard, in one "
                                                             "all_reduce/data=4/data/sum.one\n")));
}

/// Rows over one axis of the mesh, columns over the other.
TEST(Parallel, DataAndTensor) {
  Outcome o = run(training("shard (-, model)", "shard (model)", "", "data 2, model 2"), batch());
  EXPECT_EQ(o.whole.outputs[1], o.shards.outputs[1]);
  EXPECT_NE(o.perShard.find("state @w.m : f32[6, 2] shard (-, model)"), std::string::npos); // as the weight
  EXPECT_EQ(count(o.perShard, "all_reduce"), 3u) << o.perShard; // the loss over both axes, gradients over rows
  EXPECT_EQ(count(o.perShard, "all_gather"), 0u);
}

/// Weights are equal whatever of them is stored cut.
TEST(Parallel, Zero) {
  Outcome plain = run(training("", "", ""), batch());
  Outcome states = run(training("", "", "shard (-, data)"), batch()); // ZeRO 1 and 2: the gradient is scattered
  Outcome all = run(training("shard (-, data) gathered", "shard (data) gathered", "shard (-, data)"), batch()); // 3
  EXPECT_EQ(plain.shards.states, states.shards.states);
  EXPECT_EQ(plain.shards.states, all.shards.states);
  EXPECT_EQ(plain.shards.outputs, all.shards.outputs);
  EXPECT_EQ(count(states.perShard, "reduce_scatter"), 1u) << states.perShard;
  EXPECT_EQ(count(states.perShard, "all_gather"), 1u) << states.perShard;
  EXPECT_EQ(count(all.perShard, "reduce_scatter"), 2u) << all.perShard;
  EXPECT_EQ(count(all.perShard, "all_gather"), 2u) << all.perShard;
  // One rule for weights, biases and moments of any rank.
  Outcome any =
      run(training("shard (..., data) gathered", "shard (data, ...) gathered", "shard (..., data?)"), batch());
  EXPECT_EQ(all.perShard, any.perShard);
  EXPECT_EQ(plain.shards.states, any.shards.states);
  Outcome odd =
      run(training("shard (data?, ...) gathered", "shard (data?, ...) gathered", "shard (data?, ...)"), batch());
  EXPECT_EQ(plain.shards.states, odd.shards.states);
  EXPECT_EQ(count(odd.perShard, "reduce_scatter"), 1u) << odd.perShard; // 6 rows of a weight stay whole
}

const char *mlp = R"uop(
module @m {
  mesh @mesh { data 2, model 2 }
  param @up : f32[6, 8] shard (-, model) = hex "UP"
  param @down : f32[8, 6] shard DOWN = hex "DN"
  entry @main(%x : f32[4, 6] shard (data, -)) -> (%h : f32[4, 8], %y : f32[4, 6]) {
    %p = contract %x[n, i], @up[i, j] -> [n, j] sum [i]
    %h = max %p, 0.0
    %y = contract %h[n, j], @down[j, k] -> [n, k] sum [j]
  }
}
)uop";
std::string replaced(std::string text, llvm::StringRef what, std::string by) {
  for (size_t at; (at = text.find(what)) != std::string::npos;) text.replace(at, what.size(), by);
  return text;
}
TEST(Parallel, Tensor) {
  std::string text = replaced(replaced(mlp, "UP\"", llvm::toHex(numbers({6, 8}, 11).bytes, true) + "\""), "DN\"",
                              llvm::toHex(numbers({8, 6}, 12).bytes, true) + "\"");
  Outcome rows = run(replaced(text, "DOWN", "(model, -)"), {{numbers({4, 6}, 13)}, {}, {}, {}});
  EXPECT_EQ(rows.whole.outputs[0], rows.shards.outputs[0]); // columns split no sum
  EXPECT_NE(rows.whole.outputs[1], rows.shards.outputs[1]); // rows do
  EXPECT_EQ(count(rows.perShard, "all_reduce"), 1u);
}

const char *attention = R"uop(
module @m {
  mesh @mesh { model 2 }
  entry @main(%x : f32[3, 8] shard IN, %wq : f32[8, 8] shard QKV, %wk : f32[8, 8] shard QKV, %wv : f32[8, 8] shard QKV)
      -> (%y : f32[3, 8]) {
    %q = contract %x[t, i], %wq[i, j] -> [t, j] sum [i]
    %k = contract %x[t, i], %wk[i, j] -> [t, j] sum [i]
    %v = contract %x[t, i], %wv[i, j] -> [t, j] sum [i]
    %qh = reshape %q [3, 4, 2]
    %kh = reshape %k [3, 4, 2]
    %vh = reshape %v [3, 4, 2]
    %s = contract %qh[t, h, d], %kh[u, h, d] -> [h, t, u] sum [d]
    %most = reduce %s kind=max axes=[2]
    %m1 = reshape %most [4, 3, 1]
    %m2 = expand %m1 [4, 3, 3]
    %below = sub %s, %m2
    %e = exp %below
    %sum = reduce %e axes=[2]
    %s1 = reshape %sum [4, 3, 1]
    %s2 = expand %s1 [4, 3, 3]
    %a = div %e, %s2
    %o = contract %a[h, t, u], %vh[u, h, d] -> [t, h, d] sum [u]
    %y = reshape %o [3, 8]
  }
}
)uop";
TEST(Parallel, Heads) {
  EvalInputs in{{numbers({3, 8}, 14), numbers({8, 8}, 15), numbers({8, 8}, 16), numbers({8, 8}, 17)}, {}, {}, {}};
  Outcome o = run(replaced(replaced(attention, "IN", "(-, -)"), "QKV", "(-, model)"), in);
  EXPECT_TRUE(o.equal()); // heads split no sum
  EXPECT_EQ(count(o.perShard, "all_gather"), 0u);
}

TEST(Parallel, Vocabulary) {
  Outcome o =
      run(R"uop(
module @m {
  mesh @mesh { model 4 }
  entry @main(%table : f32[12, 3] shard (model, -), %word : i64[5], %target : i64[5, 1]) -> (%x : f32[5, 3], %p : f32[5, 1]) {
    %x = gather %table, %word axis=0
    %l = contract %x[t, i], %table[v, i] -> [t, v] sum [i]
    %p = pick %l, %target axis=1
  }
}
)uop",
          {{numbers({12, 3}, 18), numbers({5}, 19, DType::I64, 12), numbers({5, 1}, 20, DType::I64, 12)}, {}, {}, {}});
  EXPECT_TRUE(o.equal()); // of each sum one part is not zero
  EXPECT_EQ(count(o.perShard, "all_reduce"), 2u);
}

/// Tokens are cut for what goes token by token, heads where tokens look at one another.
TEST(Parallel, Sequence) {
  std::string text = R"uop(
module @m {
  mesh @mesh { seq 2 }
  entry @main(%x : f32[4, 6] shard (seq, -), %w : f32[6, 4]) -> (%y : f32[4, 4]) {
    %q = contract %x[t, i], %w[i, j] -> [t, j] sum [i]
    %h = reshape %q [4, 2, 2]
    %heads = reshard %h to="(-, seq, -)"
    %s = contract %heads[t, h, d], %heads[u, h, d] -> [h, t, u] sum [d] where u <= t
    %o = contract %s[h, t, u], %heads[u, h, d] -> [t, h, d] sum [u]
    %tokens = reshard %o to="(seq, -, -)"
    %y = reshape %tokens [4, 4]
  }
}
)uop";
  Outcome o = run(text, {{numbers({4, 6}, 21), numbers({6, 4}, 22)}, {}, {}, {}});
  EXPECT_TRUE(o.equal());
  EXPECT_EQ(count(o.perShard, "all_to_all"), 2u);
  EXPECT_EQ(count(o.perShard, "all_gather"), 0u);
}

/// Each token goes to one of four experts, at most three tokens of a shard to each; the experts are on four shards.
TEST(Parallel, Experts) {
  std::string text = R"uop(
module @m {
  mesh @mesh { data 4 }
  entry @main(%x : f32[8, 3] shard (data, -), %choice : f32[8, 4] shard (data, -), %w : f32[4, 3, 3] shard (data, -, -))
      -> (%y : f32[8, 3] shard (data, -)) {
    %group = reshape %x [4, 2, 3]
    %chosen = reshape %choice [4, 2, 4]
    %expert = argreduce %chosen kind=argmax axis=2
    %e = reshape %expert [4, 2, 1]
    %e1 = expand %e [4, 2, 4]
    %number = iota [4, 2, 4] axis=2 : i64[4, 2, 4]
    %mine = eq %e1, %number
    %one = cast %mine : f32[4, 2, 4]
    %before = cumulate %one kind=sum axis=1
    %place = sub %before, %one
    %p = reshape %place [4, 2, 4, 1]
    %p1 = expand %p [4, 2, 4, 2]
    %slot = iota [4, 2, 4, 2] axis=3 : f32[4, 2, 4, 2]
    %here = eq %p1, %slot
    %h = cast %here : f32[4, 2, 4, 2]
    %m = reshape %one [4, 2, 4, 1]
    %m1 = expand %m [4, 2, 4, 2]
    %dispatch = mul %h, %m1
    %sent = contract %dispatch[g, t, e, c], %group[g, t, i] -> [e, g, c, i] sum [t]
    %there = reshard %sent to="(data, -, -, -)"
    %done = contract %there[e, g, c, i], %w[e, i, j] -> [e, g, c, j] sum [i]
    %back = reshard %done to="(-, data, -, -)"
    %joined = contract %dispatch[g, t, e, c], %back[e, g, c, j] -> [g, t, j] sum [e, c]
    %y = reshape %joined [8, 3]
  }
}
)uop";
  Outcome o = run(text, {{numbers({8, 3}, 23), numbers({8, 4}, 24), numbers({4, 3, 3}, 25)}, {}, {}, {}});
  EXPECT_TRUE(o.equal());
  EXPECT_EQ(count(o.perShard, "all_to_all"), 2u) << o.perShard;
}

/// Microbatches go from stage to stage, as a scan with a shift in each turn; written per shard.
TEST(Parallel, Pipeline) {
  Tensor x = numbers({5, 2, 3}, 26), w = numbers({4, 3, 3}, 27);
  Outcome piped = run(R"uop(
module @m {
  mesh @mesh { stage 4 } per_shard
  func @turn(%held : f32[2, 3], %in : f32[2, 3], %w : f32[3, 3], %i : i64) {
    %zero = const 0 : i64
    %first = eq %i, %zero
    %f = reshape %first [1, 1]
    %f1 = expand %f [2, 3]
    %mine = select %f1, %in, %held
    %p = contract %mine[n, i], %w[i, j] -> [n, j] sum [i]
    %out = tanh %p
    %next = shift %out group="stage=4/stage" by=1
    return %next, %out
  }
  entry @main(%x : f32[5, 2, 3], %w : f32[1, 3, 3] shard (stage, -, -)) -> (%y : f32[5, 2, 3]) {
    %i = rank_index group="stage=4/stage"
    %ws = reshape %w [3, 3]
    %zero = const 0.0 : f32
    %z = reshape %zero [1, 1]
    %begin = expand %z [2, 3]
    %fed = pad %x [0, 0, 0] [3, 0, 0] value=0.0
    %scan = scan(@turn) %begin, %fed, %ws, %i [8] ncarry=1 nxs=1
    %out = proj %scan index=1
    %last = all_gather %out group="stage=4/stage" same=1
    %y0 = shrink %last [3, 3, 0, 0] [1, 5, 2, 3]
    %y = reshape %y0 [5, 2, 3]
  }
}
)uop",
                      {{x, w}, {}, {}, {}});
  Outcome plain = run(R"uop(
module @m {
  mesh @mesh { stage 1 }
  func @layer(%x : f32[5, 2, 3], %w : f32[3, 3]) {
    %p = contract %x[b, n, i], %w[i, j] -> [b, n, j] sum [i]
    %y = tanh %p
    return %y
  }
  entry @main(%x : f32[5, 2, 3], %w : f32[4, 3, 3]) -> (%y : f32[5, 2, 3]) {
    %scan = scan(@layer) %x, %w [4] ncarry=1 nxs=1
    %y = proj %scan index=0
  }
}
)uop",
                      {{x, w}, {}, {}, {}});
  ASSERT_EQ(piped.shards.outputs.size(), 1u);
  EXPECT_EQ(piped.shards.outputs, plain.whole.outputs);
}

/// From one line: layers in stages, a batch in microbatches; with rows and columns over other axes of the mesh.
TEST(Parallel, PipelineFromAScan) {
  auto module = [](llvm::StringRef mesh, llvm::StringRef x, llvm::StringRef up, llvm::StringRef down) {
    std::string text = R"uop(
module @m {
  mesh @mesh { MESH }
  dim n in 1..64
  func @layer(%x : f32[n, 6], %up : f32[6, 4], %down : f32[4, 6]) {
    %h = contract %x[b, i], %up[i, j] -> [b, j] sum [i]
    %t = tanh %h
    %d = contract %t[b, i], %down[i, j] -> [b, j] sum [i]
    %y = add %x, %d
    return %y
  }
  entry @loss(%x : f32[n, 6] SHARDX, %up : f32[4, 6, 4] SHARDUP, %down : f32[4, 4, 6] SHARDDOWN) -> (%l : f32, %y : f32[n, 6]) {
    %scan = scan(@layer) %x, %up, %down [4] ncarry=1 nxs=2
    %y = proj %scan index=0
    %s = mul %y, %y
    %l = reduce %s axes=[0, 1]
  }
}
)uop";
    return replaced(replaced(replaced(replaced(text, "MESH", mesh.str()), "SHARDX", x.str()), "SHARDUP", up.str()),
                    "SHARDDOWN", down.str());
  };
  EvalInputs in{{numbers({16, 6}, 51), numbers({4, 6, 4}, 52), numbers({4, 4, 6}, 53)}, {}, {}, {}};
  auto piped = [&](const std::string &text, int64_t microbatches) {
    auto m = parse(text, "test.uop");
    EXPECT_TRUE(bool(m)) << llvm::toString(m.takeError());
    llvm::Error e = pipelineLayers(*m, {"stage", microbatches});
    EXPECT_FALSE(e) << llvm::toString(std::move(e));
    std::string now = print(*m);
    now.insert(now.rfind('}'), "  grad @main = @loss wrt %up, %down\n");
    return now;
  };
  Module plain = parsed(module("stage 1", "", "", ""));
  auto whole = evalEntry(plain, *plain.entry("loss"), in, options());
  ASSERT_TRUE(bool(whole)) << llvm::toString(whole.takeError());
  Outcome o = run(piped(module("stage 4", "", "shard (stage, -, -)", "shard (stage, -, -)"), 4), in, "loss");
  ASSERT_EQ(o.shards.outputs.size(), 2u);
  EXPECT_TRUE(o.shards.outputs == whole->outputs);         // no sum of the result is split
  EXPECT_EQ(count(o.perShard, "shift"), 4u) << o.perShard; // of the loss; of its gradient on, on again and back
  EXPECT_EQ(count(o.perShard, "all_gather"), 0u) << o.perShard;
  Outcome all = run(
      piped(module("data 2, model 2, stage 2", "shard (data, -)", "shard (stage, -, model)", "shard (stage, model, -)"),
            2),
      in);
  EXPECT_FALSE(all.shards.outputs.empty());
}

/// Keys and values go round a ring while a softmax is brought up to date; written per shard.
TEST(Parallel, RingOfAttention) {
  Outcome o = run(R"uop(
module @m {
  mesh @mesh { seq 4 } per_shard
  func @turn(%k : f32[2, 3], %v : f32[2, 3], %m : f32[2], %l : f32[2], %acc : f32[2, 3], %q : f32[2, 3]) {
    %s = contract %q[t, d], %k[u, d] -> [t, u] sum [d]
    %most = reduce %s kind=max axes=[1]
    %m2 = max %m, %most
    %m3 = reshape %m2 [2, 1]
    %m4 = expand %m3 [2, 2]
    %below = sub %s, %m4
    %e = exp %below
    %fall = sub %m, %m2
    %f = exp %fall
    %sum = reduce %e axes=[1]
    %l1 = mul %l, %f
    %l2 = add %l1, %sum
    %f1 = reshape %f [2, 1]
    %f2 = expand %f1 [2, 3]
    %acc1 = mul %acc, %f2
    %p = contract %e[t, u], %v[u, d] -> [t, d] sum [u]
    %acc2 = add %acc1, %p
    %k2 = shift %k group="seq=4/seq" by=1 wrap=1
    %v2 = shift %v group="seq=4/seq" by=1 wrap=1
    return %k2, %v2, %m2, %l2, %acc2
  }
  entry @main(%q : f32[2, 3] shard (seq, -), %k : f32[2, 3] shard (seq, -), %v : f32[2, 3] shard (seq, -))
      -> (%y : f32[2, 3] shard (seq, -)) {
    %low = const -inf : f32
    %low1 = reshape %low [1]
    %m = expand %low1 [2]
    %zero = const 0.0 : f32
    %z1 = reshape %zero [1]
    %l = expand %z1 [2]
    %z2 = reshape %zero [1, 1]
    %acc = expand %z2 [2, 3]
    %scan = scan(@turn) %k, %v, %m, %l, %acc, %q [4] ncarry=5 nxs=0
    %sum = proj %scan index=3
    %weighted = proj %scan index=4
    %s1 = reshape %sum [2, 1]
    %s2 = expand %s1 [2, 3]
    %y = div %weighted, %s2
  }
}
)uop",
                  {{numbers({8, 3}, 33), numbers({8, 3}, 34), numbers({8, 3}, 35)}, {}, {}, {}});
  ASSERT_EQ(o.shards.outputs.size(), 1u);
  // A shard that has all tokens gives another order of the sums, and all but the last bits.
  auto floats = [](const Tensor &t) {
    std::vector<float> out(t.count());
    memcpy(out.data(), t.bytes.data(), t.bytes.size());
    return out;
  };
  std::vector<float> q = floats(numbers({8, 3}, 33)), k = floats(numbers({8, 3}, 34)), v = floats(numbers({8, 3}, 35)),
                     y = floats(o.shards.outputs[0]);
  for (int t = 0; t < 8; ++t) {
    double weights[8], sum = 0, most = -INFINITY;
    for (int u = 0; u < 8; ++u) {
      weights[u] = 0;
      for (int d = 0; d < 3; ++d) weights[u] += double(q[3 * t + d]) * k[3 * u + d];
      most = std::max(most, weights[u]);
    }
    for (double &w : weights) sum += w = std::exp(w - most);
    for (int d = 0; d < 3; ++d) {
      double expected = 0;
      for (int u = 0; u < 8; ++u) expected += weights[u] / sum * v[3 * u + d];
      EXPECT_NEAR(y[3 * t + d], expected, 1e-4 * (1 + std::abs(expected)));
    }
  }
}

/// Control flow over parts: layers in a scan, a choice that all shards share, a loop.
TEST(Parallel, Control) {
  Outcome o = run(R"uop(
module @m {
  mesh @mesh { data 2, model 2 }
  func @layer(%x : f32[4, 8], %w : f32[8, 8], %v : f32[8, 8]) {
    %p = contract %x[n, i], %w[i, j] -> [n, j] sum [i]
    %h = tanh %p
    %y = contract %h[n, j], %v[j, k] -> [n, k] sum [j]
    return %y, %h
  }
  func @yes(%x : f32[4, 8]) {
    %y = neg %x
    return %y
  }
  func @no(%x : f32[4, 8]) {
    return %x
  }
  func @go(_, %i : i64) {
    %more = lt %i, 3
    return %more
  }
  func @step(%x : f32[4, 8], %i : i64) {
    %y = add %x, %x
    %k = add %i, 1
    return %y, %k
  }
  entry @main(%x : f32[4, 8] shard (data, -), %w : f32[3, 8, 8] shard (-, -, model), %v : f32[3, 8, 8] shard (-, model, -))
      -> (%y : f32[4, 8], %h : f32[3, 4, 8]) {
    %scan = scan(@layer) %x, %w, %v [3] ncarry=1 nxs=2
    %a = proj %scan index=0
    %h = proj %scan index=1
    %s = reduce %a kind=max axes=[0, 1]
    %zero = const 0.0 : f32
    %p = lt %zero, %s
    %c = cond(@yes, @no) %p, %a
    %b = proj %c index=0
    %i = const 0 : i64
    %l = while(@go, @step) %b, %i
    %y = proj %l index=0
  }
}
)uop",
                  {{numbers({4, 8}, 28), numbers({3, 8, 8}, 29), numbers({3, 8, 8}, 30)}, {}, {}, {}});
  ASSERT_EQ(o.shards.outputs.size(), 2u);
  EXPECT_EQ(o.shards.outputs[1].shape, (std::vector<int64_t>{3, 4, 8}));
}

// ---- rules that split nothing give the bytes of the whole
TEST(Rules, SplitNothing) {
  const char *head = "module @m {\n mesh @mesh { data 2 }\n dim n in 1..64\n entry @main(%x : f32[n, 6] shard (data, "
                     "-), %k : i64[n, 6] "
                     "shard (data, -)) -> (%y : f32[n, 6]) {\n";
  const char *bodies[] = {
      "%y = mul %x, 2.5",
      "%c = cumulate %x kind=sum axis=1\n%y = add %c, %x",
      "%y = pick %x, %k axis=1",
      "%f = flip %x axes=[1]\n%y = max %f, %x",
      "%p = permute %x perm=[1, 0]\n%s = reshape %p [6, n]\n%y = permute %s perm=[1, 0]",
      "%a = argsort %x axis=1 descending=0\n%y = pick %x, %a axis=1",
      "%s = shrink %x [0, 1] [n, 4]\n%y = pad %s [0, 1] [0, 1] value=0.5",
      "%i = iota [n, 6] axis=0 : f32[n, 6]\n%y = add %x, %i",
      "%seed = const 7 : u32\n%st = const 1 : u32\n%r = random %seed, %st [n, 6]\n%f = cast %r : f32[n, 6]\n%y = add "
      "%x, %f",
      "%r = reshape %x [n*2, 3]\n%s = reshape %r [n, 2, 3]\n%y = reshape %s [n, 6]",
      "%z = const 0.0 : f32\n%z1 = reshape %z [1, 1]\n%z2 = expand %z1 [n, 6]\n%y = scatter %z2, %k, %x axis=1 "
      "kind=add",
      "%o = const 1 : i64\n%zero = const 0 : i64\n%s = slice_at %x, %zero, %o [n, 3]\n%y = update_at %x, %s, %zero, "
      "%zero",
      "%w = window %x axis=1 size=2 stride=1 dilation=1\n%r = reduce %w kind=max axes=[2]\n%y = pad %r [0, 0] [0, 1] "
      "value=0.0",
      "%c = contract %x[b, i + j - 1], %x[b, j] -> [b, i: 6] sum [j]\n%y = neg %c",
      "%d = detach %x\n%y = tap %d name=t",
      // masks: of elements, of what takes part in a fold, of what is a sum
      "%i = iota [n, 6] axis=0 : i64[n, 6]\n%j = iota [n, 6] axis=1 : i64[n, 6]\n%p = lt %i, %j\n%y = select %p, %x, "
      "0.0",
      "%m = reduce %x kind=max axes=[1] where i1 <= i0\n%r = reshape %m [n, 1]\n%e = expand %r [n, 6]\n%y = sub %x, %e",
      "%m = reduce %x kind=sum axes=[1] where i1 <= i0, i0 <= 5\n%r = reshape %m [n, 1]\n%e = expand %r [n, 6]\n%y = "
      "sub %x, %e",
      "%w = iota [6, 6] axis=0 : f32[6, 6]\n%y = contract %x[a, i], %w[i, b] -> [a, b] sum [i] where b <= a",
  };
  for (const char *body : bodies) {
    Outcome o = run(std::string(head) + body + "\n }\n}\n",
                    {{numbers({8, 6}, 31), numbers({8, 6}, 32, DType::I64, 6)}, {}, {}, {}});
    EXPECT_TRUE(o.equal()) << body << o.perShard;
    EXPECT_EQ(count(o.perShard, "all_gather") + count(o.perShard, "all_reduce"), 0u) << body << o.perShard;
  }
}

/// Convolutions along a cut axis: their halo comes from the shards next to a part.
TEST(Rules, Neighbours) {
  struct {
    const char *what, *module;
    size_t shifts;
  } rows[] = {
      {"3 x 3, same padding, rows cut",
       "entry @main(%x : f32[2, 3, 8, 6] shard (-, -, data, -), %w : f32[5, 3, 3, 3]) -> (%y : f32[2, 5, 8, 6]) {\n"
       "%y = contract %x[n, c, i + r - 1, j + s - 1], %w[o, c, r, s] -> [n, o, i: 8, j: 6] sum [c, r, s]\n}",
       2},
      {"a step of 2, images and rows cut",
       "entry @main(%x : f32[2, 3, 16, 6] shard (batch, -, data, -), %w : f32[5, 3, 3, 3]) -> (%y : f32[2, 5, 8, 6]) "
       "{\n"
       "%y = contract %x[n, c, i*2 + r - 1, j + s - 1], %w[o, c, r, s] -> [n, o, i: 8, j: 6] sum [c, r, s]\n}",
       1},
      {"2 x 2 with a step of 2: nothing moves",
       "entry @main(%x : f32[2, 3, 16, 6] shard (-, -, data, -), %w : f32[5, 3, 2, 2]) -> (%y : f32[2, 5, 8, 3]) {\n"
       "%y = contract %x[n, c, i*2 + r, j*2 + s], %w[o, c, r, s] -> [n, o, i: 8, j: 3] sum [c, r, s]\n}",
       0},
      {"causal, dilated, a symbolic length",
       "dim n in 8..64\nentry @main(%x : f32[n, 3] shard (data, -), %w : f32[3, 3]) -> (%y : f32[n, 3]) {\n"
       "%y = contract %x[i + r*2 - 4, c], %w[r, c] -> [i: n, c] sum [r]\n}",
       1},
  };
  for (const auto &row : rows) {
    SCOPED_TRACE(row.what);
    std::string text = std::string("module @m {\n mesh @mesh { batch 2, data 2 }\n") + row.module + "\n}\n";
    bool isLong = llvm::StringRef(row.module).contains("dim n");
    std::vector<int64_t> x = isLong                                           ? std::vector<int64_t>{24, 3}
                             : llvm::StringRef(row.module).contains("16, 6]") ? std::vector<int64_t>{2, 3, 16, 6}
                                                                              : std::vector<int64_t>{2, 3, 8, 6};
    std::vector<int64_t> w = isLong                                          ? std::vector<int64_t>{3, 3}
                             : llvm::StringRef(row.module).contains("2, 2]") ? std::vector<int64_t>{5, 3, 2, 2}
                                                                             : std::vector<int64_t>{5, 3, 3, 3};
    Outcome o = run(text, {{numbers(x, 41), numbers(w, 42)}, {}, {}, {}});
    EXPECT_TRUE(o.equal()) << o.perShard;
    EXPECT_EQ(count(o.perShard, "shift"), row.shifts) << o.perShard;
    EXPECT_EQ(count(o.perShard, "all_gather") + count(o.perShard, "all_reduce"), 0u) << o.perShard;
  }
}

/// With its gradients: that of the image has a halo too, that of the weights is a sum over shards.
TEST(Rules, NeighboursAndGradients) {
  Outcome o = run(R"uop(
module @m {
  mesh @mesh { data 4 }
  entry @loss(%x : f32[1, 2, 8, 6] shard (-, -, data, -), %w : f32[3, 2, 3, 3]) -> (%l : f32) {
    %c = contract %x[n, c, i + r - 1, j + s - 1], %w[o, c, r, s] -> [n, o, i: 8, j: 6] sum [c, r, s]
    %t = tanh %c
    %l = reduce %t axes=[0, 1, 2, 3]
  }
  grad @main = @loss wrt %x, %w
}
)uop",
                  {{numbers({1, 2, 8, 6}, 43), numbers({3, 2, 3, 3}, 44)}, {}, {}, {}});
  ASSERT_EQ(o.shards.outputs.size(), 3u);
  EXPECT_EQ(count(o.perShard, "shift"), 6u) << o.perShard; // of the loss, twice; of the gradient of x
  EXPECT_EQ(count(o.perShard, "all_reduce"), 3u) << o.perShard;
  EXPECT_TRUE(o.whole.outputs[1] == o.shards.outputs[1]) << o.perShard; // no sum of it is split
}

// ---- what is wrong
TEST(Refusals, Shardings) {
  auto module = [](llvm::StringRef x, llvm::StringRef y, llvm::StringRef body) {
    return ("module @m {\n mesh @mesh { data 2, model 2 }\n dim n in 1..7\n entry @main(%x : f32[4, 6] shard " + x +
            ", %y : f32[4, 6] shard " + y + ", %i : i64[4]) -> (%z : f32) {\n" + body +
            "\n %z = reduce %v axes=[0, 1]\n }\n}\n")
        .str();
  };
  auto has = [](const std::string &text, llvm::StringRef what) {
    EXPECT_TRUE(llvm::StringRef(text).contains(what)) << text;
  };
  has(refusal(module("(data, -)", "(model, -)", " %v = add %x, %y")),
      "entry @main: at add (line 5): two shardings meet that do not agree: %x (f32[4, 6], cut as (data, -)) and "
      "%y "
      "(f32[4, 6], cut as (model, -)); write a reshard");
  has(refusal(module("(data, -)", "(-, data)", " %v = add %x, %y")), "two shardings meet that do not agree");
  has(refusal(module("(seq, -)", "(-, -)", " %v = add %x, %y")), "the mesh has no axis 'seq'; it has data, model");
  has(refusal(module("(data, data)", "(-, -)", " %v = add %x, %y")),
      "axis 'data' of the mesh cuts two axes of one tensor");
  has(refusal(module("(data)", "(-, -)", " %v = add %x, %y")), "its sharding (data) is of rank 1");
  has(refusal(module("(-, data+model)", "(-, -)", " %v = add %x, %y")),
      "axis 1 has an extent of 6, which the 4 shards of (-, data+model) do not divide");
  has(refusal(module("(data, -)", "(-, -)", " %v = cumulate %x kind=sum axis=0")),
      "cumulate goes along axis 0 of %x (f32[4, 6], cut as (data, -)), which is cut: write a reshard before it");
  has(refusal(module("(-, data)", "(-, -)", " %v = reshape %x [8, 3]")), "its parts are no blocks along one axis");
  has(refusal(module("(data, -)", "(-, -)", " %v = contract %x[a + b, c], %y[b, c] -> [a: 4, c] sum [b]")),
      "reads 3 elements beside a part, which may have 2");
  has(refusal(module("(data, -)", "(-, -)", " %v = contract %x[a + b*2, c], %y[b, c] -> [a: 3, c] sum [b]")),
      "a sum over neighbours goes along axis 0 of %x");
  has(refusal(module("(data, -)", "(-, -)", " %v = contract %x[a, b], %y[c, b] -> [a, c] sum [b] where b <= a")),
      "depends on an index along an axis that is cut");
  has(refusal("module @m {\n entry @main(%x : f32[4] shard (data)) -> (%y : f32[4]) {\n %y = neg %x\n }\n}\n"),
      "the module has no mesh");
  has(refusal("module @m {\n mesh @m { data 0 }\n}\n"), "axis 'data' has 0 shards");
  has(refusal("module @m {\n mesh @m { data 2, data 2 }\n}\n"), "two axes 'data'");
  has(refusal("module @m {\n mesh @m { data 4 }\n dim n in 1..3\n entry @main(%x : f32[n] shard (data)) -> (%y : "
              "f32[n]) {\n %y = neg "
              "%x\n }\n}\n"),
      "dim n is in 1..3, where there is no multiple of 4 shards");
  has(refusal("module @m {\n entry @main(%x : f32[4]) -> (%y : f32[4]) {\n %y = all_reduce %x group=\"data=2/data\" "
              "kind=sum\n }\n}\n"),
      "it exchanges values between shards: it is of modules that are written per shard");
  has(refusal("module @m {\n mesh @m { data 2 } per_shard\n entry @main(%x : f32[4]) -> (%y : f32[4]) {\n %y = "
              "all_reduce %x "
              "group=\"data=4/data\" kind=sum\n }\n}\n"),
      "is of another mesh than the module's, data=2");
  has(refusal("module @m {\n mesh @m { data 2 } per_shard\n entry @main(%x : f32[4]) -> (%y : f32[4]) {\n %y = "
              "all_to_all %x "
              "group=\"data=2/data\"\n }\n}\n"),
      "expected a first axis of 2");
}

TEST(Refusals, Rules) {
  const char *text =
      "module @m {\n param @fc.w : f32[4, 6]\n entry @main(%x : f32[4, 6]) -> (%y : f32[4, 6]) {\n %y = add %x, "
      "@fc.w\n }\n}\n";
  auto annotated = [&](llvm::StringRef pattern, llvm::StringRef sharding) {
    Module m = parsed(text);
    auto e = annotate(m, llvm::cantFail(parseMesh("data=2,model=3")), {{pattern.str(), sharding.str()}});
    return e ? llvm::toString(std::move(e)) : print(m);
  };
  auto has = [](const std::string &text, llvm::StringRef what) {
    EXPECT_TRUE(llvm::StringRef(text).contains(what)) << text;
  };
  has(annotated("fc.*", "(data, model)"), "param @fc.w : f32[4, 6] shard (data, model)");
  has(annotated("*.bias", "(data)"),
      "--shard '*.bias=(data)': no parameter, state, input, output or named value matches");
  has(annotated("fc.*", "(data)"), "'fc.w' is f32[4, 6], of rank 2, and this is of rank 1");
  has(annotated("fc.*", "(model, -)"), "axis 0 of 'fc.w' has an extent of 4, which 3 shards do not divide");
  has(annotated("fc.*", "(rows, -)"), "the mesh has no axis 'rows'; it has data, model");
  has(annotated("x", "(data, -) gathered"), "'x' is neither a parameter nor a state");
  has(annotated("[", "(data, -)"), "this is no pattern");
}
} // namespace

//===- InterleaveTest.cpp: forward and backward turns in one scan -----------===//
// Takes:    losses over a scan over layers, of whole numbers: sums are exact in any order.
// Checks:   that gradients by turns are those of the loss itself and of GPipe, number for number, by the evaluator and
//           by any number of ranks; that no value of all microbatches is kept; what is no sum over microbatches.
#include "Runs.h"

using namespace astra;
using namespace astra::test;

namespace {
Tensor wholes(std::vector<int64_t> shape, uint32_t seed, int64_t most) {
  Tensor out{DType::F64, shape, std::vector<uint8_t>(tensorBytes(DType::F64, shape))};
  std::mt19937 draw(seed);
  for (int64_t i = 0; i < out.count(); ++i) {
    double v = double(int64_t(draw() % (2 * most + 1)) - most);
    memcpy(&out.bytes[8 * i], &v, 8);
  }
  return out;
}
std::vector<double> valuesOf(const EvalResult &r) {
  std::vector<double> out;
  for (const Tensor &t : r.outputs)
    for (int64_t i = 0; i < t.count(); ++i) memcpy(&out.emplace_back(), &t.bytes[8 * i], 8);
  return out;
}
std::string replaced(std::string text, llvm::StringRef what, llvm::StringRef by) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) text.replace(at, what.size(), by);
  return text;
}

/// Masked rows do not count; half of them are left, so that the mean is exact. %shift is read by every layer, %table in
/// front of them and behind them.
const char *net = R"uop(
module @m {
  mesh @mesh { MESH }
  dim n in 1..64
  func @layer(%x : f64[n, 4], %up : f64[4, 2], %down : f64[2, 4], %shift : f64[4]) {
    %h = contract %x[b, i], %up[i, j] -> [b, j] sum [i]
    %zero = const 0.0 : f64
    %z1 = reshape %zero [1, 1]
    %z = expand %z1 [n, 2]
    %r = max %h, %z
    %d = contract %r[b, i], %down[i, j] -> [b, j] sum [i]
    %s1 = reshape %shift [1, 4]
    %s = expand %s1 [n, 4]
    %e = add %d, %s
    %y = add %x, %e
    return %y
  }
  entry @main(%x : i64[n] SHARDX, %t : f64[n, 5] SHARDT, %mask : f64[n] SHARDX, %table : f64[5, 4], %up : f64[4, 4, 2] SHARDUP, %down : f64[4, 2, 4] SHARDDOWN, %shift : f64[4]) -> (%loss : f64) {
    %e = gather %table, %x axis=0
    %scan = scan(@layer) %e, %up, %down, %shift [4] ncarry=1 nxs=2
    %h = proj %scan index=0
    %p = contract %h[b, i], %table[j, i] -> [b, j] sum [i]
    %d = sub %p, %t
    %s = mul %d, %d
    %m = reshape %mask [n, 1]
    %m1 = expand %m [n, 5]
    %u = mul %s, %m1
    %sum = reduce %u axes=[0, 1]
    %count = reduce %mask axes=[0]
    %loss = div %sum, %count
  }
}
)uop";
std::string cut(llvm::StringRef mesh, llvm::StringRef x, llvm::StringRef t, llvm::StringRef up, llvm::StringRef down) {
  std::string text = replaced(replaced(net, "MESH", mesh), "SHARDX", x);
  return replaced(replaced(replaced(text, "SHARDT", t), "SHARDUP", up), "SHARDDOWN", down);
}
EvalInputs batch() {
  Tensor mask{DType::F64, {16}, std::vector<uint8_t>(16 * 8)};
  for (int64_t i = 0; i < 16; ++i) {
    double v = i % 3 == 1 || i > 11;
    memcpy(&mask.bytes[8 * i], &v, 8);
  }
  return {{numbers({16}, 1, DType::I64, 5), wholes({16, 5}, 2, 3), mask, wholes({5, 4}, 4, 2), wholes({4, 4, 2}, 5, 1),
           wholes({4, 2, 4}, 6, 1), wholes({4}, 7, 2)},
          {},
          {},
          {}};
}
const std::string wrt = "%table, %up, %down, %shift";

/// The text whose entry `main` gives the loss and its gradients by turns; or the error.
llvm::Expected<std::string> interleaved(const std::string &text, int64_t microbatches) {
  auto m = parse(text, "test.uop");
  if (!m) return m.takeError();
  PipelineRule rule{"stage", microbatches, true};
  if (llvm::Error e = pipelineLayers(*m, rule, true)) return std::move(e);
  Entry step = *m->entry("forward");
  std::vector<UOpRef> leaves;
  for (const Value &v : step.inputs)
    if (llvm::StringRef(wrt + ",").contains("%" + v.name + ",")) leaves.push_back(v.value);
  auto d =
      interleavedGradients(*m, rule, step, step.outputs[0].value, Builder(m->ctx()).lit(DType::F64, 1), leaves, {});
  if (!d) return d.takeError();
  for (const Value &v : m->entry("main")->inputs) // the weights that stages cut
    for (Value &mine : step.inputs)
      if (mine.name == v.name) mine.sharding = v.sharding;
  step.name = "main";
  step.outputs = {{"loss", d->values[0]}};
  for (UOpRef g : d->derivatives) step.outputs.push_back({"g" + std::to_string(step.outputs.size()), g});
  m->entries = {step};
  return print(*m);
}
std::string withGradient(std::string text) {
  text = replaced(text, "@main", "@of");
  text.insert(text.rfind('}'), "  grad @main = @of wrt " + wrt + "\n");
  return text;
}
std::string refused(const std::string &text, int64_t microbatches = 4) {
  auto made = interleaved(text, microbatches);
  return made ? "" : llvm::toString(made.takeError());
}

TEST(Interleave, GradientsAreThoseOfTheLoss) {
  EvalInputs in = batch();
  std::string text = cut("stage 4", "", "", "", "");
  Module plain = parsed(withGradient(text));
  auto wanted = evalEntry(plain, *plain.entry("main"), in, options());
  ASSERT_TRUE(bool(wanted)) << llvm::toString(wanted.takeError());
  ASSERT_EQ(wanted->outputs.size(), 5u);
  auto piped = parse(text, "test.uop");
  ASSERT_FALSE(pipelineLayers(*piped, {"stage", 4}));
  Outcome gpipe = run(withGradient(print(*piped)), in);
  EXPECT_EQ(valuesOf(gpipe.shards), valuesOf(*wanted));
  for (int64_t microbatches : {1, 2, 4, 8, 16}) {
    auto made = interleaved(text, microbatches);
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    Outcome o = run(*made, in);
    EXPECT_EQ(valuesOf(o.whole), valuesOf(*wanted)) << microbatches;
    EXPECT_EQ(valuesOf(o.shards), valuesOf(*wanted)) << microbatches;
    EXPECT_EQ(count(o.perShard, "shift"), 2u) << o.perShard; // on, and back, of one scan
    EXPECT_EQ(count(o.perShard, "all_gather"), 0u) << o.perShard;
    EXPECT_TRUE(llvm::StringRef(o.perShard).contains("f64[1, 7, n_shard, 4]")) << o.perShard; // 2 S - 1
    // Of values with the width of a layer there are none of all microbatches, nor of the batch.
    for (const char *kept : {"[%M, n_shard, 4]", "[%M*n_shard, 4]", "[1, %M, n_shard, 4]"})
      EXPECT_TRUE(microbatches == 1 ||
                  !llvm::StringRef(o.perShard).contains("f64" + replaced(kept, "%M", std::to_string(microbatches))))
          << kept << o.perShard;
  }
}

/// Rows and columns over other axes of the mesh.
TEST(Interleave, OtherAxes) {
  EvalInputs in = batch();
  Module plain = parsed(withGradient(cut("stage 4", "", "", "", "")));
  auto wanted = evalEntry(plain, *plain.entry("main"), in, options());
  ASSERT_TRUE(bool(wanted)) << llvm::toString(wanted.takeError());
  for (auto [mesh, microbatches] : {std::pair("data 2, stage 2", 4), {"data 2, stage 4", 2}}) {
    auto made = interleaved(cut(mesh, "shard (data)", "shard (data, -)", "", ""), microbatches);
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    EXPECT_EQ(valuesOf(run(*made, in).shards), valuesOf(*wanted)) << mesh;
  }
  auto made = interleaved(cut("data 2, model 2, stage 2", "shard (data)", "shard (data, -)", "shard (stage, -, model)",
                              "shard (stage, model, -)"),
                          4);
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  EXPECT_EQ(valuesOf(run(*made, in).shards), valuesOf(*wanted));
}

TEST(Interleave, WhatIsNoSumOverMicrobatches) {
  std::string text = cut("stage 4", "", "", "", "");
  auto with = [&](llvm::StringRef was, llvm::StringRef now) { return refused(replaced(text, was, now)); };
  const std::string none = "--pipeline: schedule=1f1b: the loss is no sum over microbatches: ";
  EXPECT_EQ(with("%loss = div %sum, %count", "%mean = div %sum, %count\n    %loss = sqrt %mean"),
            none + "it is not linear in a sum over rows at sqrt (line 31)");
  EXPECT_EQ(
      with("%sum = reduce %u axes=[0, 1]", "%most = reduce %u kind=max axes=[0]\n    %sum = reduce %most axes=[0]"),
      none + "rows of several ones meet at all_reduce (line 28)");
  EXPECT_EQ(with("%d = sub %p, %t", "%all = reduce %p axes=[0]\n    %a1 = reshape %all [1, 5]\n    %a2 = expand %a1 "
                                    "[n, 5]\n    %p1 = sub %p, %a2\n    %d = sub %p1, %t"),
            none + "rows are computed from a sum over all rows at all_reduce (line 32)");
  EXPECT_EQ(with("%loss = div %sum, %count", "%w = reduce %shift axes=[0]\n    %q = div %sum, %count\n    %loss = add "
                                             "%q, %w"),
            none + "it reads weights or rows beside sums over rows at add (line 32)");
  EXPECT_EQ(with("%s = mul %d, %d", "%f = flip %d axes=[0]\n    %s = mul %d, %f").substr(0, none.size()), none);
  EXPECT_EQ(
      refused(replaced(replaced(text, "%t : f64[n, 5]", "%t0 : f64[5, n]"), "%d = sub %p, %t",
                       "%t = permute %t0 perm=[1, 0]\n    %d = sub %p, %t")),
      "--pipeline: schedule=1f1b: input %t0 (f64[5, n_shard*4]) has the batch elsewhere than along its first axis");
  auto m = parse(text, "test.uop");
  EXPECT_EQ(llvm::toString(pipelineLayers(*m, {"stage", 4, true})),
            "--pipeline: schedule=1f1b is of trainings, whose gradients it takes: with --train, or "
            "Lowered.with_training");
}
} // namespace

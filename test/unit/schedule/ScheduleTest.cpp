//===- ScheduleTest.cpp: scheduled kernels equal the evaluator -------------===//
#include "RunSchedule.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/Numerics.h"
#include <gtest/gtest.h>
#include <random>

using namespace astra;

namespace {
Tensor randomTensor(std::mt19937 &gen, DType t, std::vector<int64_t> shape) {
  Tensor x{t, shape, std::vector<uint8_t>(tensorBytes(t, shape))};
  int64_t n = x.count();
  for (int64_t i = 0; i < n; ++i) {
    if (t == DType::F32) {
      float v = std::normal_distribution<float>()(gen);
      static const float edges[] = {0.0f, -0.0f, 1e-42f, -3e38f, INFINITY, -INFINITY, NAN};
      if (gen() % 97 == 0) v = edges[gen() % 5];
      memcpy(&x.bytes[i * 4], &v, 4);
    } else if (t == DType::Bool)
      x.bytes[i] = gen() % 2;
    else
      for (unsigned k = 0; k < byteSize(t); ++k) x.bytes[i * byteSize(t) + k] = k == 0 ? gen() % 7 : 0;
  }
  return x;
}

/// A module in text, run through numerics and the scheduler, equals the evaluator for these extents of its inputs.
void check(const char *text, std::vector<std::vector<int64_t>> shapes, std::map<std::string, int64_t> dims = {},
           const char *target = "cpu:x86-64-v4") {
  SCOPED_TRACE(text);
  auto m = parse(text, "test.uop");
  ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
  if (auto e = runNumerics(*m)) FAIL() << llvm::toString(std::move(e));
  std::mt19937 gen(7);
  EvalInputs in;
  in.dims = dims;
  const Entry &e = m->entries[0];
  for (size_t i = 0; i < e.inputs.size(); ++i)
    in.inputs.push_back(randomTensor(gen, e.inputs[i].value->dtype, shapes[i]));
  auto expected = evalEntry(*m, e, in);
  ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
  auto s = schedule(*m);
  ASSERT_TRUE(bool(s)) << llvm::toString(s.takeError());
  for (bool expand : {false, true}) {
    ScheduleRun run(*m, *s, *targetNamed(target), expand);
    auto found = run.run(0, in);
    ASSERT_TRUE(bool(found)) << llvm::toString(found.takeError()) << "\n" << print(*s);
    for (size_t i = 0; i < expected->outputs.size(); ++i) {
      canonicalizeNaN(found->outputs[i]);
      EXPECT_EQ(found->outputs[i].shape, expected->outputs[i].shape);
      EXPECT_TRUE(found->outputs[i].bytes == expected->outputs[i].bytes)
          << "output " << i << (expand ? " expanded" : " lowered") << "\n"
          << print(*s);
    }
    for (auto &[name, t] : found->states) {
      canonicalizeNaN(t);
      EXPECT_TRUE(t.bytes == expected->states[name].bytes) << "state " << name;
    }
  }
}

TEST(Schedule, ElementwiseWithTails) {
  for (int64_t n : {0, 1, 15, 16, 17, 63, 64, 65, 200})
    check("module @m {\n dim n in 0..4096\n entry @main(%x : f32[n], %y : f32[n]) -> (%z : f32[n]) {\n %0 = mul %x, "
          "%y\n %z = add %0, %x\n }\n}\n",
          {{n}, {n}});
}

TEST(Schedule, MatmulOddSizes) {
  for (auto [a, k, c] : {std::tuple{1, 1, 1}, {3, 5, 7}, {17, 600, 33}, {8, 513, 48}, {2, 0, 3}, {9, 64, 100}})
    check("module @m {\n dim a in 0..64\n dim k in 0..1024\n dim c in 0..128\n entry @main(%x : f32[a, k], %y : f32[k, "
          "c]) -> (%z : f32[a, c]) {\n %z = contract %x[i, l], %y[l, j] -> [i, j] sum [l]\n }\n}\n",
          {{a, k}, {k, c}});
}

// The lanes' operand lies in fast memory for many tiles of rows; the last tiles of rows and columns are partial.
TEST(Schedule, StagedPanels) {
  const char *text =
      "module @m {\n entry @main(%x : f32[2, 110, 130], %y : f32[2, 130, 58]) -> (%z : f32[2, 110, 58]) {\n"
      " %z = contract %x[b, i, l], %y[b, l, j] -> [b, i, j] sum [l]\n }\n}\n";
  check(text, {{2, 110, 130}, {2, 130, 58}}, {}, "cpu:x86-64-v3");
  auto m = parse(text, "test.uop");
  ASSERT_TRUE(m && !runNumerics(*m));
  auto s = schedule(*m);
  ASSERT_TRUE(bool(s));
  std::string plan = astra::text(choosePlan(m->ctx(), s->kernels[0], *targetNamed("cpu:x86-64-v3")));
  EXPECT_NE(plan.find("pack-b"), std::string::npos) << plan;
}

/// A module with one entry `main` and this body; `head` holds dims, params and states.
std::string module(const std::string &head, const std::string &signature, const std::string &body) {
  return "module @m {\n" + head + "\n  entry @main" + signature + " {\n" + body + "\n  }\n}\n";
}

TEST(Schedule, Sums) {
  std::string rows =
      module("dim n in 0..10000", "(%x : f32[3, n]) -> (%z : f32[3])", "%z = reduce %x kind=sum order=lane64 axes=[1]");
  std::string columns = module("dim n in 0..10000", "(%x : f32[n, 20]) -> (%z : f32[20])",
                               "%z = reduce %x kind=sum order=lane64 axes=[0]");
  std::string all =
      module("dim n in 0..10000", "(%x : f32[2, n]) -> (%z : f32)", "%z = reduce %x kind=sum order=lane64 axes=[0, 1]");
  std::string most = module("dim n in 0..10000", "(%x : f32[3, n]) -> (%z : f32[3], %a : i64[3])",
                            "%z = reduce %x kind=max order=exact axes=[1]\n%a = argreduce %x kind=argmax axis=1");
  for (int64_t n : {0, 1, 63, 64, 65, 1000, 4096, 4097, 9000}) {
    check(rows.c_str(), {{3, n}});
    check(columns.c_str(), {{n, 20}});
    check(all.c_str(), {{2, n}});
    check(most.c_str(), {{3, n}});
  }
}

TEST(Schedule, SumsOfSeveralAxes) {
  check(module("", "(%x : f32[4, 5, 6, 7]) -> (%z : f32[5])", "%z = reduce %x kind=sum order=lane64 axes=[0, 2, 3]")
            .c_str(),
        {{4, 5, 6, 7}});
  check(module("", "(%x : f32[4, 5, 6, 7]) -> (%z : f32[4, 6])", "%z = reduce %x kind=prod order=lane64 axes=[1, 3]")
            .c_str(),
        {{4, 5, 6, 7}});
  check(module("", "(%x : f32[4, 5, 6, 7]) -> (%z : f32[4, 7])", "%z = reduce %x kind=sum order=chain axes=[1, 2]")
            .c_str(),
        {{4, 5, 6, 7}});
}

TEST(Schedule, Softmax) {
  std::string text = module("dim b in 1..8\n dim n in 1..300", "(%x : f32[b, n]) -> (%z : f32[b, n])",
                            "%m = reduce %x kind=max order=exact axes=[1]\n%m1 = reshape %m [b, 1]\n%m2 = expand %m1 "
                            "[b, n]\n%d = sub %x, %m2\n%e = exp %d\n"
                            "%s = reduce %e kind=sum order=lane64 axes=[1]\n%s1 = reshape %s [b, 1]\n%s2 = expand %s1 "
                            "[b, n]\n%z = div %e, %s2");
  for (int64_t n : {1, 10, 64, 197}) check(text.c_str(), {{2, n}});
}

TEST(Schedule, Convolutions) {
  auto conv = [](int ic, int oc, int h, int w, int k, int stride, int pad, int dilation) {
    int oh = (h + 2 * pad - dilation * (k - 1) - 1) / stride + 1,
        ow = (w + 2 * pad - dilation * (k - 1) - 1) / stride + 1;
    auto n = [](int v) { return std::to_string(v); };
    auto form = [&](const char *o, const char *kk) {
      return std::string(o) + "*" + n(stride) + " + " + kk + "*" + n(dilation) + (pad ? " - " + n(pad) : "");
    };
    return module("dim n in 1..4\n param @w : f32[" + n(oc) + ", " + n(ic) + ", " + n(k) + ", " + n(k) +
                      "] = splat 0.125\n param @b : f32[" + n(oc) + "] = splat 0.5",
                  "(%x : f32[n, " + n(ic) + ", " + n(h) + ", " + n(w) + "]) -> (%z : f32[n, " + n(oc) + ", " + n(oh) +
                      ", " + n(ow) + "])",
                  "%c = contract %x[b, c, " + form("oh", "kh") + ", " + form("ow", "kw") +
                      "], @w[o, c, kh, kw] -> [b, o, oh : " + n(oh) + ", ow : " + n(ow) + "] sum [kh, kw, c]\n" +
                      "%b1 = reshape @b [1, " + n(oc) + ", 1, 1]\n%b2 = expand %b1 [n, " + n(oc) + ", " + n(oh) + ", " +
                      n(ow) + "]\n%z = add %c, %b2");
  };
  check(conv(3, 16, 9, 9, 3, 1, 1, 1).c_str(), {{2, 3, 9, 9}});
  check(conv(5, 10, 11, 7, 3, 2, 1, 1).c_str(), {{1, 5, 11, 7}});
  check(conv(4, 33, 8, 8, 1, 1, 0, 1).c_str(), {{3, 4, 8, 8}});
  check(conv(2, 8, 12, 12, 3, 1, 2, 2).c_str(), {{1, 2, 12, 12}});
}

/// Conditions of kept labels alone: there is no sum where one does not hold; others stay with products.
TEST(Schedule, DomainsOfResults) {
  for (const char *where : {"j <= i", "j <= i, i <= 9", "j <= i, d <= j + 2", "i <= 20"})
    for (int64_t n : {1, 7, 24})
      check(
          (std::string("module @m {\n dim n in 1..64\n entry @main(%q : f32[n, 5], %k : f32[n, 5]) -> (%z : f32[n, n]) "
                       "{\n %s = contract %q[i, d], %k[j, d] -> [i, j] sum [d] where ") +
           where + "\n %z = div 1.0, %s\n }\n}\n") // of -0.0 another infinity than of +0.0
              .c_str(),
          {{n, 5}, {n, 5}});
}

TEST(Schedule, TransposedConvolutionHasHoles) {
  check(module("param @w : f32[3, 5, 3] = splat 0.25", "(%x : f32[2, 3, 7]) -> (%z : f32[2, 5, 13])",
               "%z = contract %x[b, c, (o - k + 1)/2], @w[c, m, k] -> [b, m, o : 13] sum [k, c]")
            .c_str(),
        {{2, 3, 7}});
}

TEST(Schedule, CausalDomain) {
  check(module("dim t in 1..40", "(%p : f32[t, t], %v : f32[t, 8]) -> (%z : f32[t, 8])",
               "%z = contract %p[i, j], %v[j, d] -> [i, d] sum [j] where j <= i")
            .c_str(),
        {{33, 33}, {33, 8}});
}

TEST(Schedule, Movement) {
  check(module("", "(%x : f32[6, 20]) -> (%z : f32[20, 6])", "%z = permute %x perm=[1, 0]").c_str(), {{6, 20}});
  check(module("", "(%x : f32[6, 20]) -> (%z : f32[10, 24])",
               "%a = pad %x [1, 2] [3, 2] value=1.5\n%z = flip %a axes=[0, 1]")
            .c_str(),
        {{6, 20}});
  check(module("dim n in 0..50", "(%x : f32[n, 4, 3]) -> (%z : f32[3, n*2, 2])",
               "%a = reshape %x [n*2, 2, 3]\n%z = permute %a perm=[2, 0, 1]")
            .c_str(),
        {{11, 4, 3}});
  check(module("", "(%x : f32[3, 18]) -> (%z : f32[3, 6])",
               "%w = window %x axis=1 size=4 stride=3 dilation=1\n%p = pad %w [0, 0, 0] [0, 1, 0] value=-1.0\n%z = "
               "reduce %p kind=max order=exact axes=[2]")
            .c_str(),
        {{3, 18}});
}

TEST(Schedule, IndexingOps) {
  check(module("dim n in 0..30", "(%x : f32[7, 5], %i : i64[n]) -> (%z : f32[n, 5])", "%z = gather %x, %i axis=0")
            .c_str(),
        {{7, 5}, {9}});
  check(module("", "(%x : f32[7, 5], %i : i64[7, 2]) -> (%z : f32[7, 2])", "%z = pick %x, %i axis=1").c_str(),
        {{7, 5}, {7, 2}});
  for (const char *kind : {"set", "add", "mul", "max", "min"})
    check(module("", "(%x : f32[6, 4], %i : i64[9, 4], %u : f32[9, 4]) -> (%z : f32[6, 4])",
                 std::string("%z = scatter %x, %i, %u axis=0 kind=") + kind)
              .c_str(),
          {{6, 4}, {9, 4}, {9, 4}});
  check(module("", "(%x : f32[3, 40]) -> (%z : i64[3, 40], %y : i64[3, 40])",
               "%z = argsort %x axis=1 descending=0\n%y = argsort %x axis=1 descending=1")
            .c_str(),
        {{3, 40}});
  check(module("", "(%x : f32[3, 40]) -> (%z : f32[3, 40], %y : f32[3, 40])",
               "%z = cumulate %x kind=sum axis=1\n%y = cumulate %x kind=prod axis=0")
            .c_str(),
        {{3, 40}});
  check(module("", "(%x : f32[8, 6], %s : i64, %t : i64) -> (%z : f32[3, 2], %y : f32[8, 6])",
               "%z = slice_at %x, %s, %t [3, 2]\n%y = update_at %x, %z, %t, %s")
            .c_str(),
        {{8, 6}, {}, {}});
}

// The evaluator refuses loads outside of a buffer: lanes beyond the last column must not read a weight whose panels run
// along another axis.
TEST(Schedule, TailsReadNothingBeyondAWeightInPanels) {
  check(R"(module @m {
  param @w : f32[2, 6, 4] = splat 0.75
  entry @main(%x : f32[2, 6, 3], %k : f32[4, 3], %z : f32[2, 4]) -> (%y : f32[2, 6, 2], %v : f32[2, 6, 4]) {
    %y = contract @w[i0, i1, k0], %z[i2, k0] -> [i0, i1, i2] sum [k0]
    %0 = contract %x[i0, i1, k0], %k[i2, k0] -> [i0, i1, i2] sum [k0]
    %v = fma %0, %0, @w
  }
})",
        {{2, 6, 3}, {4, 3}, {2, 4}});
}

// Ranges whose extents could be simplified, under data-dependent indices.
TEST(Schedule, RangesKeepTheirIdentity) {
  check(module("dim n in 1..21\n",
               "(%x : f32[n], %i : i32[floordiv(n - 1, 2) + 5, 3]) -> (%y : f32[floordiv(n - 1, 2) + 5, 3])",
               "%0 = window %x axis=0 size=1 stride=2 dilation=2\n%1 = pad %0 [2, 1] [2, 2] value=-1.0\n%y = pick %1, "
               "%i axis=1")
            .c_str(),
        {{6}, {7, 3}});
}

// A slot serves values of several sizes; its size names each size once, however many values take turns in it.
TEST(Schedule, SlotsOfManyValues) {
  std::string body;
  for (int i = 0; i < 100; ++i) {
    std::string n = std::to_string(i), x = i ? "%s" + std::to_string(i - 1) : "%x";
    body += "%p" + n + " = contract " + x + "[i, k], %w[j, k] -> [i, j] sum [k]\n%s" + n + " = contract %p" + n +
            "[i, k], " + x + "[k, j] -> [i, j] sum [k]\n";
  }
  body += "%y = neg %s99";
  auto m = parse(module("dim n in 1..64\n", "(%x : f32[n, 16], %w : f32[n, 16]) -> (%y : f32[n, 16])", body.c_str()),
                 "test.uop");
  ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
  ASSERT_FALSE(runNumerics(*m));
  auto s = schedule(*m);
  ASSERT_TRUE(bool(s)) << llvm::toString(s.takeError());
  for (UOpRef slot : s->entries[0].routine.slots) EXPECT_LE(topoSort(slot).size(), 16u) << print(*s);
}

TEST(Schedule, SlotsHoldTheGreatestWhereExtentsCanBeZero) {
  check(module("dim n in 0..9\n", "(%x : f32[n, 3]) -> (%y : f32[n, n], %z : f32[3, 3])",
               "%y = contract %x[i, k], %x[j, k] -> [i, j] sum [k]\n%z = contract %x[k, i], %x[k, j] -> [i, j] sum [k]")
            .c_str(),
        {{0, 3}});
}
} // namespace

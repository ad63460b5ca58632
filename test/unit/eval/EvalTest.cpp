//===- EvalTest.cpp: orders, dims, control, entries ------------------------===//
// Takes:    small graphs built by hand.
// Gives:    checks of the clauses of astra-num/1 that vectors per op do not show: orders of summation against loops
//           written out here, binding and refusal of dims, control, data dims.
#include "astra/IR/Eval.h"
#include "astra/IR/Builder.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

using namespace astra;

namespace {
template <class T> Tensor tensor(DType t, std::vector<int64_t> shape, const std::vector<T> &v) {
  Tensor r{t, std::move(shape), std::vector<uint8_t>(v.size() * sizeof(T))};
  if (!v.empty()) memcpy(r.bytes.data(), v.data(), r.bytes.size());
  return r;
}
Tensor f32(std::vector<int64_t> shape, const std::vector<float> &v) { return tensor(DType::F32, std::move(shape), v); }
Tensor i64(std::vector<int64_t> shape, const std::vector<int64_t> &v) {
  return tensor(DType::I64, std::move(shape), v);
}
template <class T> std::vector<T> values(const Tensor &t) {
  std::vector<T> v(t.bytes.size() / sizeof(T));
  if (!v.empty()) memcpy(v.data(), t.bytes.data(), t.bytes.size());
  return v;
}
/// Floats of many magnitudes, so that another order of summation gives other bits.
std::vector<float> rough(size_t n, uint32_t seed = 1) {
  std::vector<float> v(n);
  for (float &x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = std::ldexp(float(int32_t(seed)) * 0x1p-31f, int(seed >> 8 & 15) - 8);
  }
  return v;
}
uint32_t bitsOf(float v) {
  uint32_t b;
  memcpy(&b, &v, 4);
  return b;
}
Tensor eval1(UOpRef root, std::vector<Tensor> in) {
  auto r = evalNodes({root}, {std::move(in), {}, {}, {}});
  if (!r) {
    ADD_FAILURE() << llvm::toString(r.takeError());
    return {};
  }
  return (*r)[0];
}
std::string refusal(UOpRef root, EvalInputs in) {
  auto r = evalNodes({root}, in);
  return r ? "accepted" : llvm::toString(r.takeError());
}

struct EvalTest : testing::Test {
  Context c;
  Builder b{c};
  UOpRef arg(int64_t i, std::vector<int64_t> shape, DType t = DType::F32) {
    llvm::SmallVector<UOpRef, 4> s;
    for (int64_t d : shape) s.push_back(b.idx(d));
    return b.arg(i, t, s);
  }
};
} // namespace

TEST_F(EvalTest, MatmulIsChain512) {
  const int64_t m = 3, k = 1100, n = 2;
  auto x = rough(m * k), y = rough(k * n, 7);
  std::vector<float> want;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float acc = 0;
      for (int64_t begin = 0; begin < k; begin += 512) {
        float c = -0.0f;
        for (int64_t t = begin; t < std::min(k, begin + 512); ++t) c = std::fma(x[i * k + t], y[t * n + j], c);
        acc = begin ? acc + c : c;
      }
      want.push_back(acc);
    }
  EXPECT_EQ(eval1(b.matmul(arg(0, {m, k}), arg(1, {k, n})), {f32({m, k}, x), f32({k, n}, y)}), f32({m, n}, want));
}

TEST_F(EvalTest, ConvolutionVisitsChannelBlocksOutermost) {
  // x[h, ic] * w[kh, ic], padding 1, reduced labels kh, ic: blocks of ic are the outer loop, padding takes part.
  const int64_t h = 5, ic = 700, kh = 3;
  auto x = rough(h * ic), w = rough(kh * ic, 3);
  std::vector<float> want;
  for (int64_t o = 0; o < h; ++o) {
    float acc = 0;
    for (int64_t begin = 0; begin < ic; begin += 512) {
      float s = -0.0f;
      for (int64_t r = 0; r < kh; ++r)
        for (int64_t i = begin; i < std::min(ic, begin + 512); ++i) {
          int64_t at = o + r - 1;
          s = std::fma(at < 0 || at >= h ? 0.0f : x[at * ic + i], w[r * ic + i], s);
        }
      acc = begin ? acc + s : s;
    }
    want.push_back(acc);
  }
  ContractSpec spec;
  spec.kept = 1, spec.reduced = 2; // labels: o, kh, ic
  spec.a = {AffineForm{{{0, 1}, {1, 1}}, -1, 1}, AffineForm{{{2, 1}}, 0, 1}};
  spec.b = {AffineForm{{{1, 1}}, 0, 1}, AffineForm{{{2, 1}}, 0, 1}};
  UOpRef y = b.contract(spec, arg(0, {h, ic}), arg(1, {kh, ic}), {b.idx(h), b.idx(kh), b.idx(ic)});
  EXPECT_EQ(eval1(y, {f32({h, ic}, x), f32({kh, ic}, w)}), f32({h}, want));
}

TEST_F(EvalTest, HolesTakeNoPartAndEmptySumsArePlusZero) {
  // x[(o + 1 - k) / 2]: a transposed convolution; every product is -0, so a hole that took part would give +0.
  ContractSpec spec;
  spec.kept = 1, spec.reduced = 1;
  spec.a = {AffineForm{{{0, 1}, {1, -1}}, 1, 2}};
  spec.b = {AffineForm{{{1, 1}}, 0, 1}};
  UOpRef y = b.contract(spec, arg(0, {2}), arg(1, {1}), {b.idx(3), b.idx(1)});
  auto v = values<float>(eval1(y, {f32({2}, {-0.0f, -0.0f}), f32({1}, {1.0f})}));
  EXPECT_EQ(bitsOf(v[0]), bitsOf(-0.0f)); // (0 + 1) / 2 is inexact: only a hole
  EXPECT_EQ(bitsOf(v[1]), bitsOf(-0.0f)); // reads x[1]
  EXPECT_EQ(bitsOf(v[2]), bitsOf(-0.0f));
  UOpRef none = b.matmul(arg(0, {1, 0}), arg(1, {0, 1}));
  EXPECT_EQ(bitsOf(values<float>(eval1(none, {f32({1, 0}, {}), f32({0, 1}, {})}))[0]), 0u);
  UOpRef sum = b.reduce(ReduceKind::Sum, arg(0, {0}), {0});
  EXPECT_EQ(bitsOf(values<float>(eval1(sum, {f32({0}, {})}))[0]), 0u);
  UOpRef zeros = b.reduce(ReduceKind::Sum, arg(0, {3}), {0});
  EXPECT_EQ(bitsOf(values<float>(eval1(zeros, {f32({3}, {-0.0f, -0.0f, -0.0f})}))[0]), bitsOf(-0.0f));
}

TEST_F(EvalTest, CausalDomainSkipsWhatLiesOutside) {
  const int64_t n = 4;
  auto x = rough(n * n), y = rough(n, 5);
  x[1] = NAN; // row 0, j = 1: outside j <= i
  ContractSpec spec;
  spec.kept = 1, spec.reduced = 1;
  spec.a = {AffineForm{{{0, 1}}, 0, 1}, AffineForm{{{1, 1}}, 0, 1}};
  spec.b = {AffineForm{{{1, 1}}, 0, 1}};
  spec.domain = {AffineForm{{{0, 1}, {1, -1}}, 0, 1}};
  UOpRef r = b.contract(spec, arg(0, {n, n}), arg(1, {n}), {b.idx(n), b.idx(n)}, {b.idx(0)});
  std::vector<float> want;
  for (int64_t i = 0; i < n; ++i) {
    float s = -0.0f;
    for (int64_t j = 0; j <= i; ++j) s = std::fma(x[i * n + j], y[j], s);
    want.push_back(s);
  }
  EXPECT_EQ(eval1(r, {f32({n, n}, x), f32({n}, y)}), f32({n}, want));
}

static float lane64(const float *v, size_t n) {
  std::vector<float> chunks;
  for (size_t begin = 0; begin < n; begin += 4096) {
    float lane[64];
    for (unsigned j = 0; j < 64; ++j) {
      lane[j] = -0.0f;
      for (size_t i = begin + j; i < std::min(n, begin + 4096); i += 64) lane[j] += v[i];
    }
    for (unsigned s = 32; s; s /= 2)
      for (unsigned j = 0; j < s; ++j) lane[j] += lane[j + s];
    chunks.push_back(lane[0]);
  }
  return chunks.size() == 1 ? chunks[0] : lane64(chunks.data(), chunks.size());
}

TEST_F(EvalTest, ReduceIsLane64) {
  for (int64_t n : {1, 2, 63, 64, 65, 100, 4095, 4096, 4097, 9000, 300000}) {
    auto x = rough(n);
    EXPECT_EQ(eval1(b.reduce(ReduceKind::Sum, arg(0, {n}), {0}), {f32({n}, x)}), f32({}, {lane64(x.data(), n)})) << n;
  }
}

TEST_F(EvalTest, NeighbouringAxesMergeOthersGoByAChain) {
  const int64_t a = 3, k = 2, p = 5, q = 40;
  auto x = rough(a * k * p * q);
  std::vector<float> want;
  for (int64_t i = 0; i < k; ++i) {
    float s = -0.0f;
    for (int64_t j = 0; j < a; ++j) s += lane64(&x[(j * k + i) * p * q], p * q);
    want.push_back(s);
  }
  EXPECT_EQ(eval1(b.reduce(ReduceKind::Sum, arg(0, {a, k, p, q}), {0, 2, 3}), {f32({a, k, p, q}, x)}), f32({k}, want));
}

TEST_F(EvalTest, CumulativeSumGoesInBlocksOf16) {
  const int64_t n = 37;
  auto x = rough(n);
  std::vector<float> want = x;
  for (int64_t begin = 0; begin < n; begin += 16) {
    for (int64_t s : {1, 2, 4, 8}) {
      auto old = want;
      for (int64_t i = begin + s; i < std::min(n, begin + 16); ++i) want[i] = old[i - s] + old[i];
    }
    if (begin)
      for (int64_t i = begin; i < std::min(n, begin + 16); ++i) want[i] = want[begin - 1] + want[i];
  }
  EXPECT_EQ(eval1(b.cumulate(CumulateKind::Sum, arg(0, {n}), 0), {f32({n}, x)}), f32({n}, want));
  std::vector<float> chain = x;
  for (int64_t i = 1; i < n; ++i) chain[i] = chain[i - 1] + chain[i];
  EXPECT_EQ(eval1(b.cumulate(CumulateKind::Sum, arg(0, {n, 1}), 0), {f32({n, 1}, x)}), f32({n, 1}, chain));
}

TEST_F(EvalTest, DimsAreBoundByInputs) {
  UOpRef n = b.dim("n", 1, 4), m = b.dim("m", 0, 9);
  UOpRef x = b.arg(0, DType::F32, {n, idxAdd(c, n, m)});
  UOpRef root = b.reduce(ReduceKind::Max, x, {1});
  auto in = [](std::vector<int64_t> s) { return EvalInputs{{f32(s, std::vector<float>(s[0] * s[1]))}, {}, {}, {}}; };
  EXPECT_EQ(refusal(root, in({2, 3})), "dim m is bound by no argument's shape; its value must be given");
  EvalInputs given = in({2, 5});
  given.dims["m"] = 3;
  EXPECT_EQ(refusal(root, given), "accepted");
  given.dims["m"] = 4;
  EXPECT_EQ(refusal(root, given), "argument 0 is f32[2, 5], expected f32[n, m + n]");
  EXPECT_EQ(refusal(root, in({5, 5})), "argument 0: dim n is 5, its bounds are 1..4");
  EXPECT_EQ(refusal(root, {{i64({2}, {1, 2})}, {}, {}, {}}), "argument 0 is i64[2], expected f32[n, m + n]");
}

TEST_F(EvalTest, CompactHasADataDim) {
  UOpRef n = b.dim("n", 0, 9), x = b.arg(0, DType::F32, {n, b.idx(2)}), mask = b.arg(1, DType::Bool, {n});
  UOpRef kept = b.compact(x, mask), sum = b.reduce(ReduceKind::Sum, kept, {0});
  Tensor v = f32({3, 2}, {1, 2, 3, 4, 5, 6}), m{DType::Bool, {3}, {1, 0, 1}};
  EXPECT_EQ(eval1(kept, {v, m}), f32({2, 2}, {1, 2, 5, 6}));
  EXPECT_EQ(eval1(sum, {v, m}), f32({2}, {6, 8}));
}

TEST_F(EvalTest, WhileGrowsACarriedDim) {
  // carries len and x[len]; each trip appends len: while len < 5
  UOpRef len = b.dim("len", 0, 8), x = b.arg(0, DType::I64, {len});
  UOpRef go = c.make(Op::Func, {b.lt(b.fromIndex(len, DType::I64), b.litInt(DType::I64, 5))}, {1});
  UOpRef grown = b.pad(x, {b.idx(0)}, {b.idx(1)}), more = idxAdd(c, len, b.idx(1));
  UOpRef next = b.select(b.lt(b.iota(DType::I64, {more}, 0), b.fromIndex(len, DType::I64)), grown,
                         b.splat(b.fromIndex(len, DType::I64), {more}));
  UOpRef body = c.make(Op::Func, {next}, {1});
  UOpRef start = b.arg(0, DType::I64, {b.idx(2)});
  UOpRef loop = c.make(Op::While, {start, b.idx(2)}, {}, "len", DType::Void, {go, body});
  UOpRef count = c.make(Op::Proj, {loop}, {1}, {}, DType::I64);
  UOpRef result = c.make(Op::Proj, {loop, b.extent(count, 0, 8)}, {0}, {}, DType::I64);
  EXPECT_EQ(eval1(result, {i64({2}, {7, 8})}), i64({5}, {7, 8, 2, 3, 4}));
  EXPECT_EQ(eval1(count, {i64({2}, {7, 8})}), i64({}, {5}));
}

TEST_F(EvalTest, ScanStacksAndCondSelects) {
  UOpRef acc = arg(0, {}), row = arg(1, {}), scale = arg(2, {});
  UOpRef next = b.add(acc, b.mul(row, scale));
  UOpRef f = c.make(Op::Func, {next, b.mul(next, b.lit(DType::F32, 10))}, {3});
  UOpRef xs = arg(0, {3});
  UOpRef scan =
      c.make(Op::Scan, {b.lit(DType::F32, 1), xs, b.lit(DType::F32, 2), b.idx(3)}, {1, 1}, {}, DType::Void, {f});
  Tensor in = f32({3}, {1, 2, 3});
  EXPECT_EQ(eval1(c.make(Op::Proj, {scan}, {0}, {}, DType::F32), {in}), f32({}, {13}));
  EXPECT_EQ(eval1(c.make(Op::Proj, {scan, b.idx(3)}, {1}, {}, DType::F32), {in}), f32({3}, {30, 70, 130}));

  UOpRef yes = c.make(Op::Func, {b.un(Op::Neg, arg(0, {}))}, {1}), no = c.make(Op::Func, {arg(0, {})}, {1});
  UOpRef cond = c.make(Op::Cond, {arg(1, {}, DType::Bool), arg(0, {})}, {}, {}, DType::Void, {yes, no});
  UOpRef r = c.make(Op::Proj, {cond}, {0}, {}, DType::F32);
  EXPECT_EQ(eval1(r, {f32({}, {4}), {DType::Bool, {}, {1}}}), f32({}, {-4}));
  EXPECT_EQ(eval1(r, {f32({}, {4}), {DType::Bool, {}, {0}}}), f32({}, {4}));
}

TEST(EvalEntry, StatesAreReplacedAndNaNsAreCanonical) {
  Module m;
  Builder b(m.ctx());
  UOpRef x = b.arg(0, DType::F32, {b.idx(2)}), s = b.state("s", DType::F32, {b.idx(2)}), next = b.add(s, x);
  m.states.push_back({s, nullptr});
  m.entries.push_back({"main", {{"x", x}}, {{"y", b.un(Op::Neg, next)}}, {{"s", next}}});
  EvalInputs in{{f32({2}, {1, NAN})}, {}, {}, {}};
  auto r = evalEntry(m, m.entries[0], in);
  ASSERT_TRUE(bool(r)) << llvm::toString(r.takeError());
  EXPECT_EQ(bitsOf(values<float>(r->outputs[0])[1]), 0x7fc00000u);
  EXPECT_EQ(values<float>(r->states["s"])[0], 1);
  in.states = r->states;
  auto again = evalEntry(m, m.entries[0], in);
  ASSERT_TRUE(bool(again));
  EXPECT_EQ(values<float>(again->states["s"])[0], 2);
  EXPECT_EQ(bitsOf(values<float>(again->states["s"])[1]), 0x7fc00000u);
}

TEST(EvalEntry, AMillionNodesDoNotRecurse) {
  Context c;
  Builder b(c);
  UOpRef x = b.arg(0, DType::F32, {b.idx(1)}), y = x;
  for (int i = 0; i < 1000000; ++i) y = b.add(y, x);
  EXPECT_EQ(eval1(y, {f32({1}, {1})}), f32({1}, {1000001}));
}

TEST(Fold, Literals) {
  auto fold = [](Op op, DType t, std::vector<uint64_t> bits) {
    std::vector<std::pair<DType, uint64_t>> src;
    for (uint64_t v : bits) src.push_back({t, v});
    return llvm::cantFail(foldElementwise(op, {}, t, src));
  };
  EXPECT_EQ(fold(Op::Add, DType::F16, {0x3c00, 0x3c00}), 0x4000u);
  EXPECT_EQ(fold(Op::Sub, DType::F32, {0x7f800000, 0x7f800000}), 0x7fc00000u);
  EXPECT_EQ(fold(Op::Max, DType::F64, {0x8000000000000000, 0}), 0u);
  EXPECT_EQ(fold(Op::FloorDiv, DType::I8, {0x80, 0xff}), 0x80u);
}

//===- KernelTest.cpp: loops, folds, stages, gates on every target ---------===//
#include "Run.h"
#include "astra/Codegen/Lower.h"
#include <cmath>
#include <cstring>

using namespace astra;
using namespace astra::test;

namespace {

/// What tests build kernels with.
struct K {
  Context c;
  Builder b{c};
  std::vector<UOpRef> dims;
  int64_t axis = 0;

  UOpRef range(UOpRef extent, RangeKind kind) { return c.make(Op::Range, {extent}, {axis++, int64_t(kind)}); }
  UOpRef range(int64_t extent, RangeKind kind) { return range(b.idx(extent), kind); }
  UOpRef buffer(int64_t slot, DType t, UOpRef elements) { return c.make(Op::Buffer, {elements}, {slot}, {}, t); }
  UOpRef load(UOpRef buffer, UOpRef index, int64_t lanes = 1, UOpRef gate = nullptr) {
    return gate ? c.make(Op::Load, {buffer, gate, index}, {lanes}) : c.make(Op::Load, {buffer, index}, {lanes});
  }
  UOpRef store(UOpRef buffer, UOpRef value, UOpRef index, UOpRef gate = nullptr) {
    int64_t lanes = value->rank() ? *value->shape[0]->constIndex() : 1;
    return gate ? c.make(Op::Store, {buffer, value, gate, index}, {lanes})
                : c.make(Op::Store, {buffer, value, index}, {lanes});
  }
  UOpRef splat(UOpRef x, int64_t lanes) { return c.make(Op::Splat, {x}, {lanes}); }
  UOpRef fold(Combine f, llvm::ArrayRef<UOpRef> src, int64_t values = 1) {
    return c.make(Op::Fold, src, {int64_t(f), values});
  }
  UOpRef add(UOpRef a, UOpRef b) { return idxAdd(c, a, b); }
  UOpRef mul(UOpRef a, int64_t k) { return idxMul(c, a, b.idx(k)); }
  UOpRef less(UOpRef a, UOpRef b) { return c.make(Op::Lt, {a, b}); }
  Kernel kernel(llvm::ArrayRef<UOpRef> stores, std::vector<KernelBuffer> buffers) {
    Kernel k;
    k.name = "test";
    k.sink = c.make(Op::Sink, stores);
    k.buffers = std::move(buffers);
    return k;
  }
};

class OnTarget : public testing::TestWithParam<const Target *> {
protected:
  void SetUp() override {
    if (!canRun(*GetParam())) GTEST_SKIP() << "this machine does not run " << GetParam()->name;
  }
};
INSTANTIATE_TEST_SUITE_P(Targets, OnTarget, testing::ValuesIn([] {
                           std::vector<const Target *> ts;
                           for (const Target &t : allTargets()) ts.push_back(&t);
                           return ts;
                         }()),
                         [](const auto &info) {
                           std::string s = info.param->name;
                           for (char &ch : s)
                             if (!isalnum(ch)) ch = '_';
                           return s;
                         });

std::vector<float> numbers(size_t n, uint32_t seed) {
  std::vector<float> xs(n);
  for (float &x : xs) x = float(int32_t(seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-20f;
  return xs;
}

TEST_P(OnTarget, AddsWithDynamicTail) {
  constexpr int64_t lanes = 16;
  K k;
  UOpRef n = k.b.dim("n", 0, 1000);
  UOpRef x = k.buffer(0, DType::F32, n), y = k.buffer(1, DType::F32, n), z = k.buffer(2, DType::F32, n);
  UOpRef whole = k.range(idxDiv(k.c, n, k.b.idx(lanes)), RangeKind::Parallel);
  UOpRef rest = k.range(idxMod(k.c, n, k.b.idx(lanes)), RangeKind::Parallel);
  UOpRef i = k.mul(whole, lanes), j = k.add(k.mul(idxDiv(k.c, n, k.b.idx(lanes)), lanes), rest);
  UOpRef s0 = k.store(z, k.b.add(k.load(x, i, lanes), k.load(y, i, lanes)), i);
  UOpRef s1 = k.store(z, k.b.add(k.load(x, j), k.load(y, j)), j);
  Kernel kernel =
      k.kernel({s0, s1}, {{DType::F32, true, false, n}, {DType::F32, true, false, n}, {DType::F32, false, true, n}});
  std::vector<Job> jobs;
  for (int64_t size : {0, 1, 15, 16, 17, 100})
    for (int parts : {1, 2, 7})
      jobs.push_back(
          {kernel, {bytesOf(numbers(size, 1)), bytesOf(numbers(size, 2)), bytesOf(numbers(size, 3))}, {size}, parts});
  ASSERT_EQ(run(k.c, jobs, *GetParam(), {n}), "");
  for (const Job &job : jobs) {
    auto a = valuesOf<float>(job.buffers[0]), b = valuesOf<float>(job.buffers[1]), r = valuesOf<float>(job.buffers[2]);
    for (size_t e = 0; e < r.size(); ++e) ASSERT_EQ(r[e], a[e] + b[e]) << r.size() << " " << e;
  }
}

// A loop that divides by one number: the quotients are those of IEEE 754, near the middle between two numbers too,
// where the divisor or a lane is beyond what a product with the reciprocal is good for, and for zeros and infinities;
// each NaN is the canonical one.
TEST_P(OnTarget, DividesByOneNumber) {
  constexpr int64_t columns = 4096;
  const int64_t lanes = GetParam()->vectorBytes / 4;
  const float inf = INFINITY,
              odd[] = {0.0f, -0.0f, inf, -inf, NAN, 0x1p-126f, 0x1p-149f, 0x1.8p-61f, 0x1p61f, -0x1.8p127f};
  std::vector<float> divisors{0x1p-40f, 0x1.fffffep39f, 0x1p-41f, 0x1p41f, -3.0f, 1.0f, 0x1.fffffep0f, 0x1.000002p0f};
  divisors.insert(divisors.end(), std::begin(odd), std::end(odd));
  for (float x : numbers(46, 7)) divisors.push_back(std::fabs(x) + 0x1p-10f);
  std::vector<float> as;
  uint32_t seed = 3;
  for (size_t r = 0; r < divisors.size(); ++r)
    for (int64_t i = 0; i < columns; ++i) {
      seed = seed * 1664525u + 1013904223u;
      double middle =
          double((seed >> 7 | 1u << 24) | 1u) * std::ldexp(1.0, int(seed % 60) - 50); // 25 bits, the last set
      as.push_back(float(middle * double(divisors[r])));
      if (r % 4 == 1) as.back() = -as.back();
      if (r % 8 == 2 && i % 5 == 0) as.back() = i % 3 ? 0.0f : -0.0f;
      if (r % 8 == 3 && i % 100 == 7) as.back() = odd[i / 100 % std::size(odd)];
    }
  K k;
  UOpRef rows = k.b.idx(int64_t(divisors.size())), n = k.b.idx(int64_t(as.size()));
  UOpRef p = k.range(rows, RangeKind::Parallel),
         at = k.add(k.mul(p, columns), k.mul(k.range(columns / lanes, RangeKind::Loop), lanes));
  UOpRef by = k.splat(k.load(k.buffer(1, DType::F32, rows), p), lanes);
  UOpRef q = k.b.div(k.load(k.buffer(0, DType::F32, n), at, lanes), by);
  UOpRef nan = k.splat(k.c.literal(DType::F32, 0x7fc00000), lanes);
  UOpRef y = k.c.make(Op::Select, {k.c.make(Op::Eq, {q, q}), q, nan});
  Kernel kernel =
      k.kernel({k.store(k.buffer(2, DType::F32, n), y, at)},
               {{DType::F32, true, false, n}, {DType::F32, true, false, rows}, {DType::F32, false, true, n}});
  std::vector<Job> jobs{{kernel, {bytesOf(as), bytesOf(divisors), bytesOf(as)}, {}}};
  ASSERT_EQ(run(k.c, jobs, *GetParam(), {}), "");
  auto found = valuesOf<float>(jobs[0].buffers[2]);
  for (size_t e = 0; e < as.size(); ++e) {
    float wanted = as[e] / divisors[e / columns];
    if (std::isnan(wanted)) wanted = std::bit_cast<float>(0x7fc00000u);
    ASSERT_EQ(std::memcmp(&found[e], &wanted, 4), 0)
        << as[e] << " / " << divisors[e / columns] << " gives " << found[e];
  }
}

// Lanes whose gate is false are neither read nor written, on every type: beyond the buffers' end memory is protected.
TEST_P(OnTarget, GatesProtectMemory) {
  K k;
  UOpRef n = k.b.dim("n", 0, 100);
  std::vector<Job> jobs, expected;
  for (DType t : {DType::F32, DType::F64, DType::I8, DType::U16, DType::F16, DType::I32, DType::U64, DType::Bool})
    for (int64_t lanes : {1, 4, 16, 64}) {
      UOpRef p = k.range(idxCeilDiv(k.c, n, k.b.idx(lanes)), RangeKind::Parallel), at = k.mul(p, lanes);
      std::vector<UOpRef> inside;
      for (int64_t l = 0; l < lanes; ++l) inside.push_back(k.less(k.add(at, k.b.idx(l)), n));
      UOpRef gate = lanes == 1 ? inside[0] : k.c.make(Op::Stack, inside);
      UOpRef v = k.load(k.buffer(0, t, n), at, lanes, gate);
      Kernel kernel = k.kernel({k.store(k.buffer(1, t, n), v, at, gate)}, {{t, true, false, n}, {t, false, true, n}});
      for (int64_t size : {0, 1, 3, 17, 65}) {
        std::vector<uint8_t> bytes(size * byteSize(t)), none(bytes.size());
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = t == DType::Bool ? i % 3 == 0 : uint8_t(i * 37 + 1);
        jobs.push_back({kernel, {bytes, none}, {size}, 2});
      }
    }
  ASSERT_EQ(run(k.c, jobs, *GetParam(), {n}), "");
  for (const Job &j : jobs) EXPECT_EQ(j.buffers[0], j.buffers[1]) << info(j.kernel.buffers[0].dtype).text;
}

// The same of every other element, which is two loads of neighbours: the last lane's neighbour need not exist.
TEST_P(OnTarget, GatesProtectMemoryBetweenElements) {
  K k;
  UOpRef n = k.b.dim("n", 1, 100), around = idxSub(k.c, k.mul(n, 2), k.b.idx(1));
  std::vector<Job> jobs;
  for (DType t : {DType::F32, DType::F64, DType::I32})
    for (int64_t lanes : {4, 8, 16}) {
      UOpRef p = k.range(idxCeilDiv(k.c, n, k.b.idx(lanes)), RangeKind::Parallel),
             e = k.add(k.mul(p, lanes), k.range(lanes, RangeKind::Vector)), gate = k.less(e, n);
      UOpRef v = k.load(k.buffer(0, t, around), k.mul(e, 2), 1, gate);
      Kernel kernel = expandKernel(
          k.c, k.kernel({k.store(k.buffer(1, t, n), v, e, gate)}, {{t, true, false, around}, {t, false, true, n}}));
      for (int64_t size : {1, 2, 3, 8, 9, 17, 65}) {
        std::vector<uint8_t> bytes((2 * size - 1) * byteSize(t)), none(size * byteSize(t));
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(i * 37 + 1);
        jobs.push_back({kernel, {bytes, none}, {size}, 2});
      }
    }
  ASSERT_EQ(run(k.c, jobs, *GetParam(), {n}), "");
  for (const Job &j : jobs) {
    size_t each = byteSize(j.kernel.buffers[0].dtype);
    for (size_t i = 0; i < j.buffers[1].size(); ++i)
      ASSERT_EQ(j.buffers[1][i], j.buffers[0][i / each * 2 * each + i % each]) << j.dims[0] << " " << i;
  }
}

// Register tiles: the folds share one loop. 7 x 4 has more values than x86 has registers, 3 x 6 passes the other way.
TEST_P(OnTarget, MatmulTiles) {
  constexpr int64_t L = 16, KK = 100;
  const std::pair<int64_t, int64_t> shapes[] = {{8, 3}, {7, 4}, {3, 6}, {1, 1}};
  K k;
  std::vector<Job> jobs;
  for (auto [M, NV] : shapes) {
    int64_t N = NV * L;
    UOpRef sizes[] = {k.b.idx(M * KK), k.b.idx(KK * N), k.b.idx(M * N)};
    UOpRef a = k.buffer(0, DType::F32, sizes[0]), b = k.buffer(1, DType::F32, sizes[1]),
           o = k.buffer(2, DType::F32, sizes[2]);
    UOpRef r = k.range(KK, RangeKind::Fold);
    std::vector<UOpRef> stores;
    for (int64_t v = 0; v < NV; ++v)
      for (int64_t i = 0; i < M; ++i) {
        UOpRef x = k.splat(k.load(a, k.add(k.mul(r, M), k.b.idx(i))), L);
        UOpRef y = k.load(b, k.add(k.mul(r, N), k.b.idx(v * L)), L);
        UOpRef init = k.splat(k.b.lit(DType::F32, -0.0), L);
        stores.push_back(k.store(o, k.fold(Combine::Fma, {init, x, y, r}, 2), k.b.idx(i * N + v * L)));
      }
    jobs.push_back({k.kernel(stores, {{DType::F32, true, false, sizes[0]},
                                      {DType::F32, true, false, sizes[1]},
                                      {DType::F32, false, true, sizes[2]}}),
                    {bytesOf(numbers(M * KK, 1)), bytesOf(numbers(KK * N, 2)), bytesOf(numbers(M * N, 3))},
                    {}});
    auto l = linearize(k.c, jobs.back().kernel);
    ASSERT_TRUE(bool(l));
    EXPECT_EQ(llvm::count_if(l->insts, [](const Inst &i) { return i.kind == InstKind::LoopBegin; }), 2);
  }
  ASSERT_EQ(run(k.c, jobs, *GetParam(), {}), "");
  for (auto [shape, job] : llvm::zip(shapes, jobs)) {
    auto [M, NV] = shape;
    int64_t N = NV * L;
    auto x = valuesOf<float>(job.buffers[0]), y = valuesOf<float>(job.buffers[1]),
         got = valuesOf<float>(job.buffers[2]);
    for (int64_t m = 0; m < M; ++m)
      for (int64_t n = 0; n < N; ++n) {
        float acc = -0.0f;
        for (int64_t q = 0; q < KK; ++q) acc = std::fma(x[q * M + m], y[q * N + n], acc);
        ASSERT_EQ(got[m * N + n], acc);
      }
  }
}

// Sums that rest in a stage's array: their loop goes around the array's, in the order of the steps, whether the sum's
// last loop is inside or not, and a sum of such sums rests too.
TEST_P(OnTarget, RestingSums) {
  constexpr int64_t T = 5, B = 3, S = 4, L = 8;
  for (bool inside : {true, false}) {
    K k;
    int64_t steps = inside ? S : 1;
    UOpRef size = k.b.idx(T * B * 2 * steps * L), out = k.b.idx(T * L);
    UOpRef x = k.buffer(0, DType::F32, size), o = k.buffer(1, DType::F32, out);
    UOpRef minus0 = k.splat(k.b.lit(DType::F32, -0.0), L);
    UOpRef block = k.range(B, RangeKind::Around), part = k.range(2, RangeKind::Around),
           step = inside ? k.range(S, RangeKind::Fold) : k.b.idx(0), t = k.range(T, RangeKind::Fold),
           tb = k.range(T, RangeKind::Fold), at = k.range(T, RangeKind::Loop);
    UOpRef place = k.mul(k.add(k.mul(k.add(k.mul(k.add(k.mul(t, B), block), 2), part), steps), step), L);
    UOpRef v = k.load(x, place, L);
    llvm::SmallVector<UOpRef, 6> src{minus0, v, v, part};
    if (inside) src.push_back(step);
    auto rested = [&](UOpRef sum, UOpRef tile, UOpRef of) {
      return k.c.make(Op::At, {k.c.make(Op::Stage, {sum, tile}), k.mul(of, L)}, {L});
    };
    UOpRef inner = rested(k.fold(Combine::Fma, src, 2), t, tb);
    UOpRef all = rested(k.fold(Combine::Add, {minus0, inner, block}), tb, at);
    Kernel kernel =
        k.kernel({k.store(o, all, k.mul(at, L))}, {{DType::F32, true, false, size}, {DType::F32, false, true, out}});
    auto l = linearize(k.c, kernel);
    ASSERT_TRUE(bool(l)) << llvm::toString(l.takeError());
    EXPECT_EQ(llvm::count_if(l->insts, [](const Inst &i) { return i.kind == InstKind::AccResume; }), 2);
    std::vector<Job> jobs{{kernel, {bytesOf(numbers(T * B * 2 * steps * L, 1)), bytesOf(numbers(T * L, 2))}, {}}};
    ASSERT_EQ(run(k.c, jobs, *GetParam(), {}), "");
    auto in = valuesOf<float>(jobs[0].buffers[0]), got = valuesOf<float>(jobs[0].buffers[1]);
    for (int64_t i = 0; i < T; ++i)
      for (int64_t lane = 0; lane < L; ++lane) {
        float sum = -0.0f;
        for (int64_t q = 0; q < B; ++q) {
          float acc = -0.0f;
          for (int64_t s = 0; s < 2 * steps; ++s) {
            float e = in[((i * B + q) * 2 * steps + s) * L + lane];
            acc = std::fma(e, e, acc);
          }
          sum += acc;
        }
        ASSERT_EQ(got[i * L + lane], sum);
      }
  }
}

/// A row of sums of steps a line and more apart, times what is read after them: both are asked for ahead, the one in
/// the loop, the other before it; near steps are not. What is asked for lies beyond the buffer at the end.
TEST_P(OnTarget, AsksAhead) {
  constexpr int64_t rows = 3, steps = 40, L = 16;
  for (bool far : {true, false})
    for (unsigned ahead : {0u, 24u, 50u}) {
      K k;
      UOpRef size = k.b.idx(rows * steps * L), out = k.b.idx(rows * L);
      UOpRef x = k.buffer(0, DType::F32, size), y = k.buffer(1, DType::F32, out), o = k.buffer(2, DType::F32, out);
      UOpRef row = k.range(rows, RangeKind::Loop), step = k.range(steps, RangeKind::Fold);
      UOpRef place = k.add(k.mul(row, steps * L), far ? k.mul(step, L) : step);
      UOpRef sum = k.fold(Combine::Add, {k.splat(k.b.lit(DType::F32, -0.0), L), k.load(x, place, L), step});
      UOpRef after = k.load(y, k.mul(row, L), L);
      Kernel kernel =
          k.kernel({k.store(o, k.b.mul(sum, after), k.mul(row, L))},
                   {{DType::F32, true, false, size}, {DType::F32, true, false, out}, {DType::F32, false, true, out}});
      kernel.prefetch = ahead;
      auto l = linearize(k.c, kernel);
      ASSERT_TRUE(bool(l)) << llvm::toString(l.takeError());
      std::string said;
      unsigned open = 0;
      for (const Inst &i : l->insts) {
        open += i.kind == InstKind::LoopBegin, open -= i.kind == InstKind::LoopEnd;
        if (i.kind == InstKind::Prefetch)
          said += "buffer " + std::to_string(i.uop->src[0]->ints[0]) + " + " + std::to_string(i.ahead) + " in " +
                  std::to_string(open) + "; ";
        if (i.kind == InstKind::AccInit) said += "sum; ";
      }
      std::string inner = far && ahead == 24 ? "buffer 0 + 384 in 3; " : "";
      EXPECT_EQ(said.substr(0, said.find("sum; ")) + said.substr(said.find("sum; ") + 5),
                (ahead ? "buffer 1 + 0 in 2; " : "") + inner);
      std::vector<Job> jobs{
          {kernel,
           {bytesOf(numbers(rows * steps * L, 1)), bytesOf(numbers(rows * L, 2)), bytesOf(numbers(rows * L, 3))},
           {}}};
      ASSERT_EQ(run(k.c, jobs, *GetParam(), {}), "");
      auto in = valuesOf<float>(jobs[0].buffers[0]), by = valuesOf<float>(jobs[0].buffers[1]),
           got = valuesOf<float>(jobs[0].buffers[2]);
      for (int64_t i = 0; i < rows * L; ++i) {
        float all = -0.0f;
        for (int64_t s = 0; s < steps; ++s) all += in[i / L * steps * L + s * (far ? L : 1) + i % L];
        ASSERT_EQ(got[i], all * by[i]);
      }
    }
}

} // namespace

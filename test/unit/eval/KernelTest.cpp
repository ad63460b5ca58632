//===- KernelTest.cpp: kernels give what their graphs mean -----------------===//
// Takes:    kernels written by hand: folds with tails, lanes, stages, gates, in-place loops.
// Gives:    equality with the graph op that they implement, and the refusals of evalKernel.
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Verify.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

using namespace astra;

namespace {
using Buffer = std::vector<uint8_t>;
Buffer floats(size_t n, uint32_t seed) {
  Buffer b(n * 4);
  for (size_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    float v = std::ldexp(float(int32_t(seed)) * 0x1p-31f, int(seed >> 8 & 15) - 8);
    memcpy(&b[i * 4], &v, 4);
  }
  return b;
}

struct KernelTest : testing::Test {
  Context c;
  Builder b{c};
  UOpRef minusZero = b.lit(DType::F32, -0.0);
  UOpRef num(int64_t v) { return c.index(v); }
  UOpRef buffer(int64_t slot, int64_t elements) { return c.make(Op::Buffer, {num(elements)}, {slot}, {}, DType::F32); }
  UOpRef range(UOpRef extent, int64_t axis, RangeKind kind) {
    return c.make(Op::Range, {extent}, {axis, int64_t(kind)});
  }
  UOpRef load(UOpRef buffer, UOpRef at, int64_t lanes = 1) { return c.make(Op::Load, {buffer, at}, {lanes}); }
  UOpRef store(UOpRef buffer, UOpRef v, UOpRef at, int64_t lanes = 1) {
    return c.make(Op::Store, {buffer, v, at}, {lanes});
  }
  UOpRef add(UOpRef x, UOpRef y) { return idxAdd(c, x, y); }
  UOpRef mul(UOpRef x, int64_t k) { return idxMul(c, x, num(k)); }
  Tensor graph(UOpRef root, std::vector<Tensor> in) { return llvm::cantFail(evalNodes({root}, {in, {}, {}, {}}))[0]; }
  std::string run(llvm::ArrayRef<UOpRef> stores, std::vector<Buffer> &buffers,
                  std::map<std::string, int64_t> dims = {}) {
    return llvm::toString(evalKernel(c.make(Op::Sink, stores), buffers, dims));
  }
};
constexpr auto Parallel = RangeKind::Parallel, Loop = RangeKind::Loop, Folded = RangeKind::Fold,
               Lane = RangeKind::Vector;
} // namespace

TEST_F(KernelTest, BlockedMatmulIsContract) {
  const int64_t m = 3, k = 1100, n = 4;
  std::vector<Buffer> buffers{floats(m * k, 1), floats(k * n, 2), Buffer(m * n * 4)};
  UOpRef x = b.arg(0, DType::F32, {num(m), num(k)}), y = b.arg(1, DType::F32, {num(k), num(n)});
  Tensor want = graph(b.matmul(x, y), {{DType::F32, {m, k}, buffers[0]}, {DType::F32, {k, n}, buffers[1]}});
  UOpRef i = range(num(m), 0, Parallel), kb = range(num(3), 2, Folded);
  UOpRef ki = range(idxMin(c, num(512), idxSub(c, num(k), mul(kb, 512))), 3, Folded), kk = add(mul(kb, 512), ki);
  for (bool vectors : {false, true}) {
    UOpRef a = load(buffer(0, m * k), add(mul(i, k), kk)), at, start = minusZero, w;
    if (vectors) { // the four columns as one vector
      at = mul(i, n), w = load(buffer(1, k * n), mul(kk, n), 4);
      a = c.make(Op::Splat, {a}, {4}), start = c.make(Op::Splat, {start}, {4});
    } else {
      UOpRef j = range(num(n), 1, Loop);
      at = add(mul(i, n), j), w = load(buffer(1, k * n), add(mul(kk, n), j));
    }
    UOpRef inner = c.make(Op::Fold, {start, a, w, ki}, {int64_t(Combine::Fma), 2});
    UOpRef sum = c.make(Op::Fold, {start, inner, kb}, {int64_t(Combine::Add), 1});
    buffers[2].assign(m * n * 4, 0);
    EXPECT_EQ(run({store(buffer(2, m * n), sum, at, vectors ? 4 : 1)}, buffers), "");
    EXPECT_EQ(buffers[2], want.bytes) << vectors;
  }
}

TEST_F(KernelTest, LaneFoldIsLane64) {
  const int64_t n = 1000;
  std::vector<Buffer> buffers{floats(n, 3), Buffer(4)};
  Tensor want = graph(b.reduce(ReduceKind::Sum, b.arg(0, DType::F32, {num(n)}), {0}), {{DType::F32, {n}, buffers[0]}});
  UOpRef lane = range(num(64), 0, Folded);
  UOpRef step = range(idxDiv(c, idxSub(c, num(n + 63), lane), num(64)), 1, Folded); // ends depend on the lane
  UOpRef v = load(buffer(0, n), add(mul(step, 64), lane));
  UOpRef partial = c.make(Op::Fold, {minusZero, v, step}, {int64_t(Combine::Add), 1});
  UOpRef sum = c.make(Op::LaneFold, {partial, lane}, {int64_t(Combine::Add)});
  EXPECT_EQ(run({store(buffer(1, 1), sum, num(0))}, buffers), "");
  EXPECT_EQ(buffers[1], want.bytes);
}

TEST_F(KernelTest, RunningSumsAreChains) {
  const int64_t n = 7, m = 4;
  std::vector<Buffer> buffers{floats(n * m, 8), Buffer(n * m * 4)};
  Tensor want = graph(b.cumulate(CumulateKind::Sum, b.arg(0, DType::F32, {num(n), num(m)}), 0),
                      {{DType::F32, {n, m}, buffers[0]}});
  for (bool vectors : {false, true}) {
    UOpRef j = range(num(m), 0, Parallel), i = range(num(n), 1, Loop), start = minusZero, at = add(mul(i, m), j), x;
    if (vectors) {
      at = mul(i, m), start = c.make(Op::Splat, {minusZero}, {4});
      x = c.make(Op::Load, {buffer(0, n * m), at}, {4});
    } else
      x = load(buffer(0, n * m), at);
    UOpRef sum = c.make(Op::Running, {start, x, i}, {int64_t(Combine::Add)});
    buffers[1].assign(n * m * 4, 0);
    EXPECT_EQ(run({store(buffer(1, n * m), sum, at, vectors ? 4 : 1)}, buffers), "");
    EXPECT_EQ(buffers[1], want.bytes) << vectors;
  }
  UOpRef i = range(num(n), 0, Loop), j = range(num(m), 1, Loop);
  UOpRef inside =
      c.make(Op::Running, {minusZero, load(buffer(0, n * m), add(mul(i, m), j)), i}, {int64_t(Combine::Add)});
  UOpRef sink = c.make(Op::Sink, {store(buffer(1, n * m), inside, add(mul(i, m), j))});
  EXPECT_NE(llvm::toString(verifyKernel(sink, Stage::Kernel)).find("which is inside of it"), std::string::npos);
  auto parallel = c.tryMake(Op::Running, {minusZero, minusZero, range(num(n), 2, Parallel)}, {int64_t(Combine::Add)});
  EXPECT_NE(llvm::toString(parallel.takeError()).find("a loop or a fold"), std::string::npos);
}

TEST_F(KernelTest, RunningSumsAreKept) {
  // all of them in a stage, whose lanes run beside each other
  const int64_t n = 7, m = 4;
  std::vector<Buffer> buffers{floats(n * m, 8), Buffer(n * m * 4)};
  Tensor want = graph(b.cumulate(CumulateKind::Sum, b.arg(0, DType::F32, {num(n), num(m)}), 0),
                      {{DType::F32, {n, m}, buffers[0]}});
  UOpRef i = range(num(n), 1, Folded), j = range(num(n), 3, Loop), k = range(num(m), 4, Loop);
  auto stored = [&](UOpRef inner, UOpRef x) {
    UOpRef sum = c.make(Op::Running, {minusZero, x, i}, {int64_t(Combine::Add)});
    return store(buffer(1, n * m), c.make(Op::At, {c.make(Op::Stage, {sum, i, inner}), j, k}, {1}), add(mul(j, m), k));
  };
  UOpRef lane = range(num(m), 2, Lane), loop = range(num(m), 5, Folded);
  EXPECT_EQ(run({stored(lane, load(buffer(0, n * m), add(mul(i, m), lane)))}, buffers), "");
  EXPECT_EQ(buffers[1], want.bytes);
  auto wrong = [&](UOpRef x) {
    return llvm::toString(verifyKernel(c.make(Op::Sink, {stored(loop, x)}), Stage::Kernel));
  };
  EXPECT_NE(wrong(load(buffer(0, n * m), add(mul(i, m), loop))).find("which is inside of it"), std::string::npos);
  EXPECT_NE(wrong(load(buffer(0, n * m), i)).find("along which something runs"), std::string::npos);
}

TEST_F(KernelTest, ScattersReadWhatTheyWrote) {
  // one destination after the other, in ascending order of sources, some beyond the end
  std::vector<Buffer> buffers{floats(3, 9), floats(6, 10), Buffer(6 * 8)};
  const int64_t to[] = {2, 0, 2, 3, 2, -1};
  memcpy(buffers[2].data(), to, sizeof to);
  Tensor want = graph(b.scatter(ScatterKind::Add, b.arg(0, DType::F32, {num(3)}), b.arg(1, DType::I64, {num(6)}),
                                b.arg(2, DType::F32, {num(6)}), 0),
                      {{DType::F32, {3}, buffers[0]}, {DType::I64, {6}, buffers[2]}, {DType::F32, {6}, buffers[1]}});
  UOpRef i = range(num(6), 0, Loop), from = c.make(Op::Buffer, {num(6)}, {2}, {}, DType::I64);
  UOpRef at = c.make(Op::Extent, {c.make(Op::Load, {from, i}, {1})}, {-100, 100});
  UOpRef in = c.make(Op::And, {c.make(Op::Lt, {num(-1), at}), c.make(Op::Lt, {at, num(3)})});
  UOpRef old = c.make(Op::Load, {buffer(0, 3), in, at}, {1});
  UOpRef st = c.make(Op::Store, {buffer(0, 3), b.add(old, load(buffer(1, 6), i)), in, at}, {1});
  EXPECT_EQ(run({st}, buffers), "");
  EXPECT_EQ(buffers[0], want.bytes);
}

TEST_F(KernelTest, StagesKeepValuesAndGatesGuard) {
  // y[i] = x[i] + sum of the row of 5, in 8 gated lanes
  const int64_t rows = 3, n = 5;
  std::vector<Buffer> buffers{floats(rows * n, 4), Buffer(rows * n * 4)};
  UOpRef x = b.arg(0, DType::F32, {num(rows), num(n)});
  UOpRef sums = b.expand(b.reshape(b.reduce(ReduceKind::Sum, x, {1}, true), {num(rows), num(1)}), {num(rows), num(n)});
  Tensor want = graph(b.add(x, sums), {{DType::F32, {rows, n}, buffers[0]}});
  UOpRef i = range(num(rows), 0, Parallel), s = range(num(n), 1, Folded), f = range(num(n), 2, Folded);
  UOpRef kept = c.make(Op::Stage, {load(buffer(0, rows * n), add(mul(i, n), s)), s});
  UOpRef sum = c.make(Op::Fold, {minusZero, c.make(Op::At, {kept, f}, {1}), f}, {int64_t(Combine::Add), 1});
  UOpRef j = range(num(8), 3, Loop), gate = c.make(Op::Lt, {j, num(n)});
  UOpRef v = b.add(c.make(Op::Load, {buffer(0, rows * n), gate, add(mul(i, n), j)}, {1}), sum);
  UOpRef st = c.make(Op::Store, {buffer(1, rows * n), v, gate, add(mul(i, n), j)}, {1});
  EXPECT_EQ(run({st}, buffers), "");
  EXPECT_EQ(buffers[1], want.bytes);
}

TEST_F(KernelTest, DimsAndRefusals) {
  UOpRef n = b.dim("n", 0, 100), i = range(n, 0, Parallel);
  std::vector<Buffer> buffers{floats(4, 5), Buffer(16)};
  UOpRef st = store(buffer(1, 4), load(buffer(0, 4), i), i);
  EXPECT_EQ(run({st}, buffers, {{"n", 4}}), "");
  EXPECT_EQ(buffers[0], buffers[1]);
  EXPECT_EQ(run({st}, buffers, {{"n", 5}}), "load: element 4 of buffer 0, which has 4");
  EXPECT_EQ(run({st}, buffers), "kernel: dim n is not given");
  EXPECT_EQ(run({store(buffer(2, 4), minusZero, i)}, buffers, {{"n", 1}}), "buffer: slot 2 of 2");
}

// What depends on no range of a fold may be computed before it: where the fold has no point nobody needs it.
TEST_F(KernelTest, ALoadOutsideIsRefusedWhereItIsNeeded) {
  UOpRef n = b.dim("n", 0, 1), i = range(n, 0, Folded), gate = c.make(Op::Lt, {n, num(1)});
  std::vector<Buffer> buffers{floats(4, 5), Buffer(4)};
  UOpRef far = load(buffer(0, 4), num(7)), sum = c.make(Op::Fold, {minusZero, far, i}, {int64_t(Combine::Add), 1});
  UOpRef outer = range(num(2), 1, Folded),
         nested = c.make(Op::Fold, {minusZero, sum, outer}, {int64_t(Combine::Add), 1});
  const char *refusal = "load: element 7 of buffer 0, which has 4";
  for (UOpRef value : {sum, nested}) {
    buffers[1].assign(4, 1);
    EXPECT_EQ(run({store(buffer(1, 1), value, num(0))}, buffers, {{"n", 0}}), "");
    EXPECT_EQ(buffers[1], Buffer({0, 0, 0, 0x80})); // -0.0
    EXPECT_EQ(run({store(buffer(1, 1), value, num(0))}, buffers, {{"n", 1}}), refusal);
  }
  // An emitter computes both sides of a select, and reads where no gate forbids it.
  UOpRef either = c.make(Op::Select, {gate, minusZero, far});
  EXPECT_EQ(run({store(buffer(1, 1), either, num(0))}, buffers, {{"n", 0}}), refusal);
  UOpRef stage = c.make(Op::Stage, {far, i}), of = c.make(Op::At, {stage, num(0)}, {1});
  EXPECT_EQ(run({store(buffer(1, 1), of, num(0))}, buffers, {{"n", 1}}), refusal);
}

TEST_F(KernelTest, LanesAreTakenApartAndJoined) {
  std::vector<Buffer> buffers{floats(4, 6), Buffer(16)};
  UOpRef v = load(buffer(0, 4), num(0), 4);
  UOpRef low = c.make(Op::Lanes, {v}, {0, 2}), high = c.make(Op::Lanes, {v}, {2, 2});
  EXPECT_EQ(run({store(buffer(1, 4), c.make(Op::Stack, {high, low}), num(0), 4)}, buffers), "");
  EXPECT_EQ(memcmp(&buffers[0][0], &buffers[1][8], 8), 0);
  EXPECT_EQ(memcmp(&buffers[0][8], &buffers[1][0], 8), 0);
}

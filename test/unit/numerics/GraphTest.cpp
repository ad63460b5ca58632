//===- GraphTest.cpp: the programs as UOps, evaluated, equal the programs on numbers ---===//
#include "Reference.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "astra/Numerics/EvalFunctions.h"
#include "astra/Numerics/GraphValue.h"
#include "astra/Numerics/Numerics.h"
#include "astra/Numerics/Random.h"
#include "astra/Numerics/Threefry.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace astra;
using namespace astra::numerics;

namespace {

template <class T> Tensor tensorOf(const std::vector<T> &v) {
  Tensor t{dtypeOf<T>, {int64_t(v.size())}, std::vector<uint8_t>(v.size() * sizeof(T))};
  std::memcpy(t.bytes.data(), v.data(), t.bytes.size());
  return t;
}
template <class T> std::vector<T> numbersOf(const Tensor &t) {
  std::vector<T> v(t.bytes.size() / sizeof(T));
  std::memcpy(v.data(), t.bytes.data(), t.bytes.size());
  return v;
}

Tensor evaluated(llvm::Expected<std::vector<Tensor>> r) {
  if (!r) ADD_FAILURE() << llvm::toString(r.takeError());
  return r ? (*r)[0] : Tensor();
}

/// The entry of one output after the numerics stage.
Tensor lowered(Module &m, UOpRef out, const EvalInputs &in) {
  m.entries.push_back({"main", {}, {{"y", out}}, {}});
  if (auto e = runNumerics(m)) ADD_FAILURE() << llvm::toString(std::move(e));
  return evaluated(evalNodes(m.entries[0].outputs[0].value, in));
}

template <class T, unsigned arguments, class Program> void graphEqualsNumbers(Op op, Program program) {
  constexpr int n = 3000;
  std::vector<T> x, y, expected;
  for (int i = 0; i < n; ++i) {
    auto [a, b] = powArguments<T>(i);
    x.push_back(arguments == 2 ? a : sampleArgument<T>(i));
    y.push_back(b);
    T r;
    if constexpr (arguments == 2)
      r = program(Host<T>(x[i]), Host<T>(y[i])).v;
    else
      r = program(Host<T>(x[i])).v;
    expected.push_back(std::isnan(r) ? quietNaN<T> : r);
  }
  Module m;
  Builder b(m.ctx());
  std::vector<UOpRef> args;
  for (unsigned i = 0; i < arguments; ++i) args.push_back(b.arg(i, dtypeOf<T>, {b.idx(n)}));
  EvalInputs in;
  in.inputs = {tensorOf(x), tensorOf(y)};
  in.inputs.resize(arguments);
  UOpRef call = m.ctx().make(op, args);
  EXPECT_EQ(lowered(m, call, in), tensorOf(expected)) << info(op).mnemonic;
  auto hooked = evalFunction(call, in.inputs);
  ASSERT_TRUE(bool(hooked));
  canonicalizeNaN(*hooked);
  EXPECT_EQ(*hooked, tensorOf(expected)) << info(op).mnemonic;
}

TEST(Graph, EqualsNumbers) {
#define FUNCTION(Name, program, arguments, ulp32, ulp64)                                                               \
  graphEqualsNumbers<float, arguments>(Op::Name, [](auto... x) { return program(x...); });                             \
  graphEqualsNumbers<double, arguments>(Op::Name, [](auto... x) { return program(x...); });
#include "astra/Numerics/Functions.def"
#undef FUNCTION
}

/// All 65536 arguments: the f32 program, then one rounding.
template <class Program> void narrowIsF32Rounded(DType t, Op op, Program program) {
  Module m;
  Builder b(m.ctx());
  std::vector<uint8_t> bytes(2 << 16);
  for (unsigned i = 0; i < 1 << 16; ++i) bytes[2 * i] = uint8_t(i), bytes[2 * i + 1] = uint8_t(i >> 8);
  EvalInputs in;
  in.inputs = {Tensor{t, {1 << 16}, bytes}};
  UOpRef x = b.arg(0, t, {b.idx(1 << 16)}), wide = b.cast(x, DType::F32);
  std::vector<float> y = numbersOf<float>(evaluated(evalNodes(wide, in)));
  for (float &v : y) v = program(Host<float>(v)).v;
  EvalInputs rounded;
  rounded.inputs = {tensorOf(y)};
  Tensor expected = evaluated(evalNodes(b.cast(b.arg(0, DType::F32, {b.idx(1 << 16)}), t), rounded));
  canonicalizeNaN(expected);
  EXPECT_EQ(lowered(m, b.un(op, x), in), expected) << info(op).mnemonic << " of " << info(t).text;
}
TEST(Graph, NarrowIsF32Rounded) {
  for (DType t : {DType::F16, DType::BF16}) {
#define FUNCTION(Name, program, arguments, ulp32, ulp64)                                                               \
  if constexpr (arguments == 1) narrowIsF32Rounded(t, Op::Name, [](auto x) { return program(x); });
#include "astra/Numerics/Functions.def"
#undef FUNCTION
  }
}

TEST(Graph, SymbolicShapes) {
  Module m;
  Builder b(m.ctx());
  UOpRef n = b.dim("n", 0, 64);
  EvalInputs in;
  in.inputs = {tensorOf(std::vector<float>{0, 1, -1})};
  Tensor y = lowered(m, b.un(Op::Exp, b.arg(0, DType::F32, {n})), in);
  EXPECT_EQ(numbersOf<float>(y), (std::vector<float>{1, exp(Host<float>(1.0f)).v, exp(Host<float>(-1.0f)).v}));
}

TEST(Graph, SignOfNaNDoesNotShow) {
  Module m;
  Builder b(m.ctx());
  EvalInputs in;
  in.inputs = {tensorOf(std::vector<float>{std::bit_cast<float>(0xffc00001u), -1})};
  UOpRef x = b.arg(0, DType::F32, {b.idx(2)});
  Tensor y = lowered(m, b.bin(Op::CopySign, b.lit(DType::F32, 3), x), in);
  EXPECT_EQ(numbersOf<float>(y), (std::vector<float>{3, -3}));
}

// ---- random numbers

EvalInputs seeded(uint32_t seed, uint32_t stream) {
  EvalInputs in;
  for (uint32_t v : {seed, stream}) in.inputs.push_back({DType::U32, {}, tensorOf(std::vector<uint32_t>{v}).bytes});
  return in;
}
std::vector<uint32_t> words(uint32_t seed, uint32_t stream, uint32_t count) {
  std::vector<uint32_t> w;
  for (uint32_t i = 0; i < count; ++i) {
    Threefry<Host> t(seed, stream, i >> 1, uint32_t(0));
    w.push_back(i & 1 ? t.x1.v : t.x0.v);
  }
  return w;
}
struct Randoms {
  Module m;
  Builder b{m.ctx()};
  UOpRef seed = b.arg(0, DType::U32, {}), stream = b.arg(1, DType::U32, {});
  EvalInputs in = seeded(42, 7);
};

TEST(Random, ElementsAreThreefryWords) {
  Randoms r;
  UOpRef bits = r.b.random(r.seed, r.stream, {r.b.idx(3), r.b.idx(5)});
  EXPECT_EQ(numbersOf<uint32_t>(evaluated(evalNodes(bits, r.in))), words(42, 7, 15));
  EXPECT_EQ(numbersOf<uint32_t>(lowered(r.m, bits, r.in)), words(42, 7, 15));
}

TEST(Random, Uniform) {
  Randoms r;
  auto w = words(42, 7, 2000);
  auto f = numbersOf<float>(lowered(r.m, randomUniform(r.b, r.seed, r.stream, DType::F32, {r.b.idx(1000)}), r.in));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(f[i], float(w[i] >> 8) * 0x1p-24f);
  Randoms q;
  auto d = numbersOf<double>(lowered(q.m, randomUniform(q.b, q.seed, q.stream, DType::F64, {q.b.idx(1000)}), q.in));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(d[i], double((uint64_t(w[2 * i]) << 21) ^ (w[2 * i + 1] >> 11)) * 0x1p-53);
}

TEST(Random, NormalHasMeanZeroAndDeviationOne) {
  for (DType t : {DType::F32, DType::F64}) {
    Randoms r;
    constexpr int n = 20000;
    Tensor y = lowered(r.m, randomNormal(r.b, r.seed, r.stream, t, {r.b.idx(n / 4), r.b.idx(4)}), r.in);
    auto singles = numbersOf<float>(y);
    auto doubles = numbersOf<double>(y);
    double sum = 0, squares = 0;
    for (int i = 0; i < n; ++i) {
      double v = t == DType::F32 ? singles[i] : doubles[i];
      sum += v, squares += v * v;
    }
    EXPECT_NEAR(sum / n, 0, 0.03);
    EXPECT_NEAR(squares / n, 1, 0.04);
  }
}

TEST(Random, IntegersStayInRange) {
  Randoms r;
  auto v = numbersOf<uint32_t>(lowered(r.m, randomInteger(r.b, r.seed, r.stream, 10, 13, {r.b.idx(3000)}), r.in));
  int counts[3] = {};
  for (uint32_t x : v) {
    ASSERT_TRUE(x >= 10 && x < 13);
    ++counts[x - 10];
  }
  for (int c : counts) EXPECT_NEAR(c, 1000, 150);
}

} // namespace

//===- MatrixUnitTest.cpp: matrix units in primitives beside their models --===//
// Takes:    random operands of every unit and type of input: numbers of narrow and wide spread, now and then zeros,
//           subnormals, infinities and NaNs. 10^4 products a type; 10^6 under ASTRA_NIGHTLY.
// Gives:    the same bytes by the evaluator's model (N4.8) and by what the numerics stage makes of the contract.
#include "astra/Numerics/MatrixUnit.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "astra/Numerics/Numerics.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace astra;

namespace {
float randomNumber(std::mt19937 &rng, int spread, bool specials) {
  constexpr float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-133f, 0x1.fep127f, -0x1.fep127f};
  if (specials && rng() % 24 == 0) return odd[rng() % std::size(odd)];
  float v = std::ldexp(1.0f + float(rng() >> 9) * 0x1p-23f, int(rng() % (2 * spread + 1)) - spread);
  return rng() & 1 ? -v : v;
}

Tensor randomTensor(std::mt19937 &rng, DType t, int64_t rows, int64_t columns, int spread, bool specials) {
  Tensor x{DType::F32, {rows, columns}, std::vector<uint8_t>(rows * columns * 4)};
  for (int64_t i = 0; i < rows * columns; ++i) {
    float v = randomNumber(rng, spread, specials);
    memcpy(x.bytes.data() + i * 4, &v, 4);
  }
  if (t == DType::F32) return x;
  Context c;
  Builder b(c);
  return llvm::cantFail(
      evalNodes({b.cast(b.arg(0, DType::F32, {b.idx(rows), b.idx(columns)}), t)}, {{x}, {}, {}, {}}))[0];
}

UOpRef productOf(Builder &b, DType t, int64_t rows, int64_t k, int64_t columns, const MatrixUnit *u, MatrixInput in) {
  UOpRef y = b.matmul(b.arg(0, t, {b.idx(rows), b.idx(k)}), b.arg(1, t, {b.idx(k), b.idx(columns)}));
  ContractSpec s = llvm::cantFail(decodeContract(y->ints));
  s.unit = u, s.input = in;
  return b.c.make(Op::Contract, y->src, encode(s));
}

void compare(std::mt19937 &rng, const MatrixUnit &u, MatrixInput in, DType t, int spread, bool specials) {
  constexpr int64_t rows = 9, columns = 11;
  int64_t k = 1 + int64_t(rng() % 70);
  Module m;
  Builder b(m.ctx());
  Entry e;
  e.name = "main";
  UOpRef y = productOf(b, t, rows, k, columns, &u, in);
  e.outputs.push_back({"y", y});
  m.entries.push_back(e);
  EvalInputs inputs{
      {randomTensor(rng, t, rows, k, spread, specials), randomTensor(rng, t, k, columns, spread, specials)},
      {},
      {},
      {}};
  auto value = [&] {
    Tensor x = llvm::cantFail(evalNodes({m.entries[0].outputs[0].value}, inputs))[0];
    canonicalizeNaN(x);
    return x;
  };
  Tensor want = value();
  ASSERT_FALSE(bool(runNumerics(m)));
  ASSERT_FALSE(bool(verifyNumerics(m)));
  for (UOpRef n : topoSort(m.roots())) ASSERT_FALSE(n->is(Op::Contract));
  EXPECT_EQ(want, value()) << u.text << " " << info(in).text << ", k = " << k;
}

TEST(MatrixUnits, PrimitivesGiveTheModelsBits) {
  std::mt19937 rng(11);
  int64_t products = std::getenv("ASTRA_NIGHTLY") ? 1000000 : 10000;
  for (const MatrixUnit &u : matrixUnits())
    for (MatrixInput in :
         {MatrixInput::BF16, MatrixInput::F16, MatrixInput::TF32, MatrixInput::E4M3, MatrixInput::E5M2}) {
      if (!u.takes(in)) continue;
      int times = int(products / (9 * 11 * 35)) + 1;
      for (int i = 0; i < times; ++i) {
        constexpr int spreads[] = {2, 8, 20, 60, 126};
        compare(rng, u, in, DType::F32, spreads[i % 5], i % 4 != 0);
      }
      if (in == MatrixInput::BF16) compare(rng, u, in, DType::BF16, 8, true);
      if (in == MatrixInput::F16) compare(rng, u, in, DType::F16, 8, true);
    }
}

TEST(MatrixUnits, WhichContractsNameOne) {
  const MatrixUnit &hopper = *matrixUnitNamed("hopper16"), &fp8 = *matrixUnitNamed("hopper32-fp8");
  auto order = [](const MatrixUnit &u, DType kept, DType origin) -> std::string {
    Module m;
    Builder b(m.ctx());
    auto x = [&](int64_t i) {
      UOpRef a = b.arg(i, origin, {b.idx(4), b.idx(4)});
      return b.permute(origin == kept ? a : b.cast(a, kept), {1, 0});
    };
    Entry e;
    e.name = "main";
    e.outputs.push_back({"y", b.matmul(x(0), x(1))});
    m.entries.push_back(e);
    useMatrixUnit(m, u);
    ContractSpec s = llvm::cantFail(decodeContract(m.entries[0].outputs[0].value->ints));
    EXPECT_EQ(numericsOf(m), s.unit ? std::string("device:") + s.unit->text : "strict");
    return s.unit ? info(s.input).text : "";
  };
  EXPECT_EQ(order(hopper, DType::F32, DType::F32), "bf16");
  EXPECT_EQ(order(hopper, DType::F32, DType::F16), "f16");
  EXPECT_EQ(order(hopper, DType::F16, DType::F16), "f16");
  EXPECT_EQ(order(hopper, DType::BF16, DType::BF16), "bf16");
  EXPECT_EQ(order(hopper, DType::F64, DType::F64), "");
  EXPECT_EQ(order(hopper, DType::I32, DType::I32), "");
  EXPECT_EQ(order(fp8, DType::F32, DType::F32), "");
  EXPECT_EQ(order(fp8, DType::F32, DType::F8E5M2), "f8e5m2");
  EXPECT_EQ(order(*matrixUnitNamed("hopper8-tf32"), DType::F32, DType::BF16), "tf32");
  EXPECT_EQ(order(*matrixUnitNamed("dpbf16-2"), DType::F16, DType::F16), "");
}
} // namespace

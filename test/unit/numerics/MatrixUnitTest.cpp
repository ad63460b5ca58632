//===- MatrixUnitTest.cpp: matrix units of words, and in primitives --------===//
// Takes:    random operands of every unit and type of input: numbers of narrow and wide spread, now and then zeros,
//           subnormals, infinities and NaNs. 10^4 products a type; 10^6 under ASTRA_NIGHTLY.
// Gives:    the same bytes by the evaluator's model (N4.8), by what the numerics stage makes of the contract, and by a
//           step in primitives.
#include "astra/Numerics/MatrixUnit.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Fields.h"
#include "astra/Numerics/Numerics.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace astra;
using llvm::SmallVector;

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
  for (UOpRef n : topoSort(m.roots()))
    if (n->is(Op::Contract)) ASSERT_TRUE(isOfWords(llvm::cantFail(decodeContract(n->ints)), n->src[0]));
  EXPECT_EQ(want, value()) << u.text << " " << info(in).text << ", k = " << k;
}

/// Steps of a unit one after another on random words, each from the sum before, as the model has them.
void compareSteps(std::mt19937 &rng, const UnitStep &step, int spread) {
  constexpr int64_t lanes = 40;
  Context c;
  Builder b(c);
  unsigned each = matrixInputsInWord(step.input);
  Tensor addend = randomTensor(rng, DType::F32, 1, lanes, spread, true);
  addend.shape = {lanes};
  SmallVector<UOpRef, 32> arguments;
  EvalInputs in{{addend}, {}, {}, {}};
  std::vector<std::vector<uint32_t>> words(2 * step.words, std::vector<uint32_t>(lanes));
  for (unsigned w = 0; w < words.size(); ++w) {
    for (uint32_t &v : words[w])
      for (unsigned i = 0; i < each; ++i) {
        float x = matrixInput(step.input, randomNumber(rng, spread, true));
        DType t = step.input == MatrixInput::TF32 ? DType::F32 : *dtypeNamed(info(step.input).text);
        Tensor one{DType::F32, {1}, std::vector<uint8_t>(4)};
        memcpy(one.bytes.data(), &x, 4);
        Tensor narrow =
            llvm::cantFail(evalNodes({b.cast(b.arg(0, DType::F32, {b.idx(1)}), t)}, {{one}, {}, {}, {}}))[0];
        uint32_t bits = 0;
        memcpy(&bits, narrow.bytes.data(), narrow.bytes.size());
        v |= each == 1 ? bits : bits << (32 / each * i);
      }
    Tensor t{DType::U32, {lanes}, std::vector<uint8_t>(lanes * 4)};
    memcpy(t.bytes.data(), words[w].data(), lanes * 4);
    in.inputs.push_back(t);
    arguments.push_back(b.arg(w + 1, DType::U32, {b.idx(lanes)}));
  }
  UOpRef sum = unitStepGraph(b, step, b.arg(0, DType::F32, {b.idx(lanes)}), arguments);
  Tensor want = addend;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    SmallVector<uint32_t, 32> of;
    for (const auto &w : words) of.push_back(w[lane]);
    uint32_t from;
    memcpy(&from, addend.bytes.data() + lane * 4, 4);
    float x = llvm::bit_cast<float>(from);
    if (!step.unit->isAligned() && std::abs(x) < 0x1p-126f) from &= 0x80000000u; // as every sum of such a unit is
    memcpy(in.inputs[0].bytes.data() + lane * 4, &from, 4);
    uint32_t v = matrixStep(step, from, of);
    memcpy(want.bytes.data() + lane * 4, &v, 4);
  }
  Tensor got = llvm::cantFail(evalNodes({sum}, in))[0];
  canonicalizeNaN(got);
  canonicalizeNaN(want);
  EXPECT_EQ(want, got) << step.unit->text << " " << info(step.input).text;
}

TEST(MatrixUnits, StepsInPrimitivesGiveTheModelsBits) {
  std::mt19937 rng(12);
  int times = std::getenv("ASTRA_NIGHTLY") ? 1000 : 2;
  for (const UnitStep &step : unitSteps())
    for (int i = 0; i < times; ++i)
      for (int spread : {2, 8, 20, 60, 126}) compareSteps(rng, step, spread);
}

TEST(MatrixUnits, FoldsNameEveryStep) {
  llvm::ArrayRef<llvm::StringRef> names = fields(Op::Fold)[0].values;
  ASSERT_EQ(names.size(), size_t(Combine::Unit) + unitSteps().size());
  for (const UnitStep &s : unitSteps()) {
    Combine c = unitCombine(*s.unit, s.input);
    EXPECT_EQ(unitStepOf(c), &s);
    EXPECT_EQ(valuesOf(c), 2 * s.words);
    EXPECT_TRUE(names[size_t(c)].contains(info(s.input).text)) << names[size_t(c)].str();
    EXPECT_TRUE(
        names[size_t(c)].starts_with(llvm::StringRef(s.unit->text).take_until([](char x) { return x == '-'; })));
  }
  EXPECT_EQ(unitStepOf(Combine::Dot4), nullptr);
}

TEST(MatrixUnits, WordsGiveTheModelsBits) {
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

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

UOpRef productOf(Builder &b, DType t, int64_t rows, int64_t k, int64_t columns, const MatrixUnit *u, MatrixInputs in) {
  UOpRef y = b.matmul(b.arg(0, t, {b.idx(rows), b.idx(k)}), b.arg(1, t, {b.idx(k), b.idx(columns)}));
  ContractSpec s = llvm::cantFail(decodeContract(y->ints));
  s.unit = u, s.inputs = in;
  return b.c.make(Op::Contract, y->src, encode(s));
}

void compare(std::mt19937 &rng, const MatrixUnit &u, MatrixInputs in, DType t, int spread, bool specials) {
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
  EXPECT_EQ(want, value()) << u.text << " " << textOf(in) << ", k = " << k;
}

/// Steps of a unit one after another on random words, each from the sum before, as the model has them.
void compareSteps(std::mt19937 &rng, const UnitStep &step, int spread) {
  constexpr int64_t lanes = 40;
  Context c;
  Builder b(c);
  unsigned each = matrixInputsInWord(step.inputs);
  Tensor addend = randomTensor(rng, DType::F32, 1, lanes, spread, true);
  addend.shape = {lanes};
  SmallVector<UOpRef, 32> arguments;
  EvalInputs in{{addend}, {}, {}, {}};
  std::vector<std::vector<uint32_t>> words(2 * step.words, std::vector<uint32_t>(lanes));
  for (unsigned w = 0; w < words.size(); ++w) {
    MatrixInput input = w < step.words ? step.inputs.a : step.inputs.b;
    for (uint32_t &v : words[w])
      for (unsigned i = 0; i < each; ++i) {
        float x = matrixInput(input, randomNumber(rng, spread, true));
        DType t = input == MatrixInput::TF32 ? DType::F32 : *dtypeNamed(info(input).text);
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
  EXPECT_EQ(want, got) << step.unit->text << " " << textOf(step.inputs);
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
    Combine c = unitCombine(*s.unit, s.inputs);
    EXPECT_EQ(unitStepOf(c), &s);
    EXPECT_EQ(valuesOf(c), 2 * s.words);
    EXPECT_TRUE(names[size_t(c)].contains(textOf(s.inputs, '_'))) << names[size_t(c)].str();
    EXPECT_TRUE(
        names[size_t(c)].starts_with(llvm::StringRef(s.unit->text).take_until([](char x) { return x == '-'; })));
  }
  EXPECT_EQ(unitStepOf(Combine::Dot4), nullptr);
}

TEST(MatrixUnits, WordsGiveTheModelsBits) {
  std::mt19937 rng(11);
  int64_t products = std::getenv("ASTRA_NIGHTLY") ? 1000000 : 10000;
  for (const auto &[unit, in, count] : unitSteps()) {
    int times = int(products / (9 * 11 * 35)) + 1;
    for (int i = 0; i < times; ++i) {
      constexpr int spreads[] = {2, 8, 20, 60, 126};
      compare(rng, *unit, in, DType::F32, spreads[i % 5], i % 4 != 0);
    }
    if (in.a == MatrixInput::BF16) compare(rng, *unit, in, DType::BF16, 8, true);
    if (in.a == MatrixInput::F16) compare(rng, *unit, in, DType::F16, 8, true);
  }
}

/// What a product of operands of these types, kept in f32 where `wide`, names under a contract; "": nothing.
std::string inputsNamed(const char *contract, DType first, DType second, bool wide = false) {
  Module m;
  Builder b(m.ctx());
  auto x = [&](int64_t i, DType t) {
    UOpRef a = b.arg(i, t, {b.idx(4), b.idx(4)});
    return b.permute(wide && t != DType::F32 ? b.cast(a, DType::F32) : a, {1, 0});
  };
  Entry e;
  e.name = "main";
  e.outputs.push_back({"y", b.matmul(x(0, first), x(1, second))});
  m.entries.push_back(e);
  useMatrixUnit(m, llvm::cantFail(numericsNamed(contract)));
  ContractSpec s = llvm::cantFail(decodeContract(m.entries[0].outputs[0].value->ints));
  EXPECT_EQ(numericsOf(m), s.unit ? std::string("device:") + s.unit->text : "strict");
  return s.unit ? textOf(s.inputs) : "";
}

TEST(MatrixUnits, WhichContractsNameOne) {
  constexpr bool wide = true;
  constexpr DType F32 = DType::F32, F16 = DType::F16, BF16 = DType::BF16, E4M3 = DType::F8E4M3FN, E5M2 = DType::F8E5M2;
  EXPECT_EQ(inputsNamed("device:hopper16", F32, F32), "bf16");
  EXPECT_EQ(inputsNamed("device:hopper16", F16, F16, wide), "f16");
  EXPECT_EQ(inputsNamed("device:hopper16", F16, F16), "f16");
  EXPECT_EQ(inputsNamed("device:hopper16", BF16, BF16), "bf16");
  EXPECT_EQ(inputsNamed("device:hopper16", F16, BF16, wide), "bf16"); // the unit takes no two types together
  EXPECT_EQ(inputsNamed("device:hopper16", F16, F32, wide), "bf16");
  EXPECT_EQ(inputsNamed("device:hopper16:f16", F32, F32), "f16");
  EXPECT_EQ(inputsNamed("device:hopper16:f16", BF16, BF16), "bf16");
  EXPECT_EQ(inputsNamed("device:hopper16:f16", BF16, F32, wide), "f16");
  EXPECT_EQ(inputsNamed("device:hopper16", DType::F64, DType::F64), "");
  EXPECT_EQ(inputsNamed("device:hopper16", DType::I32, DType::I32), "");
  EXPECT_EQ(inputsNamed("device:hopper8-tf32", BF16, BF16, wide), "tf32");
  EXPECT_EQ(inputsNamed("device:dpbf16-2", F16, F16), "");
  EXPECT_EQ(inputsNamed("device:hopper32-fp8", F32, F32), "");
  EXPECT_EQ(inputsNamed("device:hopper32-fp8", E5M2, E5M2, wide), "f8e5m2");
  EXPECT_EQ(inputsNamed("device:hopper32-fp8", E4M3, E5M2, wide), "f8e4m3fn f8e5m2");
  EXPECT_EQ(inputsNamed("device:hopper32-fp8", E5M2, E4M3, wide), "f8e5m2 f8e4m3fn");
  EXPECT_EQ(inputsNamed("device:hopper32-fp8", E4M3, F32, wide), "");
  EXPECT_EQ(inputsNamed("device:hopper32-fp8:f8e5m2", E4M3, F32, wide), "f8e4m3fn f8e5m2");
  EXPECT_EQ(inputsNamed("device:hopper32-fp8:f8e4m3fn", F32, F32), "f8e4m3fn");
}

TEST(MatrixUnits, WrongContractsAreRefused) {
  auto sentence = [](const char *contract) { return llvm::toString(numericsNamed(contract).takeError()); };
  EXPECT_EQ(sentence("sloppy"), "there is no numeric contract 'sloppy'; strict is one, and device:UNIT");
  EXPECT_EQ(sentence("device:hopper"), "there is no matrix unit 'hopper'; there are " + matrixUnitNames());
  EXPECT_EQ(sentence("device:hopper16:f8e5m2"), "matrix unit hopper16 does not take operands of 'f8e5m2'");
  EXPECT_EQ(sentence("device:hopper16:"), "matrix unit hopper16 does not take operands of ''");
  EXPECT_EQ(sentence("device:amx32:f16"), "matrix unit amx32 does not take operands of 'f16'");
}
} // namespace

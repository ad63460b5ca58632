//===- NetworkTest.cpp: whole networks against ONNX Runtime ----------------===//
// Takes:    the committed digits network; the models that test/models/make.py wrote to build/models, if it did.
// Gives:    each imported, brought through the numerics stage, evaluated, and compared with ONNX Runtime's outputs: no
//           element differs by more than 1e-4 of the largest magnitude in the output.
#include "Npy.h"
#include "astra/IR/Eval.h"
#include "astra/Import/ONNX.h"
#include "astra/Numerics/Numerics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace astra {
namespace {

Tensor read(const std::string &path, DType dtype) {
  tool::Npy array;
  std::string error;
  EXPECT_TRUE(tool::readNpy(path, array, error)) << error;
  EXPECT_EQ(array.dtype, int32_t(dtype) - 1); // the C ABI's numbers have no void
  return {dtype, array.shape, array.data};
}

std::vector<float> floats(const Tensor &t) {
  std::vector<float> values(t.bytes.size() / 4);
  std::memcpy(values.data(), t.bytes.data(), values.size() * 4);
  return values;
}

/// The largest difference over the largest magnitude of what is expected.
double relativeError(const Tensor &found, const Tensor &expected) {
  EXPECT_EQ(found.dtype, DType::F32);
  EXPECT_EQ(found.shape, expected.shape);
  if (found.shape != expected.shape) return INFINITY;
  double error = 0, magnitude = 0;
  auto a = floats(found), b = floats(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    error = std::max(error, std::abs(double(a[i]) - b[i]));
    magnitude = std::max(magnitude, std::abs(double(b[i])));
  }
  return error / magnitude;
}

Module load(const std::string &path, std::vector<DimBound> dims) {
  llvm::Expected<Module> module = importONNX(path, {std::move(dims), ""});
  EXPECT_TRUE(bool(module)) << llvm::toString(module.takeError());
  if (!module) return {};
  llvm::Error e = runNumerics(*module);
  EXPECT_FALSE(bool(e)) << llvm::toString(std::move(e));
  return std::move(*module);
}

std::vector<Tensor> run(const Module &module, std::vector<Tensor> inputs) {
  EvalInputs in;
  in.inputs = std::move(inputs);
  llvm::Expected<EvalResult> result = evalEntry(module, module.entries[0], in);
  EXPECT_TRUE(bool(result)) << llvm::toString(result.takeError());
  return result ? result->outputs : std::vector<Tensor>();
}

TEST(ImportNetwork, Digits) {
  const std::string folder = ASTRA_SOURCE_DIR "/examples/digits/";
  Module module = load(folder + "digits.onnx", {{"batch", 1, 512}});
  ASSERT_EQ(module.entries.size(), 1u);
  Tensor labels = read(folder + "heldout_labels.npy", DType::U8);
  std::vector<Tensor> outputs = run(module, {read(folder + "heldout_images.npy", DType::F32)});
  ASSERT_EQ(outputs.size(), 1u);
  double error = relativeError(outputs[0], read(folder + "heldout_probabilities.npy", DType::F32));
  RecordProperty("error", llvm::formatv("{0:e}", error).str());
  EXPECT_LT(error, 1e-4);
  std::vector<float> p = floats(outputs[0]);
  size_t right = 0;
  for (size_t i = 0; i < labels.bytes.size(); ++i)
    right += std::max_element(&p[i * 10], &p[i * 10] + 10) - &p[i * 10] == labels.bytes[i];
  EXPECT_GE(right, labels.bytes.size() * 97 / 100) << right << " of " << labels.bytes.size();
}

struct Case {
  const char *model, *name;
  std::vector<std::pair<const char *, DType>> inputs;
  std::vector<const char *> outputs;
  std::vector<DimBound> dims;
};

/// Models that are too large to commit.
class ExportedNetwork : public testing::TestWithParam<Case> {};

TEST_P(ExportedNetwork, AgreesWithONNXRuntime) {
  const Case &c = GetParam();
  std::string stem = std::string(ASTRA_MODELS) + "/" + c.model;
  if (!llvm::sys::fs::exists(stem + ".onnx"))
    GTEST_SKIP() << stem << ".onnx is not there: test/models/make.py writes it";
  Module module = load(stem + ".onnx", c.dims);
  ASSERT_EQ(module.entries.size(), 1u);
  std::string prefix = stem + "." + c.name + ".";
  std::vector<Tensor> inputs;
  for (auto [name, dtype] : c.inputs) inputs.push_back(read(prefix + "input." + name + ".npy", dtype));
  std::vector<Tensor> outputs = run(module, inputs);
  ASSERT_EQ(outputs.size(), c.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    double error = relativeError(outputs[i], read(prefix + "output." + c.outputs[i] + ".npy", DType::F32));
    RecordProperty(std::string("error_") + c.outputs[i], llvm::formatv("{0:e}", error).str());
    EXPECT_LT(error, 1e-4) << c.outputs[i];
  }
}

const std::vector<std::pair<const char *, DType>> bertInputs = {
    {"ids", DType::I64}, {"mask", DType::I64}, {"segments", DType::I64}};
const std::vector<DimBound> bertDims = {{"batch", 1, 8}, {"seq", 1, 128}};

INSTANTIATE_TEST_SUITE_P(Bert, ExportedNetwork,
                         testing::Values(Case{"bert", "b2s7", bertInputs, {"hidden", "pooled"}, bertDims},
                                         Case{"bert", "b1s32", bertInputs, {"hidden", "pooled"}, bertDims},
                                         Case{"bert", "b3s128", bertInputs, {"hidden", "pooled"}, bertDims}));
INSTANTIATE_TEST_SUITE_P(
    ResNet, ExportedNetwork,
    testing::Values(Case{"resnet50", "b1", {{"image", DType::F32}}, {"logits"}, {{"batch", 1, 8}}},
                    Case{"resnet50-raw", "b1", {{"image", DType::F32}}, {"logits"}, {{"batch", 1, 8}}}));

} // namespace
} // namespace astra

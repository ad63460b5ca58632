//===- ConformanceTest.cpp: ONNX's own cases through the evaluator ---------===//
// Takes:    the folder that make_cases.py wrote; without it there is nothing to run.
// Gives:    each case imported, evaluated, compared: integers and bool exactly, floats within ONNX's own tolerance.
// Keeps:    honest: a case of an op without a row may be refused; any other only if exceptions.txt names it and says
//           why.
#include "ModelFile.h"
#include "astra/IR/Eval.h"
#include "astra/Import/ONNX.h"
#include "astra/Numerics/Numerics.h"
#include "onnx.pb.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <tuple>

namespace astra::onnx {
namespace {

constexpr double relative = 1e-3, absolute = 1e-7; // onnx.backend.test.loader

std::vector<std::string> listCases() {
  std::vector<std::string> names;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator i(ASTRA_ONNX_CASES, code), end; !code && i != end; i.increment(code))
    names.push_back(llvm::sys::path::filename(i->path()).str());
  std::sort(names.begin(), names.end());
  return names;
}

/// Names of cases whose ops have rows and that are yet refused, or differ where ONNX leaves the result open: the first
/// word of each line, the reason after it.
std::set<std::string> listExceptions() {
  std::set<std::string> names;
  std::ifstream file(ASTRA_ONNX_EXCEPTIONS);
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') names.insert(line.substr(0, line.find(' ')));
  return names;
}

double asDouble(const uint8_t *bytes, DType t) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, byteSize(t));
  const llvm::fltSemantics &semantics = t == DType::F16    ? llvm::APFloat::IEEEhalf()
                                        : t == DType::BF16 ? llvm::APFloat::BFloat()
                                        : t == DType::F32  ? llvm::APFloat::IEEEsingle()
                                                           : llvm::APFloat::IEEEdouble();
  llvm::APFloat value(semantics, llvm::APInt(bitWidth(t), bits));
  bool inexact;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return value.convertToDouble();
}

std::string difference(const Tensor &found, const Tensor &expected) {
  if (found.dtype != expected.dtype)
    return std::string("dtype ") + info(found.dtype).text + ", expected " + info(expected.dtype).text;
  if (found.shape != expected.shape) return "the shapes differ";
  if (info(found.dtype).cls == DTypeClass::Storage && bitWidth(found.dtype) == 8) { // an fp8 NaN has two signs
    for (size_t i = 0; i < found.bytes.size(); ++i)
      if (found.bytes[i] != expected.bytes[i] && !(found.bytes[i] % 128 == 127 && expected.bytes[i] % 128 == 127))
        return "the elements differ";
    return "";
  }
  if (!isFloat(found.dtype)) return found.bytes == expected.bytes ? "" : "the elements differ";
  double tolerance = bitWidth(found.dtype) == 16 ? (found.dtype == DType::F16 ? 0x1p-9 : 0x1p-6) : relative;
  for (int64_t i = 0; i < found.count(); ++i) {
    double a = asDouble(found.bytes.data() + i * byteSize(found.dtype), found.dtype),
           b = asDouble(expected.bytes.data() + i * byteSize(found.dtype), found.dtype);
    bool equal = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= absolute + tolerance * std::abs(b);
    if (!equal) return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(b);
  }
  return "";
}

class Conformance : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);

std::vector<Tensor> readTensors(const ModelFile &file, const std::string &folder, const char *kind) {
  std::vector<Tensor> tensors;
  for (int k = 0;; ++k) {
    std::ifstream stream(folder + "/" + kind + "_" + std::to_string(k) + ".pb", std::ios::binary);
    proto::Tensor message;
    if (!stream || !message.ParseFromIstream(&stream)) return tensors;
    llvm::Expected<Payload> p = file.payload(message);
    if (!p) {
      llvm::consumeError(p.takeError());
      return {};
    }
    tensors.push_back({p->dtype, p->dims, p->bytes});
  }
}

/// What became of a case: refused with a sentence, or the first difference, or nothing.
struct Outcome {
  std::string refusal, difference;
};

/// The inputs that a refusal asks to be constants: what follows "--constant " in it.
std::set<std::string> wanted(llvm::StringRef refusal) {
  std::set<std::string> names;
  for (auto [head, rest] = refusal.split("--constant "); !rest.empty();
       std::tie(head, rest) = rest.split("--constant "))
    names.insert(rest.split("=FILE.npy").first.str());
  return names;
}

Outcome run(const std::string &folder) {
  llvm::Expected<ModelFile> file = ModelFile::open(folder + "/model.onnx");
  if (!file) return {llvm::toString(file.takeError()), ""};
  std::vector<Tensor> given = readTensors(*file, folder, "input");
  std::vector<std::string> names;
  std::set<std::string> initialized;
  for (const proto::Tensor &t : file->model().graph().initializer()) initialized.insert(t.name());
  for (const proto::Value &v : file->model().graph().input())
    if (!initialized.count(v.name())) names.push_back(v.name());
  ImportOptions options;
  auto isConstant = [&](const std::string &name) {
    return llvm::any_of(options.constants, [&](const ConstantInput &k) { return k.name == name; });
  };
  llvm::Expected<Module> module = importONNX(folder + "/model.onnx", options);
  for (bool more = true; !module && more;) {
    std::string refusal = llvm::toString(module.takeError());
    more = false;
    for (const std::string &name : wanted(refusal))
      for (size_t i = 0; i < std::min(names.size(), given.size()); ++i)
        if (names[i] == name && !isConstant(name)) {
          options.constants.push_back({name, given[i].dtype, given[i].shape, given[i].bytes});
          more = true;
        }
    if (!more) return {refusal, ""};
    module = importONNX(folder + "/model.onnx", options);
  }
  if (!module) return {llvm::toString(module.takeError()), ""};
  EvalInputs inputs;
  for (size_t i = 0; i < given.size(); ++i)
    if (i >= names.size() || !isConstant(names[i])) inputs.inputs.push_back(std::move(given[i]));
  if (llvm::Error e = runNumerics(*module)) return {llvm::toString(std::move(e)), ""};
  llvm::Expected<EvalResult> result = evalEntry(*module, module->entries[0], inputs);
  if (!result) return {llvm::toString(result.takeError()), ""};
  std::vector<Tensor> expected = readTensors(*file, folder, "output");
  if (result->outputs.size() != expected.size()) return {"", "the numbers of outputs differ"};
  for (size_t i = 0; i < expected.size(); ++i)
    if (std::string d = difference(result->outputs[i], expected[i]); !d.empty())
      return {"", "output " + std::to_string(i) + ": " + d};
  return {};
}

TEST_P(Conformance, AgreesWithONNX) {
  static const std::set<std::string> exceptions = listExceptions();
  Outcome outcome = run(std::string(ASTRA_ONNX_CASES) + "/" + GetParam());
  const std::string &refusal = outcome.refusal;
  RecordProperty("outcome", !refusal.empty() ? "refused" : !outcome.difference.empty() ? "differs" : "agrees");
  // An op or an opset that the importer does not have is no fault.
  if (refusal.find("this op is not supported") != std::string::npos ||
      refusal.find("of the default domain") != std::string::npos)
    return;
  if (exceptions.count(GetParam()))
    EXPECT_TRUE(!refusal.empty() || !outcome.difference.empty()) << "agrees now: take it out of exceptions.txt";
  else
    EXPECT_TRUE(refusal.empty() && outcome.difference.empty()) << refusal << outcome.difference;
}

/// Altered models are imported or refused; nothing crashes and no refusal is without a sentence.
TEST(Mutation, EveryCaseAlteredInAFewBytes) {
  std::mt19937 random(1);
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("astra-onnx", "onnx", path));
  for (const std::string &name : listCases()) {
    std::ifstream file(std::string(ASTRA_ONNX_CASES) + "/" + name + "/model.onnx", std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    for (int round = 0; round < 5; ++round) {
      std::string altered = bytes;
      for (int k = 0; k <= round; ++k) altered[random() % altered.size()] ^= char(1u << random() % 8);
      std::ofstream(path.str().str(), std::ios::binary).write(altered.data(), std::streamsize(altered.size()));
      if (llvm::Expected<Module> module = importONNX(path, {}); !module) {
        EXPECT_FALSE(llvm::toString(module.takeError()).empty());
      }
    }
  }
  llvm::sys::fs::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Case, Conformance, testing::ValuesIn(listCases()),
                         [](const testing::TestParamInfo<std::string> &info) {
                           std::string name = info.param;
                           std::replace_if(name.begin(), name.end(), [](char c) { return !isalnum(uint8_t(c)); }, '_');
                           return name;
                         });

} // namespace
} // namespace astra::onnx

//===- ConformanceTest.cpp: ONNX's own cases through the evaluator ---------===//
// Takes:    the folder that make_cases.py wrote; without it there is nothing to run.
// Gives:    each case imported, evaluated, compared: integers and bool exactly, floats within ONNX's own tolerance.
// Keeps:    honest: a case of an op without a row may be refused; any other only if exceptions.txt names it and says
//           why.
#include "ModelFile.h"
#include "astra/Autograd/Autograd.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Eval.h"
#include "astra/IR/Verify.h"
#include "astra/Import/ONNX.h"
#include "astra/Numerics/EvalFunctions.h"
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

/// A case as a module, and its inputs. Inputs that must be constants are.
struct Loaded {
  Module module;
  EvalInputs inputs;
  std::vector<Tensor> expected;
};
llvm::Expected<Loaded> load(const std::string &folder) {
  llvm::Expected<ModelFile> file = ModelFile::open(folder + "/model.onnx");
  if (!file) return file.takeError();
  std::vector<Tensor> given = readTensors(*file, folder, "input");
  std::vector<std::string> names;
  std::set<std::string> initialized;
  for (const proto::Tensor &t : file->model().graph().initializer()) initialized.insert(t.name());
  for (const proto::Value &v : file->model().graph().input())
    if (!initialized.count(v.name())) names.push_back(v.name());
  ImportOptions options;
  for (const proto::Value &v : file->model().graph().input()) // a tensor: cases with others are left out
    if (v.type().has_optional_value()) options.elements.push_back({v.name(), "1"});
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
    if (!more) return llvm::createStringError(refusal);
    module = importONNX(folder + "/model.onnx", options);
  }
  if (!module) return module.takeError();
  EvalInputs inputs;
  for (size_t i = 0; i < given.size(); ++i)
    if (i >= names.size() || !isConstant(names[i])) inputs.inputs.push_back(std::move(given[i]));
  return Loaded{std::move(*module), std::move(inputs), readTensors(*file, folder, "output")};
}

Outcome run(const std::string &folder) {
  llvm::Expected<Loaded> given = load(folder);
  if (!given) return {llvm::toString(given.takeError()), ""};
  auto &[module, inputs, expected] = *given;
  if (llvm::Error e = runNumerics(module)) return {llvm::toString(std::move(e)), ""};
  llvm::Expected<EvalResult> result = evalEntry(module, module.entries[0], inputs);
  if (!result) return {llvm::toString(result.takeError()), ""};
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

/// The entry with gradients and tangents along ones by its float inputs, or a refusal.
llvm::Expected<std::pair<Entry, Entry>> differentiated(Module &m) {
  const Entry &e = m.entries[0];
  Builder b(m.ctx());
  std::vector<UOpRef> outputs, wrt, seeds, directions;
  for (const Value &v : e.outputs)
    if (isDifferentiable(v.value->dtype)) outputs.push_back(v.value);
  for (const Value &v : e.inputs)
    if (isDifferentiable(v.value->dtype)) wrt.push_back(v.value);
  auto one = [&](UOpRef x) { return b.splat(b.litInt(x->dtype, 1), x->shape); };
  for (UOpRef y : outputs) seeds.push_back(one(y));
  for (UOpRef x : wrt) directions.push_back(one(x));
  std::pair<Entry, Entry> made{e, e};
  auto g = vjp(m.ctx(), outputs, seeds, wrt, &m.origins);
  if (!g) return g.takeError();
  auto t = jvp(m.ctx(), outputs, wrt, directions, &m.origins);
  if (!t) return t.takeError();
  for (auto &[entry, d] : {std::pair{&made.first, &*g}, {&made.second, &*t}}) {
    entry->outputs.clear();
    for (UOpRef x : d->derivatives) entry->outputs.push_back({"d" + std::to_string(entry->outputs.size()), x});
  }
  made.first.name = "gradient", made.second.name = "tangent";
  return made;
}

/// Sum and sum of magnitudes of all elements; nothing where one is not finite.
std::optional<std::pair<double, double>> total(const EvalResult &r) {
  double sum = 0, size = 0;
  for (const Tensor &t : r.outputs)
    for (int64_t i = 0; i < t.count(); ++i) {
      double v = asDouble(t.bytes.data() + i * byteSize(t.dtype), partOf(t.dtype)); // the real part of a complex number
      if (!std::isfinite(v)) return std::nullopt;
      sum += v, size += std::abs(v);
    }
  return std::pair(sum, size);
}

/// Every case is differentiated in both modes or refused with the op's name, the entries verify, and where all is
/// finite <1, J 1> is the same number either way up to rounding in the case's own types.
TEST(Derivatives, OfEveryCase) {
  unsigned made = 0, refused = 0, compared = 0;
  EvalOptions options;
  options.function = evalFunction;
  for (const std::string &name : listCases()) {
    auto given = load(std::string(ASTRA_ONNX_CASES) + "/" + name);
    if (!given) {
      llvm::consumeError(given.takeError());
      continue;
    }
    auto &[m, inputs, expected] = *given;
    auto entries = differentiated(m);
    if (!entries) {
      ++refused;
      std::string why = llvm::toString(entries.takeError());
      EXPECT_NE(why.find("(detach stops gradients)"), std::string::npos) << name << ": " << why;
      continue;
    }
    ++made;
    m.entries = {entries->first, entries->second};
    if (llvm::Error e = verify(m, Stage::Graph)) {
      ADD_FAILURE() << name << ": " << llvm::toString(std::move(e));
      continue;
    }
    auto g = evalEntry(m, m.entries[0], inputs, options), t = evalEntry(m, m.entries[1], inputs, options);
    for (auto *r : {&g, &t})
      if (!*r) ADD_FAILURE() << name << ": " << llvm::toString(r->takeError());
    if (!g || !t) continue;
    auto a = total(*g), b = total(*t);
    if (!a || !b) continue;
    ++compared;
    bool narrow = llvm::any_of(m.entries[0].inputs, [](const Value &v) { return bitWidth(v.value->dtype) == 16; });
    double tolerance = (narrow ? 0.05 : 1e-3) * std::max({1.0, a->second, b->second});
    EXPECT_NEAR(a->first, b->first, tolerance) << name;
  }
  RecordProperty("made", made), RecordProperty("refused", refused), RecordProperty("compared", compared);
  std::printf("%u differentiated, %u refused, %u compared\n", made, refused, compared);
}

/// relu is select(x < 0, 0, x), and its gradient at 0 is 0.
TEST(Derivatives, OfReluAtZero) {
  auto given = load(std::string(ASTRA_ONNX_CASES) + "/relu");
  if (!given) {
    llvm::consumeError(given.takeError());
    GTEST_SKIP() << "the cases are not there";
  }
  auto &[m, inputs, expected] = *given;
  std::fill(inputs.inputs[0].bytes.begin(), inputs.inputs[0].bytes.end(), 0);
  auto entries = differentiated(m);
  ASSERT_TRUE(bool(entries)) << llvm::toString(entries.takeError());
  auto g = evalEntry(m, entries->first, inputs);
  ASSERT_TRUE(bool(g)) << llvm::toString(g.takeError());
  EXPECT_EQ(total(*g), (std::optional(std::pair(0.0, 0.0))));
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

//===- ConfigOfGGUF.cpp: a configuration from the metadata of a GGUF file ----===//
// Takes:    metadata that is not trusted.
// Gives:    its fields, and the configuration that they describe, or a sentence.
// Source:   the keys as github.com/ggml-org/ggml, docs/gguf.md, names them.
#include "Config.h"
#include "Fields.h"
#include "astra/Import/WeightFile.h"

using namespace astra;
using namespace astra::language;
using llvm::StringRef;

namespace {

class MetadataFields : public Fields {
public:
  MetadataFields(const WeightFile &file, std::string architecture)
      : file(file), architecture(std::move(architecture)) {}

  std::optional<double> number(FieldName name) override { return typed(name, file.number(nameOf(name)), "a number"); }
  std::optional<bool> flag(FieldName name) override {
    std::optional<int64_t> value = typed(name, file.integer(nameOf(name)), "a bool");
    return value ? std::optional(*value != 0) : std::nullopt;
  }
  std::optional<std::string> text(FieldName name) override {
    const std::string *value = file.string(nameOf(name));
    return typed(name, value ? std::optional(*value) : std::nullopt, "a string");
  }
  std::optional<std::vector<double>> numbers(FieldName name) override {
    const std::vector<double> *value = file.numbers(nameOf(name));
    return typed(name, value ? std::optional(*value) : std::nullopt, "an array of floats");
  }
  std::optional<std::vector<std::string>> texts(FieldName name) override {
    const std::vector<std::string> *value = file.strings(nameOf(name));
    return typed(name, value ? std::optional(*value) : std::nullopt, "an array of strings");
  }
  std::unique_ptr<Fields> object(FieldName) override { return nullptr; }
  std::string nameOf(FieldName name) const override { return architecture + "." + name.gguf.str(); }

private:
  const WeightFile &file;
  std::string architecture;

  template <class T> std::optional<T> typed(FieldName name, std::optional<T> value, const char *expected) {
    if (name.gguf.empty()) return std::nullopt;
    if (!value && file.value(nameOf(name)))
      fail("'" + nameOf(name) + "' is not " + expected + ", as it is where layers differ");
    return value;
  }
};

/// The values of a tensor of f32, or nothing.
std::vector<double> valuesOf(const WeightFile &file, StringRef name) {
  const WeightTensor *t = file.find(name);
  std::vector<double> values;
  if (t && t->format == WeightFormat::F32 && t->dims.size() == 1)
    for (int64_t i = 0; i < t->dims[0]; ++i) {
      float x;
      memcpy(&x, t->bytes.data() + 4 * i, 4);
      values.push_back(x);
    }
  return values;
}

} // namespace

llvm::Expected<Config> astra::language::readConfig(const WeightFile &file) {
  const std::string *name = file.string("general.architecture");
  if (!name) return llvm::createStringError(std::errc::invalid_argument, "the metadata have no 'general.architecture'");
  Config config;
  config.gguf = true;
  std::string others;
  config.architecture = architectureNamed(*name, true, others);
  if (!config.architecture)
    return llvm::createStringError(std::errc::not_supported, "the architecture '%s' is not supported: %s",
                                   name->c_str(), others.c_str());
  MetadataFields fields(file, *name);
  if (llvm::Error e = readConfig(fields, config)) return std::move(e);
  const WeightTensor *table = file.find("token_embd.weight");
  if (!table || table->dims.size() != 2)
    return llvm::createStringError(std::errc::invalid_argument, "the tensor 'token_embd.weight' is missing");
  config.vocabulary = table->dims[0];
  for (size_t layer = 0; layer < config.routed.size(); ++layer) // no key says which layers have experts
    config.routed[layer] = config.experts && file.find("blk." + std::to_string(layer) + ".ffn_gate_inp.weight");
  // Factors of frequencies are tensors here: those of Llama 3.1, and of long and short contexts.
  Rotation &r = config.rotation;
  if (std::vector<double> factors = valuesOf(file, "rope_freqs.weight"); !factors.empty()) {
    r.kind = Rotation::Long;
    r.attentionFactor = 1;
    r.shortFactors = r.longFactors = std::move(factors);
  } else if (r.kind == Rotation::Long || file.find("rope_factors_long.weight")) {
    r.kind = Rotation::Long;
    r.shortFactors = valuesOf(file, "rope_factors_short.weight");
    r.longFactors = valuesOf(file, "rope_factors_long.weight");
  }
  if (std::string wrong = r.wrong(config.headSize); !wrong.empty())
    return llvm::createStringError(std::errc::invalid_argument, "%s", wrong.c_str());
  return config;
}

//===- ConfigOfJson.cpp: a configuration from config.json -------------------===//
// Takes:    text that is not trusted.
// Gives:    its fields, and the configuration that they describe, or a sentence.
#include "../JsonDepth.h"
#include "Config.h"
#include "Fields.h"
#include "llvm/Support/JSON.h"

using namespace astra::language;
using llvm::StringRef;

namespace {

/// config.json, or an object in it.
class JsonFields : public Fields {
public:
  explicit JsonFields(const llvm::json::Object &object) : values(object) {}

  std::optional<double> number(FieldName name) override {
    return typed<double>(name, "a number", [](const llvm::json::Value &v) { return v.getAsNumber(); });
  }
  std::optional<bool> flag(FieldName name) override {
    return typed<bool>(name, "true or false", [](const llvm::json::Value &v) { return v.getAsBoolean(); });
  }
  std::optional<std::string> text(FieldName name) override { return typed<std::string>(name, "a string", asText); }
  std::optional<std::vector<double>> numbers(FieldName name) override {
    return typed<std::vector<double>>(name, "a list of numbers", [](const llvm::json::Value &v) {
      return list<double>(v, [](const llvm::json::Value &e) { return e.getAsNumber(); });
    });
  }
  std::optional<std::vector<std::string>> texts(FieldName name) override {
    return typed<std::vector<std::string>>(name, "a list of strings",
                                           [](const llvm::json::Value &v) { return list<std::string>(v, asText); });
  }
  std::unique_ptr<Fields> object(FieldName name) override {
    const llvm::json::Value *v = find(name);
    if (!v) return nullptr;
    if (const llvm::json::Object *inner = v->getAsObject()) return std::make_unique<JsonFields>(*inner);
    fail("'" + nameOf(name) + "' is no object");
    return nullptr;
  }
  std::string nameOf(FieldName name) const override { return name.json.split('|').first.str(); }

private:
  const llvm::json::Object &values;

  static std::optional<std::string> asText(const llvm::json::Value &v) {
    auto s = v.getAsString();
    return s ? std::optional(s->str()) : std::nullopt;
  }
  template <class T, class Get> static std::optional<std::vector<T>> list(const llvm::json::Value &v, Get get) {
    const llvm::json::Array *array = v.getAsArray();
    if (!array) return std::nullopt;
    std::vector<T> out;
    for (const llvm::json::Value &element : *array) {
      std::optional<T> value = get(element);
      if (!value) return std::nullopt;
      out.push_back(std::move(*value));
    }
    return out;
  }
  const llvm::json::Value *find(FieldName name) const {
    for (StringRef rest = name.json; !rest.empty();) {
      auto [first, more] = rest.split('|');
      const llvm::json::Value *v = values.get(first);
      if (v && v->kind() != llvm::json::Value::Null) return v;
      rest = more;
    }
    return nullptr;
  }
  template <class T, class Get> std::optional<T> typed(FieldName name, const char *expected, Get get) {
    const llvm::json::Value *v = find(name);
    if (!v) return std::nullopt;
    std::optional<T> value = get(*v);
    if (!value) fail("'" + nameOf(name) + "' is not " + expected);
    return value;
  }
};

} // namespace

llvm::Expected<Config> astra::language::readConfig(StringRef json) {
  auto bad = [](const llvm::Twine &why) {
    return llvm::createStringError(std::make_error_code(std::errc::invalid_argument), why);
  };
  if (isNestedDeeper(json, 64)) return bad("is nested more than 64 deep");
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value) return bad("is no JSON: " + llvm::toString(value.takeError()));
  const llvm::json::Object *object = value->getAsObject();
  if (!object) return bad("is no JSON object");
  JsonFields fields(*object);
  std::string type = fields.text({"model_type", ""}).value_or(""), others;
  Config config;
  config.architecture = architectureNamed(type, false, others);
  if (!config.architecture)
    return llvm::createStringError(std::errc::not_supported, "the architecture (model_type) '%s' is not supported: %s",
                                   type.c_str(), others.c_str());
  if (llvm::Error e = readConfig(fields, config)) return std::move(e);
  return config;
}

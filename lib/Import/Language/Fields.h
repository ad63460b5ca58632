//===- Fields.h: what a file says about a model, by name --------------------===//
// Gives:    numbers, words and lists of config.json or of GGUF's metadata under both of their names.
// Keeps:    the first thing that is not as it should be, as a sentence.
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace astra::language {

/// A field's names: in config.json (several with |, the first that is there), and in GGUF behind the architecture's
/// name. "": it has none there.
struct FieldName {
  llvm::StringRef json, gguf;
};

/// For a sentence: whole numbers without a fraction.
std::string numberText(double x);

class Fields {
public:
  virtual ~Fields() = default;

  /// What is there under a name; nothing where it is missing or null. Of another type: a failure.
  virtual std::optional<double> number(FieldName name) = 0;
  virtual std::optional<bool> flag(FieldName name) = 0;
  virtual std::optional<std::string> text(FieldName name) = 0;
  virtual std::optional<std::vector<double>> numbers(FieldName name) = 0;
  virtual std::optional<std::vector<std::string>> texts(FieldName name) = 0;
  /// An object of config.json, or null.
  virtual std::unique_ptr<Fields> object(FieldName name) = 0;
  /// The name that this kind of file has for it.
  virtual std::string nameOf(FieldName name) const = 0;

  /// A whole number between bounds; `otherwise` where it is missing, a failure where that is nothing.
  int64_t integer(FieldName name, int64_t least, int64_t most, std::optional<int64_t> otherwise);
  double real(FieldName name, double otherwise);

  void fail(const llvm::Twine &sentence, bool beyond = false) {
    if (error.empty()) error = sentence.str(), unsupported = beyond;
  }
  std::string error; // the first failure, or ""
  bool unsupported = false;
};

} // namespace astra::language

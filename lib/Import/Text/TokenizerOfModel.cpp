//===- TokenizerOfModel.cpp: the tokenizer that goes into a model's bundle ---===//
// Takes:    see Tokenizer.h.
// Gives:    a compiled tokenizer that fits the model.
// Keeps:    a text without names of added tokens has no token that the model lacks.
// Does not: know bundles.
#include "astra/IR/Module.h"
#include "astra/Import/Tokenizer.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace astra::import {

/// How many tokens the model has scores for, if it says so.
static std::optional<int64_t> tokensOf(const Module &m) {
  for (const Entry &e : m.entries)
    for (const Value &output : e.outputs)
      if (output.name == "logits" && output.value->rank()) return output.value->shape.back()->constIndex();
  return std::nullopt;
}

/// Whether a model's folder or file has a tokenizer.
static llvm::Expected<bool> hasTokenizer(const std::string &model) {
  llvm::SmallString<128> file(model);
  if (llvm::sys::fs::is_directory(file)) llvm::sys::path::append(file, "tokenizer.json");
  if (!llvm::sys::fs::exists(file)) return false;
  if (llvm::sys::path::extension(file) != ".gguf") return true;
  llvm::Expected<WeightFile> weights = WeightFile::open(file);
  if (!weights) return weights.takeError();
  return weights->string("tokenizer.ggml.model") != nullptr;
}

llvm::Expected<std::string> tokenizerOfModel(const std::string &model, const std::string &given, llvm::StringRef form,
                                             const Module &m, std::vector<std::string> &notes) {
  if (given.empty()) {
    llvm::Expected<bool> there = hasTokenizer(model);
    if (!there) return there.takeError();
    if (!*there) {
      notes.push_back(model + " has no tokenizer, and so has the bundle none");
      return std::string();
    }
  }
  const std::string &path = given.empty() ? model : given;
  llvm::Expected<std::string> made = tokenizerOf(path, form);
  if (!made) return made;
  TokenNumbers tokens = tokenNumbers(*made);
  std::optional<int64_t> known = tokensOf(m);
  if (!known || tokens.count <= *known) return made;
  std::string found =
      path + ": the tokenizer has " + std::to_string(tokens.count) + " tokens, the model " + std::to_string(*known);
  if (tokens.greatest >= *known) return llvm::createStringError(found + ": it is another model's");
  notes.push_back(found + ": the model refuses the others, which are added ones");
  return made;
}

} // namespace astra::import

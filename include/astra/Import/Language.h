//===- Language.h: a module from the files of a language model --------------===//
// Gives:    importLanguageModel: entries that read tokens into a cache of keys and values, score text, embed and
//           sample; docs/language.md says what they take and give.
// Keeps:    the weights in the formats of their files.
#pragma once
#include "astra/IR/Module.h"

namespace astra {

struct LanguageOptions {
  int64_t context = 0;      // tokens that a sequence may have; 0: what the model is made for, at most 4096
  int64_t batch = 1;        // sequences
  int64_t chunk = 128;      // tokens of one that a call takes at most
  DType cache = DType::F32; // of keys and values: F32, F16 or I8
  std::vector<std::string> *notes = nullptr; // what is worth to know, if it is not null
};

/// Whether it is a folder with a config.json, or a file .gguf.
bool isLanguageModel(llvm::StringRef path);
/// `path`: a folder as Hugging Face's transformers saves one, or a GGUF file. Errors are sentences that begin with the
/// path. What such files can say and Astra lacks (an architecture, a scaling of rotations) has the error code
/// std::errc::not_supported, all else invalid_argument.
llvm::Expected<Module> importLanguageModel(llvm::StringRef path, const LanguageOptions &options);

/// One row of the table of architectures, for docs and tests.
struct LanguageRow {
  const char *name;    // model_type of config.json
  const char *gguf;    // general.architecture of a GGUF file; "" if it has none of its own
  const char *remarks; // what it has that others lack
};
std::vector<LanguageRow> languageRows();

} // namespace astra

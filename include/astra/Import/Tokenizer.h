//===- Tokenizer.h: tokenizer files become what libastra_text reads -------===//
// Takes:    tokenizer.json of the package `tokenizers`, and the files beside it; the metadata of a GGUF file.
// Gives:    the bytes that go into a bundle (docs/tokenizers.md).
// Keeps:    a kind of step, model or decoder that is not supported is refused by name. Untrusted text is read.
// Does not: know what runs a tokenizer (lib/Text).
#pragma once
#include "astra/Import/WeightFile.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace astra {
struct Module;
}

namespace astra::import {

/// `tokenizer` is the text of tokenizer.json, `config` that of tokenizer_config.json or empty; `chatTemplate` the text
/// of chat_template.jinja or empty: then the config's is taken. A template that is none of the known forms
/// (chatForms()) is an error, unless `form` names one; "none": no conversations.
llvm::Expected<std::string> tokenizerFromJson(llvm::StringRef tokenizer, llvm::StringRef config = {},
                                              llvm::StringRef chatTemplate = {}, llvm::StringRef form = {});

/// The tokenizer in a GGUF file: the keys tokenizer.ggml.* and tokenizer.chat_template. `form` as above.
llvm::Expected<std::string> tokenizerFromGguf(const WeightFile &file, llvm::StringRef form = {});

/// The tokenizer beside a model, which is a folder with tokenizer.json, a tokenizer.json, or a GGUF file. Also takes
/// what is compiled already. An error begins with the file's name.
llvm::Expected<std::string> tokenizerOf(const std::string &path, llvm::StringRef form = {});

/// The tokens of a compiled tokenizer: all of them, and the greatest number that a text without names of added tokens
/// may have. 0 and -1 if the bytes are none.
struct TokenNumbers {
  int64_t count = 0, greatest = -1;
};
TokenNumbers tokenNumbers(llvm::StringRef compiled);

/// The tokenizer for the bundle of a language model: the one at `given`, or, where that is empty, the one beside the
/// model or in its GGUF file; "" and a note where there is none. One that may give tokens which the module has no
/// scores for is an error.
llvm::Expected<std::string> tokenizerOfModel(const std::string &model, const std::string &given, llvm::StringRef form,
                                             const Module &m, std::vector<std::string> &notes);

/// The names of the known forms of conversations, in the order of the table, joined by ", ".
std::string chatForms();

} // namespace astra::import

//===- Tokenizer.h: tokenizer files become what libastra_text reads -------===//
// Takes:    tokenizer.json of the package `tokenizers`, and the files beside it.
// Gives:    the bytes that go into a bundle (docs/tokenizers.md).
// Keeps:    a kind of step, model or decoder that is not supported is refused by name. Untrusted text is read.
// Does not: read files.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace astra::import {

/// `tokenizer` is the text of tokenizer.json, `config` that of tokenizer_config.json or empty; `chatTemplate` the text
/// of chat_template.jinja or empty: then the config's is taken. A template that is none of the known forms
/// (chatForms()) is an error, unless `form` names one; "none": no conversations.
llvm::Expected<std::string> tokenizerFromJson(llvm::StringRef tokenizer, llvm::StringRef config = {},
                                              llvm::StringRef chatTemplate = {}, llvm::StringRef form = {});

/// The names of the known forms of conversations, in the order of the table, joined by ", ".
std::string chatForms();

} // namespace astra::import

//===- Steps.h: normalizers, pre-tokenizers and decoders of tokenizer.json -===//
// Takes:    the objects of tokenizer.json.
// Gives:    steps of a draft, and what its tokens stand for.
// Keeps:    the meaning of the package `tokenizers`.
// Does not: know models.
#pragma once

#include "Draft.h"
#include "Json.h"

namespace astra::import::text {

void addNormalizer(Draft &draft, const Members &normalizer);
/// True in `byteLevel` if the model gets bytes and not characters.
void addPreTokenizer(Draft &draft, const Members &preTokenizer, bool &byteLevel);
/// Sets the output of every token and the flags of decoding.
void setOutputs(Draft &draft, const Members &decoder);

/// The bytes that stand behind the characters of a byte-level vocabulary; none: a character stands for none.
std::optional<std::string> fromByteLevel(llvm::StringRef token);

} // namespace astra::import::text

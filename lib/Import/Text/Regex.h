//===- Regex.h: patterns of tokenizers as programs ------------------------===//
// Takes:    a regular expression as tokenizer files have them (the syntax of Oniguruma and of Rust's regex).
// Gives:    a program of lib/Text/format/Blob.h, which runs forward only.
// Keeps:    the order of alternatives and the greed of runs: what a backtracking matcher finds.
// Does not: support groups that are read back, lazy runs, looking behind, and runs of groups without an end.
#pragma once

#include "Draft.h"

namespace astra::import::text {

llvm::Expected<uint32_t> compilePattern(Draft &draft, llvm::StringRef regex);

} // namespace astra::import::text

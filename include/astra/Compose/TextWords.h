//===- TextWords.h: composites in .uop text --------------------------------===//
// Gives:    parsing of what users write: the text form, where a statement may be an einsum.
#pragma once
#include "astra/IR/TextWords.h"

namespace astra::compose {

/// parse of IR/Text.h, and %y = einsum "ij,jk->ik" path=[(0, 1)] %a, %b. A note tells the order of each and its cost.
llvm::Expected<Module> parseText(llvm::StringRef text, llvm::StringRef fileName,
                                 std::vector<std::string> *notes = nullptr);

} // namespace astra::compose

//===- TextWords.h: words of the .uop text that stand for composites -------===//
// Gives:    parsing where statements may name what is made of several ops.
// Keeps:    a module has the ops alone: the printer knows no composite, and text that it gave is read without words.
// Does not: know a composite (Compose/TextWords.h).
#pragma once
#include "astra/IR/Module.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace astra {

class TextWords {
public:
  virtual ~TextWords() = default;
  /// The names of its attributes; nothing where the word is none of these.
  virtual std::optional<llvm::ArrayRef<llvm::StringRef>> attributes(llvm::StringRef word) const = 0;
  /// The value of  %y = WORD "..." NAME=VALUE ... %a, %b  in `c`, the same for all statements of a text. `said` is the
  /// string and behind it " NAME=VALUE" for each attribute, as written. `note` is what is worth to tell of it, or "".
  virtual llvm::Expected<UOpRef> make(Context &c, llvm::StringRef word, llvm::StringRef said,
                                      llvm::ArrayRef<UOpRef> operands, std::string &note) = 0;
};

/// parse of Text.h with these words, made for this text. `notes`, if it is not null, gets "FILE:LINE: WORD NOTE".
llvm::Expected<Module> parse(llvm::StringRef text, llvm::StringRef fileName, TextWords &words,
                             std::vector<std::string> *notes = nullptr);

} // namespace astra

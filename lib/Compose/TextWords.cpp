//===- TextWords.cpp: composites in .uop text ------------------------------===//
// Takes:    statements of a text, which may be wrong in every way.
// Gives:    what they stand for.
// Keeps:    one Composer for a text: the arguments of functions that it makes have numbers of their own.
#include "astra/Compose/TextWords.h"
#include "astra/Compose/Einsum.h"

namespace astra::compose {

namespace {

class Words : public TextWords {
public:
  std::optional<llvm::ArrayRef<llvm::StringRef>> attributes(llvm::StringRef word) const override {
    static constexpr llvm::StringRef ofEinsum[] = {"path", "slices", "memory"};
    return word == "einsum" ? std::optional(llvm::ArrayRef(ofEinsum)) : std::nullopt;
  }
  llvm::Expected<UOpRef> make(Context &c, llvm::StringRef, llvm::StringRef said, llvm::ArrayRef<UOpRef> operands,
                              std::string &note) override {
    if (!composer) composer.emplace(c);
    UOpRef made = einsumAndCost(*composer, said, operands, note);
    if (composer->failed()) return llvm::createStringError(*composer->takeFailure().error);
    return made;
  }

private:
  std::optional<Composer> composer;
};

} // namespace

llvm::Expected<Module> parseText(llvm::StringRef text, llvm::StringRef fileName, std::vector<std::string> *notes) {
  Words words;
  return parse(text, fileName, words, notes);
}

} // namespace astra::compose

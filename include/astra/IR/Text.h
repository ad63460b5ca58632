//===- Text.h: the .uop text form ------------------------------------------===//
// Gives:    printing of modules, nodes, types and symbolic integers; parsing with diagnostics that carry a caret.
// Keeps:    print(parse(t)) == t for every t that print gave; parse(print(m)) has the same graph, node for node. Cost
//           is linear in the graph, nothing recurses over it.
// Does not: check what a stage allows (Verify.h). Grammar: docs/text.md.
#pragma once
#include "astra/IR/Module.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace astra {

struct PrintOptions {
  bool data = true;  // false: parameters and states keep their declaration and lose their bytes (for reading only)
  bool types = true; // false: no ": f32[n]" after statements whose type can be inferred
};
std::string print(const Module &m, const PrintOptions &options = {});

/// A listing: the nodes that `roots` reach, one statement a line, dims first. Kernels and fragments print this way.
std::string print(llvm::ArrayRef<UOpRef> roots, const PrintOptions &options = {});

/// The module in `text`. `fileName` is for diagnostics ("FILE:LINE:COL: error: SENTENCE", the line, a caret); data that
/// the text names as file("w.safetensors", "tensor") is looked for in its folder and nowhere else.
llvm::Expected<Module> parse(llvm::StringRef text, llvm::StringRef fileName);

/// The nodes of a listing, in order.
llvm::Expected<std::vector<UOpRef>> parseListing(Context &c, llvm::StringRef text, llvm::StringRef fileName);

/// "f32[n, 64]"; a scalar is "f32".
std::string typeText(DType t, Shape shape);
/// "n*4 + 1". For diagnostics: what is very deep or long ends in "...".
std::string indexText(UOpRef x);
/// Appends x; `nameOf` gives the name of a node that has one (always of extents and ranges), or nothing. Recurses as
/// deep as unnamed floordiv, mod, min and max are nested.
void printIndex(std::string &out, UOpRef x, llvm::function_ref<std::string(UOpRef)> nameOf);

/// A letter or _, then letters, digits, _, and dots between them: what is written without quotes.
bool isIdentifier(llvm::StringRef name);
/// The name, in quotes if it needs them.
std::string quoted(llvm::StringRef name);

} // namespace astra

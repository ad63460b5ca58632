//===- DimText.h: dims that a model writes as arithmetic -------------------===//
// Takes:    the name that a model gives a dim, and the dims that its inputs name alone.
// Gives:    the symbolic integer that the name spells: exporters write "past + 1" where an extent follows from others.
// Does not: make dims; know bounds.
#pragma once
#include "astra/IR/Index.h"

namespace astra {

/// Whether the text is one name: a letter or _, then letters, digits, _ and dots.
bool isDimName(llvm::StringRef text);

/// The value of an expression of names and integers with + - * // % ( ), FloorDiv, Mod, Max and Min (in any case), and
/// `dim` giving the value of a name. Null when the text is anything else, when `dim` gives null, when a divisor can be
/// 0 or less, or when a value can leave 0 ... 2^40. `floor(a / b)` is a // b.
UOpRef dimFromText(Context &c, llvm::StringRef text, llvm::function_ref<UOpRef(llvm::StringRef)> dim);

} // namespace astra

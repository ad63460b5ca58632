//===- Letters.h: what the parser and the reader of locations share --------===//
#pragma once
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace astra::stablehlo {

inline bool isNameStart(char c) { return llvm::isAlpha(c) || c == '_'; }
inline bool isNameChar(char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.'; }

/// How far `text` goes to the bracket that closes the one it begins with, and with it; nothing where none does. Knows
/// strings and arrows.
std::optional<size_t> closing(llvm::StringRef text);

} // namespace astra::stablehlo

//===- JsonDepth.h: how deep JSON is nested --------------------------------===//
// Takes:    text from outside.
// Gives:    whether it is nested more deeply than a limit.
// Keeps:    no recursion: LLVM's reader of JSON recurses, and is given nothing deeper.
// Does not: parse.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace astra {

inline bool isNestedDeeper(llvm::StringRef json, unsigned most) {
  unsigned depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') quoted = !quoted;
    if (quoted && json[i] == '\\') ++i;
    if (quoted) continue;
    if ((json[i] == '[' || json[i] == '{') && ++depth > most) return true;
    if ((json[i] == ']' || json[i] == '}') && depth) --depth;
  }
  return false;
}

} // namespace astra

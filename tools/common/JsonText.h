//===- JsonText.h: strings and numbers as JSON ------------------------------===//
// Takes:    bytes, UTF-8 as far as they are text.
// Gives:    what JSON writes for them.
// Keeps:    the standard library only.
// Does not: build documents.
#pragma once
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

namespace astra::tool {

inline std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    char escaped[8];
    bool special = (unsigned char)c < 32 || c == '"' || c == '\\';
    std::snprintf(escaped, sizeof escaped, special ? "\\u%04x" : "%c", c);
    out += escaped;
  }
  return out + "\"";
}

/// JSON has no infinities and no NaN: they are strings.
inline std::string jsonNumber(double v) {
  char text[32];
  std::snprintf(text, sizeof text, std::isfinite(v) ? "%.17g" : "\"%g\"", v);
  return text;
}

} // namespace astra::tool

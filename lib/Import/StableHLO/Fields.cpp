//===- Fields.cpp: attributes of the dialect -------------------------------===//
// Takes:    what stands behind the # of an attribute.
// Gives:    its name, pairs of a key and integers, or its words.
#include "Text.h"
#include "llvm/ADT/StringExtras.h"

namespace astra::stablehlo {

static bool isNameChar(char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.'; }

const std::vector<int64_t> *Fields::find(llvm::StringRef key) const {
  for (const auto &[name, value] : lists)
    if (name == key) return &value;
  return nullptr;
}

std::optional<Fields> parseFields(llvm::StringRef text) {
  Fields f;
  f.mnemonic = text.take_while(isNameChar).str();
  text = text.drop_front(f.mnemonic.size()).trim();
  if (text.empty()) return f;
  if (!text.consume_front("<") || !text.consume_back(">")) return std::nullopt;
  text = text.trim();
  if (!llvm::StringRef(f.mnemonic).contains('.')) { // #stablehlo<precision DEFAULT>, #stablehlo<conv ...>
    llvm::StringRef kind = text.take_while(isNameChar);
    f.mnemonic += "." + kind.str();
    text = text.drop_front(kind.size()).trim();
    if (text.starts_with("<") && text.ends_with(">")) text = text.drop_front().drop_back().trim();
  }
  if (!text.contains('=')) {
    f.words = text.str();
    return f;
  }
  while (!text.empty()) {
    llvm::StringRef key = text.take_while(isNameChar);
    text = text.drop_front(key.size()).ltrim();
    if (key.empty() || !text.consume_front("=")) return std::nullopt;
    text = text.ltrim();
    std::vector<int64_t> values;
    bool list = text.consume_front("[");
    while (true) {
      text = text.ltrim();
      int64_t value = 0;
      if (list && text.consume_front("]")) break;
      if (text.consume_front("true")) {
        values.push_back(1);
      } else if (text.consume_front("false")) {
        values.push_back(0);
      } else if (!text.consumeInteger(10, value)) {
        values.push_back(value);
      } else {
        return std::nullopt;
      }
      text = text.ltrim();
      if (!list) break;
      if (!text.consume_front(",") && !text.starts_with("]")) return std::nullopt;
    }
    f.lists.push_back({key.str(), std::move(values)});
    text = text.ltrim();
    if (!text.empty() && !text.consume_front(",")) return std::nullopt;
    text = text.ltrim();
  }
  return f;
}

} // namespace astra::stablehlo

//===- Locations.cpp: where ops stand in the text and in the user's source -===//
// Takes:    a place in the text; what stands between the parentheses of loc(...), which may be anything.
// Gives:    lines and columns, names and places for sentences; "" where a location does not say.
// Keeps:    aliases are followed a bounded number of times.
#include "Letters.h"
#include "Text.h"

namespace astra::stablehlo {

std::string File::place(const char *at) const {
  llvm::StringRef before(text.data(), at - text.data());
  size_t line = before.count('\n') + 1, begin = before.rfind('\n');
  size_t column = begin == llvm::StringRef::npos ? before.size() + 1 : before.size() - begin;
  return path.str() + ":" + std::to_string(line) + ":" + std::to_string(column);
}

namespace {

/// The names and places of a location, outermost first: a name stands before what it is the name of; of callsites the
/// callee counts.
void readLocation(const llvm::StringMap<llvm::StringRef> &aliases, llvm::StringRef text, std::string &name,
                  std::string &place) {
  for (unsigned steps = 0; steps < 32 && !text.empty(); ++steps) {
    text = text.trim();
    if (text.consume_front("#")) {
      auto known = aliases.find(text.take_while(isNameChar));
      text = known == aliases.end() ? llvm::StringRef() : known->second;
      continue;
    }
    if (text.consume_front("callsite") || text.consume_front("fused")) {
      text = text.ltrim();
      if (text.starts_with("<"))
        if (auto n = closing(text)) text = text.drop_front(*n);
      text = text.drop_front(text.empty() ? 0 : 1);
      continue;
    }
    if (!text.consume_front("\"")) return;
    size_t quote = text.find('"');
    if (quote == llvm::StringRef::npos) return;
    llvm::StringRef word = text.take_front(quote);
    text = text.drop_front(quote + 1);
    if (text.consume_front(":")) {
      place = (word + ":" + text.take_while(llvm::isDigit)).str();
      return;
    }
    if (name.empty()) name = word.str();
    if (!text.consume_front("(")) return;
  }
}

} // namespace

std::string File::source(llvm::StringRef location) const {
  std::string name, place;
  readLocation(locations, location, name, place);
  return name + (name.empty() || place.empty() ? "" : ", ") + place;
}

std::string File::nameOf(llvm::StringRef location) const {
  std::string name, place;
  for (unsigned steps = 0; steps < 8 && location.consume_front("#"); ++steps)
    location = locations.lookup(location.take_while(isNameChar));
  if (!location.starts_with("\"") || location.count('"') != 2 || !location.ends_with("\"")) return "";
  return location.drop_front().drop_back().str();
}

} // namespace astra::stablehlo

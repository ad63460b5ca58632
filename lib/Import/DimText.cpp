//===- DimText.cpp: read the arithmetic of a dim's name --------------------===//
// Takes:    text from a model.
// Gives:    a symbolic integer.
// Keeps:    the depth of nesting small: what is deeper is not read.
#include "DimText.h"
#include "llvm/ADT/StringExtras.h"

namespace astra {

namespace {

constexpr unsigned deepest = 16;
constexpr size_t longest = 256;
constexpr int64_t largest = int64_t(1) << 40;

bool startsName(char ch) { return llvm::isAlpha(ch) || ch == '_'; }
bool goesOn(char ch) { return llvm::isAlnum(ch) || ch == '_' || ch == '.'; }

class Reader {
public:
  Reader(Context &c, llvm::StringRef text, llvm::function_ref<UOpRef(llvm::StringRef)> dim)
      : c(c), rest(text.trim()), dim(dim) {}

  UOpRef whole() {
    UOpRef value = sum(0);
    return value && rest.empty() && value->lo >= 0 && value->hi <= largest ? value : nullptr;
  }

private:
  bool take(llvm::StringRef token) {
    if (!rest.consume_front(token)) return false;
    rest = rest.ltrim();
    return true;
  }
  bool medium(UOpRef x) const { return x && x->lo >= -largest && x->hi <= largest; }
  UOpRef checked(UOpRef x) const { return medium(x) ? x : nullptr; }
  UOpRef quotient(UOpRef x, UOpRef y, bool remainder) {
    if (!x || !y || y->lo < 1) return nullptr;
    return checked(remainder ? idxMod(c, x, y) : idxDiv(c, x, y));
  }
  UOpRef difference(UOpRef x, UOpRef y) { return x && y ? checked(idxSub(c, x, y)) : nullptr; }

  UOpRef sum(unsigned depth) {
    UOpRef x = product(depth);
    while (x) {
      if (take("+")) {
        UOpRef y = product(depth);
        x = y ? checked(idxAdd(c, x, y)) : nullptr;
      } else if (take("-")) {
        x = difference(x, product(depth));
      } else {
        break;
      }
    }
    return x;
  }

  /// A single / is a quotient that the text rounds down: only `floor` may hold one, and nothing after it, which would
  /// take the quotient as it was.
  UOpRef product(unsigned depth, bool inFloor = false) {
    UOpRef x = atom(depth);
    while (x) {
      if (take("//"))
        x = quotient(x, atom(depth), false);
      else if (inFloor && take("/"))
        return quotient(x, atom(depth), false);
      else if (take("%"))
        x = quotient(x, atom(depth), true);
      else if (!rest.starts_with("**") && take("*"))
        x = times(x, atom(depth));
      else
        break;
    }
    return x;
  }
  UOpRef times(UOpRef x, UOpRef y) {
    constexpr int64_t small = int64_t(1) << 31;
    bool fits = x && y && x->lo > -small && x->hi < small && y->lo > -small && y->hi < small;
    return fits ? checked(idxMul(c, x, y)) : nullptr;
  }

  UOpRef atom(unsigned depth) {
    if (depth >= deepest || rest.empty()) return nullptr;
    if (take("-")) return difference(c.index(0), atom(depth + 1)); // of what follows at once: -h % 4 is (-h) % 4
    if (take("(")) {
      UOpRef x = sum(depth + 1);
      return x && take(")") ? x : nullptr;
    }
    if (llvm::isDigit(rest.front())) {
      llvm::StringRef digits = rest.take_while(llvm::isDigit);
      int64_t value;
      if (digits.getAsInteger(10, value) || value > largest) return nullptr;
      take(digits);
      return c.index(value);
    }
    if (!startsName(rest.front())) return nullptr;
    llvm::StringRef name = rest.take_while(goesOn);
    take(name);
    return take("(") ? call(name, depth) : checked(dim(name));
  }

  UOpRef call(llvm::StringRef name, unsigned depth) {
    if (name.equals_insensitive("floor")) {
      UOpRef x = product(depth + 1, true);
      return x && take(")") ? x : nullptr;
    }
    UOpRef x = sum(depth + 1);
    UOpRef y = x && take(",") ? sum(depth + 1) : nullptr;
    if (!y || !take(")")) return nullptr;
    if (name.equals_insensitive("floordiv")) return quotient(x, y, false);
    if (name.equals_insensitive("mod")) return quotient(x, y, true);
    if (name.equals_insensitive("max")) return idxMax(c, x, y);
    if (name.equals_insensitive("min")) return idxMin(c, x, y);
    return nullptr;
  }

  Context &c;
  llvm::StringRef rest;
  llvm::function_ref<UOpRef(llvm::StringRef)> dim;
};

} // namespace

bool isDimName(llvm::StringRef text) { return !text.empty() && startsName(text.front()) && llvm::all_of(text, goesOn); }

UOpRef dimFromText(Context &c, llvm::StringRef text, llvm::function_ref<UOpRef(llvm::StringRef)> dim) {
  return text.size() > longest ? nullptr : Reader(c, text, dim).whole();
}

} // namespace astra

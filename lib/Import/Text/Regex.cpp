//===- Regex.cpp: from a regular expression to a program ------------------===//
// Takes:    see Regex.h.
// Gives:    one recursive descent for the syntax; each construct is compiled when it has been read.
// Keeps:    a program is at most kMaxCode words long.
// Does not: optimize, but neighbouring alternatives of one character are one set.
#include "Regex.h"

#include "llvm/ADT/StringExtras.h"

namespace astra::import::text {

using namespace astra::text;

namespace {

using Program = std::vector<uint32_t>;

uint32_t word(Code code, size_t argument) { return uint32_t(code) | uint32_t(argument) << 8; }

class Compiler {
public:
  Compiler(Draft &draft, llvm::StringRef regex) : draft(draft), regex(regex) {
    if (auto all = characters(regex))
      text = *all;
    else
      fail("it is no UTF-8");
  }

  llvm::Expected<uint32_t> run() {
    Program program = alternatives();
    if (at < text.size()) fail("a parenthesis is closed that was not opened");
    program.push_back(word(Code::Match, 0));
    if (draft.code.size() + program.size() > kMaxCode) fail("it is too long");
    if (!error.empty()) return llvm::createStringError("the pattern " + regex + " is not supported: " + error);
    uint32_t begin = uint32_t(draft.code.size());
    draft.code.insert(draft.code.end(), program.begin(), program.end());
    return begin;
  }

private:
  /// What a quantifier may stand behind: one character, or a program.
  struct Item {
    std::optional<CharSet> set;
    Program program;
    bool isEmpty() const { return !set && program.empty(); }
  };

  void fail(const llvm::Twine &why) {
    if (error.empty()) error = why.str();
    at = text.size();
  }
  bool done() const { return at >= text.size(); }
  bool eat(char32_t c) {
    if (done() || text[at] != c) return false;
    ++at;
    return true;
  }
  bool eat(const char32_t *s) {
    std::u32string_view wanted = s;
    if (text.compare(at, wanted.size(), wanted)) return false;
    at += wanted.size();
    return true;
  }

  Program alternatives() {
    if (++depth > 64) fail("it is nested too deeply");
    std::vector<Program> all = {sequence()};
    while (eat(U'|')) all.push_back(sequence());
    --depth;
    Program out = std::move(all.back());
    for (size_t i = all.size() - 1; i-- > 0;) {
      Program first = std::move(all[i]), joined;
      joined.push_back(word(Code::Either, first.size() + 2));
      joined.insert(joined.end(), first.begin(), first.end());
      joined.push_back(word(Code::Jump, out.size() + 1));
      joined.insert(joined.end(), out.begin(), out.end());
      out = std::move(joined);
      if (out.size() > kMaxCode) fail("it is too long");
    }
    return out;
  }

  Program sequence() {
    Program out;
    while (!done() && text[at] != U'|' && text[at] != U')') {
      Item item = atom();
      Program one = quantified(item);
      out.insert(out.end(), one.begin(), one.end());
      if (out.size() > kMaxCode) fail("it is too long");
    }
    return out;
  }

  Program single(const CharSet &set) { return {word(Code::Set, draft.set(set))}; }

  Program quantified(Item &item) {
    constexpr uint32_t endless = 0xffffffffu;
    uint32_t least = 1, most = 1;
    if (eat(U'?')) {
      least = 0;
    } else if (eat(U'*')) {
      least = 0, most = endless;
    } else if (eat(U'+')) {
      most = endless;
    } else if (!done() && text[at] == U'{') {
      ++at;
      least = number();
      most = least;
      if (eat(U',')) most = !done() && text[at] == U'}' ? endless : number();
      if (!eat(U'}') || most < least || least > 1000 || (most != endless && most > 1000))
        fail("a repetition is malformed, or above 1000");
    } else {
      return item.set ? single(*item.set) : item.program;
    }
    bool hold = eat(U'+');
    if (!hold && !done() && text[at] == U'?') fail("a run is lazy");
    if (item.isEmpty()) fail("a repetition has nothing before it");
    if (item.set) return {word(hold ? Code::Hold : Code::Run, draft.set(*item.set)), least, most};
    if (hold || most == endless) fail("a group is repeated without an end");
    Program out;
    for (uint32_t i = 0; i < least && error.empty(); ++i) append(out, item.program);
    Program optional; // (x(x(x)?)?)?
    for (uint32_t i = least; i < most && error.empty(); ++i) {
      Program inner = item.program;
      append(inner, optional);
      optional = {word(Code::Either, inner.size() + 1)};
      append(optional, inner);
    }
    append(out, optional);
    return out;
  }

  void append(Program &to, const Program &more) {
    to.insert(to.end(), more.begin(), more.end());
    if (to.size() > kMaxCode) fail("it is too long");
  }

  uint32_t number() {
    uint32_t value = 0;
    size_t begin = at;
    while (!done() && text[at] >= U'0' && text[at] <= U'9' && value < 100000)
      value = value * 10 + uint32_t(text[at++] - U'0');
    if (at == begin) fail("a repetition has no number");
    return value;
  }

  Item atom() {
    if (eat(U'(')) return group();
    if (eat(U'[')) return {bracket(), {}};
    if (eat(U'.')) return {CharSet().add('\n').complement(), {}};
    if (eat(U'^')) return {std::nullopt, {word(Code::AtBegin, 0)}};
    if (eat(U'$')) return {std::nullopt, {word(Code::AtEnd, 0)}};
    if (eat(U'\\')) return {escape(), {}};
    if (text[at] == U'?' || text[at] == U'*' || text[at] == U'+' || text[at] == U'{')
      fail("a repetition has nothing before it");
    if (done()) return {CharSet(), {}};
    return {letter(text[at++]), {}};
  }

  CharSet letter(char32_t c) const { return foldCase ? sameLetter(c) : CharSet().add(c); }

  Item group() {
    bool outer = foldCase, ahead = false, negative = false;
    if (eat(U"?:")) {
    } else if (eat(U"?i:")) {
      foldCase = true;
    } else if (eat(U"?=")) {
      ahead = true;
    } else if (eat(U"?!")) {
      ahead = negative = true;
    } else if (!done() && text[at] == U'?') {
      fail("a group is of an unknown kind");
    }
    Program inside = alternatives();
    foldCase = outer;
    if (!eat(U')')) fail("a parenthesis is not closed");
    if (!ahead) return {std::nullopt, inside};
    inside.push_back(word(Code::Match, 0));
    inside.insert(inside.begin(), word(negative ? Code::NotAhead : Code::Ahead, inside.size() + 1));
    return {std::nullopt, inside};
  }

  CharSet bracket() {
    CharSet set;
    bool negative = eat(U'^'), any = false;
    while (!eat(U']') || !any) {
      if (done()) {
        fail("a bracket is not closed");
        return set;
      }
      any = true;
      if (eat(U"&&")) fail("sets are intersected");
      if (eat(U'[')) {
        set |= bracket();
        continue;
      }
      std::optional<char32_t> first;
      if (eat(U'\\')) {
        CharSet one = escape(&first);
        if (!first) {
          set |= one;
          continue;
        }
      } else {
        if (done()) continue;
        first = text[at++];
      }
      if (at + 1 < text.size() && text[at] == U'-' && text[at + 1] != U']') {
        ++at;
        std::optional<char32_t> last;
        if (eat(U'\\'))
          escape(&last);
        else
          last = text[at++];
        if (!last || *last < *first) fail("a range of characters is malformed");
        if (last && *last >= *first) set.add(*first, *last);
        if (foldCase) fail("a range of characters is read without case");
      } else {
        set |= letter(*first);
      }
    }
    return negative ? set.complement() : set;
  }

  /// What follows a backslash; `single` is set if it is one character.
  CharSet escape(std::optional<char32_t> *single = nullptr) {
    if (done()) {
      fail("it ends with a backslash");
      return {};
    }
    char32_t c = text[at++];
    switch (c) {
    case U's': return whiteSpace();
    case U'S': return whiteSpace().complement();
    case U'd': return *category("Nd");
    case U'D': return category("Nd")->complement();
    case U'w': return wordCharacters();
    case U'W': return wordCharacters().complement();
    case U'p':
    case U'P': return property(c == U'P');
    default: break;
    }
    static constexpr std::pair<char32_t, char32_t> controls[] = {
        {U'n', U'\n'}, {U'r', U'\r'}, {U't', U'\t'}, {U'f', U'\f'}, {U'v', U'\v'}};
    char32_t value = c;
    bool known = c < 0x80 && !llvm::isAlnum(char(c));
    for (auto [name, control] : controls)
      if (c == name) value = control, known = true;
    if (c == U'x' || c == U'u') value = hexadecimal(c == U'x' ? 2 : 4), known = true;
    if (!known) fail("an escape is unknown");
    if (single) *single = value;
    return letter(value);
  }

  char32_t hexadecimal(unsigned digits) {
    bool braces = eat(U'{');
    char32_t value = 0;
    unsigned count = 0;
    while (!done() && count < (braces ? 8 : digits) && text[at] < 0x80 && llvm::isHexDigit(char(text[at]))) {
      value = value * 16 + llvm::hexDigitValue(char(text[at++]));
      ++count;
    }
    if (!count || (braces ? !eat(U'}') : count != digits) || value >= kCharacters)
      fail("a character's number is malformed");
    return value < kCharacters ? value : U'?';
  }

  CharSet property(bool negative) {
    std::string name;
    if (eat(U'{')) {
      negative ^= eat(U'^');
      while (!done() && text[at] != U'}' && name.size() < 64) name += char(text[at] < 0x80 ? text[at++] : (++at, '?'));
      if (!eat(U'}')) fail("a property is not closed");
    } else if (!done()) {
      name = char(text[at++]);
    }
    static constexpr std::pair<const char *, const char *> longNames[] = {
        {"Letter", "L"}, {"Number", "N"}, {"Punctuation", "P"}, {"Symbol", "S"}, {"Mark", "M"}};
    llvm::StringRef wanted = name;
    for (auto [longName, shortName] : longNames)
      if (wanted == longName) wanted = shortName;
    std::optional<CharSet> set = category(wanted);
    if (!set) {
      fail("the property " + name + " is unknown");
      return {};
    }
    return negative ? set->complement() : *set;
  }

  Draft &draft;
  llvm::StringRef regex;
  std::u32string text;
  size_t at = 0;
  unsigned depth = 0;
  bool foldCase = false;
  std::string error;
};

} // namespace

llvm::Expected<uint32_t> compilePattern(Draft &draft, llvm::StringRef regex) { return Compiler(draft, regex).run(); }

} // namespace astra::import::text

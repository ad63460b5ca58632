//===- TextLexer.cpp: tokens and diagnostics of .uop text ------------------===//
// Takes:    untrusted text.
// Gives:    tokens; on an error the sentence with file, line, column, the line and a caret.
#include "TextParser.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace astra::text;
using llvm::StringRef;

static bool inName(char ch) { return llvm::isAlnum(ch) || ch == '_'; }

void Parser::next() {
  const char *end = text.end();
  lastEnd = cursor;
  for (;;) { // spaces and comments
    while (cursor != end && (*cursor == ' ' || *cursor == '\n' || *cursor == '\t' || *cursor == '\r')) ++cursor;
    if (end - cursor < 2 || cursor[0] != '/' || cursor[1] != '/') break;
    while (cursor != end && *cursor != '\n') ++cursor;
  }
  tok = Token();
  tok.at = cursor;
  if (cursor == end) return;
  const char *begin = cursor;
  auto take = [&](Kind k) {
    tok.kind = k;
    tok.text = StringRef(begin, cursor - begin);
  };
  auto word = [&] {
    while (cursor != end && (inName(*cursor) || (*cursor == '.' && end - cursor > 1 && inName(cursor[1])))) ++cursor;
  };
  auto quotes = [&] {
    ++cursor;
    while (cursor != end && *cursor != '"' && *cursor != '\n') cursor += *cursor == '\\' && end - cursor > 1 ? 2 : 1;
    if (cursor == end || *cursor == '\n') {
      fail(begin, "the string has no end on its line");
      cursor = end;
      return false;
    }
    ++cursor;
    return true;
  };
  char ch = *cursor;
  if (ch == '%' || ch == '@') {
    begin = ++cursor;
    if (cursor != end && *cursor == '"') {
      if (!quotes()) return;
    } else if (cursor != end && llvm::isDigit(*cursor))
      while (cursor != end && llvm::isDigit(*cursor)) ++cursor;
    else
      word();
    if (cursor == begin) {
      fail(tok.at, llvm::Twine("a name must follow ") + StringRef(&ch, 1));
      cursor = end;
      return;
    }
    return take(ch == '%' ? Kind::Local : Kind::Global);
  }
  if (ch == '"') {
    if (quotes()) take(Kind::String);
    return;
  }
  if (llvm::isDigit(ch)) {
    auto digits = [&] {
      while (cursor != end && llvm::isAlnum(*cursor)) { // hexadecimal digits and exponents too
        bool exponent = (*cursor == 'e' || *cursor == 'E') && !StringRef(begin, cursor - begin).starts_with("0x");
        ++cursor;
        if (exponent && cursor != end && (*cursor == '+' || *cursor == '-')) ++cursor;
      }
    };
    digits();
    if (end - cursor > 1 && *cursor == '.' && llvm::isDigit(cursor[1])) {
      ++cursor;
      digits();
    }
    return take(Kind::Number);
  }
  if (inName(ch)) {
    word();
    return take(Kind::Identifier);
  }
  for (StringRef two : {"->", ">=", "<=", "==", ".."})
    if (StringRef(cursor, end - cursor).starts_with(two)) {
      cursor += 2;
      return take(Kind::Mark);
    }
  ++cursor;
  take(Kind::Mark);
}

unsigned Parser::lineOf(const char *at) {
  if (!lineAt || at < lineAt) line = 1, lineAt = text.begin();
  line += StringRef(lineAt, at - lineAt).count('\n');
  lineAt = at;
  return line;
}

bool Parser::fail(const char *at, const llvm::Twine &what) {
  if (!message.empty()) return false; // the first error is the one that tells
  constexpr size_t before = 100, after = 60;
  StringRef head = text.take_front(at - text.begin());
  size_t begin = head.rfind('\n') + 1, column = head.size() - begin + 1; // rfind gives npos, + 1 is 0
  StringRef shown = text.drop_front(begin).take_until([](char ch) { return ch == '\n' || ch == '\r'; });
  size_t cut = column > before ? column - before : 0;
  shown = shown.drop_front(cut).take_front(before + after);
  std::string caret;
  for (char ch : shown.take_front(column - 1 - cut)) caret += ch == '\t' ? '\t' : ' ';
  message = (fileName + ":" + llvm::Twine(lineOf(at)) + ":" + llvm::Twine(column) + ": error: " + what + "\n" + shown +
             "\n" + caret + "^")
                .str();
  return false;
}

std::string Parser::found() const {
  if (tok.is(Kind::End)) return "found the end of the text";
  StringRef whole(tok.at, tok.text.end() - tok.at);
  if (!llvm::isPrint(whole.front())) return "found the byte 0x" + llvm::toHex(whole.take_front(1));
  return "found '" + whole.take_front(40).str() + "'";
}
bool Parser::expect(StringRef mark) {
  if (accept(mark)) return true;
  return missing("expected " + mark + (tok.is(Kind::End) ? ", found the end of the text" : ""));
}
bool Parser::accept(StringRef mark) {
  if (!tok.isMark(mark)) return false;
  next();
  return true;
}
bool Parser::acceptWord(StringRef word) {
  if (!tok.isWord(word)) return false;
  next();
  return true;
}
bool Parser::equalsFollows() const {
  StringRef rest = StringRef(cursor, text.end() - cursor).ltrim(" \t");
  return rest.starts_with("=") && !rest.starts_with("==");
}
bool Parser::beginsStatement() const { return tok.is(Kind::Local) && here() != tok.at && equalsFollows(); }
bool Parser::attributeFollows() const { return tok.is(Kind::Identifier) && equalsFollows(); }
bool Parser::identifier(const char *what, StringRef &word) {
  if (!tok.is(Kind::Identifier)) return missing(llvm::Twine("expected ") + what);
  word = tok.text;
  next();
  return true;
}

std::string Parser::unquote(StringRef raw) const {
  if (!raw.consume_front("\"")) return raw.str();
  raw = raw.drop_back();
  if (!raw.contains('\\')) return raw.str();
  std::string out;
  for (; !raw.empty(); raw = raw.drop_front()) {
    if (raw[0] == '\\' && raw.size() > 2 && llvm::isHexDigit(raw[1]) && llvm::isHexDigit(raw[2])) {
      out += char(llvm::hexDigitValue(raw[1]) * 16 + llvm::hexDigitValue(raw[2]));
      raw = raw.drop_front(2);
      continue;
    }
    if (raw[0] == '\\' && raw.size() > 1) raw = raw.drop_front();
    out += raw[0];
  }
  return out;
}
bool Parser::name(Kind kind, const char *what, std::string &out) {
  if (!tok.is(kind)) return missing(llvm::Twine("expected ") + what);
  out = unquote(tok.text);
  if (out.empty()) return fail("an empty name");
  next();
  return true;
}
bool Parser::string(const char *what, std::string &out) {
  if (!tok.is(Kind::String)) return missing(llvm::Twine("expected ") + what + " in quotes");
  out = unquote(tok.text);
  next();
  return true;
}
bool Parser::integer(int64_t &value) {
  const char *at = here();
  bool negative = accept("-");
  if (!tok.is(Kind::Number)) return fail(at, "expected an integer");
  std::string digits = (negative ? "-" : "") + tok.text.str();
  if (StringRef(digits).getAsInteger(10, value)) return fail(at, digits + " is not a 64-bit integer");
  next();
  return true;
}
bool Parser::literalText(std::string &out) {
  out = accept("-") ? "-" : "";
  if (!tok.is(Kind::Number) && !tok.is(Kind::Identifier)) return missing("expected a literal");
  out += tok.text;
  next();
  return true;
}

//===- TextParser.h: the parser of .uop text -------------------------------===//
// Gives:    the lexer, diagnostics, and the parser of types, symbolic integers, statements (TextParseBody.cpp) and
//           modules (TextParse.cpp).
// Keeps:    the first error only; a function that returns false has reported it. Text is untrusted: numbers are
//           checked, nesting and the length of polynomials are limited, nothing else recurses.
#pragma once
#include "astra/IR/Contract.h"
#include "astra/IR/Fields.h"
#include "astra/IR/Module.h"
#include "astra/IR/TextWords.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace astra::text {

enum class Kind : uint8_t { End, Identifier, Number, String, Local, Global, Mark };

struct Token {
  Kind kind = Kind::End;
  const char *at = nullptr; // where it begins
  llvm::StringRef text;     // without its sigil; a name in quotes keeps them
  bool is(Kind k) const { return kind == k; }
  bool isMark(llvm::StringRef m) const { return kind == Kind::Mark && text == m; }
  bool isWord(llvm::StringRef w) const { return kind == Kind::Identifier && text == w; }
  bool isNumbered() const { return kind == Kind::Local && text[0] >= '0' && text[0] <= '9'; }
};

/// What the names of one body stand for.
struct Scope {
  llvm::StringMap<UOpRef> names, dims;
  llvm::DenseMap<uint32_t, UOpRef> numbers;
  bool function = false; // sees only its arguments
};

class Parser {
public:
  Parser(Context &c, llvm::StringRef text, llvm::StringRef fileName)
      : c(c), text(text), fileName(fileName), cursor(text.begin()) {
    next();
  }
  bool failed() const { return !message.empty(); }
  llvm::Error takeError() { return llvm::createStringError(message); }

  // ---- lexing: `tok` is the token at hand (TextLexer.cpp)
  Token tok;
  void next();
  void jump(const char *to) {
    cursor = to;
    next();
  }
  bool fail(const char *at, const llvm::Twine &what);
  bool fail(const llvm::Twine &what) { return fail(tok.at, what); }
  /// Where something is missing: at the token at hand, or behind the one before it where that ends its line.
  const char *here() const { return llvm::StringRef(lastEnd, tok.at - lastEnd).contains('\n') ? lastEnd : tok.at; }
  bool missing(const llvm::Twine &what) { return fail(here(), what); }
  bool equalsFollows() const;   // behind the token at hand
  bool beginsStatement() const; // %name = on a line of its own
  std::string found() const;    // of the token that is next: found 'word'
  bool expect(llvm::StringRef mark);
  bool accept(llvm::StringRef mark);
  bool acceptWord(llvm::StringRef word);
  bool attributeFollows() const; // an identifier and =
  bool identifier(const char *what, llvm::StringRef &word);
  bool name(Kind kind, const char *what, std::string &out); // after its sigil, quotes undone
  bool string(const char *what, std::string &out);
  bool integer(int64_t &value); // with a sign
  bool literalText(std::string &out);
  std::string unquote(llvm::StringRef raw) const;
  unsigned lineOf(const char *at);

  // ---- types, symbolic integers, statements (TextParseBody.cpp)
  bool dtype(DType &t);
  bool type(DType &t, llvm::SmallVectorImpl<UOpRef> &shape);
  bool index(UOpRef &x);
  bool indexList(llvm::SmallVectorImpl<UOpRef> &xs); // in brackets
  bool dimDeclaration(UOpRef &d);                    // name in lo..hi, into the scope
  bool operand(UOpRef &x);
  bool define(const Token &name, UOpRef value);
  bool lookUp(const Token &name, UOpRef &value);
  bool statement(); // %name = ...
  bool make(const char *at, UOpRef &out, Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints = {},
            llvm::StringRef str = {}, DType t = DType::Void, llvm::ArrayRef<UOpRef> fns = {});

  Context &c;
  Scope scope;
  llvm::StringMap<UOpRef> globals, functions;
  std::vector<UOpRef> made; // by statements, in order
  Origins *origins = nullptr;
  TextWords *words = nullptr;
  std::vector<std::string> *notes = nullptr;

protected:
  struct Attribute {
    const char *at;
    llvm::StringRef name;
    bool list = false, isString = false;
    std::vector<std::string> items;
  };
  bool factor(UOpRef &x, unsigned depth);
  bool sum(UOpRef &x, unsigned depth, UOpRef first = nullptr);
  bool arithmetic(const char *at, Op op, UOpRef &x, UOpRef y);
  bool affine(AffineForm &f);
  bool split(const char *at, UOpRef x, AffineForm &f, UOpRef &rest);
  bool domain(llvm::SmallVectorImpl<AffineForm> &forms, llvm::SmallVectorImpl<UOpRef> &bounds);
  bool typeAfter(UOpRef built, DType given, llvm::ArrayRef<UOpRef> shape, const char *at);
  bool annotation(DType &t, llvm::SmallVectorImpl<UOpRef> &shape, const char *&at);
  bool contract(const Token &op, UOpRef &out);
  bool matrixUnit(ContractSpec &s);
  bool reduce(const Token &op, UOpRef &out);
  bool extent(const Token &op, UOpRef &out);
  bool external(const Token &op, UOpRef &out);
  bool composite(const Token &word, UOpRef &out);
  bool writtenValue(std::string &out, unsigned depth = 0);
  bool generic(const Token &word, Op op, UOpRef &out);
  bool attributes(std::vector<Attribute> &list);
  bool attribute(Attribute &a);
  struct Literal {
    size_t place; // among the sources
    const char *at;
    std::string text;
  };
  bool literalFollows() const;
  bool operands(Op op, llvm::SmallVectorImpl<UOpRef> &src, std::vector<Literal> &literals);
  bool fillLiterals(const Token &word, Op op, llvm::MutableArrayRef<UOpRef> src, llvm::ArrayRef<Literal> literals,
                    DType given);
  bool resultOf(UOpRef control, llvm::ArrayRef<Attribute> given, const char *at, DType &t,
                llvm::SmallVectorImpl<UOpRef> *shape);
  bool fill(const Token &word, Op op, llvm::ArrayRef<Attribute> given, DType literals,
            llvm::SmallVectorImpl<int64_t> &ints, std::string &str);

  UOpRef label(llvm::StringRef name); // the placeholder of a label, made on first sight where that is allowed

  llvm::StringRef text, fileName;
  const char *cursor;
  const char *lastEnd = nullptr; // of the token before `tok`
  std::string message;
  unsigned line = 1; // of lineAt
  const char *lineAt = nullptr;
  llvm::StringMap<UOpRef> labels;
  std::vector<UOpRef> labelOrder;
  bool inLabels = false, freeLabels = false;
};

} // namespace astra::text

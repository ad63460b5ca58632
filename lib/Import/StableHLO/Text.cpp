//===- Text.cpp: MLIR's generic form, as a tree ----------------------------===//
// Takes:    any text.
// Gives:    the tree, or the first mistake with its place.
// Keeps:    nesting of regions, types and attributes is bounded: nothing recurses deeper than that.
#include "Text.h"
#include "Letters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>
#include <map>

namespace astra::stablehlo {

const Attribute *Operation::find(llvm::StringRef key) const {
  for (const auto &[name, value] : attributes)
    if (name == key) return &value;
  return nullptr;
}

std::optional<size_t> closing(llvm::StringRef text) {
  std::string open;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      continue;
    }
    if (c == '-' && i + 1 < text.size() && text[i + 1] == '>') {
      ++i;
      continue;
    }
    if (c == '<' || c == '(' || c == '[' || c == '{') open += c == '<' ? '>' : c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == '>' || c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) return std::nullopt;
      open.pop_back();
      if (open.empty()) return i + 1;
    }
  }
  return std::nullopt;
}

namespace {

constexpr unsigned deepest = 64; // regions, types, attributes

struct ElementType {
  const char *text;
  DType dtype;
};
constexpr ElementType elementTypes[] = {
    {"i1", DType::Bool},
    {"i8", DType::I8},
    {"i16", DType::I16},
    {"i32", DType::I32},
    {"i64", DType::I64},
    {"ui8", DType::U8},
    {"ui16", DType::U16},
    {"ui32", DType::U32},
    {"ui64", DType::U64},
    {"f16", DType::F16},
    {"bf16", DType::BF16},
    {"f32", DType::F32},
    {"f64", DType::F64},
    {"complex<f32>", DType::C64},
    {"complex<f64>", DType::C128},
    {"i2", DType::I2},
    {"ui2", DType::U2},
    {"i4", DType::I4},
    {"ui4", DType::U4},
    {"f4E2M1FN", DType::F4E2M1},
    {"f8E4M3FN", DType::F8E4M3FN},
    {"f8E5M2", DType::F8E5M2},
    {"f8E4M3FNUZ", DType::F8E4M3FNUZ},
    {"f8E5M2FNUZ", DType::F8E5M2FNUZ},
    {"f8E8M0FNU", DType::F8E8M0},
    {"index", DType::I64},
};

} // namespace

class Parser {
public:
  Parser(llvm::StringRef text, llvm::StringRef path) : p(text.begin()), end(text.end()) {
    file.text = text;
    file.path = path;
  }

  llvm::Expected<File> run() {
    if (llvm::StringRef(p, end - p).starts_with("ML\xefR"))
      fail("this is MLIR bytecode; expected the text that get_asm(print_generic_op_form=True) gives");
    bool found = false;
    while (!failed && !atEnd()) {
      if (peek('#') || peek('!')) {
        alias();
      } else if (found) {
        fail("expected the end of the file behind the module");
      } else {
        scopes.emplace_back();
        operation(file.module);
        found = true;
      }
    }
    if (!failed && !found) fail("expected a module");
    if (!failed && file.module.name != "builtin.module")
      fail("the outermost op is '" + file.module.name + "', expected builtin.module");
    if (failed)
      return llvm::createStringError(std::errc::invalid_argument, "%s: error: %s", file.place(where).c_str(),
                                     error.c_str());
    file.values = values;
    return std::move(file);
  }

private:
  // ---- characters
  void skip() {
    while (p < end)
      if (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
        ++p;
      else if (*p == '/' && p + 1 < end && p[1] == '/')
        while (p < end && *p != '\n') ++p;
      else
        break;
  }
  bool atEnd() {
    skip();
    return p == end;
  }
  bool peek(char c) {
    skip();
    return p < end && *p == c;
  }
  bool peekWord(llvm::StringRef w) {
    skip();
    llvm::StringRef rest(p, end - p);
    return rest.starts_with(w) && (rest.size() == w.size() || !isNameChar(rest[w.size()]));
  }
  bool take(char c) {
    if (!peek(c)) return false;
    ++p;
    return true;
  }
  bool takeArrow() {
    skip();
    if (end - p < 2 || p[0] != '-' || p[1] != '>') return false;
    p += 2;
    return true;
  }
  bool expect(char c, const char *what) { return take(c) || fail(std::string("expected '") + c + "' " + what); }
  bool fail(std::string sentence) {
    if (!failed) failed = true, error = std::move(sentence), where = p;
    p = end;
    return false;
  }
  llvm::StringRef word() {
    skip();
    const char *begin = p;
    if (p < end && isNameStart(*p))
      while (p < end && isNameChar(*p)) ++p;
    if (p == begin) fail("expected a word");
    return failed ? llvm::StringRef() : llvm::StringRef(begin, p - begin);
  }
  std::string string() {
    std::string out;
    if (!expect('"', "to begin a string")) return out;
    while (p < end && *p != '"') {
      if (*p != '\\') {
        out += *p++;
        continue;
      }
      if (++p == end) break;
      char c = *p++;
      if (c == 'n')
        out += '\n';
      else if (c == 't')
        out += '\t';
      else if (llvm::isHexDigit(c) && p < end && llvm::isHexDigit(*p))
        out += char(llvm::hexFromNibbles(c, *p++));
      else
        out += c;
    }
    expect('"', "to end a string");
    return out;
  }
  /// What stands between the bracket at hand and the one that closes it.
  llvm::StringRef balanced() {
    skip();
    std::optional<size_t> length = closing(llvm::StringRef(p, end - p));
    if (!length || *length < 2) {
      fail("a bracket is not closed");
      return {};
    }
    llvm::StringRef inside(p + 1, *length - 2);
    p += *length;
    return inside;
  }
  bool enter() { return ++depth <= deepest || fail("brackets, types or regions nest deeper than 64"); }

  // ---- aliases and locations
  void alias() {
    bool isType = *p == '!';
    ++p;
    llvm::StringRef name = word();
    if (!expect('=', "behind the name of an alias")) return;
    if (isType) {
      fail("type aliases are not supported");
      return;
    }
    if (peekWord("loc")) {
      p += 3;
      file.locations[name] = balanced();
    } else {
      aliases[name.str()] = attribute();
    }
  }
  llvm::StringRef trailingLocation() {
    if (!peekWord("loc")) return {};
    p += 3;
    if (!peek('(')) fail("expected '(' behind loc");
    return balanced();
  }

  // ---- types
  Type type() {
    Type t;
    if (!enter()) return t;
    skip();
    const char *begin = p;
    if (peek('(')) {
      t.kind = Type::Kind::Function;
      t.parts = types();
      if (!takeArrow()) fail("expected '->' of a function's type");
      t.results = resultTypes();
    } else if (take('!')) {
      llvm::StringRef name = word();
      if (peek('<')) balanced();
      if (name == "stablehlo.token") t.kind = Type::Kind::Token;
    } else if (llvm::StringRef name = word(); name == "tensor") {
      tensor(t);
      --depth;
      return t;
    } else if (name == "tuple") {
      t.kind = Type::Kind::Tuple;
      expect('<', "behind tuple");
      if (!take('>')) {
        do t.parts.push_back(type());
        while (take(','));
        expect('>', "to end a tuple");
      }
    } else if (peek('<')) {
      balanced(); // complex<f32>, memref<..>
    }
    t.text = failed ? llvm::StringRef() : llvm::StringRef(begin, p - begin);
    --depth;
    return t;
  }
  void tensor(Type &t) {
    t.kind = Type::Kind::Tensor;
    if (!expect('<', "behind tensor")) return;
    while (!failed) {
      skip();
      if (p < end && *p == '?') {
        ++p;
        t.dims.push_back(dynamic);
      } else if (p < end && llvm::isDigit(*p)) {
        uint64_t value = 0;
        while (p < end && llvm::isDigit(*p)) {
          value = value * 10 + uint64_t(*p++ - '0');
          if (value > uint64_t(1) << 40) fail("an extent is above 2^40");
          if (failed) return;
        }
        t.dims.push_back(int64_t(value));
      } else if (p < end && *p == '*') {
        fail("a tensor of unknown rank is not supported");
        return;
      } else {
        break;
      }
      if (t.dims.size() > 64) fail("a tensor's rank is above 64");
      if (p < end && *p == 'x')
        ++p;
      else
        fail("expected 'x' between the extents of a tensor");
    }
    skip();
    const char *begin = p;
    if (take('!')) {
      word();
      if (peek('<')) balanced();
    } else {
      word();
      if (peek('<')) balanced();
    }
    if (failed) return;
    t.text = llvm::StringRef(begin, p - begin);
    for (const ElementType &e : elementTypes)
      if (t.text == e.text) t.dtype = e.dtype;
    if (take(',')) {
      t.encoded = true;
      attribute();
    }
    expect('>', "to end a tensor's type");
  }
  std::vector<Type> types() {
    std::vector<Type> list;
    expect('(', "to begin a list of types");
    if (take(')')) return list;
    do list.push_back(type());
    while (!failed && take(','));
    expect(')', "to end a list of types");
    return list;
  }
  std::vector<Type> resultTypes() {
    if (peek('(')) return types();
    std::vector<Type> list;
    list.push_back(type());
    return list;
  }

  // ---- attributes
  Attribute attribute() {
    Attribute a{};
    if (!enter()) return a;
    skip();
    const char *begin = p;
    if (peek('"')) {
      a.kind = Attribute::Kind::String;
      a.string = string();
      if (take(':')) type();
    } else if (take('@')) {
      a.kind = Attribute::Kind::Symbol;
      a.string = peek('"') ? string() : word().str();
      while (p + 1 < end && p[0] == ':' && p[1] == ':') {
        p += 2;
        expect('@', "of a nested symbol");
        a.string += "::" + (peek('"') ? string() : word().str());
      }
    } else if (take('[')) {
      a.kind = Attribute::Kind::List;
      if (!take(']')) {
        do a.items.push_back(attribute());
        while (!failed && take(','));
        expect(']', "to end a list");
      }
    } else if (peek('{')) {
      a.kind = Attribute::Kind::Dictionary;
      dictionary(a.fields, '{', '}');
    } else if (take('#')) {
      llvm::StringRef name = word();
      if (peek('<')) balanced();
      a.kind = Attribute::Kind::Dialect;
      if (failed) return a;
      a.text = llvm::StringRef(begin + 1, p - begin - 1);
      if (auto known = aliases.find(name.str()); known != aliases.end() && a.text == name) a = known->second;
      if (take(':')) type();
    } else if (p < end && (llvm::isDigit(*p) || *p == '-')) {
      number(a);
    } else if (peek('(') || peek('!')) {
      a.kind = Attribute::Kind::Type;
      a.type = type();
    } else if (peekWord("array")) {
      word();
      array(a);
    } else if (peekWord("dense")) {
      word();
      a.kind = Attribute::Kind::Dense;
      if (!peek('<')) fail("expected '<' behind dense");
      a.text = balanced();
      expect(':', "and a type behind dense<...>");
      a.type = type();
    } else if (peekWord("dense_resource") || peekWord("sparse") || peekWord("affine_map") || peekWord("opaque") ||
               peekWord("distinct") || peekWord("strided")) {
      fail(("'" + word() + "' attributes are not supported: print with all elements of constants").str());
    } else if (peekWord("loc")) {
      trailingLocation();
      a.kind = Attribute::Kind::Unit;
    } else if (peekWord("true") || peekWord("false")) {
      a.kind = Attribute::Kind::Bool;
      a.integer = word() == "true";
    } else if (peekWord("unit")) {
      word();
      a.kind = Attribute::Kind::Unit;
    } else {
      a.kind = Attribute::Kind::Type;
      a.type = type();
    }
    --depth;
    return a;
  }
  /// An integer, a float or the bits of one, and the type behind it.
  void number(Attribute &a) {
    const char *begin = p;
    if (*p == '-') ++p;
    bool hex = p + 1 < end && p[0] == '0' && p[1] == 'x', real = false;
    if (hex) p += 2;
    while (p < end && (hex ? llvm::isHexDigit(*p)
                           : llvm::isDigit(*p) || *p == '.' || *p == 'e' || *p == 'E' ||
                                 ((*p == '-' || *p == '+') && (p[-1] == 'e' || p[-1] == 'E')))) {
      real |= !hex && !llvm::isDigit(*p);
      ++p;
    }
    std::string text(begin, p);
    a.kind = real ? Attribute::Kind::Float : Attribute::Kind::Int;
    bool wrong = real ? llvm::StringRef(text).getAsDouble(a.number) : llvm::StringRef(text).getAsInteger(0, a.integer);
    uint64_t bits = 0;
    if (wrong && !real && !llvm::StringRef(text).getAsInteger(0, bits)) a.integer = int64_t(bits), wrong = false;
    if (wrong) fail("'" + text + "' is not a number");
    if (take(':')) a.type = type();
  }
  /// array<i64: 1, 2>, array<i1: true>: a list of integers or floats.
  void array(Attribute &a) {
    a.kind = Attribute::Kind::List;
    if (!expect('<', "behind array")) return;
    type();
    if (take(':')) do
        a.items.push_back(attribute());
      while (!failed && take(','));
    expect('>', "to end an array");
  }
  void dictionary(std::vector<NamedAttribute> &fields, char open, char close) {
    if (!expect(open, "to begin a dictionary") || take(close)) return;
    do {
      std::string name = peek('"') ? string() : word().str();
      Attribute value{};
      value.kind = Attribute::Kind::Unit;
      if (take('=')) value = attribute();
      fields.push_back({std::move(name), std::move(value)});
    } while (!failed && take(','));
    std::string sentence = std::string("expected '") + close + "' to end a dictionary";
    if (!take(close)) fail(sentence);
  }

  // ---- values: names live in the region that defines them and in those inside of it
  using Names = std::map<std::string, std::pair<unsigned, unsigned>, std::less<>>; // first number, how many
  void define(llvm::StringRef name, unsigned count) {
    if (!scopes.back().emplace(name.str(), std::pair(values, count)).second)
      fail(("value '%" + name + "' is defined twice").str());
    values += count;
  }
  llvm::StringRef valueName() {
    if (!expect('%', "to begin a value")) return {};
    const char *begin = p;
    while (p < end && (isNameChar(*p) || *p == '-')) ++p;
    if (p == begin) fail("expected the name of a value");
    return failed ? llvm::StringRef() : llvm::StringRef(begin, p - begin);
  }
  unsigned integer(unsigned most) {
    skip();
    unsigned value = 0;
    if (p == end || !llvm::isDigit(*p)) fail("expected an integer");
    while (p < end && llvm::isDigit(*p)) {
      value = value * 10 + unsigned(*p++ - '0');
      if (value > most) fail("expected an integer of at most " + std::to_string(most));
    }
    return value;
  }
  unsigned operand() {
    llvm::StringRef name = valueName();
    unsigned which = 0;
    if (p < end && *p == '#') {
      ++p;
      which = integer(1u << 20);
    }
    if (failed) return 0;
    for (size_t i = scopes.size(); i-- > 0;)
      if (auto found = scopes[i].find(std::string_view(name.data(), name.size())); found != scopes[i].end()) {
        if (which >= found->second.second) fail(("value '%" + name + "' has no result " + llvm::Twine(which)).str());
        return found->second.first + which;
      }
    p = name.data() - 1;
    fail(("value '%" + name + "' is not defined").str());
    return 0;
  }

  // ---- ops
  void operation(Operation &op) {
    std::vector<std::pair<llvm::StringRef, unsigned>> results;
    if (peek('%')) {
      do {
        llvm::StringRef name = valueName();
        unsigned count = 1;
        if (take(':')) count = integer(1u << 20);
        if (!failed && count == 0) fail("an op with a name for no result");
        results.push_back({name, count});
      } while (!failed && take(','));
      expect('=', "behind the results of an op");
    }
    skip();
    op.at = p;
    if (!failed && !peek('"')) {
      fail("expected the name of an op in quotes: the generic form, as get_asm(print_generic_op_form=True) gives it");
      return;
    }
    op.name = string();
    expect('(', "to begin the operands");
    if (!failed && !take(')')) {
      do op.operands.push_back(operand());
      while (!failed && take(','));
      expect(')', "to end the operands");
    }
    if (peek('[')) fail("branches between blocks are not supported");
    if (peek('<')) {
      ++p;
      dictionary(op.attributes, '{', '}');
      expect('>', "to end the properties");
    }
    if (take('(')) {
      do region(op);
      while (!failed && take(','));
      expect(')', "to end the regions");
    }
    if (peek('{')) dictionary(op.attributes, '{', '}');
    expect(':', "and the type of an op");
    op.operandTypes = types();
    if (!takeArrow()) fail("expected '->' and the types of an op's results");
    if (failed) return;
    op.resultTypes = resultTypes();
    op.location = trailingLocation();
    if (op.operandTypes.size() != op.operands.size())
      fail("the op has " + std::to_string(op.operands.size()) + " operands and " +
           std::to_string(op.operandTypes.size()) + " types of operands");
    size_t named = 0;
    for (auto [name, count] : results) {
      for (unsigned i = 0; i < count; ++i) op.results.push_back(values + i);
      if (!failed) define(name, count);
      named += count;
    }
    if (!failed && named && named != op.resultTypes.size())
      fail("the op names " + std::to_string(named) + " results and has " + std::to_string(op.resultTypes.size()) +
           " types of results");
    for (size_t i = named; !failed && i < op.resultTypes.size(); ++i) op.results.push_back(values++);
  }
  void region(Operation &op) {
    if (!enter() || !expect('{', "to begin a region")) return;
    op.regions.emplace_back();
    Region &r = op.regions.back();
    std::vector<Names> outer;
    bool isolated = op.name == "func.func" || op.name == "builtin.module";
    if (isolated) outer = std::exchange(scopes, {});
    scopes.emplace_back();
    if (take('^')) {
      word();
      if (take('(')) {
        if (!take(')')) {
          do {
            llvm::StringRef name = valueName();
            if (!failed) r.arguments.push_back({values, {}, {}});
            if (!failed) define(name, 1);
            expect(':', "and the type of an argument");
            if (failed) return;
            r.arguments.back().type = type();
            r.arguments.back().location = trailingLocation();
          } while (!failed && take(','));
          expect(')', "to end the arguments of a block");
        }
      }
      expect(':', "behind the label of a block");
    }
    while (!failed && !peek('}')) {
      if (atEnd()) fail("a region is not closed");
      if (peek('^')) fail("a region with several blocks is not supported");
      if (failed) return;
      r.ops.emplace_back();
      operation(r.ops.back());
    }
    expect('}', "to end a region");
    scopes.pop_back();
    if (isolated) scopes = std::move(outer);
    --depth;
  }

  File file;
  const char *p, *end;
  bool failed = false;
  std::string error;
  const char *where = nullptr;
  unsigned depth = 0, values = 0;
  std::vector<Names> scopes;
  std::map<std::string, Attribute> aliases;
};

llvm::Expected<File> parseText(llvm::StringRef text, llvm::StringRef path) { return Parser(text, path).run(); }

} // namespace astra::stablehlo

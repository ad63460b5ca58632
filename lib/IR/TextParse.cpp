//===- TextParse.cpp: modules in .uop text ---------------------------------===//
// Takes:    untrusted text.
// Gives:    a module whose every node has passed its type rule, or one diagnostic.
// Does not: check what a stage allows (Verify.cpp).
#include "TextParser.h"
#include "astra/IR/Safetensors.h"
#include "astra/IR/ShardingRule.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace astra;
using namespace astra::text;
using llvm::SmallVector;
using llvm::StringRef;

namespace {
class ModuleParser : public Parser {
public:
  ModuleParser(Module &m, StringRef text, StringRef fileName) : Parser(m.ctx(), text, fileName), m(m) {
    origins = &m.origins;
  }

  bool module() {
    if (!acceptWord("module")) return fail("expected: module @name {, " + found());
    if (!name(Kind::Global, "the module's name: @name", m.name)) return false;
    if (acceptWord("after")) {
      if (!acceptWord("numerics")) return fail("expected numerics, the stage that the module has passed, " + found());
      m.stage = Stage::Numbers;
    }
    if (!expect("{")) return false;
    while (!accept("}")) {
      const char *at = tok.at;
      StringRef word;
      if (!tok.is(Kind::Identifier))
        return fail("expected mesh, dim, require, param, state, func, entry, grad, jvp, vmap or }");
      if (!identifier("mesh, dim, require, param, state, func, entry, grad, jvp, vmap or }", word)) return false;
      bool ok = word == "mesh"      ? mesh()
                : word == "dim"     ? dim()
                : word == "require" ? equation()
                : word == "param"   ? param()
                : word == "state"   ? state()
                : word == "func"    ? function()
                : word == "entry"   ? entry()
                : word == "grad"    ? directive(Transform::Grad)
                : word == "jvp"     ? directive(Transform::Jvp)
                : word == "vmap"
                    ? directive(Transform::Vmap)
                    : fail(at, "expected mesh, dim, require, param, state, func, entry, grad, jvp, vmap or }");
      if (!ok) return false;
    }
    return tok.is(Kind::End) ? message.empty() : fail("nothing may follow the module");
  }

private:
  /// @name { axis SIZE, ... }, and how the types are to be read.
  bool mesh() {
    const char *at = tok.at;
    if (!m.mesh.isEmpty()) return fail(at, "a module has one mesh");
    if (!m.params.empty() || !m.states.empty() || !m.entries.empty())
      return fail(at, "the mesh stands before params, states and entries");
    Mesh mesh;
    if (!name(Kind::Global, "the mesh's name: @name", mesh.name) || !expect("{")) return false;
    do {
      StringRef word;
      MeshAxis a;
      if (!identifier("an axis of the mesh", word) || !integer(a.size)) return false;
      a.name = word.str();
      mesh.axes.push_back(std::move(a));
    } while (accept(","));
    if (!expect("}")) return false;
    if (acceptWord("per_shard"))
      mesh.form = MeshForm::PerShard;
    else if (acceptWord("stacked"))
      mesh.form = MeshForm::Stacked;
    if (std::string why = checkMesh(mesh); !why.empty()) return fail(at, why);
    m.mesh = std::move(mesh);
    return true;
  }
  /// shard (data, -) gathered
  bool sharding(UOpRef x, Sharding &s) {
    if (!tok.isWord("shard")) return true;
    const char *from = tok.at;
    next();
    if (m.mesh.isEmpty()) return fail(from, "shard: the module has no mesh: write mesh @m { data 8 } before");
    const char *begin = tok.at;
    if (!tok.isMark("(")) return fail("expected ( and an axis of the mesh, or -, for each axis");
    while (!tok.isMark(")") && !tok.is(Kind::End) && !tok.isMark("{")) next();
    const char *end = tok.at;
    if (!expect(")")) return false;
    std::string text(begin, end + 1);
    if (acceptWord("gathered")) text += " gathered";
    auto parsed = shardingFor(m.mesh, text, x->shape);
    if (!parsed) return fail(begin, llvm::toString(parsed.takeError()));
    s = std::move(*parsed);
    return true;
  }
  bool dim() {
    UOpRef d;
    const char *at = tok.at;
    if (!dimDeclaration(d)) return false;
    if (llvm::is_contained(m.dims, d)) return fail(at, "dim " + d->str + " is declared twice");
    m.dims.push_back(d);
    moduleDims = scope.dims;
    return true;
  }
  bool equation() {
    Equation e;
    if (!index(e.left) || !expect("==") || !index(e.right)) return false;
    m.equations.push_back(e);
    m.ctx().equations.push_back(e);
    return true;
  }
  bool declare(Op op, UOpRef &value) {
    const char *at = tok.at;
    std::string word;
    DType t;
    SmallVector<UOpRef, 6> shape;
    if (!name(Kind::Global, "a name: @name", word) || !expect(":") || !type(t, shape)) return false;
    if (!make(at, value, op, shape, {}, word, t)) return false;
    return globals.try_emplace(word, value).second || fail(at, "@" + word + " is declared twice");
  }
  bool param() {
    Param p;
    if (acceptWord("fixed"))
      p.kind = ParamKind::Fixed;
    else if (acceptWord("constant"))
      p.kind = ParamKind::Constant;
    if (!declare(Op::Param, p.value) || !sharding(p.value, p.sharding)) return false;
    if (tok.isMark("=") && !data(p.value, p.sharding, p.data, &p)) return false;
    m.params.push_back(std::move(p));
    return true;
  }
  bool state() {
    StateVar s;
    if (!declare(Op::State, s.value) || !sharding(s.value, s.sharding)) return false;
    if (tok.isMark("=") && !data(s.value, s.sharding, s.initial, nullptr)) return false;
    m.states.push_back(std::move(s));
    return true;
  }

  // ---- data: zeros | splat LITERAL | [LITERAL, ...] | hex "..." | file("name", "tensor")
  // In a list a complex number is two literals, its parts.
  // Of a module in the form PerShard data are of the whole tensor.
  bool data(UOpRef value, const Sharding &sharding, Bytes &out, Param *param) {
    next();
    const char *at = tok.at;
    int64_t elements = 1, bytes = 0;
    SmallVector<int64_t, 6> extents;
    for (UOpRef d : value->shape) {
      auto k = d->constIndex();
      if (!k) return fail(at, "data needs a shape of integers; without data the tensor is set at run time");
      extents.push_back(*k);
      if (m.mesh.form == MeshForm::PerShard && extents.size() <= sharding.axes.size())
        extents.back() *= m.mesh.count(sharding.axes[extents.size() - 1]);
      if (extents.back() && elements > (int64_t(1) << 48) / extents.back()) return fail(at, "more than 2^48 elements");
      elements *= extents.back();
    }
    unsigned size = byteSize(value->dtype), bits = bitWidth(value->dtype);
    int64_t row = extents.empty() ? 1 : extents.back();
    bytes = size || !row ? elements * size : elements / row * ((row * bits + 7) / 8);
    bool tooLarge = bytes > (int64_t(1) << 30);
    std::vector<uint8_t> to;
    if (acceptWord("zeros")) {
      if (tooLarge) return fail(at, "more than 1 GiB: keep it in a file(...)");
      to.resize(bytes);
    } else if (tok.isMark("[") || tok.isWord("splat")) {
      if (!size) return fail(at, "literals need a type of whole bytes");
      if (tooLarge) return fail(at, "more than 1 GiB: keep it in a file(...)");
      bool complex = isComplex(value->dtype), splat = tok.isWord("splat");
      unsigned each = byteSize(partOf(value->dtype));
      auto one = [&](int64_t times) {
        const char *at = tok.at;
        std::string text;
        if (!literalText(text)) return false;
        auto v = literalBits(value->dtype, text);
        if (!v) return fail(at, llvm::toString(v.takeError()));
        if (times && int64_t(to.size()) == bytes)
          return fail(at, "more than " + llvm::Twine(elements * (complex ? 2 : 1)) + " literals");
        for (int64_t i = 0; i < times; ++i) {
          for (unsigned b = 0; b < each; ++b) to.push_back(uint8_t(*v >> 8 * b));
          if (complex && splat) to.resize(to.size() + each);
        }
        return true;
      };
      if (acceptWord("splat")) {
        if (!one(elements)) return false;
      } else {
        next();
        if (!accept("]")) {
          do
            if (!one(1)) return false;
          while (accept(","));
          if (!expect("]")) return false;
        }
      }
      if (int64_t(to.size()) != bytes)
        return fail(at, "found " + llvm::Twine(to.size() / each) + " literals, expected " +
                            llvm::Twine(elements * (complex ? 2 : 1)));
    } else if (acceptWord("hex")) {
      if (!tok.is(Kind::String)) return fail("expected hexadecimal digits in quotes");
      StringRef digits = tok.text.drop_front().drop_back();
      if (digits.size() % 2 || int64_t(digits.size() / 2) != bytes)
        return fail(at, "found " + llvm::Twine(digits.size()) + " digits, expected " + llvm::Twine(2 * bytes));
      for (size_t i = 0; i < digits.size(); i += 2) {
        unsigned hi = llvm::hexDigitValue(digits[i]), lo = llvm::hexDigitValue(digits[i + 1]);
        if (hi > 15 || lo > 15) return fail(digits.data() + i, "not a hexadecimal digit");
        to.push_back(uint8_t(hi << 4 | lo));
      }
      next();
    } else if (param && acceptWord("file")) {
      if (!expect("(") || !string("the file's name", param->file) || !expect(",") ||
          !string("the tensor's name", param->tensor) || !expect(")"))
        return false;
      auto read = readSafetensor(fileName, param->file, param->tensor, value->dtype, extents);
      if (!read) return fail(at, llvm::toString(read.takeError()));
      out = *read;
      return true;
    } else
      return fail("expected zeros, splat, hex, file or a list of literals");
    if (value->dtype == DType::Bool && llvm::any_of(to, [](uint8_t b) { return b > 1; }))
      return fail(at, "a bool is 0 or 1");
    out = std::make_shared<const std::vector<uint8_t>>(std::move(to));
    return true;
  }

  // ---- functions and entries
  void open(bool function) {
    scope = Scope();
    scope.dims = moduleDims;
    scope.function = function;
  }
  bool function() {
    const char *at = tok.at;
    std::string word;
    open(true);
    if (!name(Kind::Global, "the function's name: @name", word)) return false;
    if (tok.isMark("[")) {
      next();
      do {
        UOpRef d;
        const char *dimAt = tok.at;
        if (!dimDeclaration(d)) return false;
        if (llvm::is_contained(m.dims, d)) return fail(dimAt, "dim " + d->str + " is the module's");
      } while (accept(","));
      if (!expect("]")) return false;
    }
    int64_t nargs = 0;
    if (!expect("(")) return false;
    if (!accept(")")) {
      do
        if (!acceptWord("_")) {
          if (!argument(nargs++)) return false;
        } else
          ++nargs;
      while (accept(","));
      if (!expect(")")) return false;
    }
    if (!expect("{")) return false;
    while (tok.is(Kind::Local))
      if (!statement()) return false;
    SmallVector<UOpRef, 8> results;
    if (!acceptWord("return")) return fail("expected a statement or return");
    if (!tok.isMark("}")) do {
        UOpRef x;
        const char *valueAt = tok.at;
        if (!operand(x)) return false;
        if (x->dtype == DType::Void) return fail(valueAt, "this has no value to return");
        results.push_back(x);
      } while (accept(","));
    UOpRef f;
    if (!expect("}") || !make(at, f, Op::Func, results, {nargs})) return false;
    open(false);
    return functions.try_emplace(word, f).second || fail(at, "@" + word + " is defined twice");
  }
  bool argument(int64_t index, Entry *e = nullptr) {
    Token t = tok;
    if (!tok.is(Kind::Local)) return fail("expected an argument: %name : TYPE");
    if (e && t.isNumbered()) return fail("an input's name is not a number (quote it: %\"0\")");
    next();
    DType d;
    SmallVector<UOpRef, 6> shape;
    UOpRef x;
    Sharding s;
    if (!expect(":") || !type(d, shape) || !make(t.at, x, Op::Arg, shape, {index}, {}, d) || !define(t, x))
      return false;
    if (e && !sharding(x, s)) return false;
    if (e) e->inputs.push_back({unquote(t.text), x, std::move(s)});
    return true;
  }
  bool entry() {
    Entry e;
    const char *at = tok.at;
    open(false);
    if (!name(Kind::Global, "the entry's name: @name", e.name)) return false;
    if (m.entry(e.name)) return fail(at, "entry @" + e.name + " is defined twice");
    if (!expect("(")) return false;
    if (!accept(")")) {
      do
        if (!argument(e.inputs.size(), &e)) return false;
      while (accept(","));
      if (!expect(")")) return false;
    }
    if (!expect("->")) return false;
    const char *outputs = tok.at; // their types may use values of the body: read after it
    if (!expect("(")) return false;
    unsigned depth = 1;
    for (; !tok.isMark("{") && !tok.is(Kind::End); next()) {
      depth += tok.isMark("(");
      depth -= tok.isMark(")");
      if (!depth) break;
    }
    if (!expect(")") || !expect("{")) return false;
    while (tok.is(Kind::Local))
      if (!statement()) return false;
    while (acceptWord("set"))
      if (!update(e)) return false;
    const char *end = tok.at;
    if (!expect("}")) return false;
    jump(outputs);
    next();
    if (!accept(")")) {
      do
        if (!output(e)) return false;
      while (accept(","));
      if (!expect(")")) return false;
    }
    jump(end);
    next();
    m.entries.push_back(std::move(e));
    open(false);
    return true;
  }
  bool update(Entry &e) {
    const char *at = tok.at;
    StateUpdate u;
    if (!name(Kind::Global, "a state: @name", u.state) || !expect("=")) return false;
    if (!m.state(u.state)) return fail(at, "no state is called @" + u.state);
    if (llvm::any_of(e.updates, [&](const StateUpdate &o) { return o.state == u.state; }))
      return fail(at, "@" + u.state + " is set twice");
    if (!operand(u.value)) return false;
    e.updates.push_back(std::move(u));
    return true;
  }
  bool output(Entry &e) {
    Token t = tok;
    UOpRef x;
    const char *at;
    DType d;
    SmallVector<UOpRef, 6> shape;
    if (!tok.is(Kind::Local) || t.isNumbered()) return fail("expected an output: %name : TYPE");
    Sharding s;
    if (!operand(x) || !annotation(d, shape, at) || !typeAfter(x, d, shape, at) || !sharding(x, s)) return false;
    if (x->dtype == DType::Void) return fail(t.at, "this has no value");
    e.outputs.push_back({unquote(t.text), x, std::move(s)});
    return true;
  }

  /// wrt %input, @parameter
  bool wrt(Directive &d) {
    if (!acceptWord("wrt")) return fail("expected wrt and what to differentiate by, " + found());
    do {
      Directive::Name n{tok.is(Kind::Global), {}};
      if (!name(n.global ? Kind::Global : Kind::Local, "an input, a parameter or a state: %name or @name", n.text))
        return false;
      d.wrt.push_back(std::move(n));
    } while (accept(","));
    return true;
  }
  /// over EXTENT in %input AXIS, ... out %output AXIS, ...
  bool over(Directive &d) {
    if (!acceptWord("over")) return fail("expected over and the extent of the new axis, " + found());
    if (!index(d.size)) return false;
    if (!acceptWord("in")) return fail("expected in and the inputs that get the axis, " + found());
    if (!places("an input: %name", d.in)) return false;
    return !acceptWord("out") || places("an output: %name", d.out);
  }
  bool places(const char *what, std::vector<Directive::Place> &list) {
    do {
      const char *at = tok.at;
      Directive::Place p{{}, 0};
      if (!name(Kind::Local, what, p.name) || !integer(p.axis)) return false;
      if (llvm::any_of(list, [&](const Directive::Place &o) { return o.name == p.name; }))
        return fail(at, "%" + p.name + " is named twice");
      list.push_back(std::move(p));
    } while (accept(","));
    return true;
  }
  /// @name = @entry, then `wrt` or `over`
  bool directive(Transform t) {
    Directive d{t, {}, {}};
    const char *at = tok.at;
    if (!name(Kind::Global, "the new entry's name: @name", d.name) || !expect("=") ||
        !name(Kind::Global, "an entry: @name", d.of))
      return false;
    if (llvm::any_of(m.directives, [&](const Directive &o) { return o.name == d.name; }) || m.entry(d.name))
      return fail(at, "entry @" + d.name + " is defined twice");
    if (t == Transform::Vmap ? !over(d) : !wrt(d)) return false;
    m.directives.push_back(std::move(d));
    return true;
  }

  Module &m;
  llvm::StringMap<UOpRef> moduleDims;
};
} // namespace

static llvm::Expected<Module> parseWith(StringRef text, StringRef fileName, TextWords *words,
                                        std::vector<std::string> *notes) {
  Module m;
  ModuleParser p(m, text, fileName);
  p.words = words;
  p.notes = notes;
  if (!p.module()) return p.takeError();
  return m;
}

llvm::Expected<Module> astra::parse(StringRef text, StringRef fileName) {
  return parseWith(text, fileName, nullptr, nullptr);
}
llvm::Expected<Module> astra::parse(StringRef text, StringRef fileName, TextWords &words,
                                    std::vector<std::string> *notes) {
  return parseWith(text, fileName, &words, notes);
}

llvm::Expected<std::vector<UOpRef>> astra::parseListing(Context &c, StringRef text, StringRef fileName) {
  Parser p(c, text, fileName);
  UOpRef d;
  while (!p.tok.is(Kind::End))
    if (p.acceptWord("dim") ? !p.dimDeclaration(d) : !p.statement()) return p.takeError();
  if (p.failed()) return p.takeError();
  return std::move(p.made);
}

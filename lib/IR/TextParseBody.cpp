//===- TextParseBody.cpp: statements in .uop text --------------------------===//
// Takes:    tokens and the scope of a body.
// Gives:    nodes; the forms of contract, reduce, extent and external, all others by their row of Ops.def.
#include "TextParser.h"
#include "UsualOrder.h"
#include "astra/IR/External.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace astra;
using namespace astra::text;
using llvm::SmallVector;
using llvm::SmallVectorImpl;
using llvm::StringRef;

bool Parser::make(const char *at, UOpRef &out, Op op, llvm::ArrayRef<UOpRef> src, llvm::ArrayRef<int64_t> ints,
                  StringRef str, DType t, llvm::ArrayRef<UOpRef> fns) {
  auto n = c.tryMake(op, src, ints, str, t, fns);
  if (!n) return fail(at, llvm::toString(n.takeError()));
  out = *n;
  return true;
}

// ---- names
bool Parser::define(const Token &t, UOpRef value) {
  if (t.isNumbered()) {
    uint32_t n;
    if (t.text.getAsInteger(10, n) || n > (1u << 31)) return fail(t.at, "the number of a value is at most 2^31");
    return scope.numbers.try_emplace(n, value).second || fail(t.at, "%" + t.text + " is defined twice");
  }
  std::string word = unquote(t.text);
  if (word.empty()) return fail(t.at, "an empty name");
  return scope.names.try_emplace(word, value).second || fail(t.at, "%" + t.text + " is defined twice");
}

bool Parser::lookUp(const Token &t, UOpRef &value) {
  if (t.is(Kind::Global)) {
    if (scope.function) return fail(t.at, "a function sees only its arguments: pass @" + t.text + " as one");
    auto it = globals.find(unquote(t.text));
    if (it == globals.end()) return fail(t.at, "no parameter or state is called @" + t.text);
    value = it->second;
    return true;
  }
  uint32_t n;
  if (t.isNumbered()) {
    auto it = t.text.getAsInteger(10, n) ? scope.numbers.end() : scope.numbers.find(n);
    if (it == scope.numbers.end()) return fail(t.at, "%" + t.text + " is not defined above");
    value = it->second;
    return true;
  }
  auto it = scope.names.find(unquote(t.text));
  if (it == scope.names.end()) return fail(t.at, "%" + t.text + " is not defined above");
  value = it->second;
  return true;
}

bool Parser::operand(UOpRef &x) {
  if ((!tok.is(Kind::Local) && !tok.is(Kind::Global)) || beginsStatement())
    return missing("expected a value: %name or @name");
  Token t = tok;
  next();
  if (!lookUp(t, x)) return false;
  return !x->isIndex() || fail(t.at, "%" + t.text + " is a symbolic integer, expected a tensor");
}

// ---- statements
bool Parser::statement() {
  Token name = tok;
  if (!tok.is(Kind::Local)) return fail("expected a statement: %name = ...");
  next();
  if (!expect("=")) return false;
  UOpRef value;
  Token word = tok;
  if (beginsStatement()) return missing("expected an op");
  if (tok.is(Kind::Local) || tok.is(Kind::Global)) return operand(value) && define(name, value); // another name
  StringRef mnemonic;
  if (!identifier("an op", mnemonic)) return false;
  if (mnemonic == "index") return index(value) && define(name, value);
  const bool isComposite = words && words->attributes(mnemonic);
  auto op = opNamed(mnemonic);
  if (!op && !isComposite) return fail(word.at, "no op is called " + mnemonic);
  if (op == Op::Func || op == Op::Dim || op == Op::Arg)
    return fail(word.at, mnemonic + " is not a statement: it has a declaration of its own");
  bool ok = isComposite           ? composite(word, value)
            : *op == Op::Contract ? contract(word, value)
            : *op == Op::Reduce   ? reduce(word, value)
            : *op == Op::Extent   ? extent(word, value)
            : *op == Op::External ? external(word, value)
                                  : generic(word, *op, value);
  if (!ok || !define(name, value)) return false;
  if (origins && !value->isIndex()) origins->add(value, "line " + std::to_string(lineOf(name.at)));
  made.push_back(value);
  return true;
}

/// ": f32[n, 64]" if it is there.
bool Parser::annotation(DType &t, SmallVectorImpl<UOpRef> &shape, const char *&at) {
  t = DType::Void;
  at = tok.at;
  return !accept(":") || type(t, shape);
}
bool Parser::typeAfter(UOpRef built, DType given, llvm::ArrayRef<UOpRef> shape, const char *at) {
  if (given == DType::Void || (given == built->dtype && shape == built->shape)) return true;
  return fail(at,
              "the result is " + typeText(built->dtype, built->shape) + ", the text says " + typeText(given, shape));
}

bool Parser::attribute(Attribute &a) {
  auto one = [&] {
    a.isString |= tok.is(Kind::String);
    a.items.emplace_back();
    return tok.is(Kind::String) ? string("a string", a.items.back()) : literalText(a.items.back());
  };
  if (!accept("[")) return one();
  a.list = true;
  if (accept("]")) return true;
  do
    if (!one()) return false;
  while (accept(","));
  return expect("]");
}
bool Parser::attributes(std::vector<Attribute> &list) {
  while (attributeFollows()) {
    Attribute a;
    a.at = tok.at;
    a.name = tok.text;
    for (const Attribute &other : list)
      if (other.name == a.name) return fail(a.name + " is given twice");
    next();
    next(); // the name and =
    if (!attribute(a)) return false;
    list.push_back(std::move(a));
  }
  return true;
}

/// The attribute of a node from what the text gives, by the op's fields.
bool Parser::fill(const Token &word, Op op, llvm::ArrayRef<Attribute> given, DType literals,
                  SmallVectorImpl<int64_t> &ints, std::string &str) {
  size_t used = 0;
  auto value = [&](const Attribute &a, const Field &f, const std::string &text) {
    int64_t v = 0;
    bool literal = f.kind == FieldKind::Literal || f.kind == FieldKind::Literals;
    if (f.kind == FieldKind::Enumeration) {
      auto at = llvm::find(f.values, text);
      if (at == f.values.end()) return fail(a.at, f.name + " is one of " + llvm::join(f.values, ", "));
      v = at - f.values.begin();
    } else if (literal) {
      auto bits = literalBits(literals, text);
      if (!bits) return fail(a.at, llvm::toString(bits.takeError()));
      v = int64_t(*bits);
    } else if (StringRef(text).getAsInteger(10, v))
      return fail(a.at, f.name + " takes integers");
    ints.push_back(v);
    return true;
  };
  for (const Field &f : fields(op)) {
    if (f.kind == FieldKind::Dtype) continue;
    auto a = llvm::find_if(given, [&](const Attribute &g) { return g.name == f.name; });
    if (a == given.end()) {
      if (op == Op::While) continue; // no carried dims
      if (!f.absent) return fail(word.at, word.text + " needs " + f.name + "=");
      if (f.kind != FieldKind::Rest) ints.push_back(*f.absent);
      continue;
    }
    ++used;
    if (f.kind == FieldKind::String) {
      if (a->list) return fail(a->at, f.name + " takes a string");
      str = a->items[0];
      continue;
    }
    bool list = f.kind == FieldKind::Rest || f.kind == FieldKind::Literals;
    if (a->isString || a->list != list) return fail(a->at, f.name + (list ? " takes a list" : " takes one value"));
    for (const std::string &text : a->items)
      if (!value(*a, f, text)) return false;
  }
  for (const Attribute &a : given)
    if (used != given.size() && llvm::none_of(fields(op), [&](const Field &f) { return f.name == a.name; }))
      return fail(a.at, word.text + " has no attribute " + a.name);
  return true;
}

bool Parser::literalFollows() const {
  if (tok.is(Kind::Number) || tok.isMark("-")) return true;
  bool named = tok.isWord("inf") || tok.isWord("nan") || tok.isWord("true") || tok.isWord("false");
  return named && !attributeFollows();
}

/// Values, and where the op computes element by element of several also literals, whose places in `src` stay empty.
bool Parser::operands(Op op, SmallVectorImpl<UOpRef> &src, std::vector<Literal> &literals) {
  bool takesLiterals = has(op, Elementwise) && info(op).sources > 1;
  bool begins = tok.is(Kind::Global) || (tok.is(Kind::Local) && op != Op::Const) || (takesLiterals && literalFollows());
  if (begins) do {
      UOpRef x = nullptr;
      if (takesLiterals && literalFollows()) {
        literals.push_back({src.size(), tok.at, {}});
        if (!literalText(literals.back().text)) return false;
      } else if (!operand(x))
        return false;
      src.push_back(x);
    } while (accept(","));
  bool another = tok.is(Kind::Global) || (tok.is(Kind::Local) && !equalsFollows());
  return !begins || !another || fail("expected , between two values");
}

/// Each literal as a constant of the type that the op wants in its place, in the shape of the other operands.
bool Parser::fillLiterals(const Token &word, Op op, llvm::MutableArrayRef<UOpRef> src, llvm::ArrayRef<Literal> literals,
                          DType given) {
  if (literals.empty()) return true;
  auto likeResult = [&](size_t i) { return op == Op::Select ? i > 0 : op != Op::Scale2 || i == 0; };
  UOpRef any = nullptr, like = nullptr;
  for (size_t i = 0; i < src.size(); ++i) {
    if (!any) any = src[i];
    if (!like && likeResult(i)) like = src[i];
  }
  if (!any) return fail(literals[0].at, word.text + " of literals alone: write const for one of them");
  for (const Literal &l : literals) {
    DType t = !likeResult(l.place) ? (op == Op::Select ? DType::Bool : DType::I32) : like ? like->dtype : given;
    if (t == DType::Void)
      return fail(l.at, "no operand gives the type of " + l.text + ": write the result's type behind the statement");
    auto bits = literalBits(t, l.text);
    if (!bits) return fail(l.at, llvm::toString(bits.takeError()));
    UOpRef &x = src[l.place];
    SmallVector<UOpRef, 6> ones(any->rank(), c.index(1)), shape(any->shape.begin(), any->shape.end());
    if (!make(l.at, x, Op::Const, {}, {int64_t(*bits)}, {}, t)) return false;
    if (ones.empty()) continue;
    for (auto [movement, extents] : {std::pair(Op::Reshape, &ones), std::pair(Op::Expand, &shape)}) {
      SmallVector<UOpRef, 8> sources{x};
      sources.append(*extents);
      if (!make(l.at, x, movement, sources)) return false;
    }
  }
  return true;
}

/// The type of the result that index= asks for, and its shape where that is wanted: one of dims that are known outside
/// of the function.
bool Parser::resultOf(UOpRef control, llvm::ArrayRef<Attribute> given, const char *at, DType &t,
                      SmallVectorImpl<UOpRef> *shape) {
  auto a = llvm::find_if(given, [](const Attribute &g) { return g.name == "index"; });
  int64_t i;
  if (a == given.end()) return fail(at, "proj needs index=");
  if (a->items.size() != 1 || StringRef(a->items[0]).getAsInteger(10, i)) return true; // what is wrong is said later
  if (control->op == Op::External) {
    ExternalSpec s = externalOf(control);
    if (i < 0 || size_t(i) >= s.results.size()) return true;
    t = t == DType::Void ? s.results[i].dtype : t;
    if (shape) llvm::append_range(*shape, s.results[i].shape);
    return true;
  }
  if (control->fns.empty()) return true;
  llvm::ArrayRef<UOpRef> results = control->fns.back()->src;
  if (i < 0) return true;
  if (size_t(i) >= results.size()) { // a carried dim
    t = t == DType::Void ? DType::I64 : t;
    return true;
  }
  UOpRef r = results[i];
  t = t == DType::Void ? r->dtype : t;
  if (!shape) return true;
  if (control->op == Op::Scan && i >= control->ints[0]) shape->push_back(control->indices()[0]);
  llvm::append_range(*shape, r->shape);
  SmallVector<StringRef, 4> carried;
  if (control->op == Op::While) StringRef(control->str).split(carried, ',');
  for (UOpRef n : topoSort(r->shape))
    if (n->op == Op::Extent || (n->op == Op::Dim && llvm::is_contained(carried, n->str)))
      return fail(at, "the shape of result " + llvm::Twine(i) + " is known inside of the function only: write it, " +
                          "proj %x [...] index=" + llvm::Twine(i));
  return true;
}

bool Parser::generic(const Token &word, Op op, UOpRef &out) {
  SmallVector<UOpRef, 8> src, fns;
  if ((has(op, Control) || op == Op::WithGradient) && accept("(")) {
    do {
      if (!tok.is(Kind::Global)) return fail("expected a function: @name");
      auto f = functions.find(unquote(tok.text));
      if (f == functions.end()) return fail("no function is called @" + tok.text);
      fns.push_back(f->second);
      next();
    } while (accept(","));
    if (!expect(")")) return false;
  }
  std::vector<Literal> literals;
  if (!operands(op, src, literals)) return false;
  bool plain = (op == Op::Proj || op == Op::While) && !tok.isMark("["); // the result's shape; no carried dims
  int groups = plain ? 0 : std::max(info(op).groups, 0);
  size_t tensors = src.size();
  for (int g = 0; g < std::max(groups, 1) && (g < groups || tok.isMark("[")); ++g) {
    const char *at = tok.at;
    size_t before = src.size();
    if (!indexList(src)) return false;
    if (g && (src.size() - tensors) != (before - tensors) / g * (g + 1))
      return fail(at, "the lists of " + word.text + " must be equally long");
  }
  std::vector<Attribute> given;
  if (op == Op::Const) {
    given.push_back({tok.at, "value", false, false, {}});
    if (!attribute(given[0])) return false;
  }
  DType t;
  SmallVector<UOpRef, 6> shape;
  const char *at;
  if (!attributes(given) || !annotation(t, shape, at)) return false;
  bool typed = llvm::any_of(fields(op), [](const Field &f) { return f.kind == FieldKind::Dtype; });
  if (op == Op::Proj && tensors == 1) {
    SmallVector<UOpRef, 6> found;
    DType d = t;
    if (!resultOf(src[0], given, word.at, d, plain ? &found : nullptr)) return false;
    src.append(found);
    t = t == DType::Void ? d : t;
    if (shape.empty()) llvm::append_range(shape, llvm::ArrayRef(src).drop_front(tensors));
  }
  if (typed && t == DType::Void) return missing("expected the result's type: " + word.text + " ... : TYPE");
  if (!fillLiterals(word, op, src, literals, t)) return false;
  SmallVector<int64_t, 8> ints;
  std::string str;
  DType elements = t != DType::Void ? t : tensors ? src[0]->dtype : DType::Void;
  if (!fill(word, op, given, elements, ints, str)) return false;
  return make(word.at, out, op, src, ints, str, typed ? t : DType::Void, fns) && typeAfter(out, t, shape, at);
}

bool Parser::extent(const Token &word, UOpRef &out) {
  UOpRef x;
  int64_t lo, hi;
  if (!operand(x)) return false;
  if (!acceptWord("in")) return missing("expected: in LO..HI");
  return integer(lo) && expect("..") && integer(hi) && make(word.at, out, Op::Extent, {x}, {lo, hi});
}

/// Operands, -> and the types of the results, attributes.
bool Parser::external(const Token &word, UOpRef &out) {
  SmallVector<UOpRef, 8> src;
  std::vector<Literal> literals;
  ExternalSpec s;
  if (!operands(Op::External, src, literals) || !expect("->")) return false;
  do {
    SmallVector<UOpRef, 6> shape;
    Type &t = s.results.emplace_back();
    if (!type(t.dtype, shape)) return false;
    t.shape.assign(shape.begin(), shape.end());
  } while (accept(","));
  std::vector<Attribute> given;
  SmallVector<int64_t, 8> ints;
  std::string name;
  if (!attributes(given)) return false;
  for (const Attribute &a : given)
    if (a.name == "results") return fail(a.at, "the types of the results stand behind ->");
  if (!fill(word, Op::External, given, DType::Void, ints, name)) return false;
  llvm::append_range(ints, llvm::ArrayRef(encode(s)).drop_front(3));
  llvm::append_range(src, extentsOf(s));
  return make(word.at, out, Op::External, src, ints, name);
}

/// A word, a string, an integer, or a list of these in [] or (), which is put down as Python writes it.
bool Parser::writtenValue(std::string &out, unsigned depth) {
  if (depth > 8) return fail("lists are nested too deeply");
  for (auto [open, close] : {std::pair("[", "]"), std::pair("(", ")")}) {
    if (!accept(open)) continue;
    out += open;
    for (bool more = true; !accept(close);) {
      if (!more) return missing(llvm::Twine("expected , or ") + close);
      if (!writtenValue(out, depth + 1)) return false;
      more = accept(",");
      out += more ? tok.isMark(close) ? "," : ", " : "";
    }
    out += close;
    return true;
  }
  if (!tok.is(Kind::Identifier) && !tok.is(Kind::Number) && !tok.is(Kind::String))
    return missing("expected a word, a number or a list, " + found());
  out += unquote(tok.text);
  next();
  return true;
}

/// WORD "..." NAME=VALUE ... operands : type
bool Parser::composite(const Token &word, UOpRef &out) {
  std::string said, note;
  const Token text = tok;
  if (!string(("what " + word.text + " computes").str().c_str(), said)) return false;
  SmallVector<StringRef, 3> left(*words->attributes(word.text));
  while (attributeFollows()) {
    auto at = llvm::find(left, tok.text);
    if (at == left.end())
      return fail(llvm::is_contained(*words->attributes(word.text), tok.text)
                      ? tok.text + " is given twice"
                      : word.text + " has no attribute " + tok.text);
    left.erase(at);
    said += " " + tok.text.str() + "=";
    next();
    next(); // the name and =
    if (!writtenValue(said)) return false;
  }
  SmallVector<UOpRef, 8> src;
  do
    if (!operand(src.emplace_back())) return false;
  while (accept(","));
  DType t;
  SmallVector<UOpRef, 6> shape;
  const char *at;
  if (!annotation(t, shape, at)) return false;
  const size_t before = c.size();
  auto made = words->make(c, word.text, said, src, note);
  if (!made) return fail(text.at, word.text + ": " + llvm::toString(made.takeError()));
  if (c.takeOverflow()) return fail(text.at, word.text + ": a symbolic integer leaves 62 bits or 2^14 terms");
  out = *made;
  const std::string line = std::to_string(lineOf(word.at));
  for (size_t id = before; origins && id < c.size(); ++id)
    if (UOpRef x = c.node(id); !x->isIndex()) origins->add(x, "line " + line);
  if (notes && !note.empty()) notes->push_back((fileName + ":" + line + ": " + word.text + " " + note).str());
  return typeAfter(out, t, shape, at);
}

bool Parser::reduce(const Token &word, UOpRef &out) {
  UOpRef x;
  std::vector<Attribute> given;
  if (!operand(x) || !attributes(given)) return false;
  const char *axesAt = word.at;
  ReduceSpec s{};
  auto axes = llvm::find_if(given, [](const Attribute &a) { return a.name == "axes"; });
  if (axes == given.end() || !axes->list) return fail(word.at, "reduce needs axes=[...]");
  axesAt = axes->at;
  for (const std::string &text : axes->items) {
    int64_t axis;
    if (StringRef(text).getAsInteger(10, axis)) return fail(axesAt, "axes takes integers");
    s.axes.push_back(axis);
  }
  given.erase(axes);
  bool isOrdered = llvm::any_of(given, [](const Attribute &a) { return a.name == "order"; });
  for (const Attribute &a : given) {
    const Field *f = llvm::find_if(fields(Op::Reduce).take_front(2), [&](const Field &g) { return g.name == a.name; });
    if (f == fields(Op::Reduce).begin() + 2) return fail(a.at, "reduce has no attribute " + a.name);
    auto v = llvm::find(f->values, a.items.empty() ? "" : a.items[0]);
    if (a.list || v == f->values.end()) return fail(a.at, a.name + " is one of " + llvm::join(f->values, ", "));
    int64_t number = v - f->values.begin();
    if (a.name == "kind")
      s.kind = ReduceKind(number);
    else
      s.order = ReduceOrder(number);
  }
  if (!isOrdered) s.order = usualOrder(s.kind, x->dtype);
  labels.clear();
  labelOrder.clear();
  inLabels = freeLabels = true;
  for (unsigned i = 0; i < x->rank(); ++i) {
    std::string l = "i" + std::to_string(i);
    while (scope.dims.count(l)) l += '_';
    label(l);
  }
  freeLabels = false;
  SmallVector<UOpRef, 4> src{x};
  if (!domain(s.domain, src)) return false;
  inLabels = false;
  DType t;
  SmallVector<UOpRef, 6> shape;
  const char *at;
  return annotation(t, shape, at) && make(word.at, out, Op::Reduce, src, encode(s)) && typeAfter(out, t, shape, at);
}

/// order="UNIT TYPE" or order="UNIT TYPE TYPE", where it is there.
bool Parser::matrixUnit(ContractSpec &s) {
  if (!acceptWord("order")) return true;
  std::string order;
  const char *at = tok.at;
  if (!expect("=") || !string("a matrix unit and a type", order)) return false;
  auto [unit, type] = StringRef(order).split(' ');
  auto inputs = matrixInputsNamed(type);
  s.unit = matrixUnitNamed(unit);
  if (!s.unit) return fail(at, "there is no matrix unit '" + unit + "'; there are " + matrixUnitNames());
  if (!inputs || !s.unit->takes(*inputs))
    return fail(at, llvm::Twine("matrix unit ") + s.unit->text + " does not take operands of '" + type + "'");
  s.inputs = *inputs;
  return true;
}

bool Parser::contract(const Token &word, UOpRef &out) {
  ContractSpec s;
  SmallVector<UOpRef, 12> src;
  labels.clear();
  labelOrder.clear();
  inLabels = freeLabels = true;
  for (auto *forms : {&s.a, &s.b, &s.outside}) {
    UOpRef x;
    if (forms == &s.outside && !accept(",")) break;
    if ((forms == &s.b && !expect(",")) || !operand(x) || !expect("[")) return false;
    src.push_back(x);
    if (accept("]")) continue;
    do {
      AffineForm f;
      if (!affine(f)) return false;
      forms->push_back(std::move(f));
    } while (accept(","));
    if (!expect("]")) return false;
  }
  // The lists of labels number them; until here they were numbered by first appearance.
  size_t appeared = labelOrder.size();
  std::vector<int64_t> numberOf(appeared, -1);
  std::vector<UOpRef> declared, extents;
  auto list = [&] {
    if (!expect("[")) return false;
    if (accept("]")) return true;
    do {
      const char *at = tok.at;
      StringRef word;
      if (!identifier("a label", word)) return false;
      if (scope.dims.count(word)) return fail(at, "label " + word + " has the name of a dim");
      UOpRef place = label(word), extent = nullptr;
      if (llvm::is_contained(declared, place)) return fail(at, "label " + word + " is given twice");
      size_t k = llvm::find(labelOrder, place) - labelOrder.begin();
      if (k < appeared) numberOf[k] = declared.size();
      inLabels = false; // an extent is made of dims
      if (accept(":") && !index(extent)) return false;
      inLabels = true;
      for (auto [forms, x] : {std::pair{&s.a, src[0]}, std::pair{&s.b, src[1]}})
        for (auto [f, d] : llvm::zip(*forms, x->shape))
          if (!extent && f.isLabel() && f.terms[0].first == int64_t(k)) extent = d;
      if (!extent) return fail(at, "the extent of label " + word + " is not known: write " + word + ": EXTENT");
      declared.push_back(place);
      extents.push_back(extent);
    } while (accept(","));
    return expect("]");
  };
  if (!expect("->") || !list()) return false;
  s.kept = declared.size();
  if (acceptWord("sum") && !list()) return false;
  s.reduced = declared.size() - s.kept;
  for (auto &entry : labels)
    if (!llvm::is_contained(declared, entry.second))
      return fail(word.at, "a label of the operands is neither kept nor summed");
  for (auto *forms : {&s.a, &s.b, &s.outside})
    for (AffineForm &f : *forms) {
      for (auto &[l, k] : f.terms) l = numberOf[l];
      llvm::sort(f.terms);
    }
  labelOrder = declared;
  freeLabels = false;
  llvm::append_range(src, extents);
  if (!domain(s.domain, src) || !matrixUnit(s)) return false;
  inLabels = false;
  DType t;
  SmallVector<UOpRef, 6> shape;
  const char *at;
  return annotation(t, shape, at) && make(word.at, out, Op::Contract, src, encode(s)) && typeAfter(out, t, shape, at);
}

//===- TextParseIndex.cpp: types, symbolic integers and labels in .uop text -===//
// Takes:    tokens.
// Gives:    index nodes in normal form; affine forms over the labels of a contract or reduce, which stand as `range`
//           placeholders inside an expression until it is split.
// Keeps:    nesting at most 64 deep and polynomials at most 1024 terms long.
#include "TextParser.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using namespace astra::text;
using llvm::StringRef;

static constexpr unsigned deepest = 64;
static constexpr size_t longest = 1024;

/// Whether a word begins a declaration of a module: no dim is meant by it on a line of its own.
static bool isDeclaration(StringRef word) {
  constexpr StringRef words[] = {"dim", "require", "param", "state", "func", "entry", "grad", "jvp", "vmap"};
  return llvm::is_contained(words, word);
}

bool Parser::dtype(DType &t) {
  const char *at = tok.at;
  StringRef word;
  if (!identifier("a type", word)) return false;
  auto found = dtypeNamed(word);
  if (!found || *found == DType::Void || *found == DType::Index) return fail(at, word + " is not a type of tensors");
  t = *found;
  return true;
}

bool Parser::type(DType &t, llvm::SmallVectorImpl<UOpRef> &shape) {
  return dtype(t) && (!tok.isMark("[") || indexList(shape));
}

bool Parser::indexList(llvm::SmallVectorImpl<UOpRef> &xs) {
  if (!expect("[")) return false;
  if (accept("]")) return true;
  do {
    UOpRef x;
    if (!index(x)) return false;
    xs.push_back(x);
  } while (accept(","));
  return expect("]");
}

bool Parser::dimDeclaration(UOpRef &d) {
  const char *at = tok.at;
  std::string dim;
  int64_t lo, hi;
  if (!name(tok.is(Kind::String) ? Kind::String : Kind::Identifier, "the name of a dim", dim)) return false;
  if (!acceptWord("in")) return missing("expected: in LO..HI");
  if (!integer(lo) || !expect("..") || !integer(hi) || !make(at, d, Op::Dim, {}, {lo, hi}, dim)) return false;
  auto [it, fresh] = scope.dims.try_emplace(dim, d);
  return fresh || it->second == d || fail(at, "dim " + dim + " is declared twice");
}

bool Parser::index(UOpRef &x) { return sum(x, 0); }

bool Parser::arithmetic(const char *at, Op op, UOpRef &x, UOpRef y) {
  size_t a = terms(x).size(), b = terms(y).size();
  if (op == Op::Mul ? a * b > longest : a + b > longest)
    return fail(at, "a symbolic integer of more than " + llvm::Twine(longest) + " terms");
  return make(at, x, op, {x, y});
}

bool Parser::sum(UOpRef &x, unsigned depth, UOpRef first) {
  if (depth > deepest)
    return fail("nested more than " + llvm::Twine(deepest) + " deep: name a part with %0 = index ...");
  UOpRef total = nullptr;
  for (Op op = Op::Add;;) {
    const char *at = tok.at;
    UOpRef product = first;
    if (!first && !factor(product, depth)) return false;
    first = nullptr;
    while (tok.isMark("*")) {
      const char *times = tok.at;
      next();
      UOpRef y;
      if (!factor(y, depth) || !arithmetic(times, Op::Mul, product, y)) return false;
    }
    if (!total)
      total = product;
    else if (!arithmetic(at, op, total, product))
      return false;
    if (!tok.isMark("+") && !tok.isMark("-")) break;
    op = tok.isMark("+") ? Op::Add : Op::Sub;
    next();
  }
  x = total;
  return true;
}

bool Parser::factor(UOpRef &x, unsigned depth) {
  static const std::pair<StringRef, Op> calls[] = {
      {"floordiv", Op::FloorDiv}, {"mod", Op::Mod}, {"min", Op::Min}, {"max", Op::Max}};
  if (depth > deepest) return sum(x, depth);
  const char *at = tok.at;
  if (accept("-")) return factor(x, depth + 1) && make(at, x, Op::Mul, {x, c.index(-1)});
  if (accept("(")) return sum(x, depth + 1) && expect(")");
  if (tok.is(Kind::Number)) {
    int64_t v;
    if (!integer(v)) return false;
    if (v > (int64_t(1) << 62)) return fail(at, "a symbolic integer leaves 62 bits");
    x = c.index(v);
    return true;
  }
  if (beginsStatement()) return missing("expected a symbolic integer");
  if (tok.is(Kind::Local)) {
    Token t = tok;
    next();
    if (!lookUp(t, x)) return false;
    return x->isIndex() || fail(at, "%" + t.text + " is a tensor, expected a symbolic integer");
  }
  for (auto [word, op] : calls)
    if (tok.isWord(word)) {
      UOpRef y;
      next();
      return expect("(") && sum(x, depth + 1) && expect(",") && sum(y, depth + 1) && expect(")") &&
             make(at, x, op, {x, y});
    }
  if (!tok.is(Kind::Identifier) && !tok.is(Kind::String)) return missing("expected a symbolic integer");
  std::string word = unquote(tok.text);
  const char *gap = here();
  next();
  if (inLabels && (x = label(word))) return true;
  auto it = scope.dims.find(word);
  if (it == scope.dims.end() && gap != at && isDeclaration(word)) return fail(gap, "expected a symbolic integer");
  if (it == scope.dims.end()) return fail(at, "no dim is called " + word);
  x = it->second;
  return true;
}

// ---- labels
UOpRef Parser::label(StringRef word) {
  auto it = labels.find(word);
  if (it != labels.end()) return it->second;
  if (!freeLabels) return nullptr;
  UOpRef place = c.make(Op::Range, {c.index(int64_t(1) << 40)}, {INT64_MAX - int64_t(labelOrder.size()), 0});
  labelOrder.push_back(place);
  return labels[word] = place;
}

/// x as an affine form over the placeholders (by their number) and what is left.
bool Parser::split(const char *at, UOpRef x, AffineForm &f, UOpRef &rest) {
  llvm::SmallVector<IndexTerm, 4> others;
  for (const IndexTerm &t : terms(x)) {
    auto place = t.atoms.size() == 1 ? llvm::find(labelOrder, t.atoms[0]) : labelOrder.end();
    if (place != labelOrder.end()) {
      f.terms.push_back({place - labelOrder.begin(), t.coefficient});
      continue;
    }
    for (UOpRef n : topoSort(t.atoms))
      if (llvm::is_contained(labelOrder, n)) return fail(at, "not affine in the labels");
    others.push_back(t);
  }
  llvm::sort(f.terms);
  rest = fromTerms(c, others);
  return true;
}

/// An operand's index: an affine form of labels, or one in parentheses divided by an integer.
bool Parser::affine(AffineForm &f) {
  const char *at = tok.at;
  UOpRef x, rest;
  if (tok.isMark("-")) {
    if (!sum(x, 0)) return false;
  } else {
    if (!factor(x, 0)) return false;
    if (accept("/")) {
      if (!integer(f.divisor)) return false;
      if (f.divisor < 1) return fail(at, "the divisor must be positive");
    } else if (!sum(x, 0, x))
      return false;
  }
  if (!split(at, x, f, rest)) return false;
  auto k = rest->constIndex();
  if (!k) return fail(at, "an operand's index is made of labels and integers");
  f.constant = *k;
  return true;
}

/// "where a <= b, c > d ...": each as form + bound >= 0.
bool Parser::domain(llvm::SmallVectorImpl<AffineForm> &forms, llvm::SmallVectorImpl<UOpRef> &bounds) {
  if (!acceptWord("where")) return true;
  do {
    const char *at = tok.at;
    UOpRef l, r;
    if (!sum(l, 0)) return false;
    StringRef relation = tok.text;
    bool strict = relation == "<" || relation == ">", less = relation.starts_with("<");
    if (!tok.is(Kind::Mark) || (relation != ">=" && relation != "<=" && !strict))
      return missing("expected one of <= < >= >");
    next();
    if (!sum(r, 0)) return false;
    if (less) std::swap(l, r);
    if (!arithmetic(at, Op::Sub, l, r) || (strict && !arithmetic(at, Op::Sub, l, c.index(1)))) return false;
    AffineForm f;
    UOpRef bound;
    if (!split(at, l, f, bound)) return false;
    forms.push_back(std::move(f));
    bounds.push_back(bound);
  } while (accept(","));
  return true;
}

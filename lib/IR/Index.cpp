//===- Index.cpp: polynomial normal form of symbolic integers --------------===//
// Takes:    index expressions in normal form.
// Gives:    sums, products, quotients in normal form.
// Keeps:    term order by structural hash, so it is the same in every run.
#include "astra/IR/Index.h"
#include "astra/IR/IndexProgram.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace astra;

namespace astra {
struct IndexMath { // the interner without the detour through make
  static UOpRef node(Context &c, Op op, UOpRef a, UOpRef b) {
    return c.intern(op, DType::Index, {}, {a, b}, 0, {}, {}, {});
  }
  /// A constant where the bounds leave one value.
  static UOpRef settled(Context &c, UOpRef x) { return x->lo == x->hi ? c.index(x->lo) : x; }
  static void overflow(Context &c) { c.overflowed = true; }
};
} // namespace astra

static bool atomsLess(llvm::ArrayRef<UOpRef> a, llvm::ArrayRef<UOpRef> b) {
  if (a.size() != b.size()) return a.size() > b.size(); // the constant term comes last
  for (auto [x, y] : llvm::zip(a, b))
    if (x != y) return x->hash < y->hash;
  return false;
}

static IndexTerm termOf(UOpRef x) {
  IndexTerm t{1, {}};
  if (auto c = x->constIndex()) return {*c, {}};
  if (x->op == Op::Mul && x->src[1]->isConst()) t.coefficient = x->src[1]->ints[0], x = x->src[0];
  for (; x->op == Op::Mul; x = x->src[0]) t.atoms.push_back(x->src[1]);
  t.atoms.push_back(x);
  std::reverse(t.atoms.begin(), t.atoms.end());
  return t;
}

llvm::SmallVector<IndexTerm, 4> astra::terms(UOpRef x) {
  llvm::SmallVector<IndexTerm, 4> ts;
  for (; x->op == Op::Add; x = x->src[0]) ts.push_back(termOf(x->src[1]));
  ts.push_back(termOf(x));
  std::reverse(ts.begin(), ts.end());
  return ts;
}

UOpRef astra::fromTerms(Context &c, llvm::ArrayRef<IndexTerm> in) {
  llvm::SmallVector<IndexTerm, 8> ts(in.begin(), in.end());
  for (IndexTerm &t : ts) llvm::sort(t.atoms, [](UOpRef a, UOpRef b) { return a->hash < b->hash; });
  llvm::sort(ts, [](const IndexTerm &a, const IndexTerm &b) { return atomsLess(a.atoms, b.atoms); });
  UOpRef sum = nullptr;
  for (size_t i = 0; i < ts.size();) {
    int64_t k = 0;
    size_t j = i;
    for (; j < ts.size() && ts[j].atoms == ts[i].atoms; ++j)
      if (__builtin_add_overflow(k, ts[j].coefficient, &k)) IndexMath::overflow(c), k = 1;
    if (k) {
      UOpRef t = nullptr;
      for (UOpRef a : ts[i].atoms) t = t ? IndexMath::node(c, Op::Mul, t, a) : a;
      t = !t ? c.index(k) : k == 1 ? t : IndexMath::node(c, Op::Mul, t, c.index(k));
      sum = sum ? IndexMath::node(c, Op::Add, sum, t) : t;
    }
    i = j;
  }
  return sum ? sum : c.index(0);
}

UOpRef astra::idxAdd(Context &c, UOpRef a, UOpRef b) {
  auto ts = terms(a);
  llvm::append_range(ts, terms(b));
  return fromTerms(c, ts);
}

UOpRef astra::idxSub(Context &c, UOpRef a, UOpRef b) { return idxAdd(c, a, idxMul(c, b, c.index(-1))); }

UOpRef astra::idxMul(Context &c, UOpRef a, UOpRef b) {
  constexpr size_t longest = 1 << 14; // text may ask for products that no memory holds
  llvm::SmallVector<IndexTerm, 8> ts;
  auto left = terms(a), right = terms(b);
  if (left.size() * right.size() > longest) {
    IndexMath::overflow(c);
    return a;
  }
  for (const IndexTerm &x : left)
    for (const IndexTerm &y : right) {
      IndexTerm t = x;
      if (__builtin_mul_overflow(x.coefficient, y.coefficient, &t.coefficient))
        IndexMath::overflow(c), t.coefficient = 1;
      llvm::append_range(t.atoms, y.atoms);
      ts.push_back(std::move(t));
    }
  return fromTerms(c, ts);
}

std::optional<IndexTerm> astra::divideTerm(const IndexTerm &t, const IndexTerm &d) {
  if (t.coefficient % d.coefficient) return std::nullopt;
  IndexTerm q{t.coefficient / d.coefficient, t.atoms};
  for (UOpRef a : d.atoms) {
    auto it = llvm::find(q.atoms, a);
    if (it == q.atoms.end()) return std::nullopt;
    q.atoms.erase(it);
  }
  return q;
}

/// floordiv(floordiv(x, p) + k, q) = floordiv(x + k*p, p*q), of which what is a multiple of p*q stands outside: chains
/// of strided layers have one form. Null where a is not of this form.
static UOpRef divTwice(Context &c, UOpRef a, int64_t q) {
  UOpRef inner = nullptr;
  int64_t k = 0, shift, divisor;
  for (const IndexTerm &t : terms(a)) {
    if (t.atoms.empty())
      k = t.coefficient;
    else if (!inner && t.coefficient == 1 && t.atoms.size() == 1 && t.atoms[0]->is(Op::FloorDiv))
      inner = t.atoms[0];
    else
      return nullptr;
  }
  auto p = inner ? inner->src[1]->constIndex() : std::nullopt;
  if (!p || *p < 1 || llvm::MulOverflow(*p, q, divisor) || llvm::MulOverflow(k, *p, shift) ||
      divisor > int64_t(1) << 40)
    return nullptr;
  int64_t whole = shift / divisor - (shift % divisor < 0);
  UOpRef x = idxAdd(c, inner->src[0], c.index(shift - whole * divisor));
  return idxAdd(c, idxDiv(c, x, c.index(divisor)), c.index(whole));
}

/// A dividend as d * whole + factor * rest, with what is left of the divisor by the factor: one form of what is
/// divided, however it is written. Constant divisors take out constants down to 0 <= constant < d, and the factor that
/// all terms have in common with the divisor, by which the constant is rounded down (`lost` is what that leaves).
struct Split {
  UOpRef whole, rest, divisor;
  int64_t factor = 1, lost = 0;
};
static int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static Split splitBy(Context &c, UOpRef a, UOpRef b, const IndexTerm &d) {
  llvm::SmallVector<IndexTerm, 4> whole, rest;
  int64_t constant = 0, k = d.atoms.empty() ? d.coefficient : 0, factor = k;
  for (const IndexTerm &t : terms(a))
    if (auto q = divideTerm(t, d))
      whole.push_back(*q);
    else if (k && t.atoms.empty())
      constant = t.coefficient;
    else
      rest.push_back(t), factor = std::gcd(factor, t.coefficient);
  Split s{nullptr, nullptr, b};
  if (k) {
    int64_t q = floorDiv(constant, k);
    if (q) whole.push_back({q, {}});
    constant -= q * k;
    if (!rest.empty() && factor > 1) {
      s.factor = factor, s.lost = constant % factor, s.divisor = c.index(k / factor);
      for (IndexTerm &t : rest) t.coefficient /= factor;
      constant /= factor;
    }
    if (constant) rest.push_back({constant, {}});
  }
  s.whole = fromTerms(c, whole), s.rest = fromTerms(c, rest);
  return s;
}

UOpRef astra::idxDiv(Context &c, UOpRef a, UOpRef b) {
  auto x = a->constIndex(), y = b->constIndex();
  if (y && *y == 1) return a;
  if (x && y && *y > 0) return c.index(floorDiv(*x, *y));
  if (auto d = terms(b); d.size() == 1 && b->lo > 0) {
    Split s = splitBy(c, a, b, d[0]);
    if (s.rest != a || s.divisor != b) return idxAdd(c, s.whole, idxDiv(c, s.rest, s.divisor));
    if (s.rest->constIndex() == 0) return s.rest;
  }
  if (y && *y > 1)
    if (UOpRef once = divTwice(c, a, *y)) return once;
  return IndexMath::settled(c, IndexMath::node(c, Op::FloorDiv, a, b));
}

UOpRef astra::idxMod(Context &c, UOpRef a, UOpRef b) {
  auto x = a->constIndex(), y = b->constIndex();
  if (y && *y == 1) return c.index(0);
  if (x && y && *y > 0) return c.index((*x % *y + *y) % *y);
  if (auto d = terms(b); d.size() == 1 && b->lo > 0) {
    Split s = splitBy(c, a, b, d[0]);
    if (s.rest != a || s.divisor != b)
      return idxAdd(c, idxMul(c, idxMod(c, s.rest, s.divisor), c.index(s.factor)), c.index(s.lost));
    if (s.rest->constIndex() == 0) return s.rest;
  }
  return IndexMath::settled(c, IndexMath::node(c, Op::Mod, a, b));
}

static UOpRef extremum(Context &c, Op op, UOpRef a, UOpRef b) {
  if (a == b) return a;
  bool min = op == Op::Min;
  if (a->hi <= b->lo) return min ? a : b;
  if (b->hi <= a->lo) return min ? b : a;
  if (b->hash < a->hash) std::swap(a, b);
  return IndexMath::node(c, op, a, b);
}
UOpRef astra::idxMin(Context &c, UOpRef a, UOpRef b) { return extremum(c, Op::Min, a, b); }
UOpRef astra::idxMax(Context &c, UOpRef a, UOpRef b) { return extremum(c, Op::Max, a, b); }

IndexBlock astra::idxBlock(Context &c, UOpRef extent, UOpRef i, int64_t size) {
  UOpRef n = c.index(size), begin = idxMul(c, i, n);
  if (begin->lo >= 0 && idxSub(c, extent, idxAdd(c, begin, n))->lo >= 0) return {begin, n};
  begin = idxMin(c, extent, begin);
  return {begin, idxMin(c, n, idxSub(c, extent, begin))};
}

UOpRef astra::idxProduct(Context &c, llvm::ArrayRef<UOpRef> xs) {
  UOpRef p = c.index(1);
  for (UOpRef x : xs) p = idxMul(c, p, x);
  return p;
}

std::optional<DimMultiple> astra::dimMultiple(UOpRef extent) {
  auto ts = terms(extent);
  int64_t offset = ts.back().atoms.empty() ? ts.pop_back_val().coefficient : 0;
  if (ts.size() != 1 || ts[0].coefficient < 1 || ts[0].atoms.size() != 1 || !ts[0].atoms[0]->is(Op::Dim))
    return std::nullopt;
  return DimMultiple{ts[0].atoms[0], ts[0].coefficient, offset};
}

UOpRef astra::idxSubstitute(Context &c, UOpRef x, llvm::ArrayRef<UOpRef> from, llvm::ArrayRef<UOpRef> to) {
  llvm::DenseMap<UOpRef, UOpRef> map;
  for (auto [f, t] : llvm::zip(from, to)) map[f] = t;
  for (UOpRef n : topoSort(x)) {
    if (map.count(n)) continue;
    llvm::SmallVector<UOpRef, 4> src;
    for (UOpRef s : n->src) src.push_back(map[s]);
    map[n] = c.withSources(n, src);
  }
  return map[x];
}

UOpRef astra::idxByEquations(Context &c, UOpRef x, llvm::ArrayRef<Equation> equations) {
  llvm::SmallVector<UOpRef, 4> dims, values;
  for (const Equation &e : equations) {
    UOpRef dim = idxSubstitute(c, e.left, dims, values), value = idxSubstitute(c, e.right, dims, values);
    auto isSolved = [&] { return dim->is(Op::Dim) && !llvm::is_contained(topoSort(value), dim); };
    if (!isSolved()) std::swap(dim, value);
    if (!isSolved()) continue;
    for (UOpRef &before : values) before = idxSubstitute(c, before, dim, value);
    dims.push_back(dim), values.push_back(value);
  }
  return idxSubstitute(c, x, dims, values);
}

bool astra::idxAreEqual(Context &c, UOpRef x, UOpRef y, llvm::ArrayRef<Equation> equations) {
  if (x == y || equations.empty()) return x == y;
  bool isEqual = idxByEquations(c, x, equations) == idxByEquations(c, y, equations);
  return !c.takeOverflow() && isEqual;
}

std::optional<int64_t> astra::idxApply(Op op, int64_t a, int64_t b) {
  int64_t r;
  switch (op) {
  case Op::Add: return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  case Op::Mul: return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
  case Op::FloorDiv: return b <= 0 ? std::nullopt : std::optional(a / b - (a % b < 0));
  case Op::Mod: return b <= 0 ? std::nullopt : std::optional(a % b + (a % b < 0 ? b : 0));
  case Op::Min: return std::min(a, b);
  case Op::Max: return std::max(a, b);
  default: return std::nullopt;
  }
}

IndexProgram::IndexProgram(UOpRef x) {
  llvm::DenseMap<UOpRef, size_t> numbers;
  for (UOpRef n : topoSort(x)) {
    if (!n->isIndex()) continue; // the tensor below an extent; the extent itself must be given
    Step step{n, n->constIndex(), steps.size(), steps.size()};
    if (n->src.size() == 2 && n->src[0]->isIndex() && numbers.count(n->src[0]) && numbers.count(n->src[1]))
      step.left = numbers[n->src[0]], step.right = numbers[n->src[1]];
    numbers[n] = steps.size();
    steps.push_back(step);
  }
}

std::optional<int64_t> IndexProgram::at(llvm::function_ref<std::optional<int64_t>(UOpRef)> value) const {
  llvm::SmallVector<int64_t, 32> results;
  for (const Step &s : steps) {
    std::optional<int64_t> v = s.known ? s.known : value(s.node);
    if (!v && s.left < results.size()) v = idxApply(s.node->op, results[s.left], results[s.right]);
    if (!v) return std::nullopt;
    results.push_back(*v);
  }
  return results.back();
}

std::optional<int64_t> astra::idxEvaluate(UOpRef x, llvm::function_ref<std::optional<int64_t>(UOpRef)> value) {
  return IndexProgram(x).at(value);
}

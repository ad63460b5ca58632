//===- Folds.cpp: what a region on scalars computes -------------------------===//
// Takes:    regions that may be anything.
// Gives:    what is recognized, by comparing nodes: equal graphs are one node.
#include "Folds.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace astra::stablehlo {

std::vector<Fold> foldsOf(Statement &s, unsigned region, size_t n) {
  std::vector<UOpRef> scalars;
  std::vector<UOpRef> results = s.probe(region, scalars);
  if (!s.b.failed() && (scalars.size() != 2 * n || results.size() != n))
    s.fail("the region has " + llvm::Twine(scalars.size()) + " arguments and " + llvm::Twine(results.size()) +
           " results, expected " + llvm::Twine(2 * n) + " and " + llvm::Twine(n));
  std::vector<Fold> folds;
  if (s.b.failed()) return folds;
  static constexpr std::pair<Op, Fold> ops[] = {{Op::Add, Fold::Sum}, {Op::Mul, Fold::Prod}, {Op::Max, Fold::Max},
                                                {Op::Min, Fold::Min}, {Op::And, Fold::And},  {Op::Or, Fold::Or}};
  for (size_t j = 0; j < n; ++j) {
    UOpRef x = scalars[j], y = scalars[n + j], r = results[j];
    Fold found = r == x ? Fold::First : r == y ? Fold::Second : Fold::Unknown;
    bool pair = r->src.size() == 2 && r->ntensors == 2;
    for (auto [op, fold] : ops)
      if (pair && r->is(op) && ((r->src[0] == x && r->src[1] == y) || (r->src[0] == y && r->src[1] == x))) found = fold;
    if (pair && r->is(Op::Sub) && r->src[0] == x && r->src[1] == y) found = Fold::Difference;
    folds.push_back(found);
  }
  return folds;
}

std::optional<ReduceKind> reduceKind(Fold f) {
  switch (f) {
  case Fold::Sum: return ReduceKind::Sum;
  case Fold::Prod: return ReduceKind::Prod;
  case Fold::Max: return ReduceKind::Max;
  case Fold::Min: return ReduceKind::Min;
  case Fold::And: return ReduceKind::And;
  case Fold::Or: return ReduceKind::Or;
  default: return std::nullopt;
  }
}

Op opOf(ReduceKind kind) {
  static constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or};
  return ops[unsigned(kind)];
}

bool changesNothing(compose::Composer &b, ReduceKind kind, UOpRef init) {
  if (!init || !init->isConst() || isComplex(init->dtype)) return false;
  DType t = init->dtype;
  if (uint64_t(init->ints[0]) == reduceIdentity(kind, t)) return true;
  return kind == ReduceKind::Sum && isFloat(t) && init == b.b.lit(t, 0);
}

namespace {

/// What leaves of the comparator a graph reads: 1 the left side, 2 the right one.
unsigned sidesOf(UOpRef x, llvm::ArrayRef<UOpRef> scalars) {
  unsigned sides = 0;
  for (UOpRef node : topoSort({x}))
    for (size_t i = 0; i < scalars.size(); ++i)
      if (node == scalars[i]) sides |= i % 2 ? 2 : 1;
  return sides;
}

class Comparator {
public:
  Comparator(Statement &s, std::vector<UOpRef> scalars) : s(s), scalars(std::move(scalars)) {
    for (size_t i = 0; i + 1 < this->scalars.size(); i += 2)
      toRight.push_back({this->scalars[i], this->scalars[i + 1]});
  }

  /// lt(a, b), or(lt(a, b), and(eq(a, b), REST)), or the same with the sides exchanged.
  bool read(UOpRef x, std::vector<Key> &keys) {
    for (unsigned depth = 0; depth < 64; ++depth) {
      if (std::optional<Key> key = less(x)) {
        keys.push_back(*key);
        return true;
      }
      if (!x->is(Op::Or)) return false;
      bool found = false;
      for (unsigned i = 0; i < 2 && !found; ++i) {
        std::optional<Key> key = less(x->src[i]);
        UOpRef rest = x->src[1 - i];
        if (!key || !rest->is(Op::And)) continue;
        for (unsigned k = 0; k < 2 && !found; ++k) {
          if (!equal(rest->src[k], *key)) continue;
          keys.push_back(*key);
          x = rest->src[1 - k];
          found = true;
        }
      }
      if (!found) return false;
    }
    return false;
  }

private:
  std::optional<Key> less(UOpRef x) {
    if (!x->is(Op::Lt)) return std::nullopt;
    UOpRef a = x->src[0], b = x->src[1];
    unsigned sides = sidesOf(a, scalars), other = sidesOf(b, scalars);
    if (sides == 1 && other == 2 && substituted(s.b, a, toRight) == b) return Key{a, false};
    if (sides == 2 && other == 1 && substituted(s.b, b, toRight) == a) return Key{b, true};
    return std::nullopt;
  }
  bool equal(UOpRef x, const Key &key) {
    UOpRef right = substituted(s.b, key.of, toRight);
    return x->is(Op::Eq) &&
           ((x->src[0] == key.of && x->src[1] == right) || (x->src[1] == key.of && x->src[0] == right));
  }

  Statement &s;
  std::vector<UOpRef> scalars;
  llvm::SmallVector<std::pair<UOpRef, UOpRef>, 4> toRight;
};

} // namespace

UOpRef substituted(compose::Composer &b, UOpRef graph, llvm::ArrayRef<std::pair<UOpRef, UOpRef>> leaves) {
  llvm::DenseMap<UOpRef, UOpRef> now;
  for (auto [from, to] : leaves) now[from] = to;
  for (UOpRef x : topoSort({graph})) {
    if (now.count(x)) continue;
    bool same = llvm::all_of(x->src, [&](UOpRef y) { return now.lookup(y) == y; });
    if (same) {
      now[x] = x;
      continue;
    }
    llvm::SmallVector<UOpRef, 4> src;
    for (UOpRef y : x->src) src.push_back(now.lookup(y));
    bool scalars = llvm::all_of(src, [](UOpRef y) { return y && y->rank() == 0; });
    if (scalars) {
      now[x] = b.make(x->op, src, x->ints, x->dtype);
      continue;
    }
    if (!astra::has(x->op, Elementwise)) return b.unsupported("the region is not element by element");
    llvm::SmallVector<llvm::ArrayRef<UOpRef>, 4> shapes;
    for (UOpRef y : src) shapes.push_back(y->shape);
    Dims dims = b.broadcastShape(shapes);
    for (UOpRef &y : src) y = b.broadcastTo(y, dims);
    now[x] = b.make(x->op, src, x->ints, x->dtype);
    if (!now[x]) return nullptr;
  }
  return now.lookup(graph);
}

std::optional<std::vector<Key>> keysOf(Statement &s, unsigned region, size_t n) {
  std::vector<UOpRef> scalars;
  std::vector<UOpRef> results = s.probe(region, scalars);
  if (s.b.failed()) return std::nullopt;
  if (scalars.size() != 2 * n || results.size() != 1 || results[0]->dtype != DType::Bool) {
    s.fail("a comparator of " + llvm::Twine(n) + " operands has " + llvm::Twine(2 * n) + " arguments and gives one i1");
    return std::nullopt;
  }
  std::vector<Key> keys;
  if (Comparator(s, scalars).read(results[0], keys)) return keys;
  s.unsupported("the comparator is not supported: it must compare values of both sides by LT or GT, one after another "
                "where they are equal");
  return std::nullopt;
}

} // namespace astra::stablehlo

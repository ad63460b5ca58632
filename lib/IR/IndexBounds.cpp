//===- IndexBounds.cpp: how small and how large a polynomial can be --------===//
// Takes:    the terms of a sum.
// Gives:    bounds that are exact where every atom occurs in one term, where atoms in several are of degree one, and
// where
//           one of them is of degree two: such a polynomial is extreme at corners of the box, along the square at its
//           apex too. So (n - 1)*m and (h - 2)*(h - 2) are known to be no less than 0 when they are multiplied out. A
//           multiple of d times a quotient by d is that multiple of the dividend but for the remainder: 2*((n + 1)
//           floordiv 2) - n is 0 or 1.
// Keeps:    what is known when it cannot do better: the bounds of each term, added up.
// Does not: know otherwise that atoms depend on each other; a box that is too large gives bounds that are too wide.
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"

using namespace astra;
using llvm::SmallVector;

namespace {
using W = __int128;
struct Bounds {
  W lo, hi;
};
constexpr W largest = W(1) << 62, largestSquare = W(1) << 41; // of what is multiplied: 128 bits hold it

bool within(Bounds b, W most) { return b.lo >= -most && b.hi <= most; }
Bounds boundsOf(UOpRef a) { return {a->lo, a->hi}; }

/// a *= b, unless that is too large.
bool multiply(Bounds &a, Bounds b) {
  if (!within(a, largest) || !within(b, largest)) return false;
  W p[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  a = {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
  return within(a, largest);
}

std::optional<Bounds> termByTerm(llvm::ArrayRef<IndexTerm> ts) {
  Bounds sum{0, 0};
  for (const IndexTerm &t : ts) {
    Bounds value{t.coefficient, t.coefficient};
    for (UOpRef a : t.atoms)
      if (!multiply(value, boundsOf(a))) return std::nullopt;
    sum.lo += value.lo, sum.hi += value.hi;
  }
  return sum;
}

class Polynomial {
public:
  explicit Polynomial(llvm::ArrayRef<IndexTerm> ts) : ts(ts) {}

  std::optional<Bounds> bounds() {
    if (!analyse()) return std::nullopt;
    std::optional<Bounds> all;
    for (unsigned corner = 0; corner < 1u << linear.size(); ++corner) {
      Bounds here;
      if (!at(corner, here)) return std::nullopt;
      all = all ? Bounds{std::min(all->lo, here.lo), std::max(all->hi, here.hi)} : here;
    }
    return all;
  }

private:
  /// Which atoms are in several terms; nothing to gain if none is, no help if there are many or powers.
  bool analyse() {
    SmallVector<std::pair<UOpRef, unsigned>, 8> seen; // an atom, how many terms it is in
    SmallVector<UOpRef, 2> squares;
    for (const IndexTerm &t : ts)
      for (size_t i = 0; i < t.atoms.size(); ++i) {
        UOpRef a = t.atoms[i];
        unsigned power = llvm::count(t.atoms, a);
        if (power > 2 || (power == 2 && !within(boundsOf(a), largestSquare))) return false;
        if (power == 2 && !llvm::is_contained(squares, a)) squares.push_back(a);
        if (llvm::find(llvm::ArrayRef(t.atoms).take_front(i), a) != t.atoms.begin() + i) continue;
        auto it = llvm::find_if(seen, [&](auto &s) { return s.first == a; });
        if (it == seen.end())
          seen.push_back({a, 1});
        else
          ++it->second;
      }
    if (squares.size() > 1) return false;
    if (!squares.empty()) square = squares[0];
    for (auto [a, count] : seen)
      if (count > 1 && a != square) linear.push_back(a);
    return (square || !linear.empty()) && linear.size() <= 6;
  }

  bool at(unsigned corner, Bounds &sum) {
    Bounds coefficients[3] = {}; // of the square's powers
    for (const IndexTerm &t : ts) {
      Bounds value{t.coefficient, t.coefficient};
      unsigned power = 0;
      for (UOpRef a : t.atoms) {
        auto it = llvm::find(linear, a);
        W v = it == linear.end() ? 0 : corner >> (it - linear.begin()) & 1 ? a->hi : a->lo;
        if (a == square)
          ++power;
        else if (!multiply(value, it == linear.end() ? boundsOf(a) : Bounds{v, v}))
          return false;
      }
      coefficients[power].lo += value.lo;
      coefficients[power].hi += value.hi;
    }
    if (!square) {
      sum = coefficients[0];
      return true;
    }
    if (coefficients[2].lo != coefficients[2].hi || coefficients[1].lo != coefficients[1].hi) return false;
    if (!within(coefficients[2], largestSquare)) return false;
    W a = coefficients[2].lo, b = coefficients[1].lo, apex = a ? -b / (2 * a) : 0;
    bool first = true;
    for (W x : {W(square->lo), W(square->hi), apex - 1, apex, apex + 1}) {
      if (x < square->lo || x > square->hi) continue;
      W y = a * x * x + b * x;
      sum = first ? Bounds{y, y} : Bounds{std::min(sum.lo, y), std::max(sum.hi, y)};
      first = false;
    }
    sum.lo += coefficients[0].lo, sum.hi += coefficients[0].hi;
    return true;
  }

  llvm::ArrayRef<IndexTerm> ts;
  SmallVector<UOpRef, 6> linear; // atoms in several terms
  UOpRef square = nullptr;       // the one atom that is squared somewhere
};

std::optional<Bounds> meet(std::optional<Bounds> a, std::optional<Bounds> b) {
  return !a ? b : !b ? a : Bounds{std::max(a->lo, b->lo), std::min(a->hi, b->hi)};
}

/// With k*(e floordiv d) as k/d*e - k/d*(e mod d) where d divides k. Nothing where there is no such term.
std::optional<Bounds> byRemainders(llvm::ArrayRef<IndexTerm> ts) {
  constexpr size_t longest = 24;
  SmallVector<IndexTerm, 12> merged;
  Bounds remainders{0, 0};
  bool any = false, fits = true;
  auto add = [&](const IndexTerm &t) {
    auto same = llvm::find_if(merged, [&](const IndexTerm &o) { return o.atoms == t.atoms; });
    if (same == merged.end())
      merged.push_back(t);
    else
      fits &= !__builtin_add_overflow(same->coefficient, t.coefficient, &same->coefficient);
  };
  for (const IndexTerm &t : ts) {
    UOpRef a = t.atoms.size() == 1 ? t.atoms[0] : nullptr;
    auto d = a && a->is(Op::FloorDiv) ? a->src[1]->constIndex() : std::nullopt;
    if (!d || *d < 2 || t.coefficient % *d) {
      add(t);
      continue;
    }
    int64_t times = t.coefficient / *d;
    any = true;
    for (IndexTerm e : terms(a->src[0])) {
      fits &= !__builtin_mul_overflow(e.coefficient, times, &e.coefficient);
      add(e);
    }
    (times > 0 ? remainders.lo : remainders.hi) -= W(times) * (*d - 1);
  }
  if (!any || !fits || merged.size() > longest) return std::nullopt;
  std::optional<Bounds> rest = meet(termByTerm(merged), Polynomial(merged).bounds());
  return rest ? std::optional(Bounds{rest->lo + remainders.lo, rest->hi + remainders.hi}) : std::nullopt;
}
} // namespace

std::optional<std::pair<int64_t, int64_t>> astra::idxSumBounds(UOpRef left, UOpRef right) {
  constexpr unsigned longest = 12;
  unsigned count = 2;
  for (UOpRef x = left; x->is(Op::Add) && count <= longest; x = x->src[0]) ++count;
  if (count > longest) return std::nullopt;
  auto ts = terms(left);
  llvm::append_range(ts, terms(right));
  std::optional<Bounds> whole = meet(Polynomial(ts).bounds(), byRemainders(ts));
  // An atom that every term has is a factor.
  Bounds factor{1, 1};
  bool divided = false;
  SmallVector<UOpRef, 2> first = ts[0].atoms;
  for (UOpRef a : first) {
    if (!llvm::all_of(ts, [&](const IndexTerm &t) { return llvm::is_contained(t.atoms, a); })) continue;
    if (!multiply(factor, boundsOf(a))) return std::nullopt;
    divided = true;
    for (IndexTerm &t : ts) t.atoms.erase(llvm::find(t.atoms, a));
  }
  if (divided) {
    std::optional<Bounds> rest = Polynomial(ts).bounds();
    if (!rest) rest = termByTerm(ts);
    if (rest && multiply(*rest, factor)) whole = meet(whole, rest);
  }
  if (!whole || !within(*whole, largest)) return std::nullopt;
  return std::pair(int64_t(whole->lo), int64_t(whole->hi));
}

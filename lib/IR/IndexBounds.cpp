//===- IndexBounds.cpp: how small and how large a polynomial can be --------===//
// Takes:    the terms of a sum.
// Gives:    bounds that are exact where every atom occurs in one term, where atoms in several are of degree one, and
//           where one of them is of degree two: such a polynomial is extreme at corners of the box, along the square at
//           its apex too. So (n - 1)*m and (h - 2)*(h - 2) are known to be no less than 0 when they are multiplied out.
//           A quotient or remainder by a constant is known with its dividend: 2*((n + 1) floordiv 2) - n is 0 or 1,
//           n - n floordiv 3 no less than 0 for such an n. A min or max is each of its sides in turn: n - min(n, m)
//           is the greater of 0 and n - m; but what is divided too stays whole: k - 16*(k floordiv 16) of a min k.
// Keeps:    what is known when it cannot do better: the bounds of each term, added up.
// Does not: know otherwise that atoms depend on each other; a box that is too large gives bounds that are too wide.
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace astra;
using llvm::SmallVector;
using llvm::SmallVectorImpl;

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
      Bounds here = {};
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

/// a + times * b, terms of equal atoms merged; whether the coefficients fit.
bool addScaled(SmallVectorImpl<IndexTerm> &a, llvm::ArrayRef<IndexTerm> b, int64_t times) {
  for (IndexTerm t : b) {
    if (__builtin_mul_overflow(t.coefficient, times, &t.coefficient)) return false;
    auto same = llvm::find_if(a, [&](const IndexTerm &o) { return o.atoms == t.atoms; });
    if (same == a.end())
      a.push_back(t);
    else if (__builtin_add_overflow(same->coefficient, t.coefficient, &same->coefficient))
      return false;
  }
  llvm::erase_if(a, [](const IndexTerm &t) { return t.coefficient == 0; });
  return true;
}

/// What is left of `ts` times `scale` when term i is taken out and k times x put in.
std::optional<SmallVector<IndexTerm, 12>> replaced(llvm::ArrayRef<IndexTerm> ts, size_t i, int64_t scale, UOpRef x,
                                                   int64_t k) {
  constexpr size_t longest = 24;
  SmallVector<IndexTerm, 12> out;
  if (!addScaled(out, ts.take_front(i), scale) || !addScaled(out, ts.drop_front(i + 1), scale) ||
      !addScaled(out, terms(x), k) || out.size() > longest)
    return std::nullopt;
  return out;
}

W floorQuotient(W a, W b) { return a / b - (a % b < 0); }

/// How deep cases are told apart and quotients taken apart, and how often in all.
struct Work {
  unsigned splits, quotients, *left;
};
std::optional<Bounds> sumBounds(llvm::ArrayRef<IndexTerm> ts, Work work);

/// k*min(a, b) + rest is the lesser of k*a + rest and k*b + rest for k > 0, the greater for k < 0; max likewise.
std::optional<Bounds> byCases(llvm::ArrayRef<IndexTerm> ts, size_t i, Work work) {
  int64_t k = ts[i].coefficient;
  UOpRef x = ts[i].atoms[0];
  std::optional<Bounds> both[2];
  for (unsigned side = 0; side < 2; ++side) {
    auto with = replaced(ts, i, 1, x->src[side], k);
    both[side] = with ? sumBounds(*with, {work.splits - 1, work.quotients, work.left}) : std::nullopt;
    if (!both[side]) return std::nullopt;
  }
  auto [a, b] = std::pair(*both[0], *both[1]);
  return x->is(Op::Min) == (k > 0) ? Bounds{std::min(a.lo, b.lo), std::min(a.hi, b.hi)}
                                   : Bounds{std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
}

/// d times the sum has d*k*(e floordiv d), which is k*e - k*(e mod d); k*(e mod d) is k*e - k*d*(e floordiv d).
std::optional<Bounds> byQuotient(llvm::ArrayRef<IndexTerm> ts, size_t i, Work work) {
  constexpr int64_t largestDivisor = int64_t(1) << 24;
  int64_t k = ts[i].coefficient, d = *ts[i].atoms[0]->src[1]->constIndex();
  UOpRef e = ts[i].atoms[0]->src[0];
  if (d > largestDivisor || !within({k, k}, largestSquare)) return std::nullopt;
  bool mod = ts[i].atoms[0]->is(Op::Mod);
  int64_t common = mod ? d : std::gcd(k, d), scale = d / common, times = mod ? k : k / common;
  Bounds lost = mod ? Bounds{floorQuotient(e->lo, d) * d, floorQuotient(e->hi, d) * d} : Bounds{0, d - 1};
  auto with = replaced(ts, i, scale, e, times);
  std::optional<Bounds> rest = with ? sumBounds(*with, {work.splits, work.quotients - 1, work.left}) : std::nullopt;
  if (!rest || !multiply(lost, {-times, -times})) return std::nullopt;
  return Bounds{-floorQuotient(-(rest->lo + lost.lo), scale), floorQuotient(rest->hi + lost.hi, scale)};
}

UOpRef extremumOf(const IndexTerm &t) {
  bool is = t.atoms.size() == 1 && (t.atoms[0]->is(Op::Min) || t.atoms[0]->is(Op::Max));
  return is ? t.atoms[0] : nullptr;
}

UOpRef quotientOf(const IndexTerm &t) {
  UOpRef a = t.atoms.size() == 1 ? t.atoms[0] : nullptr;
  bool is = a && (a->is(Op::FloorDiv) || a->is(Op::Mod)) && a->src[1]->constIndex().value_or(1) >= 2;
  return is ? a : nullptr;
}

/// Whether a min or max of the sum is in the dividend too, of which no side can be taken alone.
bool dividesExtremum(llvm::ArrayRef<IndexTerm> ts, UOpRef quotient) {
  auto dividend = terms(quotient->src[0]);
  return llvm::any_of(ts, [&](const IndexTerm &t) {
    UOpRef x = extremumOf(t);
    return x && llvm::any_of(dividend, [&](const IndexTerm &part) { return llvm::is_contained(part.atoms, x); });
  });
}

/// The best of all ways, as far as the work allowed goes. Which min or max comes first matters: another is tried as
/// long as the sum may be negative.
std::optional<Bounds> sumBounds(llvm::ArrayRef<IndexTerm> ts, Work work) {
  std::optional<Bounds> best = meet(termByTerm(ts), Polynomial(ts).bounds());
  for (size_t i = 0; i < ts.size() && work.quotients && *work.left; ++i) {
    UOpRef quotient = quotientOf(ts[i]);
    if (!quotient || !dividesExtremum(ts, quotient)) continue;
    --*work.left;
    best = meet(best, byQuotient(ts, i, work));
    if (best && best->lo >= 0) return best;
  }
  bool cases = false;
  for (size_t i = 0; i < ts.size() && work.splits && *work.left; ++i) {
    if (!extremumOf(ts[i])) continue;
    cases = true;
    --*work.left;
    best = meet(best, byCases(ts, i, work));
    if (best && best->lo >= 0) return best;
  }
  for (size_t i = 0; i < ts.size() && !cases && work.quotients && *work.left; ++i) {
    if (!quotientOf(ts[i])) continue;
    --*work.left;
    return meet(best, byQuotient(ts, i, work));
  }
  return best;
}
} // namespace

std::optional<std::pair<int64_t, int64_t>> astra::idxSumBounds(UOpRef left, UOpRef right) {
  constexpr unsigned longest = 12, splits = 4, quotients = 4, steps = 96;
  unsigned count = 2, allowed = steps;
  for (UOpRef x = left; x->is(Op::Add) && count <= longest; x = x->src[0]) ++count;
  if (count > longest) return std::nullopt;
  auto ts = terms(left);
  llvm::append_range(ts, terms(right));
  std::optional<Bounds> whole = sumBounds(ts, {splits, quotients, &allowed});
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
    std::optional<Bounds> rest = sumBounds(ts, {splits, quotients, &allowed});
    if (rest && multiply(*rest, factor)) whole = meet(whole, rest);
  }
  if (!whole || !within(*whole, largest)) return std::nullopt;
  return std::pair(int64_t(whole->lo), int64_t(whole->hi));
}

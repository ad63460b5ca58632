//===- Inequalities.h: integers that are never negative ---------------------===//
// Takes:    polynomials over dims, ranges, quotients, remainders, minima and maxima; facts, each a polynomial that is
//           not negative.
// Gives:    a proof that another polynomial is not negative for all values of these, or none.
// Keeps:    nothing of what the simplifier knows: of a node it reads the op, the sources and the attribute, never the
//           bounds (lo, hi) that it carries. So it checks them.
// Does not: decide; the proof is searched within a bound on its steps. No proof is no counterexample.
//
// The search takes one atom of the polynomial after another, those that others are made of last, and puts in its place
// a bound: C*a + R with C >= 0 is at least C*L + R where a >= L. Bounds of an atom are what it is made of (a range is
// less than its extent, d * (x floordiv d) lies in x - d + 1 .. x) and what facts say of it. A minimum is each of its
// sides in turn. What is left are dims: a polynomial that is linear in a dim is least at one of its ends.
#pragma once
#include "astra/IR/Index.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <map>
#include <vector>

namespace astra {

inline int64_t lanesOf(UOpRef x) { return x->rank() ? x->shape[0]->constIndex().value_or(1) : 1; }
/// The value that a lane of x is, through splats, stacks and lanes of others; `lane` becomes its lane there.
UOpRef elementOf(UOpRef x, int64_t &lane);

class Inequalities {
public:
  struct Term {
    llvm::SmallVector<uint32_t, 4> atoms; // ascending, one for each power; none: the constant
    int64_t k;
    bool operator==(const Term &o) const { return k == o.k && atoms == o.atoms; }
  };
  using Poly = llvm::SmallVector<Term, 4>; // by atoms, the constant first; no k is 0
  using Facts = std::vector<Poly>;

  /// The polynomial of a symbolic integer. Its nodes stay known by it.
  Poly of(UOpRef x);
  /// The integer that `source`, a value that is no symbolic integer, or lane `lane` of it, has in memory.
  Poly inMemory(UOpRef source, int64_t lane, DType as);
  /// An integer in 0 .. count - 1 that is no node's.
  Poly unknownBelow(int64_t count);
  /// Takes a dim as an integer in 0 .. extent - 1.
  void isBelow(UOpRef dim, UOpRef extent);
  static Poly constant(int64_t k);
  Poly sum(const Poly &a, const Poly &b, int64_t times = 1); // a + times * b
  Poly product(const Poly &a, const Poly &b);

  /// Adds that x >= 0, and what follows of what it is made of.
  void assume(Facts &facts, const Poly &x);
  /// Whether x >= 0 follows.
  bool proves(const Poly &x, const Facts &facts);
  /// Where a symbolic integer is for certain, as its own atoms say. Saturates at +-2^62.
  std::pair<int64_t, int64_t> interval(const Poly &x) const;

  /// Whether a coefficient left 64 bits since this was asked last: what was computed since is not what was meant.
  bool takeOverflow() { return std::exchange(overflow, false); }

private:
  enum class Kind : uint8_t { Dim, Range, Lane, Free, Div, Mod, Min, Max, Select };
  struct Atom {
    Kind kind;
    int64_t lo, hi;
    Poly x, y;           // Range: x the extent; Div, Mod: x by y; Min, Max, Select: of x and y
    bool divides = true; // Div, Mod: y >= 1 by its interval; else nothing is known until facts say so
  };
  struct Split {
    Poly factor, rest; // of one atom: factor * atom + rest
    bool linear = true;
  };

  uint32_t add(Atom a);
  Poly quotient(const Poly &x, const Poly &y);
  Poly remainder(const Poly &x, const Poly &y);
  Poly same(Atom a);
  bool provesNested(Poly x, const Facts &facts);
  bool provesApart(Poly x, const Facts &facts);
  Poly atom(uint32_t a) const { return {{{a}, 1}}; }
  Split split(const Poly &x, uint32_t a) const;
  static std::array<Poly, 2> sides(const Atom &a);
  std::optional<uint32_t> topAtom(const Poly &x) const;
  int sign(const Poly &x, const Facts &facts, unsigned depth); // 1: >= 0, -1: <= 0, 0: not known
  bool isPositive(const Poly &x, const Facts &facts, unsigned depth);
  bool prove(Poly x, const Facts &facts, unsigned depth);
  bool proveSplit(const Poly &x, uint32_t a, const Facts &facts, unsigned depth);
  bool proveBound(const Split &s, uint32_t a, bool lower, const Facts &facts, unsigned depth);
  bool proveQuotient(const Split &s, const Atom &a, bool lower, const Facts &facts, unsigned depth);
  using Bounds = llvm::SmallVector<Poly, 4>;
  std::optional<std::pair<Poly, int64_t>> divide(Poly x, const Poly &d);
  void quotientBounds(const Poly &x, const Poly &d, bool lower, const Facts &facts, unsigned depth, Bounds &out);
  Poly replaced(const Poly &x, uint32_t which, const Poly &by);
  std::optional<uint32_t> dividing(const Poly &x) const;
  bool provesByCases(const Poly &x, const Facts &facts, unsigned splits);
  Poly substitute(const Poly &x, uint32_t a, const Poly &by);
  static bool tighten(Poly &x);
  std::pair<int64_t, int64_t> ends(uint32_t a, const Facts &facts) const;
  bool shifted(const Poly &x, const Facts &facts);

  std::vector<Atom> atoms;
  llvm::DenseMap<UOpRef, Poly> known;
  std::map<std::tuple<UOpRef, int64_t, DType>, Poly> loaded;
  llvm::SmallVector<uint32_t, 16> divisions; // atoms
  bool searching = false;
  bool apart = false;    // quotients and remainders are not put together again
  bool overflow = false; // of a coefficient: what was computed with it proves nothing
  uint64_t left = 0;
};

namespace inequalities {
inline constexpr int64_t most = int64_t(1) << 62; // intervals saturate there
inline constexpr int64_t far = int64_t(1) << 44;  // an end of an interval that says nothing
inline int64_t floorQuotient(int64_t a, int64_t b) { return a / b - (a % b < 0); }
inline bool isBefore(const Inequalities::Term &a, const Inequalities::Term &b) {
  return a.atoms.size() != b.atoms.size() ? a.atoms.size() < b.atoms.size() : a.atoms < b.atoms;
}
inline std::optional<int64_t> constantOf(const Inequalities::Poly &x) {
  if (x.empty()) return 0;
  return x.size() == 1 && x[0].atoms.empty() ? std::optional<int64_t>(x[0].k) : std::nullopt;
}
} // namespace inequalities

} // namespace astra

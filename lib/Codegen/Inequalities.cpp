//===- Inequalities.cpp: integers that are never negative -------------------===//
// Takes:    polynomials and facts (Inequalities.h).
// Gives:    proofs.
#include "Inequalities.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace astra;
using namespace astra::inequalities;
using llvm::SmallVector;
using Poly = Inequalities::Poly;
using Term = Inequalities::Term;

static constexpr unsigned deepest = 48; // of a search

/// The two sides of a minimum or maximum, that which is no constant first: it says more.
std::array<Poly, 2> Inequalities::sides(const Atom &a) {
  return constantOf(a.x) ? std::array{a.y, a.x} : std::array{a.x, a.y};
}

// ---- facts
void Inequalities::assume(Facts &facts, const Poly &fact) {
  constexpr size_t mostNew = 24;
  const size_t full = facts.size() + mostNew;
  if (takeOverflow()) return;
  std::vector<Poly> todo{fact};
  auto put = [&](Poly x) {
    if (!takeOverflow()) todo.push_back(std::move(x));
  };
  for (size_t i = 0; i < todo.size() && facts.size() < full; ++i) {
    Poly x = todo[i];
    tighten(x);
    if (interval(x).first >= 0 || llvm::is_contained(facts, x)) continue;
    facts.push_back(x);
    std::optional<uint32_t> top = topAtom(x);
    if (!top) continue;
    // A product less a positive constant: no factor is 0.
    if (x.size() > 1 && x[0].atoms.empty() && x[0].k < 0)
      for (uint32_t a : SmallVector<uint32_t, 4>(x[1].atoms)) {
        auto has = [&](const Term &t) { return llvm::is_contained(t.atoms, a); };
        if (atoms[a].lo < 0 || !llvm::all_of(llvm::drop_begin(x), has)) continue;
        Poly rest;
        for (const Term &t : llvm::drop_begin(x)) {
          rest.push_back(t);
          rest.back().atoms.erase(llvm::find(rest.back().atoms, a));
        }
        llvm::sort(rest, isBefore);
        put(sum(atom(a), constant(-1)));
        put(sum(rest, constant(-1)));
        break;
      }
    // A product that is no greater than a constant: no factor is, where none is 0.
    if (x.size() == 2 && x[0].atoms.empty() && x[0].k > 0 && x[1].k < 0 && x[1].atoms.size() > 1 &&
        llvm::all_of(x[1].atoms, [&](uint32_t a) { return atoms[a].lo >= 1; }))
      for (uint32_t a : x[1].atoms) put(sum(constant(x[0].k / -x[1].k), atom(a), -1));
    Split s = split(x, *top);
    const Atom a = atoms[*top];
    if (!s.linear) continue;
    if (!a.divides) {
      constexpr uint64_t allowed = 100;
      if (std::exchange(searching, true)) continue; // a search adds what is clear alone
      left = allowed;
      bool positive = isPositive(a.y, facts, deepest - 12);
      searching = false;
      if (!positive) continue;
    }
    auto [lo, hi] = interval(s.factor);
    bool up = lo >= 0, down = hi <= 0;
    if (!up && !down) continue;
    auto with = [&](const Poly &by) { put(sum(product(s.factor, by), s.rest)); };
    switch (a.kind) {
    case Kind::Lane:
    case Kind::Range: with(up ? sum(a.x, constant(-1)) : Poly{}); break;
    case Kind::Mod:
      with(up ? sum(a.y, constant(-1)) : Poly{});
      if (up && interval(a.x).first >= 0) with(a.x);
      break;
    case Kind::Div:
      put(sum(product(s.factor, up ? a.x : sum(sum(a.x, a.y, -1), constant(1))), product(a.y, s.rest)));
      if (down && a.lo > -far) with(constant(a.lo));
      break;
    case Kind::Min:
    case Kind::Max:
      for (bool first : {true, false}) {
        const Poly &side = first ? a.x : a.y, &other = first ? a.y : a.x;
        // No less than both, or the fact cannot hold for the other side.
        if ((a.kind == Kind::Min) == up || interval(sum(product(s.factor, other), s.rest)).second < 0) with(side);
      }
      break;
    default: break;
    }
  }
}

/// Where an atom is for certain, with facts that speak of it alone.
std::pair<int64_t, int64_t> Inequalities::ends(uint32_t a, const Facts &facts) const {
  int64_t lo = atoms[a].lo, hi = atoms[a].hi;
  for (const Poly &f : facts) {
    if (f.empty() || f.size() > 2 || f.back().atoms.size() != 1 || f.back().atoms[0] != a) continue;
    int64_t k = f.back().k, c = f.size() == 2 ? f[0].k : 0;
    if (f.size() == 2 && !f[0].atoms.empty()) continue;
    if (k > 0) lo = std::max(lo, -floorQuotient(c, k));
    if (k < 0) hi = std::min(hi, floorQuotient(c, -k));
  }
  return {lo, hi};
}

// ---- the search
bool Inequalities::proves(const Poly &x, const Facts &facts) {
  constexpr uint64_t allowed = 4000;
  if (interval(x).first >= 0) return true;
  if (takeOverflow()) return false;
  left = allowed;
  searching = true;
  bool ok = prove(x, facts, 0) || provesApart(x, facts) || provesByCases(x, facts, 2) || provesNested(x, facts);
  if (!ok) // under facts that contradict each other nothing runs
    for (const Poly &f : facts) {
      left = allowed / 8;
      if ((ok = prove(sum(constant(-1), f, -1), facts, 0))) break;
    }
  searching = false;
  return ok;
}

/// With each side of a minimum or maximum that something is divided by, in turn.
bool Inequalities::provesByCases(const Poly &x, const Facts &facts, unsigned splits) {
  constexpr uint64_t allowed = 1500;
  std::optional<uint32_t> which = splits ? dividing(x) : std::nullopt;
  if (!which) return false;
  const Atom a = atoms[*which];
  for (bool first : {true, false}) {
    const Poly &by = first ? a.x : a.y;
    Facts here;
    bool less = first == (a.kind == Kind::Min);
    assume(here, less ? sum(a.y, a.x, -1) : sum(a.x, a.y, -1));
    for (const Poly &f : facts) assume(here, replaced(f, *which, by));
    Poly side = replaced(x, *which, by);
    left = allowed;
    if (!prove(side, here, 0) && !provesApart(side, here) && !provesByCases(side, here, splits - 1)) return false;
  }
  return true;
}

/// With (z floordiv k) mod y written as z floordiv k - y*(z floordiv k*y), by which it meets other quotients of z.
bool Inequalities::provesNested(Poly x, const Facts &facts) {
  constexpr uint64_t allowed = 1500;
  bool changed = false;
  for (uint32_t m : SmallVector<uint32_t, 16>(divisions)) {
    const Atom a = atoms[m];
    if (a.kind != Kind::Mod || !constantOf(a.y) || a.x.size() != 1 || a.x[0].k != 1 || a.x[0].atoms.size() != 1)
      continue;
    const Atom inner = atoms[a.x[0].atoms[0]];
    if (inner.kind != Kind::Div || !constantOf(inner.y) || split(x, m).factor.empty()) continue;
    x = substitute(x, m, sum(a.x, product(a.y, quotient(inner.x, product(inner.y, a.y))), -1));
    changed = true;
  }
  if (!changed || takeOverflow()) return false;
  left = allowed;
  return prove(x, facts, 0);
}

/// With x written as y*(x floordiv y) + x mod y where facts speak of x mod y, and x mod k*y as k*((x floordiv k) mod y)
/// + x mod k where they speak of (x floordiv k) mod y.
bool Inequalities::provesApart(Poly x, const Facts &facts) {
  SmallVector<uint32_t, 4> remainders, quotients;
  for (const Poly &f : facts)
    for (const Term &t : f)
      for (uint32_t m : t.atoms) {
        if (atoms[m].kind == Kind::Mod && !llvm::is_contained(remainders, m)) remainders.push_back(m);
        if (atoms[m].kind == Kind::Div && !llvm::is_contained(quotients, m)) quotients.push_back(m);
      }
  bool changed = false;
  // So many times z, as far as one of its atoms tells, is so many times y*(z floordiv y) + z mod y.
  auto take = [&](const Poly &z, const Poly &y) {
    std::optional<uint32_t> top = topAtom(z);
    if (!top) return;
    Split in = split(z, *top), s = split(x, *top);
    auto k = constantOf(in.factor);
    if (!in.linear || !s.linear || s.factor.empty() || !k) return;
    auto times = divide(s.factor, constant(*k));
    if (!times || times->second) return;
    x = sum(x, product(times->first, sum(sum(product(quotient(z, y), y), remainder(z, y)), z, -1)));
    changed = true;
  };
  for (uint32_t q : quotients) {
    const Atom a = atoms[q];
    take(a.x, a.y);
  }
  auto put = [&](uint32_t which, const Poly &by) {
    Split s = split(x, which);
    if (s.factor.empty() || !s.linear) return;
    x = sum(product(s.factor, by), s.rest);
    changed = true;
  };
  for (uint32_t m : remainders) {
    const Atom a = atoms[m];
    take(a.x, a.y);
    Poly c = a.x; // an atom and a constant
    bool plain = !c.empty() && !c[0].atoms.empty();
    if (plain)
      c.clear();
    else if (c.size() > 1)
      c.truncate(1);
    Poly q = sum(a.x, c, -1);
    if (q.size() != 1 || q[0].k != 1 || q[0].atoms.size() != 1) continue;
    Atom inner = atoms[q[0].atoms[0]];
    if (inner.kind == Kind::Div) {
      inner.x = sum(inner.x, product(inner.y, c)); // (x floordiv k) + c is (x + c*k) floordiv k
      Poly whole = product(inner.y, a.y);
      for (uint32_t d : SmallVector<uint32_t, 16>(divisions))
        if (atoms[d].kind == Kind::Mod && atoms[d].x == inner.x && atoms[d].y == whole)
          put(d, sum(product(inner.y, atom(m)), remainder(inner.x, inner.y)));
      // The same of g*w + l in place of x, whose remainder by g*d is g*(w mod d) + l, for 0 <= l < g.
      auto k = constantOf(whole);
      int64_t g = k.value_or(0);
      for (const Term &t : inner.x)
        if (!t.atoms.empty()) g = std::gcd(g, t.k);
      if (k && g > 1) {
        Poly w = inner.x;
        int64_t l = !w.empty() && w[0].atoms.empty() ? w[0].k - floorQuotient(w[0].k, g) * g : 0;
        w = sum(w, constant(l), -1);
        for (Term &t : w) t.k /= g;
        for (uint32_t d : SmallVector<uint32_t, 16>(divisions)) {
          if (atoms[d].kind != Kind::Mod || atoms[d].x != w || atoms[d].y != constant(*k / g)) continue;
          Split s = split(x, d);
          auto times = divide(s.factor, constant(g));
          if (s.factor.empty() || !s.linear || !times || times->second) continue;
          Poly parts = sum(product(inner.y, atom(m)), sum(remainder(inner.x, inner.y), constant(l), -1));
          x = sum(product(times->first, parts), s.rest);
          changed = true;
        }
      }
    }
  }
  if (!changed) return false;
  left = std::max<uint64_t>(left, 1000);
  apart = true;
  bool ok = prove(std::move(x), facts, 0);
  apart = false;
  return ok;
}

/// Whether x >= 1 follows, or x times what is not negative is greater than 0.
bool Inequalities::isPositive(const Poly &x, const Facts &facts, unsigned depth) {
  if (prove(sum(x, constant(-1)), facts, depth)) return true;
  for (const Poly &f : facts)
    if (!f.empty() && f[0].atoms.empty() && f[0].k < 0)
      if (auto q = divide(sum(f, constant(f[0].k), -1), x); q && q->second == 0 && sign(q->first, facts, depth) == 1)
        return true;
  return false;
}

int Inequalities::sign(const Poly &x, const Facts &facts, unsigned depth) {
  auto [lo, hi] = interval(x);
  if (lo >= 0) return 1;
  if (hi <= 0) return -1;
  if (prove(x, facts, depth + 8)) return 1;
  return prove(sum({}, x, -1), facts, depth + 8) ? -1 : 0;
}

/// x = whole * d + rest, term by term of d's last one; nothing where what is left is no constant.
std::optional<std::pair<Poly, int64_t>> Inequalities::divide(Poly x, const Poly &d) {
  constexpr unsigned mostTerms = 16;
  if (d.empty()) return std::nullopt;
  const Term &lead = d.back();
  Poly whole;
  for (unsigned n = 0; n < mostTerms; ++n) {
    std::optional<Term> q;
    for (const Term &t : llvm::reverse(x)) {
      if (t.k % lead.k || t.atoms.size() < lead.atoms.size()) continue;
      Term u{t.atoms, t.k / lead.k};
      bool divides = llvm::all_of(lead.atoms, [&](uint32_t a) {
        auto *it = llvm::find(u.atoms, a);
        if (it == u.atoms.end()) return false;
        u.atoms.erase(it);
        return true;
      });
      if (divides) {
        q = std::move(u);
        break;
      }
    }
    if (!q) break;
    whole = sum(whole, {*q});
    x = sum(x, product({*q}, d), -1);
  }
  auto k = constantOf(x);
  if (takeOverflow() || !k) return std::nullopt;
  return std::pair(std::move(whole), *k);
}

/// Bounds of x floordiv d where d >= 1: of x, and of what x is at most (at least) once one atom after another is at a
/// bound, those that d times something and a constant less than d make up.
void Inequalities::quotientBounds(const Poly &x, const Poly &d, bool lower, const Facts &facts, unsigned depth,
                                  Bounds &out) {
  constexpr size_t mostBounds = 6;
  if (takeOverflow() || out.size() >= mostBounds || left == 0) return;
  --left;
  int64_t least = std::max<int64_t>(interval(d).first, 1);
  auto known = constantOf(d);
  if (auto q = divide(x, d)) {
    auto [whole, k] = std::move(*q);
    std::optional<Poly> b;
    if (known)
      b = sum(whole, constant(floorQuotient(k, *known)));
    else if (k < 0 && (!lower || -k <= least)) // of more than d it is less, which is no lower bound
      b = sum(whole, constant(-1));
    else if (k >= 0 && (lower || k < least))
      b = whole;
    if (b && !llvm::is_contained(out, *b)) out.push_back(std::move(*b));
  } else if (!known) { // so many times d, as its last term tells, and what is less than d
    const Term &lead = d.back();
    auto *same = llvm::find_if(x, [&](const Term &t) { return t.atoms == lead.atoms; });
    if (same != x.end() && lead.k > 0 && same->k >= lead.k) {
      int64_t times = same->k / lead.k;
      Poly rest = sum(x, d, -times);
      if (prove(lower ? rest : sum(sum(d, rest, -1), constant(-1)), facts, deepest - 12))
        out.push_back(constant(times));
    }
  }
  std::optional<uint32_t> top;
  {
    Poly others; // atoms that d is made of stay
    for (const Term &t : x)
      for (uint32_t a : t.atoms)
        if (llvm::none_of(d, [&](const Term &u) { return llvm::is_contained(u.atoms, a); })) others.push_back({{a}, 1});
    top = topAtom(others);
  }
  if (!top || depth == 0) return;
  Split s = split(x, *top);
  const Atom a = atoms[*top];
  int sign = s.linear ? this->sign(s.factor, facts, deepest - 12) : 0;
  if (!sign || (!a.divides && !isPositive(a.y, facts, deepest - 12))) return;
  bool low = (sign > 0) == lower; // which bound of the atom
  auto with = [&](const Poly &by) {
    quotientBounds(sum(product(s.factor, by), s.rest), d, lower, facts, depth - 1, out);
  };
  for (const Poly &f : facts) { // of which some say k*a <= rest, or k*a >= -rest
    if (topAtom(f) != top) continue;
    Split t = split(f, *top);
    auto k = constantOf(t.factor);
    if (!t.linear || !k || (*k > 0) != low) continue;
    if (auto q = divide(s.factor, constant(std::abs(*k))); q && q->second == 0)
      quotientBounds(sum(product(q->first, low ? sum({}, t.rest, -1) : t.rest), s.rest), d, lower, facts, depth - 1,
                     out);
    Bounds said;
    unsigned within = std::abs(*k) == 1 ? 0 : depth / 2; // it is a bound as it stands, or what it is made of is one
    if (low)                                             // a >= ceil(-rest / k)
      quotientBounds(sum(constant(*k - 1), t.rest, -1), constant(*k), true, facts, within, said);
    else
      quotientBounds(t.rest, constant(-*k), false, facts, within, said);
    for (const Poly &b : said) with(b);
  }
  switch (a.kind) {
  case Kind::Lane:
  case Kind::Range: return with(low ? Poly{} : sum(a.x, constant(-1)));
  case Kind::Mod:
    with(low ? Poly{} : sum(a.y, constant(-1)));
    return with(sum(a.x, product(quotient(a.x, a.y), a.y), -1));
  case Kind::Div: {
    Bounds quotients;
    quotientBounds(a.x, a.y, low, facts, depth - 1, quotients);
    for (const Poly &q : quotients) with(q);
    if (auto q = divide(s.factor, a.y); q && q->second == 0) // so many times y: y*(x floordiv y) is near x
      quotientBounds(sum(product(q->first, low ? sum(sum(a.x, a.y, -1), constant(1)) : a.x), s.rest), d, lower, facts,
                     depth - 1, out);
    return;
  }
  case Kind::Min:
    if (!low)
      for (const Poly &by : sides(a)) with(by);
    break;
  case Kind::Max:
    if (low)
      for (const Poly &by : sides(a)) with(by);
    break;
  default: break;
  }
  auto [lo, hi] = ends(*top, facts);
  if (int64_t end = low ? lo : hi; std::abs(end) < far) with(constant(end));
}

/// C*a + R >= 0 where C >= 0 and a is no less than a bound (lower), or C <= 0 and a is no greater than one.
bool Inequalities::proveBound(const Split &s, uint32_t which, bool lower, const Facts &facts, unsigned depth) {
  for (const Poly &f : facts) {
    if (topAtom(f) != which) continue;
    Split t = split(f, which);
    if (!t.linear) continue;
    auto k = constantOf(t.factor);
    if (!k) { // so many times the fact, and something more
      auto times = divide(s.factor, t.factor);
      if (times && !times->second && constantOf(times->first).value_or(0) > 0 &&
          prove(sum(s.rest, t.rest, -constantOf(times->first).value_or(0)), facts, depth + 1))
        return true;
      continue;
    }
    if ((*k > 0) != lower) continue;
    // k*a >= -rest for k > 0, -k*a <= rest for k < 0
    Poly with = sum(product(s.factor, lower ? sum({}, t.rest, -1) : t.rest), s.rest, std::abs(*k));
    if (prove(sum(with, constant(std::abs(*k) - 1)), facts, depth + 1)) return true;
  }
  const Atom a = atoms[which]; // a copy: proving may add atoms
  if (!a.divides && !isPositive(a.y, facts, depth + 1)) return false;
  auto with = [&](const Poly &by) { return prove(sum(product(s.factor, by), s.rest), facts, depth + 1); };
  switch (a.kind) {
  case Kind::Lane:
  case Kind::Range: return lower ? with({}) : with(sum(a.x, constant(-1)));
  case Kind::Mod:
    if (lower) return with({});
    if (with(sum(a.y, constant(-1)))) return true;
    return sign(a.x, facts, depth) == 1 && with(a.x);
  case Kind::Div: return proveQuotient(s, a, lower, facts, depth);
  case Kind::Min: return !lower && llvm::any_of(sides(a), with);
  case Kind::Max: return lower && llvm::any_of(sides(a), with);
  case Kind::Dim:
  case Kind::Free: {
    auto [lo, hi] = ends(which, facts);
    int64_t end = lower ? lo : hi;
    return std::abs(end) < far && with(constant(end));
  }
  case Kind::Select: return false;
  }
  return false;
}

bool Inequalities::proveQuotient(const Split &s, const Atom &a, bool lower, const Facts &facts, unsigned depth) {
  Bounds bounds;
  quotientBounds(a.x, a.y, lower, facts, 12, bounds);
  for (const Poly &b : bounds)
    if (prove(sum(product(s.factor, b), s.rest), facts, depth + 1)) return true;
  // d*q lies in x - d + 1 .. x; an integer of which d times is more than -d is not negative
  Poly by = lower ? sum(sum(a.x, a.y, -1), constant(1)) : a.x, slack = sum(a.y, constant(-1));
  if (prove(sum(sum(product(s.factor, by), product(a.y, s.rest)), slack), facts, depth + 1)) return true;
  // Quotients of one dividend by divisors of which one divides the other.
  if (auto d = constantOf(a.y))
    for (const Term &t : s.rest)
      for (uint32_t o : t.atoms) {
        auto e = atoms[o].kind == Kind::Div && atoms[o].x == a.x ? constantOf(atoms[o].y) : std::nullopt;
        if (!e || *e < 1 || (*d % *e && *e % *d)) continue;
        int64_t k = *d % *e ? *e / *d : *d / *e;
        // k*a lies in o - k + 1 .. o, or a in k*o .. k*o + k - 1
        bool coarser = *d % *e == 0;
        Poly least = coarser ? sum(atom(o), constant(1 - k)) : sum({}, atom(o), k);
        Poly bound = lower ? least : sum(least, constant(k - 1));
        Poly with = sum(product(s.factor, bound), s.rest, coarser ? k : 1);
        if (prove(coarser ? sum(with, constant(k - 1)) : with, facts, depth + 1)) return true;
      }
  return lower && sign(a.x, facts, depth) == 1 && prove(s.rest, facts, depth + 1);
}

/// The atom is one of two polynomials, in turn everywhere.
bool Inequalities::proveSplit(const Poly &x, uint32_t which, const Facts &facts, unsigned depth) {
  const Atom a = atoms[which];
  for (bool first : {true, false}) {
    const Poly &by = first ? a.x : a.y;
    Facts here;
    if (a.kind != Kind::Select) {
      bool less = first == (a.kind == Kind::Min);
      assume(here, less ? sum(a.y, a.x, -1) : sum(a.x, a.y, -1));
    }
    for (const Poly &f : facts)
      if (split(f, which).linear) assume(here, substitute(f, which, by));
    if (!prove(substitute(x, which, by), here, depth + 1)) return false;
  }
  return true;
}

/// Whether every coefficient is positive once each dim is its least value and something more.
bool Inequalities::shifted(const Poly &x, const Facts &facts) {
  Poly at = x;
  SmallVector<uint32_t, 8> dims;
  for (const Term &t : x)
    for (uint32_t a : t.atoms)
      if (!llvm::is_contained(dims, a)) dims.push_back(a);
  for (uint32_t a : dims) {
    int64_t lo = ends(a, facts).first;
    if (lo <= -far) return false;
    Poly by = sum(atom(a), constant(lo)), out, power = constant(1);
    for (size_t p = 0;; ++p, power = product(power, by)) {
      Poly of;
      bool any = false;
      for (const Term &t : at) {
        size_t n = llvm::count(t.atoms, a);
        any |= n > p;
        if (n != p) continue;
        Term u = t;
        llvm::erase(u.atoms, a);
        of.push_back(std::move(u));
      }
      llvm::sort(of, isBefore);
      out = sum(out, product(of, power));
      if (!any) break;
    }
    at = std::move(out);
  }
  return !overflow && llvm::all_of(at, [](const Term &t) { return t.k >= 0; });
}

bool Inequalities::prove(Poly x, const Facts &facts, unsigned depth) {
  if (takeOverflow() || depth > deepest || left == 0) return false; // x is not what was meant
  --left;
  tighten(x);
  auto [lo, hi] = interval(x);
  if (lo >= 0) return true;
  if (hi < 0 && facts.empty()) return false;
  if (x.empty() || constantOf(x)) return false;
  for (const Poly &f : facts) {
    Poly rest = sum(x, f, -1);
    if (!takeOverflow() && interval(rest).first >= 0) return true;
  }
  // A factor that all terms have.
  if (!x[0].atoms.empty())
    for (uint32_t a : x[0].atoms)
      if (ends(a, facts).first >= 0 && llvm::all_of(x, [&](const Term &t) { return llvm::is_contained(t.atoms, a); })) {
        Poly rest = x;
        for (Term &t : rest) t.atoms.erase(llvm::find(t.atoms, a));
        llvm::sort(rest, isBefore);
        if (prove(std::move(rest), facts, depth + 1)) return true;
        break; // else it may be 0
      }
  uint32_t top = *topAtom(x);
  const Atom a = atoms[top];
  if (a.kind == Kind::Dim && shifted(x, facts)) return true;
  Split s = split(x, top);
  if (!s.linear) return false;
  // x floordiv d and x mod d together are x.
  if (!apart && (a.kind == Kind::Div || a.kind == Kind::Mod))
    for (const Term &t : x)
      for (uint32_t o : t.atoms) {
        if (o == top || atoms[o].kind != (a.kind == Kind::Div ? Kind::Mod : Kind::Div) || atoms[o].x != a.x ||
            atoms[o].y != a.y)
          continue;
        uint32_t quotient = a.kind == Kind::Div ? top : o, remainder = a.kind == Kind::Div ? o : top;
        Split q = split(x, quotient);
        Split r = split(q.rest, remainder);
        if (q.linear && r.linear && q.factor == product(r.factor, a.y))
          return prove(sum(product(r.factor, a.x), r.rest), facts, depth + 1);
      }
  bool sides = a.kind == Kind::Min || a.kind == Kind::Max || a.kind == Kind::Select;
  switch (sign(s.factor, facts, depth)) {
  case 1:
    if (proveBound(s, top, true, facts, depth)) return true;
    break;
  case -1:
    if (proveBound(s, top, false, facts, depth)) return true;
    break;
  default:
    if (!sides) return proveBound(s, top, true, facts, depth) && proveBound(s, top, false, facts, depth);
  }
  return sides && proveSplit(x, top, facts, depth);
}

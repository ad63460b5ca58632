//===- InequalityTerms.cpp: symbolic integers as polynomials ----------------===//
// Takes:    index nodes.
// Gives:    polynomials over atoms, and intervals that atoms lie in (Inequalities.h).
// Keeps:    overflow of a coefficient noted: what was computed with it is not what was meant.
#include "Inequalities.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace astra;
using namespace astra::inequalities;
using llvm::SmallVector;
using Poly = Inequalities::Poly;
using Term = Inequalities::Term;

using W = __int128;
static int64_t saturate(W x) { return int64_t(std::clamp<W>(x, -most, most)); }

// ---- polynomials
Poly Inequalities::constant(int64_t k) { return k ? Poly{{{}, k}} : Poly{}; }

Poly Inequalities::sum(const Poly &a, const Poly &b, int64_t times) {
  Poly out;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    bool left = j == b.size() || (i < a.size() && isBefore(a[i], b[j]));
    bool right = i == a.size() || (j < b.size() && isBefore(b[j], a[i]));
    Term t = left ? a[i] : b[j];
    if (!left) overflow |= __builtin_mul_overflow(b[j].k, times, &t.k);
    if (!left && !right) overflow |= __builtin_add_overflow(a[i].k, t.k, &t.k);
    if (t.k) out.push_back(std::move(t));
    if (!right) ++i;
    if (!left) ++j;
  }
  return out;
}

Poly Inequalities::product(const Poly &a, const Poly &b) {
  Poly out;
  for (const Term &s : a)
    for (const Term &t : b) {
      Term u;
      overflow |= __builtin_mul_overflow(s.k, t.k, &u.k);
      std::merge(s.atoms.begin(), s.atoms.end(), t.atoms.begin(), t.atoms.end(), std::back_inserter(u.atoms));
      out.push_back(std::move(u));
    }
  if (a.size() < 2 && b.size() < 2) return out;
  llvm::sort(out, isBefore);
  size_t n = 0;
  for (size_t i = 0; i < out.size(); ++i)
    if (n && out[n - 1].atoms == out[i].atoms)
      overflow |= __builtin_add_overflow(out[n - 1].k, out[i].k, &out[n - 1].k);
    else if (n++ != i)
      out[n - 1] = std::move(out[i]);
  out.truncate(n);
  llvm::erase_if(out, [](const Term &t) { return t.k == 0; });
  return out;
}

/// x / the greatest common divisor of its coefficients, the constant rounded down: x >= 0 as before.
bool Inequalities::tighten(Poly &x) {
  int64_t g = 0;
  for (const Term &t : x)
    if (!t.atoms.empty()) g = std::gcd(g, t.k);
  if (g < 2) return false;
  for (Term &t : x) t.k = floorQuotient(t.k, g);
  llvm::erase_if(x, [](const Term &t) { return t.k == 0; });
  return true;
}

Inequalities::Split Inequalities::split(const Poly &x, uint32_t a) const {
  Split s;
  for (const Term &t : x) {
    size_t power = llvm::count(t.atoms, a);
    if (power > 1) s.linear = false;
    if (!power) {
      s.rest.push_back(t);
      continue;
    }
    Term u = t;
    u.atoms.erase(llvm::find(u.atoms, a));
    s.factor.push_back(std::move(u));
  }
  llvm::sort(s.factor, isBefore);
  return s;
}

Poly Inequalities::substitute(const Poly &x, uint32_t a, const Poly &by) {
  Split s = split(x, a);
  if (s.factor.empty()) return x;
  if (!s.linear) {
    overflow = true;
    return x;
  }
  return sum(product(s.factor, by), s.rest);
}

// ---- atoms
uint32_t Inequalities::add(Atom a) {
  atoms.push_back(std::move(a));
  return atoms.size() - 1;
}

UOpRef astra::elementOf(UOpRef x, int64_t &lane) {
  for (;;) {
    if (x->op == Op::Splat || (x->op == Op::Lanes && (lane += x->ints[0], true)))
      x = x->src[0], lane = x->rank() ? lane : 0;
    else if (x->op == Op::Stack) {
      const auto *part = x->src.begin();
      for (; part != x->src.end() && lane >= lanesOf(*part); ++part) lane -= lanesOf(*part);
      if (part == x->src.end()) return x;
      x = *part;
    } else
      return x;
  }
}

Poly Inequalities::inMemory(UOpRef x, int64_t lane, DType as) {
  x = elementOf(x, lane);
  auto [it, fresh] = loaded.try_emplace({x, lane, as});
  if (fresh) it->second = atom(add({Kind::Free, -most, most, {}, {}}));
  return it->second;
}

Poly Inequalities::unknownBelow(int64_t count) {
  return atom(add({Kind::Lane, 0, std::max<int64_t>(count - 1, 0), constant(count), {}}));
}

void Inequalities::isBelow(UOpRef dim, UOpRef extent) {
  Poly n = of(extent);
  int64_t hi = std::max<int64_t>(interval(n).second - 1, 0);
  known[dim] = atom(add({Kind::Range, 0, hi, std::move(n), {}}));
}

std::pair<int64_t, int64_t> Inequalities::interval(const Poly &x) const {
  W lo = 0, hi = 0;
  for (const Term &t : x) {
    W l = t.k, h = t.k;
    for (uint32_t a : t.atoms) {
      W p[] = {l * atoms[a].lo, l * atoms[a].hi, h * atoms[a].lo, h * atoms[a].hi};
      l = saturate(*std::min_element(p, p + 4)), h = saturate(*std::max_element(p, p + 4));
    }
    lo += l, hi += h;
  }
  return {saturate(lo), saturate(hi)};
}

/// The atom x floordiv y, one for equal x and y.
Poly Inequalities::quotient(const Poly &x, const Poly &y) {
  if (auto k = constantOf(x), d = constantOf(y); k && d && *d > 0) return constant(floorQuotient(*k, *d));
  auto [lo, hi] = interval(x);
  auto [least, largest] = interval(y);
  Atom a{Kind::Div, -most, most, x, y, least >= 1};
  if (a.divides) {
    a.lo = std::min(floorQuotient(lo, least), floorQuotient(lo, largest));
    a.hi = std::max(floorQuotient(hi, least), floorQuotient(hi, largest));
  }
  return same(std::move(a));
}

/// The atom x mod y.
Poly Inequalities::remainder(const Poly &x, const Poly &y) {
  if (auto k = constantOf(x), d = constantOf(y); k && d && *d > 0) return constant(*k - floorQuotient(*k, *d) * *d);
  auto [lo, hi] = interval(x);
  auto [least, largest] = interval(y);
  Atom a{Kind::Mod, -most, most, x, y, least >= 1};
  if (a.divides) a.lo = 0, a.hi = lo >= 0 ? std::min(largest - 1, hi) : largest - 1;
  return same(std::move(a));
}

Poly Inequalities::same(Atom a) {
  for (uint32_t i : divisions)
    if (atoms[i].kind == a.kind && atoms[i].x == a.x && atoms[i].y == a.y) return atom(i);
  divisions.push_back(add(std::move(a)));
  return atom(divisions.back());
}

Poly Inequalities::of(UOpRef root) {
  SmallVector<UOpRef, 16> todo{root};
  while (!todo.empty()) {
    UOpRef n = todo.back();
    if (known.contains(n)) {
      todo.pop_back();
      continue;
    }
    size_t before = todo.size();
    if (n->op != Op::Extent)
      for (UOpRef s : n->src)
        if (s->isIndex() && !known.contains(s)) todo.push_back(s);
    if (todo.size() > before) continue;
    todo.pop_back();
    auto src = [&](unsigned i) -> const Poly & { return known.find(n->src[i])->second; };
    auto make = [&](Kind kind, std::pair<int64_t, int64_t> range, Poly x = {}, Poly y = {}) {
      return atom(add({kind, range.first, range.second, std::move(x), std::move(y)}));
    };
    Poly p;
    switch (n->op) {
    case Op::Const: p = constant(n->ints[0]); break;
    case Op::Dim: p = make(Kind::Dim, {n->ints[0], n->ints[1]}); break;
    case Op::Range: p = make(Kind::Range, {0, std::max<int64_t>(interval(src(0)).second - 1, 0)}, src(0)); break;
    case Op::Add: p = sum(src(0), src(1)); break;
    case Op::Mul: p = product(src(0), src(1)); break;
    case Op::FloorDiv: p = quotient(src(0), src(1)); break;
    case Op::Mod: p = remainder(src(0), src(1)); break;
    case Op::Min:
    case Op::Max: {
      auto [a, b] = interval(src(0));
      auto [c, d] = interval(src(1));
      bool min = n->op == Op::Min;
      p = make(min ? Kind::Min : Kind::Max,
               min ? std::pair(std::min(a, c), std::min(b, d)) : std::pair(std::max(a, c), std::max(b, d)), src(0),
               src(1));
      break;
    }
    case Op::Select: {
      auto [a, b] = interval(src(1));
      auto [c, d] = interval(src(2));
      p = make(Kind::Select, {std::min(a, c), std::max(b, d)}, src(1), src(2));
      break;
    }
    case Op::Extent: {
      UOpRef v = n->src[0];
      p = inMemory(v->op == Op::Cast ? v->src[0] : v, 0, v->dtype);
      break;
    }
    default: p = make(Kind::Free, {-most, most});
    }
    if (takeOverflow()) p = make(Kind::Free, {-most, most});
    known.try_emplace(n, std::move(p));
  }
  return known.lookup(root);
}

/// The one to take next: lanes first, which nothing is made of, dims last, of the others those made last, since they
/// are made of those before.
std::optional<uint32_t> Inequalities::topAtom(const Poly &x) const {
  std::optional<uint32_t> top;
  auto key = [&](uint32_t a) {
    Kind k = atoms[a].kind;
    return std::pair(k == Kind::Dim ? 0 : k == Kind::Lane ? 2 : 1, a);
  };
  for (const Term &t : x)
    for (uint32_t a : t.atoms)
      if (!top || key(a) > key(*top)) top = a;
  return top;
}

/// x with another polynomial in place of an atom, in what its quotients and remainders are made of too.
Poly Inequalities::replaced(const Poly &x, uint32_t which, const Poly &by) {
  Poly out;
  for (const Term &t : x) {
    Poly p = constant(t.k);
    for (uint32_t a : t.atoms) {
      const Atom o = atoms[a];
      bool divides = o.kind == Kind::Div || o.kind == Kind::Mod;
      Poly factor = atom(a);
      if (a == which)
        factor = by;
      else if (divides && a > which) { // an atom is made of earlier ones
        Poly n = replaced(o.x, which, by), d = replaced(o.y, which, by);
        factor = o.kind == Kind::Div ? quotient(n, d) : remainder(n, d);
      }
      p = product(p, factor);
    }
    out = sum(out, p);
  }
  return out;
}

/// A minimum or maximum that quotients and remainders in x are divided by; nothing where there is none.
std::optional<uint32_t> Inequalities::dividing(const Poly &x) const {
  SmallVector<uint32_t, 16> todo, seen;
  auto visit = [&](const Poly &p) {
    for (const Term &t : p)
      for (uint32_t a : t.atoms)
        if (!llvm::is_contained(seen, a)) seen.push_back(a), todo.push_back(a);
  };
  visit(x);
  while (!todo.empty()) {
    const Atom &a = atoms[todo.pop_back_val()];
    if (a.kind != Kind::Div && a.kind != Kind::Mod) continue;
    for (const Term &t : a.y)
      for (uint32_t d : t.atoms)
        if (atoms[d].kind == Kind::Min || atoms[d].kind == Kind::Max) return d;
    visit(a.x);
    visit(a.y);
  }
  return std::nullopt;
}

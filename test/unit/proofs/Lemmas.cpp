//===- Lemmas.cpp: why the rules of symbolic integers hold -----------------===//
// Every division x / d with d > 0 is written in Euclid's form: x = d*q + m, 0 <= m < d, and q, m are the only such
// numbers (lemma `unique`). A rule then says that some q and m are of that form. Each step is over unbounded integers;
// products of unknowns appear as polynomials.
// Does not: look at the functions. These are run at every point of boxes (IndexBoxes.cpp); a chain is why they hold
//           beyond. Rows of terms need no chain: z3 is given the row itself (Prove.cpp).
#include "Prove.h"
#include <functional>
#include <map>

using namespace astra::proofs;
using z3::expr;

namespace {
struct Chain {
  z3::context c;
  std::string wrong;

  expr v(const char *name) { return c.int_const(name); }
  void lemma(const char *what, const expr &given, const expr &then) {
    z3::solver s(c);
    z3::params p(c);
    p.set("rlimit", 30'000'000u);
    s.set(p);
    s.add(given && !then);
    z3::check_result r = s.check();
    if (r != z3::unsat && wrong.empty()) wrong = std::string(what) + (r == z3::sat ? ": refuted" : ": unknown");
  }

  expr u = v("u"), t = v("t"), x = v("x"), y = v("y"), z = v("z"), d = v("d"), e = v("e"), g = v("g"), k = v("k"),
       q = v("q"), m = v("m"), Q = v("Q"), M = v("M");

  /// u, t >= 0 gives u*t >= 0; so a*b >= a for a >= 0, b >= 1.
  void products() {
    lemma("a product of numbers not negative is not negative", u >= 0 && t >= 0, u * t >= 0);
    lemma("a factor of at least 1 does not lessen", u >= 0 && t >= 1 && u * (t - 1) >= 0, u * t >= u);
  }
  /// d*q + m == d*Q + M with remainders in 0 ... d-1 gives q == Q and m == M.
  void unique() {
    products();
    expr p = v("p"); // stands for d * (q - Q)
    lemma("quotients that differ differ by d", d > 0 && q - Q >= 1 && d * (q - Q) >= d, d * (q - Q) >= d);
    lemma("so the greater quotient leaves no room", d > 0 && p >= d && p == M - m && m >= 0 && M >= 0 && m < d && M < d,
          c.bool_val(false));
    lemma("equal quotients leave equal remainders", q == Q && d * q + m == d * Q + M, m == M);
    lemma("the difference is that of the remainders", d * q + m == d * Q + M, d * (q - Q) == M - m);
  }
  expr euclid(const expr &n, const expr &by, const expr &quotient, const expr &rest) {
    return n == by * quotient + rest && rest >= 0 && rest < by;
  }
  /// 0 <= m < d and 0 <= y < g give 0 <= g*m + y < g*d.
  void nested() {
    products();
    expr p = v("p"); // stands for g * (d - 1 - m)
    lemma("g*(d - 1 - m) is g*d - g - g*m", c.bool_val(true), g * (d - 1 - m) == g * d - g - g * m);
    lemma("so g*m + y < g*d", p >= 0 && y < g && p == g * d - g - g * m, g * m + y < g * d);
    lemma("and it is not negative", g * m >= 0 && y >= 0, g * m + y >= 0);
  }
};

using Proof = std::function<void(Chain &)>;
const std::map<std::string, Proof> &chains() {
  static const std::map<std::string, Proof> all = {
      {"div-by-bounds",
       [](Chain &l) {
         l.unique();
         l.lemma("q and x - q*d are of Euclid's form", l.q * l.d <= l.x && l.x < l.q * l.d + l.d,
                 l.euclid(l.x, l.d, l.q, l.x - l.q * l.d));
         l.lemma("a bounded dividend has a bounded quotient",
                 l.d > 0 && l.k <= l.x && l.k == l.d * l.Q + l.M && l.M >= 0, l.d * l.Q <= l.x);
       }},
      {"mod-by-bounds",
       [](Chain &l) {
         l.unique();
         l.lemma("q and x - q*d are of Euclid's form", l.q * l.d <= l.x && l.x < l.q * l.d + l.d,
                 l.euclid(l.x, l.d, l.q, l.x - l.q * l.d));
       }},
      {"div-of-sum",
       [](Chain &l) {
         l.unique();
         l.lemma("y's form gives that of d*x + y", l.euclid(l.y, l.d, l.q, l.m),
                 l.euclid(l.d * l.x + l.y, l.d, l.x + l.q, l.m));
       }},
      {"mod-of-sum",
       [](Chain &l) {
         l.unique();
         l.lemma("y's form gives that of d*x + y", l.euclid(l.y, l.d, l.q, l.m),
                 l.euclid(l.d * l.x + l.y, l.d, l.x + l.q, l.m));
         l.lemma("t*x + y is t*(x % (k*d)) + y and a multiple of d", l.x == l.k * l.d * l.q + l.m,
                 l.t * l.x + l.y == (l.t * l.m + l.y) + l.d * (l.t * l.k * l.q));
       }},
      {"div-of-factor",
       [](Chain &l) {
         l.unique();
         l.nested();
         l.lemma("s = d*q + m gives g*s + y's form by g*d", l.x == l.d * l.q + l.m,
                 l.g * l.x + l.y == l.g * l.d * l.q + (l.g * l.m + l.y));
       }},
      {"mod-of-factor",
       [](Chain &l) {
         l.unique();
         l.nested();
         l.lemma("s = d*q + m gives g*s + y's form by g*d", l.x == l.d * l.q + l.m,
                 l.g * l.x + l.y == l.g * l.d * l.q + (l.g * l.m + l.y));
       }},
      {"div-of-div",
       [](Chain &l) {
         l.unique();
         l.nested();
         l.lemma("x = g*q + y, q = d*Q + m give x's form by g*d", l.x == l.g * l.q + l.y && l.q == l.d * l.Q + l.m,
                 l.x == l.g * l.d * l.Q + (l.g * l.m + l.y));
       }},
      {"sum-of-div-mod",
       [](Chain &l) {
         l.unique();
         l.nested();
         l.lemma("k*d*(x / d) + k*(x % d) is k*x", l.x == l.d * l.q + l.m, l.k * l.d * l.q + l.k * l.m == l.k * l.x);
         l.lemma("x % (g*d) is g*((x / g) % d) + x % g", l.x == l.g * l.q + l.y && l.q == l.d * l.Q + l.m,
                 l.x == l.g * l.d * l.Q + (l.g * l.m + l.y));
       }},
      {"min-by-bounds", [](Chain &l) { l.lemma("the lesser", l.x - l.y <= 0, z3::ite(l.x < l.y, l.x, l.y) == l.x); }},
      {"max-by-bounds", [](Chain &l) { l.lemma("the greater", l.x - l.y <= 0, z3::ite(l.x < l.y, l.y, l.x) == l.y); }},
      {"compare-by-bounds",
       [](Chain &l) {
         l.lemma("below", l.x - l.y <= l.k && l.k < 0, l.x < l.y && l.x != l.y);
         l.lemma("not below", l.x - l.y >= l.k && l.k >= 0, !(l.x < l.y));
         l.lemma("above", l.x - l.y >= l.k && l.k > 0, l.x != l.y);
         l.lemma("equal", l.x - l.y >= 0 && l.x - l.y <= 0, l.x == l.y);
       }},
      {"lt-of-factor",
       [](Chain &l) {
         l.products();
         expr p = l.v("p"); // g*s
         l.lemma("s >= 0", l.g > 1 && p >= 0 && l.y >= 0, !(p + l.y < 0));
         l.lemma("s <= -1: g*s <= -g", l.g > 1 && l.g * (-l.x - 1) >= 0, l.g * l.x <= -l.g);
         l.lemma("so g*s + y < 0", p <= -l.g && l.y < l.g, p + l.y < 0);
         l.lemma("terms change sides", l.c.bool_val(true), (l.x - l.z < 0) == (l.x < l.z));
       }},
      {"bounds", // of Bounds.cpp: what replaces an atom is at least as large
       [](Chain &l) {
         l.products();
         l.lemma("a coefficient not negative: the greatest value", l.k * (l.u - l.x) >= 0,
                 l.y + l.k * l.x <= l.y + l.k * l.u);
         l.lemma("a coefficient not positive: the least value", (-l.k) * (l.x - l.u) >= 0,
                 l.y + l.k * l.x <= l.y + l.k * l.u);
         l.lemma("d*(y / d) is at most y", l.y == l.d * l.q + l.m && l.m >= 0, l.d * l.q <= l.y);
         l.lemma("d*(y / d) is at least y - d + 1", l.y == l.d * l.q + l.m && l.m < l.d, l.d * l.q >= l.y - l.d + 1);
       }},
  };
  return all;
}
} // namespace

std::string astra::proofs::proveLemmas(const std::string &name) {
  auto it = chains().find(name);
  if (it == chains().end()) return "no chain of lemmas is named " + name;
  Chain l;
  it->second(l);
  return l.wrong;
}

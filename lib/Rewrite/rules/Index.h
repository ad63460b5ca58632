//===- Index.h: symbolic integers ------------------------------------------===//
// Sums and products need no rules: they are polynomials in normal form. Divisors are positive by the meaning of index
// div and mod.
#pragma once
#include "../Procedures.h"

namespace astra::rules {

// clang-format off
inline constexpr Rule indices[] = {
  {"mod-of-mod",        (x % b) % a            >>= x % a,               Index, a > 0 && b > 0 && b % a == 0},
  {"div-of-mod",        (x % b) / a            >>= (x / a) % (b / a),   Index, a > 0 && b > 0 && b % a == 0},
  {"index-max-of-max",  max(max(x, y), y)      >>= max(x, y),           Index},
  {"index-min-of-min",  min(min(x, y), y)      >>= min(x, y),           Index},
  {"index-max-of-min",  max(min(x, y), y)      >>= y,                   Index},
  {"index-min-of-max",  min(max(x, y), y)      >>= y,                   Index},
  {"index-max-literals", max(max(x, a), b)     >>= max(x, max(a, b)),   Index},
  {"index-min-literals", min(min(x, a), b)     >>= min(x, min(a, b)),   Index},
  {"index-le",          x <= y                 >>= x < y + 1,           Index},
  {"index-not-lt",      ~(x < y)               >>= y < x + 1,           Index},
  {"index-not-eq",      ~(x == y)              >>= x != y,              Index},
  {"index-not-ne",      ~(x != y)              >>= x == y,              Index},
  {"div-by-bounds",     {Op::FloorDiv}, divByBounds, Index, Proof::Lemmas, "x / d -> q, where q*d <= x < q*d + d is proved"},
  {"div-of-sum",        {Op::FloorDiv}, divOfSum, Index, Proof::Lemmas, "(d*x + y) / d -> x + y / d"},
  {"div-of-factor",     {Op::FloorDiv}, divOfFactor, Index, Proof::Lemmas, "(g*x + y) / (g*d) -> x / d, where 0 <= y < g is proved"},
  {"div-of-div",        {Op::FloorDiv}, divOfDiv, Index, Proof::Lemmas, "(x / d) / e -> x / (d*e)"},
  {"mod-by-bounds",     {Op::Mod}, modByBounds, Index, Proof::Lemmas, "x % d -> x - q*d, where q*d <= x < q*d + d is proved"},
  {"mod-of-sum",        {Op::Mod}, modOfSum, Index, Proof::Lemmas, "(d*x + y) % d -> y % d; (x % (k*d) + y) % d -> (x + y) % d"},
  {"mod-of-factor",     {Op::Mod}, modOfFactor, Index, Proof::Lemmas, "(g*x + y) % (g*d) -> g*(x % d) + y, where 0 <= y < g is proved"},
  {"sum-of-div-mod",    {Op::Add}, sumOfDivMod, Index, Proof::Lemmas, "k*d*(x / d) + k*(x % d) -> k*x; k*d*((x / d) % e) + k*(x % d) -> k*(x % (d*e))"},
  {"min-by-bounds",     {Op::Min}, minByBounds, Index, Proof::Lemmas, "min(x, y) -> x, where x <= y is proved"},
  {"max-by-bounds",     {Op::Max}, maxByBounds, Index, Proof::Lemmas, "max(x, y) -> y, where x <= y is proved"},
  {"compare-by-bounds", {Op::Lt, Op::Eq, Op::Ne}, compareByBounds, Index, Proof::Lemmas, "a comparison of symbolic integers -> true or false, where it is proved"},
  {"lt-of-factor",      {Op::Lt}, ltOfFactor, Index, Proof::Lemmas, "g*x + y < g*z -> x < z, where 0 <= y < g is proved"},
};
// clang-format on

} // namespace astra::rules

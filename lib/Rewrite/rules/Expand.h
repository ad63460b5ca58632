//===- Expand.h: decompositions for targets that lack an op ----------------===//
// Opposites of rows in other sets: run these alone, after them.
#pragma once
#include "astra/Rewrite/Rule.h"

namespace astra::rules {

// clang-format off
inline constexpr Rule expansion[] = {
  {"expand-mod",        x % y            >>= x - (x / y) * y,                       Ring},
  {"expand-rem",        rem(x, y)        >>= x - truncdiv(x, y) * y,                Ring},
  {"expand-floordiv",   x / y            >>= truncdiv(x, y) - select((y != 0) & (truncdiv(x, y) * y != x) & ((x ^ y) < 0), 1, 0), SignedRing},
  {"expand-abs",        abs(x)           >>= select(x < 0, -x, x),                  SignedRing},
  {"expand-max",        max(x, y)        >>= select(x < y, y, x),                   Bitwise},
  {"expand-min",        min(x, y)        >>= select(x < y, x, y),                   Bitwise},
  {"expand-max-float",  max(x, y)        >>= select(x < y, y, select(y < x, x, select((x == y) & (x != 0), x, x + y))),    Floats},
  {"expand-min-float",  min(x, y)        >>= select(x < y, x, select(y < x, y, select((x == y) & (x != 0), x, -(-x - y)))), Floats},
  {"expand-le",         x <= y           >>= ~(y < x),                              Bitwise},
  {"expand-ne",         x != y           >>= ~(x == y),                             Ordered},
};
// clang-format on

} // namespace astra::rules

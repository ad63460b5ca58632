//===- Select.h: select ----------------------------------------------------===//
#pragma once
#include "astra/Rewrite/Rule.h"

namespace astra::rules {

// clang-format off
inline constexpr Rule selection[] = {
  {"select-same",       select(p, x, x)                 >>= x,                     Anything},
  {"select-true",       select(ones, x, y)              >>= x,                     Anything},
  {"select-false",      select(0, x, y)                 >>= y,                     Anything},
  {"select-not",        select(~p, x, y)                >>= select(p, y, x),       Anything},
  {"select-then-same",  select(p, select(p, x, y), z)   >>= select(p, x, z),       Anything},
  {"select-else-same",  select(p, x, select(p, y, z))   >>= select(p, x, z),       Anything},
  {"select-then-and",   select(p, select(q, x, y), y)   >>= select(p & q, x, y),   Anything},
  {"select-else-or",    select(p, x, select(q, x, y))   >>= select(p | q, x, y),   Anything},
  {"select-then-and-not", select(p, select(q, y, x), y) >>= select(p & ~q, x, y),  Anything},
  {"select-else-or-not", select(p, x, select(q, y, x))  >>= select(p | ~q, x, y),  Anything},
  {"select-bit",        select(p, 1, 0)                 >>= p,                     Logic},
  {"select-not-bit",    select(p, 0, 1)                 >>= ~p,                    Logic},
  {"select-and",        select(p, x, 0)                 >>= p & x,                 Logic},
  {"select-or",         select(p, 1, x)                 >>= p | x,                 Logic},
  {"select-not-and",    select(p, 0, x)                 >>= ~p & x,                Logic},
  {"select-not-or",     select(p, x, 1)                 >>= ~p | x,                Logic},
  {"select-eq",         select(x == y, x, y)            >>= y,                     Bitwise}, // not floats: zeros of two signs
  {"select-eq-swapped", select(x == y, y, x)            >>= x,                     Bitwise},
  {"select-ne",         select(x != y, x, y)            >>= x,                     Bitwise},
  {"select-ne-swapped", select(x != y, y, x)            >>= y,                     Bitwise},
  {"select-negs",       select(p, -x, -y)               >>= -select(p, x, y),      Numbers},
  {"select-abs",        select(p, abs(x), abs(y))       >>= abs(select(p, x, y)),  Numbers},
  {"select-nots",       select(p, ~x, ~y)               >>= ~select(p, x, y),      Bitwise},
  {"select-adds",       select(p, x + y, x + z)         >>= x + select(p, y, z),   Numbers},
  {"select-subs",       select(p, x - y, x - z)         >>= x - select(p, y, z),   Numbers},
  {"select-subs-left",  select(p, y - x, z - x)         >>= select(p, y, z) - x,   Numbers},
  {"select-muls",       select(p, x * y, x * z)         >>= x * select(p, y, z),   Numbers},
  {"select-divs",       select(p, x / y, x / z)         >>= x / select(p, y, z),   Floats},
  {"select-divs-left",  select(p, y / x, z / x)         >>= select(p, y, z) / x,   Floats},
  {"select-sign",       select(x < 0, -x, x)            >>= abs(x),                SignedRing}, // not floats: -0
};
// clang-format on

} // namespace astra::rules

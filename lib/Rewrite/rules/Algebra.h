//===- Algebra.h: arithmetic -----------------------------------------------===//
// x y z: any value    a b: literals
//
// Sums keep literals on the right and outside, products keep signs outside.
#pragma once
#include "astra/Rewrite/Rule.h"
#include <limits>

namespace astra::rules {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// clang-format off
inline constexpr Rule algebra[] = {
  // ---- identities
  {"add-zero",          x + 0                  >>= x,               Ring},     // not floats: -0 + 0 is +0
  {"add-neg-zero",      x + (-0.0)             >>= x,               Floats},
  {"sub-zero",          x - 0                  >>= x,               Numbers},
  {"zero-sub",          0 - x                  >>= -x,              Ring},     // not floats: 0 - 0 is +0
  {"neg-zero-sub",      (-0.0) - x             >>= -x,              Floats},
  {"sub-self",          x - x                  >>= 0,               Ring},     // not floats: inf - inf is NaN
  {"mul-one",           x * 1                  >>= x,               Numbers},
  {"mul-zero",          x * 0                  >>= 0,               Ring},     // not floats: NaN * 0 is NaN
  {"mul-minus-one",     x * -1                 >>= -x,              Numbers},
  {"div-one",           x / 1                  >>= x,               Floats},
  {"div-minus-one",     x / -1                 >>= -x,              Floats},
  {"div-to-mul",        x / a                  >>= x * reciprocal(a), Floats, hasReciprocal(a)}, // 2 and 0.5, not 3
  // ---- signs
  {"neg-neg",           -(-x)                  >>= x,               Numbers},
  {"add-neg",           x + (-y)               >>= x - y,           Numbers},
  {"sub-neg",           x - (-y)               >>= x + y,           Numbers},
  {"neg-sub",           -(x - y)               >>= y - x,           Ring},     // not floats: -(0 - 0) is -0
  {"mul-neg-neg",       (-x) * (-y)            >>= x * y,           Numbers},
  {"mul-neg",           (-x) * y               >>= -(x * y),        Numbers},
  {"neg-mul-literal",   -(x * a)               >>= x * (-a),        Numbers},
  {"div-neg-neg",       (-x) / (-y)            >>= x / y,           Floats},
  {"neg-div",           (-x) / y               >>= -(x / y),        Floats},
  {"div-neg",           x / (-y)               >>= -(x / y),        Floats},
  {"abs-neg",           abs(-x)                >>= abs(x),          SignedNumbers},
  {"abs-abs",           abs(abs(x))            >>= abs(x),          Numbers},
  {"abs-unsigned",      abs(x)                 >>= x,               UnsignedRing},
  {"abs-mul-self",      abs(x) * abs(x)        >>= x * x,           SignedNumbers},
  // ---- sums and products of integers
  {"add-self",          x + x                  >>= x * 2,           Ring},
  {"factor",            x * y + x * z          >>= x * (y + z),     Ring},     // not floats: rounds twice
  {"factor-one",        x * y + x              >>= x * (y + 1),     Ring},
  {"factor-sub",        x * y - x * z          >>= x * (y - z),     Ring},
  {"factor-sub-one",    x * y - x              >>= x * (y - 1),     Ring},
  {"factor-one-sub",    x - x * y              >>= x * (1 - y),     Ring},
  {"sub-literal",       x - a                  >>= x + (-a),        Ring},
  {"add-literals",      (x + a) + b            >>= x + (a + b),     Ring},
  {"add-literal-out",   (x + a) + y            >>= (x + y) + a,     Ring},
  {"sub-add-literals",  (a - x) + b            >>= (a + b) - x,     Ring},
  {"literal-sub-add",   a - (x + b)            >>= (a - b) - x,     Ring},
  {"literal-sub-sub",   a - (b - x)            >>= x + (a - b),     Ring},
  {"mul-literals",      (x * a) * b            >>= x * (a * b),     Ring},
  {"mul-literal-out",   (x * a) * y            >>= (x * y) * a,     Ring},
  {"sub-add-cancel",    (x - y) + y            >>= x,               Ring},
  {"add-sub-cancel",    (x + y) - y            >>= x,               Ring},
  {"sub-of-add",        x - (x + y)            >>= -y,              Ring},
  {"sub-of-sub",        x - (x - y)            >>= y,               Ring},
  {"sub-sub-cancel",    (x - y) - x            >>= -y,              Ring},
  // ---- division of integers (N10: x/0 = 0, x mod 0 = x, MIN/-1 = MIN)
  {"floordiv-one",      x / 1                  >>= x,               Ring},
  {"floordiv-neg-one",  x / -1                 >>= -x,              SignedRing},
  {"floordiv-by-zero",  x / 0                  >>= 0,               Ring},
  {"zero-floordiv",     0 / x                  >>= 0,               Ring},
  {"floordiv-pow2",     x / a                  >>= x >> log2(a),    Ring, isPow2(a)},
  {"mod-one",           x % 1                  >>= 0,               Ring},
  {"mod-neg-one",       x % -1                 >>= 0,               SignedRing},
  {"mod-by-zero",       x % 0                  >>= x,               Ring},
  {"zero-mod",          0 % x                  >>= 0,               Ring},
  {"mod-self",          x % x                  >>= 0,               Ring},
  {"mod-pow2",          x % a                  >>= x & (a - 1),     Ring, isPow2(a)},
  {"truncdiv-one",      truncdiv(x, 1)         >>= x,               Ring},
  {"truncdiv-neg-one",  truncdiv(x, -1)        >>= -x,              SignedRing},
  {"truncdiv-by-zero",  truncdiv(x, 0)         >>= 0,               Ring},
  {"zero-truncdiv",     truncdiv(0, x)         >>= 0,               Ring},
  {"truncdiv-unsigned", truncdiv(x, y)         >>= x / y,           UnsignedRing},
  {"rem-one",           rem(x, 1)              >>= 0,               Ring},
  {"rem-neg-one",       rem(x, -1)             >>= 0,               SignedRing},
  {"rem-by-zero",       rem(x, 0)              >>= x,               Ring},
  {"zero-rem",          rem(0, x)              >>= 0,               Ring},
  {"rem-self",          rem(x, x)              >>= 0,               Ring},
  {"rem-unsigned",      rem(x, y)              >>= x % y,           UnsignedRing},
  // ---- max and min (N9: a NaN wins, -0 < +0)
  {"max-self",          max(x, x)              >>= x,               Ordered},
  {"min-self",          min(x, x)              >>= x,               Ordered},
  {"max-of-max",        max(max(x, y), y)      >>= max(x, y),       Ordered},
  {"min-of-min",        min(min(x, y), y)      >>= min(x, y),       Ordered},
  {"max-of-min",        max(min(x, y), y)      >>= y,               Bitwise},  // not floats: a NaN in x wins
  {"min-of-max",        min(max(x, y), y)      >>= y,               Bitwise},
  {"max-literals",      max(max(x, a), b)      >>= max(x, max(a, b)), Ordered},
  {"min-literals",      min(min(x, a), b)      >>= min(x, min(a, b)), Ordered},
  {"max-neg-inf",       max(x, -infinity)      >>= x,               Floats},
  {"min-inf",           min(x, infinity)       >>= x,               Floats},
  {"max-neg",           max(-x, -y)            >>= -min(x, y),      Floats},   // not integers: -MIN is MIN
  {"min-neg",           min(-x, -y)            >>= -max(x, y),      Floats},
  {"max-zero",          max(x, 0)              >>= x,               UnsignedRing},
  {"min-zero",          min(x, 0)              >>= 0,               UnsignedRing},
  {"max-ones",          max(x, ones)           >>= ones,            UnsignedRing},
  {"min-ones",          min(x, ones)           >>= x,               UnsignedRing},
  // ---- rounding to integers
  {"floor-of-floor",    floor(floor(x))        >>= floor(x),        Floats},
  {"floor-of-ceil",     floor(ceil(x))         >>= ceil(x),         Floats},
  {"floor-of-trunc",    floor(trunc(x))        >>= trunc(x),        Floats},
  {"floor-of-even",     floor(roundeven(x))    >>= roundeven(x),    Floats},
  {"ceil-of-floor",     ceil(floor(x))         >>= floor(x),        Floats},
  {"ceil-of-ceil",      ceil(ceil(x))          >>= ceil(x),         Floats},
  {"ceil-of-trunc",     ceil(trunc(x))         >>= trunc(x),        Floats},
  {"ceil-of-even",      ceil(roundeven(x))     >>= roundeven(x),    Floats},
  {"trunc-of-floor",    trunc(floor(x))        >>= floor(x),        Floats},
  {"trunc-of-ceil",     trunc(ceil(x))         >>= ceil(x),         Floats},
  {"trunc-of-trunc",    trunc(trunc(x))        >>= trunc(x),        Floats},
  {"trunc-of-even",     trunc(roundeven(x))    >>= roundeven(x),    Floats},
  {"even-of-floor",     roundeven(floor(x))    >>= floor(x),        Floats},
  {"even-of-ceil",      roundeven(ceil(x))     >>= ceil(x),         Floats},
  {"even-of-trunc",     roundeven(trunc(x))    >>= trunc(x),        Floats},
  {"even-of-even",      roundeven(roundeven(x)) >>= roundeven(x),   Floats},
  {"floor-neg",         floor(-x)              >>= -ceil(x),        Floats},
  {"ceil-neg",          ceil(-x)               >>= -floor(x),       Floats},
  {"trunc-neg",         trunc(-x)              >>= -trunc(x),       Floats},
  {"even-neg",          roundeven(-x)          >>= -roundeven(x),   Floats},
  // ---- fma, scale2, copysign
  {"fma-one",           fma(x, 1, y)           >>= x + y,           Floats},
  {"fma-one-left",      fma(1, x, y)           >>= x + y,           Floats},
  {"fma-minus-one",     fma(x, -1, y)          >>= y - x,           Floats},
  {"fma-minus-one-left", fma(-1, x, y)         >>= y - x,           Floats},
  {"fma-neg-zero",      fma(x, y, -0.0)        >>= x * y,           Floats},
  {"fma-neg-neg",       fma(-x, -y, z)         >>= fma(x, y, z),    Floats},
  {"scale2-zero",       scale2(x, 0)           >>= x,               Floats},
  {"copysign-self",     copysign(x, x)         >>= x,               Floats},
  {"copysign-neg",      copysign(-x, y)        >>= copysign(x, y),  Floats},
  {"copysign-abs",      copysign(abs(x), y)    >>= copysign(x, y),  Floats},
  {"copysign-copysign", copysign(copysign(x, y), z) >>= copysign(x, z), Floats},
  {"copysign-of-abs",   copysign(x, abs(y))    >>= abs(x),          Floats},
  {"abs-copysign",      abs(copysign(x, y))    >>= abs(x),          Floats},
};
// clang-format on

} // namespace astra::rules

//===- Formulas.h: derivatives of elementwise ops --------------------------===//
// x y z: sources    p: a bool source    f: the result    dx dy dz: tangents
//
// Where an op is not smooth a row does what PyTorch does, and says so. What may be infinite where a choice excludes it
// is chosen before it meets a tangent: 0 times infinity is NaN.
#pragma once
#include "astra/Autograd/Formula.h"

namespace astra::rules {

inline constexpr double ln2 = 0x1.62e42fefa39efp-1, twoOverRootPi = 0x1.20dd750429b6dp+0;

// clang-format off
inline constexpr Formula formulas[] = {
  // ---- arithmetic
  {-x,                 -dx},
  {abs(x),             select(x == 0, 0, copysign(1, x) * dx),                  "0 at 0; complex: the parts of x / |x| times those of dx"},
  {sqrt(x),            dx / (f * 2),                                            "infinite at 0"},
  {x + y,              dx + dy},
  {x - y,              dx - dy},
  {x * y,              dx * y + x * dy},
  {x / y,              dx / y - (f / y) * dy},
  {max(x, y),          select(x < y, 0, select(x == y, dx / 2, dx)) + select(y < x, 0, select(x == y, dy / 2, dy)), "half each where equal"},
  {min(x, y),          select(y < x, 0, select(x == y, dx / 2, dx)) + select(x < y, 0, select(x == y, dy / 2, dy)), "half each where equal"},
  {copysign(x, y),     select(x == 0, 0, copysign(1, x) * copysign(1, y) * dx), "0 where x is 0; nothing to y"},
  {scale2(x, y),       scale2(dx, y)},
  {fma(x, y, z),       dx * y + x * dy + dz},
  {select(p, x, y),    select(p, dx, dy)},
  // ---- functions
  {exp2(x),            f * ln2 * dx},
  {exp(x),             f * dx},
  {expm1(x),           (f + 1) * dx},
  {logBase2(x),        dx / (x * ln2)},
  {log(x),             dx / x},
  {log1p(x),           dx / (x + 1)},
  {sin(x),             cos(x) * dx},
  {cos(x),             -(sin(x) * dx)},
  {tan(x),             (f * f + 1) * dx},
  {tanh(x),            (1 - f * f) * dx},
  {erf(x),             exp(-(x * x)) * twoOverRootPi * dx},
  {sigmoid(x),         (1 - f) * f * dx},
  {rsqrt(x),           f * f * f * -0.5 * dx},
  {asin(x),            rsqrt(1 - x * x) * dx,                                   "infinite at -1 and 1"},
  {acos(x),            -(rsqrt(1 - x * x) * dx),                                "infinite at -1 and 1"},
  {atan(x),            dx / (x * x + 1)},
  {sinh(x),            cosh(x) * dx},
  {cosh(x),            sinh(x) * dx},
  {asinh(x),           rsqrt(x * x + 1) * dx},
  {acosh(x),           rsqrt(x * x - 1) * dx,                                   "infinite at 1"},
  {atanh(x),           dx / (1 - x * x),                                        "infinite at -1 and 1"},
  {pow(x, y),          select(y == 0, 0, y * pow(x, y - 1)) * dx + select((x == 0) & (y >= 0), 0, f * log(x)) * dy, "by x 0 where y is 0; by y 0 where x is 0 and y is not negative, NaN where x is negative"},
};
// clang-format on

} // namespace astra::rules

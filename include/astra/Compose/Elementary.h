//===- Elementary.h: functions of real numbers beside the ops --------------===//
// Takes:    operands of one float type, which broadcast.
// Gives:    f of each element, of that type; IEEE 754's and C's special values.
// Keeps:    f16 and bf16 compute in f32 and round once.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// The logarithm to base 10; exact for powers of ten up to f32.
UOpRef log10(Composer &b, UOpRef x);
/// The angle of the point (x, y), in -pi .. pi, with the sign of y; within 2 ulp.
UOpRef arcTangent2(Composer &b, UOpRef y, UOpRef x);
/// sqrt(x^2 + y^2) without overflow on the way; infinite where one is, whatever the other.
UOpRef hypotenuse(Composer &b, UOpRef x, UOpRef y);
/// log(e^x + e^y) without overflow; its gradient is finite too where both are -inf.
UOpRef logAddExp(Composer &b, UOpRef x, UOpRef y);
/// The next number of the type from x toward y.
UOpRef nextAfter(Composer &b, UOpRef x, UOpRef y);
/// floor(x / y) of the exact quotient: the nearest number to it where it has more digits than the type. Infinite for
/// y = 0 and infinite x.
UOpRef floorQuotient(Composer &b, UOpRef x, UOpRef y);

} // namespace astra::compose

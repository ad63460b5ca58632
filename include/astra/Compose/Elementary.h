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

/// Whether the sign bit is set; false for a NaN, which has none (N6).
UOpRef signBit(Composer &b, UOpRef x);
/// -1, 0 or 1, of any real type; 0 for a NaN.
UOpRef signOrZero(Composer &b, UOpRef x);
/// The greater or the lesser of two operands of any real type, where a number wins over a NaN (IEEE 754's
/// maximumNumber and minimumNumber).
UOpRef maximumNumber(Composer &b, UOpRef x, UOpRef y);
UOpRef minimumNumber(Composer &b, UOpRef x, UOpRef y);
/// x + weight (y - x), from the nearer end: exact at both.
UOpRef interpolated(Composer &b, UOpRef x, UOpRef y, UOpRef weight);
/// sin(pi x) / (pi x), and 1 at 0; of a complex type too.
UOpRef sinc(Composer &b, UOpRef x);

} // namespace astra::compose

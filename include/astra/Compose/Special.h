//===- Special.h: functions of numbers that are no op of their own ---------===//
// Takes:    tensors of one shape.
// Gives:    graphs over the elementwise ops.
// Keeps:    f16 and bf16 compute in f32 and round once, where it is not said otherwise.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// The integer type of t's width, which is 8, 16, 32 or 64 bits.
DType unsignedOf(DType t);
DType signedOf(DType t);

/// The nearest integer, a tie away from zero; a zero keeps its sign. Of a float type.
UOpRef roundAwayFromZero(Composer &b, UOpRef x);
/// The cube root, of the sign of x.
UOpRef cubeRoot(Composer &b, UOpRef x);
/// 1 - erf(x), by that difference in f64: what lies below 1e-16 is 0.
UOpRef complementaryError(Composer &b, UOpRef x);

/// x rounded to a float type of so many bits of exponent and mantissa, and back: to nearest even, what is too large
/// gives infinity, what lies below the least normal number zero. Of a float type with no fewer bits.
UOpRef reducedPrecision(Composer &b, UOpRef x, int64_t exponentBits, int64_t mantissaBits);
/// To which power of two numbers between two of them go.
enum class PowerRounding { Up, Down, Nearest };
/// Floats above 0 as e8m0, which holds powers of two. What lies below its least is that when it saturates, else NaN,
/// and so is zero; NaNs, infinities and negative numbers are left to the cast.
UOpRef powersOfTwo(Composer &b, UOpRef x, PowerRounding rounding, bool saturate);
/// How many bits are zero above the highest one that is set; of an integer type.
UOpRef leadingZeros(Composer &b, UOpRef x);
/// Integers in the order of the floats: -inf ... -0, +0 ... inf, NaN.
UOpRef orderKey(Composer &b, UOpRef x);
/// Whether a number of a float type, also of those that are only stored, is one of these.
UOpRef isNaN(Composer &b, UOpRef x);
UOpRef isInfinite(Composer &b, UOpRef x, bool positive = true, bool negative = true);
UOpRef isFinite(Composer &b, UOpRef x);
/// Shifts of the bits, whatever the sign of the type says: zeros come in, or copies of the highest bit.
UOpRef shiftRight(Composer &b, UOpRef x, UOpRef count, bool arithmetic);
/// x / y of integers rounded to zero, and -1 where y is 0.
UOpRef quotient(Composer &b, UOpRef x, UOpRef y);
/// The bits of x as another type. A narrower one adds an axis at the end, the lowest bits first; a wider one takes the
/// last axis away.
UOpRef reinterpret(Composer &b, UOpRef x, DType to);

} // namespace astra::compose

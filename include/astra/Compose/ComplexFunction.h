//===- ComplexFunction.h: functions of complex numbers ---------------------===//
// Takes:    z of complex64 or complex128.
// Gives:    f(z), of z's type: principal values, branch cuts and special values as in C (ISO/IEC 9899, Annex G).
// Keeps:    parts in f32 for complex64, in f64 for complex128; no overflow before the result's, but near branch points
//           a part that is small beside the other one has the absolute error of the other.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// exp, expm1, sigmoid (1 / (1 + e^-z)), log, log2, log10, log1p, sqrt, rsqrt (1 / sqrt z), sin, cos, tan, sinh, cosh,
/// tanh, asin, acos, atan, asinh, acosh, atanh.
struct ComplexFunction {
  const char *name;
  UOpRef (*apply)(Composer &b, UOpRef z);
};
/// Null where there is none of this name.
const ComplexFunction *findComplexFunction(llvm::StringRef name);

/// e^(w log z) of one complex type, which broadcast; 1 where w is 0, 0 of z = 0 where the real part of w is above 0.
UOpRef complexPower(Composer &b, UOpRef z, UOpRef w);
/// A part of z; of a real number itself, and 0.
UOpRef realPart(Composer &b, UOpRef z);
UOpRef imaginaryPart(Composer &b, UOpRef z);
/// The parts of z, the imaginary one negated; a real number itself.
UOpRef conjugate(Composer &b, UOpRef z);
/// z / |z|; 0 of 0.
UOpRef complexSign(Composer &b, UOpRef z);

} // namespace astra::compose

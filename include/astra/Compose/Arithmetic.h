//===- Arithmetic.h: remainders and powers, as people know them ------------===//
// Gives:    exact remainders of floats by long division; powers of integers by squaring, modulo 2^width.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// x - trunc(x / y) * y with the sign of x, or x - floor(x / y) * y with that of y; exact. Both are of one real type
/// and broadcast. Where derivatives are wanted they are PyTorch's.
UOpRef remainder(Composer &b, UOpRef x, UOpRef y, bool truncating);

/// x^y of real types, of x's type; a mixed pair is computed in a float type that holds both. Integers wrap; a negative
/// exponent truncates.
UOpRef power(Composer &b, UOpRef x, UOpRef y);

/// The sum of all, which broadcast, of the first one's type.
UOpRef sum(Composer &b, llvm::ArrayRef<UOpRef> xs);
/// Their sum from the left over their number, of the first one's type, which is a float type.
UOpRef meanOfAll(Composer &b, llvm::ArrayRef<UOpRef> xs);
/// 1 / x.
UOpRef reciprocal(Composer &b, UOpRef x);

} // namespace astra::compose

//===- Matrix.h: what is known of a matrix ---------------------------------===//
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// The determinants [...] of x [..., M, M] of a float or complex type, M constant: Gaussian elimination with partial
/// pivoting, a column a step, on what is left of the matrices; the product of the pivots, in order, with the sign of
/// the exchanges. The pivot is the row of the greatest magnitude, the first of several; a column of zeros gives 0.
/// Above 64, of floats alone, the pivots are those of luFactor (Linalg.h), and a singular matrix has no finite
/// gradient.
UOpRef determinant(Composer &b, UOpRef x);

} // namespace astra::compose

//===- ComplexMatrix.h: complex matrices as real ones ----------------------===//
// Takes:    z [.., m, n] of a complex type; real matrices [.., 2m, 2n] made of such.
// Gives:    each element a + bi as the block [a -b; b a], and back. Sums, products, inverses, and Cholesky factors of
//           the real matrix are those of the complex one.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

UOpRef realOfComplexMatrix(Composer &b, UOpRef z);
/// From the first column of each block.
UOpRef complexOfRealMatrix(Composer &b, UOpRef x);

} // namespace astra::compose

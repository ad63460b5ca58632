//===- Einsum.h: Einstein sums ---------------------------------------------===//
// Gives:    one `contract` for each pair of operands, from the left; a sum and a permutation for one operand.
// Keeps:    reduced axes in the order in which they first occur (N4); an axis is summed as soon as no later operand
//           and not the result has it.
#pragma once
#include "astra/Compose/Composer.h"

namespace astra::compose {

/// NumPy's einsum: the equation names the axes of each operand by letters, "ij,jk->ik", with an ellipsis in any term;
/// without "->" the result has the ellipsis, then the letters that occur once, in alphabetical order. A letter twice in
/// one operand is its diagonal. Operands are of one real type; axes of one name are equal or 1.
UOpRef einsum(Composer &b, llvm::StringRef equation, llvm::ArrayRef<UOpRef> operands);

} // namespace astra::compose

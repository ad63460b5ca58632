//===- Mutants.h: rows changed by one step ---------------------------------===//
#pragma once
#include "astra/Rewrite/Rewrite.h"

namespace astra::proofs {

struct Mutant {
  std::string what; // "no guard"
  Rule row;         // of the name of the row that it comes from
};

/// Every row of terms that differs from r in one step: no guard, a condition of the guard dropped, or, in the guard or
/// on either side, a number moved by one, another name, a neighbouring op, operands swapped; the right side cut down to
/// one operand. Most are false; none is listed by hand.
std::vector<Mutant> mutantsOf(const Rule &r);

} // namespace astra::proofs

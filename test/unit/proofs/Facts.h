//===- Facts.h: what z3 is told of products --------------------------------===//
// Gives:    true statements over integers, in a row's own terms, that z3 does not find by itself.
// Keeps:    a fact is an instance of a lemma that z3 proves first, over any integers. It holds whatever the row says,
//           so it can make no false row pass: it only helps a true one.
#pragma once
#include "Encode.h"

namespace astra::proofs {

/// The facts for a row of this name (none for most); those that its terms cannot express are left out.
std::vector<z3::expr> factsFor(const Rule &r, Encoder &e);

/// What is wrong with the lemmas that facts are instances of, or nothing.
std::string proveFacts();

} // namespace astra::proofs

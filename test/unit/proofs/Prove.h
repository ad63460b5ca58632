//===- Prove.h: the proof of a rule row ------------------------------------===//
#pragma once
#include "astra/Rewrite/Rewrite.h"
#include <string>
#include <vector>
#include <z3++.h>

namespace astra::proofs {

/// Empty when z3 proves both sides equal for every type of the row; else what is refuted, unknown or has no proof.
/// Float types that z3 is not asked about are named in `toRun`: they must be run at every bit pattern of 16 bits.
struct Verdict {
  std::string failure;
  bool runAllHalves = false;
};
Verdict proveTerms(const Rule &r);

/// The chain of lemmas of a procedure: what is wrong with it, or nothing; the same when there is none.
std::string proveLemmas(const std::string &name);

/// Runs a `points` procedure at every point of its box: what is wrong, or nothing; the same when there is no box for
/// the name.
std::string runPoints(const Rule &r);

/// Runs a procedure on symbolic integers at every point of their small ranges: what is wrong, or nothing.
std::string runIndices(const Rule &r);

/// Runs the row itself (matcher, guard, right side) by the evaluator on edge and random values of each of its dtypes,
/// in f16 and bf16 on every bit pattern of x when `everyHalf`. What is wrong, or nothing.
std::string runTerms(const Rule &r, bool everyHalf);

/// Runs a row of symbolic integers (guard and both sides, by arithmetic of its own) at every point of a box of its
/// values and literals. What is wrong, or nothing.
std::string runIntegers(const Rule &r);
/// Runs the matcher on the left side of such a row over the same box. What is wrong, or nothing.
std::string runMatched(const Rule &r);

/// Runs all rules together on the row's left side: they must end, with equal values. What is wrong, or nothing.
std::string runTogether(const Rule &r);

} // namespace astra::proofs

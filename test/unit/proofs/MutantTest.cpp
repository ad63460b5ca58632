//===- MutantTest.cpp: the prover refuses false rows -----------------------===//
// A proof that does not look at its row passes whatever the row says. So each row is changed by one step at a time, and
// whatever a run at small values refutes, the prover must refuse. The verdicts are the runs'; no list is kept. Of rows
// of integers, which a solver takes longest for, a third is asked about unless ASTRA_NIGHTLY is set.
#include "Mutants.h"
#include "Prove.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace astra;
using namespace astra::proofs;

namespace {
struct Tally {
  unsigned rows = 0, asked = 0, falseOnes = 0;
};

/// Asks the prover about every mutant of r that a run refutes, `most` at most; some must be.
template <class Run> void refuseFalse(const Rule &r, unsigned most, Tally &tally, Run run) {
  ++tally.rows;
  unsigned refuted = 0;
  for (const Mutant &m : mutantsOf(r)) {
    if (refuted == most) break;
    ++tally.asked;
    std::string counterexample = run(m.row);
    if (counterexample.empty()) continue;
    ++refuted;
    EXPECT_NE(proveTerms(m.row).failure, "") << r.name << ", " << m.what << ": proved, but " << counterexample;
  }
  EXPECT_GE(refuted, 1u) << r.name << ": no mutant is false";
  tally.falseOnes += refuted;
}

template <class F> void forRows(F f) {
  for (const RuleGroup &g : ruleGroups())
    for (const Rule &r : g.rules)
      if (!r.procedure) f(r);
}
} // namespace

TEST(Mutants, OfSymbolicIntegersAreRefused) {
  Tally tally;
  forRows([&](const Rule &r) {
    if (r.soundness.types & IndexType) refuseFalse(r, 1000, tally, runIntegers);
  });
  printf("%u rows, %u mutants, %u of them false\n", tally.rows, tally.asked, tally.falseOnes);
}

TEST(Mutants, OfIntegersAreRefused) {
  Tally tally;
  unsigned row = 0, step = std::getenv("ASTRA_NIGHTLY") ? 1 : 3;
  forRows([&](const Rule &r) {
    bool complements = false; // a bool has no neg, which is what a mutant makes of not
    for (unsigned i = 0; i < r.left.size; ++i) complements |= r.left.nodes[i].op == Op::Not;
    Rule integers = r;
    integers.soundness.types &= SignedTypes | UnsignedTypes | (complements ? 0 : BoolType);
    if (integers.soundness.types & (SignedTypes | UnsignedTypes) && row++ % step == 0)
      refuseFalse(integers, r.guard.size ? 6 : 2, tally, [](const Rule &m) { return runTerms(m, false); });
  });
  printf("%u rows, %u mutants, %u of them false\n", tally.rows, tally.asked, tally.falseOnes);
}

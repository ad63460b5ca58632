//===- ProofTest.cpp: every rule of the registry, proved -------------------===//
// A row whose proof is missing, refuted or unknown fails here by its name. There is no list of exceptions.
#include "Facts.h"
#include "Prove.h"
#include "llvm/ADT/StringSet.h"
#include <gtest/gtest.h>

using namespace astra;

namespace {
std::vector<const Rule *> everyRule() {
  std::vector<const Rule *> all;
  for (const RuleGroup &g : ruleGroups())
    for (const Rule &r : g.rules) all.push_back(&r);
  return all;
}
struct RuleProof : testing::TestWithParam<const Rule *> {};
std::string label(const testing::TestParamInfo<const Rule *> &p) {
  std::string s = p.param->name;
  for (char &ch : s)
    if (ch == '-') ch = '_';
  return s;
}
} // namespace

TEST_P(RuleProof, Holds) {
  const Rule &r = *GetParam();
  switch (r.proof) {
  case Proof::Terms: {
    proofs::Verdict v = proofs::proveTerms(r);
    EXPECT_EQ(v.failure, "");
    if (r.soundness.types & IndexType) {
      EXPECT_EQ(proofs::runIntegers(r), "");
      EXPECT_EQ(proofs::runMatched(r), "");
    }
    EXPECT_EQ(proofs::runTerms(r, v.runAllHalves), "");
    EXPECT_EQ(proofs::runTogether(r), "");
    if (v.runAllHalves) printf("%s: every f16 and bf16\n", r.name);
    break;
  }
  case Proof::Lemmas:
    EXPECT_EQ(proofs::proveLemmas(r.name), "");
    EXPECT_EQ(proofs::runIndices(r), "");
    break;
  case Proof::Points: EXPECT_EQ(proofs::runPoints(r), ""); break;
  }
}
INSTANTIATE_TEST_SUITE_P(Registry, RuleProof, testing::ValuesIn(everyRule()), label);

TEST(Registry, NamesAreUnique) {
  llvm::StringSet<> seen;
  for (const Rule *r : everyRule()) EXPECT_TRUE(seen.insert(r->name).second) << r->name;
}

TEST(Facts, Lemmas) { EXPECT_EQ(proofs::proveFacts(), ""); }
TEST(Bounds, Lemmas) { EXPECT_EQ(proofs::proveLemmas("bounds"), ""); }

//===- RowsTest.cpp: every row of the table --------------------------------===//
#include "Check.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace astra;
using namespace astra::test;

namespace {
struct Rows : testing::TestWithParam<Case> {};
std::string nameOf(const testing::TestParamInfo<Case> &info) {
  std::string s;
  for (char ch : info.param.name) s += isalnum(uint8_t(ch)) ? ch : '_';
  return s + "_" + std::to_string(info.index);
}
} // namespace

TEST_P(Rows, AgreeWithDifferencesAndEachOther) { check(GetParam()); }
INSTANTIATE_TEST_SUITE_P(All, Rows, testing::ValuesIn(allCases()), nameOf);

// Every op of graphs has a row (a missing one is a compile error of Rows.cpp), and every row that gives a derivative a
// case here.
TEST(Table, EveryDerivativeHasACase) {
  std::set<Op> tested;
  for (const Case &c : allCases()) tested.insert(c.row);
  tested.insert({Op::Func, Op::Proj});  // with every control op
  tested.insert(Op::Cast);              // SpecialTest.cpp: f64 alone has no differences through it
  for (unsigned i = 0; i < numOps; ++i) // test/unit/distribute
    if ((isCollective(Op(i)) && Op(i) != Op::RankIndex) || Op(i) == Op::Reshard) tested.insert(Op(i));
  size_t graphOps = 0;
  for (unsigned i = 0; i < numOps; ++i) graphOps += !has(Op(i), KernelLevel);
  std::vector<DerivativeRow> rows = derivativeRows();
  EXPECT_EQ(rows.size(), graphOps);
  for (const DerivativeRow &r : rows) {
    bool needs = r.kind == DerivativeKind::Formula || r.kind == DerivativeKind::Linear ||
                 r.kind == DerivativeKind::Tangent || r.kind == DerivativeKind::Control;
    EXPECT_EQ(needs, tested.count(r.op) == 1) << info(r.op).mnemonic;
  }
}

//===- ExprsTest.cpp: symbolic integers as the manifest's expressions -------===//
// Checks:   postfix code evaluates to what the symbolic integer evaluates to; equal ones are stored once; what the
//           format cannot say is refused.
#include "astra/Bundle/Exprs.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Text.h"
#include "format/Format.h"
#include "gtest/gtest.h"
#include <random>

using namespace astra;
using fmt::ExprCode;

namespace {

/// The value of a table entry for these dims: the meaning of manifest.fbs, written again.
int64_t evaluate(const fmt::ExprT &e, const std::vector<int64_t> &dims) {
  std::vector<int64_t> stack;
  for (const fmt::ExprOp &op : e.code) {
    if (op.code() == ExprCode::Const || op.code() == ExprCode::Dim) {
      stack.push_back(op.code() == ExprCode::Const ? op.value() : dims[op.value()]);
      continue;
    }
    int64_t b = stack.back();
    stack.pop_back();
    int64_t &a = stack.back();
    int64_t quotient = 0;
    if (op.code() == ExprCode::FloorDiv || op.code() == ExprCode::Mod) quotient = a / b - (a % b < 0);
    switch (op.code()) {
    case ExprCode::Add: a += b; break;
    case ExprCode::Sub: a -= b; break;
    case ExprCode::Mul: a *= b; break;
    case ExprCode::FloorDiv: a = quotient; break;
    case ExprCode::Mod: a -= quotient * b; break;
    case ExprCode::Min: a = std::min(a, b); break;
    case ExprCode::Max: a = std::max(a, b); break;
    case ExprCode::Le: a = a <= b; break;
    default: ADD_FAILURE() << "unexpected code"; break;
    }
  }
  EXPECT_EQ(stack.size(), 1u);
  return stack.back();
}

struct ExprsTest : testing::Test {
  Context c;
  Builder b{c};
  UOpRef n = b.dim("n", 0, 100), m = b.dim("m", 1, 50);
  ExprTable table;
  ExprsTest() {
    table.bind(n, 0);
    table.bind(m, 1);
  }
  std::string refusal(llvm::Expected<uint32_t> r) { return r ? "accepted" : llvm::toString(r.takeError()); }
};

TEST_F(ExprsTest, RandomExpressionsKeepTheirValue) {
  std::mt19937 random(1);
  std::vector<UOpRef> pool{n, m, c.index(3), c.index(-7)};
  for (int i = 0; i < 300; ++i) {
    UOpRef x = pool[random() % pool.size()], y = pool[random() % pool.size()], d = c.index(1 + random() % 9);
    UOpRef made[] = {idxAdd(c, x, y), idxSub(c, x, y), idxMin(c, x, y), idxMax(c, x, y),
                     idxDiv(c, x, d), idxMod(c, x, d), idxMod(c, x, m), idxMul(c, x, d)};
    UOpRef z = made[random() % 8];
    if (z->hi > 1000000 || z->lo < -1000000) continue;
    pool.push_back(z);
    llvm::Expected<uint32_t> number = table.add(z);
    if (!number) { // too deep is possible here, and nothing else
      EXPECT_NE(refusal(std::move(number)).find("64"), std::string::npos);
      pool.pop_back();
      continue;
    }
    auto exprs = table.take();
    for (int64_t nv : {0, 1, 7, 64, 100})
      for (int64_t mv : {1, 2, 50}) {
        auto expected = idxEvaluate(z, [&](UOpRef d) {
          return d == n ? std::optional<int64_t>(nv) : d == m ? std::optional<int64_t>(mv) : std::nullopt;
        });
        ASSERT_TRUE(expected);
        EXPECT_EQ(evaluate(*exprs[*number], {nv, mv}), *expected) << indexText(z);
      }
  }
}

TEST_F(ExprsTest, EqualExpressionsAreStoredOnce) {
  uint32_t first = llvm::cantFail(table.add(idxAdd(c, n, m)));
  EXPECT_EQ(llvm::cantFail(table.add(idxAdd(c, m, n))), first);
  EXPECT_EQ(table.constant(64), llvm::cantFail(table.add(c.index(64))));
  EXPECT_EQ(table.take().size(), 2u);
}

TEST_F(ExprsTest, GuardsCompare) {
  uint32_t g = llvm::cantFail(table.addAtMost(n, c.index(4)));
  auto exprs = table.take();
  EXPECT_EQ(evaluate(*exprs[g], {4, 1}), 1);
  EXPECT_EQ(evaluate(*exprs[g], {5, 1}), 0);
}

TEST_F(ExprsTest, RefusesWhatIsNoDimOfTheProgram) {
  EXPECT_EQ(refusal(table.add(idxAdd(c, n, b.dim("k", 0, 9)))),
            "a symbolic size uses dim k, which is neither a dim of the program nor integer arithmetic");
}

TEST_F(ExprsTest, RefusesWhatIsTooDeep) {
  UOpRef x = n;
  for (int i = 0; i < 200; ++i) x = idxMax(c, m, idxDiv(c, x, idxMax(c, m, idxDiv(c, n, c.index(2 + i)))));
  llvm::Expected<uint32_t> r = table.add(x);
  if (r) // operands are written left to right: a chain that leans left needs little
    EXPECT_LE(table.take()[*r]->code.size(), 65536u);
  else
    EXPECT_EQ(refusal(std::move(r)), "a symbolic size nests more than 64 operations deep");
}

} // namespace

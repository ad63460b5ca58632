//===- IndexTest.cpp: symbolic integers, interning, type rules -------------===//
#include "astra/IR/Builder.h"
#include "astra/IR/Text.h"
#include <gtest/gtest.h>
#include <random>

using namespace astra;

TEST(Index, EqualPolynomialsAreOneNode) {
  Context c;
  Builder b(c);
  UOpRef n = b.dim("n", 0, 64), m = b.dim("m", 1, 8), four = b.idx(4);
  UOpRef left = idxMul(c, idxAdd(c, n, four), idxAdd(c, m, b.idx(1)));
  UOpRef right = idxAdd(c, idxAdd(c, idxMul(c, m, n), idxMul(c, m, four)), idxAdd(c, n, four));
  EXPECT_EQ(left, right);
  EXPECT_EQ(idxSub(c, left, right), b.idx(0));
  EXPECT_EQ(left->lo, 8);
  EXPECT_EQ(left->hi, 68 * 9);
}

TEST(Index, BoundsOfAPolynomialKnowItsFactors) {
  Context c;
  Builder b(c);
  UOpRef n = b.dim("n", 1, 5), m = b.dim("m", 1, 7), one = b.idx(1);
  auto bounds = [](UOpRef x) { return std::pair(x->lo, x->hi); };
  EXPECT_EQ(bounds(idxMul(c, n, idxSub(c, m, one))), std::pair(int64_t(0), int64_t(30)));
  EXPECT_EQ(bounds(idxMul(c, idxSub(c, n, one), idxSub(c, m, one))), std::pair(int64_t(0), int64_t(24)));
  EXPECT_EQ(bounds(idxMul(c, idxMul(c, n, n), idxSub(c, m, b.idx(3)))), std::pair(int64_t(-50), int64_t(100)));
  EXPECT_EQ(bounds(idxSub(c, m, n)), std::pair(int64_t(-4), int64_t(6)));
  UOpRef wide = b.dim("wide", 0, int64_t(1) << 40); // beyond 62 bits: the interval, saturated
  EXPECT_LT(idxSub(c, idxMul(c, wide, wide), wide)->lo, 0);
}

// Exact over the box, by trying all of it: products that were multiplied out keep their signs.
TEST(Index, BoundsOfPolynomialsAreThoseOfTheirValues) {
  Context c;
  Builder b(c);
  UOpRef n = b.dim("n", 1, 9), m = b.dim("m", 2, 7), k = b.dim("k", 0, 5), one = b.idx(1), two = b.idx(2);
  auto minus = [&](UOpRef x, int64_t v) { return idxSub(c, x, b.idx(v)); };
  UOpRef all[] = {idxMul(c, m, minus(n, 1)),
                  idxMul(c, minus(n, 1), minus(m, 2)),
                  idxMul(c, minus(n, 1), minus(n, 1)),
                  idxMul(c, n, minus(n, 4)),
                  idxMul(c, idxMul(c, minus(n, 1), minus(m, 2)), minus(k, 3)),
                  idxSub(c, idxMul(c, minus(m, 4), minus(m, 4)), idxMul(c, k, two)),
                  idxAdd(c, idxMul(c, idxMul(c, n, k), two), idxMul(c, minus(n, 5), m)),
                  idxSub(c, idxMul(c, n, m), idxAdd(c, n, idxAdd(c, m, one)))};
  for (UOpRef x : all) {
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (int64_t i = 1; i <= 9; ++i)
      for (int64_t j = 2; j <= 7; ++j)
        for (int64_t l = 0; l <= 5; ++l) {
          int64_t v = *idxEvaluate(x, [&](UOpRef d) -> std::optional<int64_t> {
            return d == n ? std::optional(i) : d == m ? std::optional(j) : d == k ? std::optional(l) : std::nullopt;
          });
          lo = std::min(lo, v), hi = std::max(hi, v);
        }
    EXPECT_EQ(x->lo, lo) << indexText(x);
    EXPECT_EQ(x->hi, hi) << indexText(x);
  }
}

// Bounds hold for every value, and these are exact: an extent is never less than a part of it.
TEST(Index, BoundsKnowWhatMinMaxAndQuotientsAreMadeOf) {
  Context c;
  Builder b(c);
  UOpRef n = b.dim("n", 0, 16), m = b.dim("m", 1, 9), zero = b.idx(0), one = b.idx(1);
  auto less = [&](UOpRef x, UOpRef y) { return idxSub(c, x, y); };
  auto half = [&](UOpRef x, int64_t d) { return idxDiv(c, x, b.idx(d)); };
  UOpRef last = less(n, one), least = idxMin(c, n, b.idx(10)), third = half(idxAdd(c, m, b.idx(2)), 3);
  std::tuple<UOpRef, int64_t, int64_t> cases[] = {
      {less(n, idxMin(c, n, b.idx(10))), 0, 6},
      {less(n, half(n, 2)), 0, 8},
      {less(n, half(n, 3)), 0, 11},
      {less(last, idxMin(c, last, idxMax(c, last, zero))), 0, 0},
      {less(idxMul(c, m, n), idxMul(c, m, half(n, 2))), 0, 72},
      {less(n, idxMod(c, n, b.idx(4))), 0, 16},
      {less(n, idxMul(c, half(n, 4), b.idx(4))), 0, 3},
      {less(m, idxMul(c, third, b.idx(2))), -1, 3},
      {less(n, idxAdd(c, idxMin(c, n, b.idx(5)), idxMax(c, zero, less(n, b.idx(5))))), 0, 0},
      {less(least, idxMul(c, half(least, 4), b.idx(4))), 0, 3},
      {less(idxAdd(c, least, m), idxMul(c, half(idxAdd(c, least, m), 4), b.idx(4))), 0, 3},
  };
  for (auto [x, lo, hi] : cases) {
    EXPECT_EQ(x->lo, lo) << indexText(x);
    EXPECT_GE(x->hi, hi) << indexText(x);
  }
}

// Random expressions, all values of their dims: none outside of the bounds of any part.
TEST(Index, BoundsHoldForEveryValue) {
  std::mt19937 random(5);
  for (unsigned round = 0; round < 300; ++round) {
    Context c;
    Builder b(c);
    auto pick = [&](int64_t lo, int64_t hi) { return lo + int64_t(random() % uint64_t(hi - lo + 1)); };
    int64_t low[] = {pick(0, 2), pick(0, 3)}, high[] = {low[0] + pick(0, 6), low[1] + pick(1, 7)};
    std::vector<UOpRef> made = {b.dim("n", low[0], high[0]), b.dim("m", low[1], high[1]), b.idx(pick(-3, 4))};
    for (unsigned i = 0; i < 14; ++i) {
      UOpRef x = made[random() % made.size()], y = made[random() % made.size()], d = b.idx(pick(1, 5));
      switch (random() % 7) {
      case 0: made.push_back(idxAdd(c, x, y)); break;
      case 1: made.push_back(idxSub(c, x, y)); break;
      case 2: made.push_back(idxAdd(c, x, idxMul(c, y, b.idx(pick(-3, 3))))); break;
      case 3: made.push_back(idxMin(c, x, y)); break;
      case 4: made.push_back(idxMax(c, x, y)); break;
      case 5: made.push_back(idxDiv(c, x, d)); break;
      case 6: made.push_back(idxMod(c, x, d)); break;
      }
    }
    for (int64_t i = low[0]; i <= high[0]; ++i)
      for (int64_t j = low[1]; j <= high[1]; ++j)
        for (UOpRef x : made) {
          auto v = idxEvaluate(x, [&](UOpRef d) -> std::optional<int64_t> {
            return d == made[0] ? std::optional(i) : d == made[1] ? std::optional(j) : std::nullopt;
          });
          ASSERT_TRUE(v) << indexText(x);
          ASSERT_GE(*v, x->lo) << indexText(x) << " at " << i << ", " << j;
          ASSERT_LE(*v, x->hi) << indexText(x) << " at " << i << ", " << j;
        }
  }
}

TEST(Index, DivisionFoldsOnlyWhatIsExact) {
  Context c;
  Builder b(c);
  UOpRef n = b.dim("n", 0, 64);
  EXPECT_EQ(idxDiv(c, idxMul(c, n, b.idx(12)), b.idx(4)), idxMul(c, n, b.idx(3)));
  EXPECT_EQ(idxMod(c, idxMul(c, n, b.idx(12)), b.idx(4)), b.idx(0));
  EXPECT_EQ(idxDiv(c, b.idx(-7), b.idx(2)), b.idx(-4));
  EXPECT_EQ(idxMod(c, b.idx(-7), b.idx(2)), b.idx(1));
  UOpRef r = b.dim("r", 400, 576); // bounds leave one quotient
  EXPECT_EQ(idxDiv(c, idxAdd(c, r, b.idx(320)), b.idx(512)), b.idx(1));
  UOpRef q = idxDiv(c, n, b.idx(4));
  EXPECT_EQ(q->op, Op::FloorDiv);
  EXPECT_EQ(q->hi, 16);
  UOpRef d = b.dim("d", 0, 4); // may be 0: n*d/d is not n
  EXPECT_EQ(idxDiv(c, idxMul(c, n, d), d)->op, Op::FloorDiv);
}

// What a divisor divides stands outside of the quotient and is nothing to the remainder; of a constant a remainder
// stays.
TEST(Index, DivisionSplits) {
  Context c;
  Builder b(c);
  UOpRef n = b.dim("n", 0, 64), m = b.dim("m", 1, 8);
  auto lin = [&](int64_t of, UOpRef x, int64_t plus) { return idxAdd(c, idxMul(c, x, b.idx(of)), b.idx(plus)); };
  EXPECT_EQ(idxDiv(c, lin(4, n, -1), b.idx(4)), lin(1, n, -1));
  EXPECT_EQ(idxDiv(c, lin(4, n, 7), b.idx(4)), lin(1, n, 1));
  EXPECT_EQ(idxMod(c, lin(4, n, -1), b.idx(4)), b.idx(3));
  EXPECT_EQ(idxDiv(c, idxAdd(c, idxMul(c, n, m), b.idx(-1)), m), idxAdd(c, n, idxDiv(c, b.idx(-1), m)));
  EXPECT_EQ(idxMod(c, idxAdd(c, idxMul(c, n, m), b.idx(5)), m), idxMod(c, b.idx(5), m));
  EXPECT_EQ(idxMod(c, idxMul(c, n, m), m), b.idx(0));
  EXPECT_EQ(idxDiv(c, b.idx(0), m), b.idx(0));
  EXPECT_EQ(idxDiv(c, idxAdd(c, lin(4, n, -1), m), b.idx(4)), idxAdd(c, n, idxDiv(c, lin(1, m, -1), b.idx(4))));
  auto div = [&](UOpRef x, int64_t by) { return indexText(idxDiv(c, x, b.idx(by))); };
  auto mod = [&](UOpRef x, int64_t by) { return indexText(idxMod(c, x, b.idx(by))); };
  EXPECT_EQ(div(lin(1, m, 4), 4), "floordiv(m, 4) + 1");
  EXPECT_EQ(div(lin(1, m, -3), 2), "floordiv(m + 1, 2) - 2");
  EXPECT_EQ(div(lin(2, n, 0), 4), "floordiv(n, 2)"); // a factor of all
  EXPECT_EQ(div(lin(6, n, -1), 9), "floordiv(n*2 + 2, 3) - 1");
  EXPECT_EQ(div(idxDiv(c, lin(2, n, 3), b.idx(4)), 3), "floordiv(n + 1, 6)");
  EXPECT_EQ(mod(lin(2, n, 7), 4), "mod(n + 1, 2)*2 + 1");
  EXPECT_EQ(mod(lin(1, n, -1), 8), "mod(n + 7, 8)");
}

// Random polynomials: quotient and remainder of what was split are those of the whole.
TEST(Index, DivisionSplitsToEqualValues) {
  std::mt19937 random(11);
  auto pick = [&](int64_t lo, int64_t hi) { return lo + int64_t(random() % uint64_t(hi - lo + 1)); };
  for (unsigned round = 0; round < 2000; ++round) {
    Context c;
    Builder b(c);
    UOpRef n = b.dim("n", 0, 9), m = b.dim("m", 1, 9);
    UOpRef atoms[] = {n, m, idxMul(c, n, m), idxMod(c, n, b.idx(3)), idxDiv(c, m, b.idx(2)), b.idx(1)};
    UOpRef x = b.idx(0);
    for (UOpRef a : atoms) x = idxAdd(c, x, idxMul(c, a, b.idx(pick(-9, 9))));
    int64_t k = pick(1, 6);
    UOpRef d = random() % 3 ? b.idx(k) : idxMul(c, m, b.idx(k));
    UOpRef q = idxDiv(c, x, d), r = idxMod(c, x, d);
    for (int64_t i = 0; i <= 9; ++i)
      for (int64_t j = 1; j <= 9; ++j) {
        auto at = [&](UOpRef e) {
          return *idxEvaluate(e, [&](UOpRef y) {
            return y == n ? std::optional(i) : y == m ? std::optional(j) : std::nullopt;
          });
        };
        int64_t value = at(x), by = at(d);
        ASSERT_EQ(at(q), value / by - (value % by < 0)) << indexText(x) << " by " << indexText(d);
        ASSERT_EQ(at(r), (value % by + by) % by) << indexText(x) << " by " << indexText(d);
      }
  }
}

TEST(Index, DimsThatAnExtentGives) {
  Context c;
  Builder b(c);
  UOpRef n = b.dim("n", 0, 64), m = b.dim("m", 0, 8);
  auto given = [&](UOpRef x) {
    auto g = dimMultiple(x);
    return !g ? "none" : (g->dim->str + " " + llvm::Twine(g->scale) + " " + llvm::Twine(g->offset)).str();
  };
  EXPECT_EQ(given(n), "n 1 0");
  EXPECT_EQ(given(idxAdd(c, idxMul(c, n, b.idx(4)), b.idx(-3))), "n 4 -3");
  for (UOpRef x : {b.idx(5), idxMul(c, n, m), idxAdd(c, n, m), idxMul(c, n, n), idxMul(c, n, b.idx(-1)),
                   idxDiv(c, n, b.idx(2)), idxMin(c, n, m)})
    EXPECT_EQ(given(x), "none") << indexText(x);
}

TEST(Index, EquationsReplaceDims) {
  Context c;
  Builder b(c);
  UOpRef n = b.dim("n", 0, 64), m = b.dim("m", 0, 32), k = b.dim("k", 0, 16), l = b.dim("l", 0, 64);
  Equation halves{n, idxMul(c, m, b.idx(2))}, quarters{idxMul(c, k, b.idx(2)), m}, same{l, n};
  UOpRef x = idxAdd(c, idxMul(c, n, l), m);
  EXPECT_EQ(indexText(idxByEquations(c, x, {halves, quarters, same})), "k*k*16 + k*2");
  EXPECT_EQ(idxByEquations(c, x, {}), x);
  EXPECT_TRUE(idxAreEqual(c, n, idxMul(c, k, b.idx(4)), {halves, quarters}));
  EXPECT_FALSE(idxAreEqual(c, n, idxMul(c, k, b.idx(4)), {halves}));
  // No dim stands alone, or it is on both sides: no fact.
  Equation none{idxMul(c, n, b.idx(2)), idxMul(c, m, b.idx(3))}, both{n, idxMin(c, n, m)};
  EXPECT_EQ(idxByEquations(c, x, {none, both}), x);
}

TEST(Index, Evaluates) {
  Context c;
  Builder b(c);
  UOpRef n = b.dim("n", 0, 64);
  UOpRef e = idxMin(c, idxAdd(c, idxDiv(c, n, b.idx(3)), b.idx(1)), b.idx(5));
  auto at = [&](int64_t v) {
    return idxEvaluate(e, [&](UOpRef x) { return x == n ? std::optional<int64_t>(v) : std::nullopt; });
  };
  EXPECT_EQ(at(0), 1);
  EXPECT_EQ(at(8), 3);
  EXPECT_EQ(at(64), 5);
}

TEST(Context, ZerosOfTwoSignsDiffer) {
  Context c;
  Builder b(c);
  EXPECT_NE(b.lit(DType::F32, 0.0), b.lit(DType::F32, -0.0));
  EXPECT_EQ(b.lit(DType::F32, 0.5), b.lit(DType::F32, 0.5));
}

TEST(Context, RefusesWithASentence) {
  Context c;
  Builder b(c);
  UOpRef x = b.arg(0, DType::F32, {b.idx(2), b.idx(3)}), y = b.arg(1, DType::F32, {b.idx(3), b.idx(2)});
  auto r = c.tryMake(Op::Add, {x, y});
  ASSERT_FALSE(bool(r));
  EXPECT_EQ(llvm::toString(r.takeError()), "add: sources differ: f32[2, 3] and f32[3, 2] (cast or expand one)");
}

TEST(DTypes, PromotionIsALattice) {
  for (unsigned i = 0; i < numDTypes; ++i)
    for (unsigned j = 0; j < numDTypes; ++j) EXPECT_EQ(promote(DType(i), DType(j)), promote(DType(j), DType(i)));
  EXPECT_EQ(promote(DType::I8, DType::U8), DType::I16);
  EXPECT_EQ(promote(DType::F16, DType::BF16), DType::F32);
  EXPECT_EQ(promote(DType::U64, DType::F16), DType::F16);
  EXPECT_EQ(promote(DType::I4, DType::F32), std::nullopt);
}

// A join: idempotent, above both, below all else that is above both; associative. A u64 and a signed integer have none:
// f16 and bf16 are both above them, and neither is above the other.
TEST(DTypes, PromotionIsTheLeastUpperBound) {
  std::vector<DType> all, computes;
  for (unsigned i = 0; i < numDTypes; ++i) {
    DType t = DType(i);
    bool storage = info(t).cls == DTypeClass::Storage || info(t).cls == DTypeClass::Index || t == DType::Void;
    (storage ? all : computes).push_back(t);
  }
  ASSERT_EQ(computes.size(), 15u);
  auto isAbove = [](DType high, DType low) { return promote(high, low) == high; };
  for (DType a : computes) {
    EXPECT_EQ(promote(a, a), a);
    for (DType s : all) EXPECT_EQ(promote(a, s), std::nullopt) << info(a).text << " " << info(s).text;
    for (DType b : computes) {
      auto ab = promote(a, b);
      bool none = (a == DType::U64 && isSigned(b)) || (b == DType::U64 && isSigned(a));
      ASSERT_EQ(ab.has_value(), !none) << info(a).text << " " << info(b).text;
      if (none) continue;
      EXPECT_TRUE(isAbove(*ab, a) && isAbove(*ab, b));
      for (DType c : computes) {
        if (isAbove(c, a) && isAbove(c, b)) {
          EXPECT_TRUE(isAbove(c, *ab));
        }
        auto bc = promote(b, c), left = promote(*ab, c), right = bc ? promote(a, *bc) : std::nullopt;
        if (left && right) {
          EXPECT_EQ(left, right) << info(a).text << " " << info(b).text << " " << info(c).text;
        }
      }
    }
  }
}

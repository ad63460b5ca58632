//===- IndexBoxes.cpp: symbolic integers at every point of small boxes -----===//
// Takes:    random symbolic integers of a fixed seed over ranges and dims of a few values.
// Gives:    whether a procedure, and simplifyIndex as a whole, give the same number at every point where the original
//           has one, and whether the proved bounds hold there.
#include "Boxes.h"
#include "Prove.h"
#include "astra/IR/Builder.h"
#include "astra/IR/Text.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <random>

using namespace astra;
using proofs::Valuation, proofs::valueOf;

std::optional<int64_t> proofs::valueOf(UOpRef x, Valuation v) {
  if (x->isConst()) return x->ints[0];
  if (x->isIndex()) return idxEvaluate(x, v);
  if (x->op == Op::Not) {
    auto t = valueOf(x->src[0], v);
    return t ? std::optional(int64_t(!*t)) : t;
  }
  auto l = idxEvaluate(x->src[0], v), r = idxEvaluate(x->src[1], v);
  if (!l || !r) return std::nullopt;
  return x->op == Op::Lt ? *l < *r : x->op == Op::Le ? *l <= *r : x->op == Op::Eq ? *l == *r : *l != *r;
}

namespace {
struct Box {
  Context c;
  Builder b{c};
  std::mt19937 random;
  UOpRef n = b.dim("n", 0, 4), m = b.dim("m", 1, 3), v = b.dim("v", 0, 13);
  std::vector<UOpRef> ranges{range(0, n), range(1, m), range(2, b.idx(4)), range(3, b.idx(3))};

  explicit Box(unsigned seed) : random(seed) {}
  UOpRef range(int64_t axis, UOpRef extent) { return c.make(Op::Range, {extent}, {axis, int64_t(RangeKind::Loop)}); }
  int64_t pick(int64_t below) { return random() % below; }

  UOpRef atom() {
    UOpRef atoms[] = {ranges[0], ranges[1], ranges[2], ranges[3], n, m, v, v};
    return atoms[pick(8)];
  }
  UOpRef divisor() {
    switch (pick(8)) {
    case 0: return n;
    case 1: return m;
    case 2: return idxMul(c, m, b.idx(2 + pick(2)));
    case 3: return idxMul(c, n, m);
    default: return b.idx(1 + pick(12));
    }
  }
  UOpRef sum(unsigned depth) {
    UOpRef s = b.idx(pick(3) ? 0 : pick(15) - 6);
    for (int64_t terms = 1 + pick(4); terms; --terms) {
      UOpRef t = depth && pick(3) == 0 ? any(depth - 1) : atom();
      if (pick(2)) t = idxMul(c, t, pick(3) ? b.idx(std::array{2, 3, 4, 6, 8, 12, -1, -2, -4}[pick(9)]) : divisor());
      s = idxAdd(c, s, t);
    }
    return s;
  }
  UOpRef any(unsigned depth) {
    switch (pick(6)) {
    case 0: return idxMin(c, sum(depth), sum(depth));
    case 1: return idxMax(c, sum(depth), sum(depth));
    case 2:
    case 3: return idxDiv(c, sum(depth), divisor());
    default: return idxMod(c, sum(depth), divisor());
    }
  }
  /// k*d*(x / d) + k*(x % d) and its like, which chance seldom makes; one in two has something else in one place.
  UOpRef recomposed() {
    UOpRef x = sum(1), d = divisor(), k = pick(2) ? b.idx(1 + pick(3)) : m;
    int64_t odd = pick(8);
    UOpRef high = idxDiv(c, odd == 0 ? sum(1) : x, odd == 1 ? divisor() : d);
    if (pick(2)) high = idxMod(c, high, divisor());
    UOpRef scale = idxMul(c, odd == 2 ? b.idx(1 + pick(3)) : k, odd == 3 ? divisor() : d);
    return idxAdd(c, idxAdd(c, idxMul(c, scale, high), idxMul(c, k, idxMod(c, x, d))), pick(2) ? atom() : b.idx(0));
  }
  /// x % (k*d) / d and (x % (k*d)) % d.
  UOpRef nested() {
    UOpRef d = divisor(), x = idxMod(c, sum(1), idxMul(c, d, b.idx(2 + pick(3))));
    return pick(2) ? idxDiv(c, pick(2) ? x : idxDiv(c, sum(1), divisor()), d)
                   : idxMod(c, pick(2) ? x : idxAdd(c, x, atom()), d);
  }
  UOpRef expression() {
    if (pick(8) == 0) { // a tile's bound: g*x + y < g*z
      UOpRef g = b.idx(2 + pick(3));
      return c.make(Op::Lt, {idxAdd(c, idxMul(c, g, sum(0)), pick(2) ? ranges[2 + pick(2)] : b.idx(pick(9))),
                             idxMul(c, g, sum(0))});
    }
    UOpRef e = pick(4) == 0 ? recomposed() : pick(4) == 0 ? nested() : any(1);
    return pick(3) ? e : c.make(std::array{Op::Lt, Op::Le, Op::Eq, Op::Ne}[pick(4)], {e, pick(2) ? e : sum(1)});
  }

  /// Calls f with the values of all dims and ranges, ranges within their extents.
  template <class F> void points(F f) {
    std::vector<UOpRef> leaves{n, m, v};
    llvm::append_range(leaves, ranges);
    std::vector<int64_t> at(leaves.size());
    for (at[0] = 0; at[0] <= 4; ++at[0])
      for (at[1] = 1; at[1] <= 3; ++at[1])
        for (at[2] = 0; at[2] <= 13; at[2] += 1 + pick(3))
          for (at[3] = 0; at[3] < at[0]; ++at[3])
            for (at[4] = 0; at[4] < at[1]; ++at[4])
              for (at[5] = 0; at[5] < 4; ++at[5])
                for (at[6] = 0; at[6] < 3; ++at[6])
                  f([&](UOpRef x) -> std::optional<int64_t> {
                    auto it = llvm::find(leaves, x);
                    return it == leaves.end() ? std::nullopt : std::optional(at[it - leaves.begin()]);
                  });
  }
};

std::string text(UOpRef x) {
  return x->isIndex()   ? indexText(x)
         : x->isConst() ? std::to_string(x->ints[0])
                        : indexText(x->src[0]) + " " + info(x->op).mnemonic + " " + indexText(x->src[1]);
}

/// What differs between two forms at a point where the first has a value, or nothing.
std::string compare(Box &box, UOpRef before, UOpRef after) {
  std::string wrong;
  box.points([&](Valuation at) {
    if (!wrong.empty()) return;
    auto b = valueOf(before, at);
    auto a = b ? valueOf(after, at) : std::nullopt;
    if (b && a != b)
      wrong = text(before) + " became " + text(after) + ": " + std::to_string(*b) + " became " +
              (a ? std::to_string(*a) : "nothing");
  });
  return wrong;
}
} // namespace

std::string proofs::runIndices(const Rule &r) {
  unsigned fired = 0;
  for (unsigned seed = 0; seed < 10000 && fired < 150; ++seed) { // quotients with one value fold before any rule
    Box box(seed);
    UOpRef x = box.expression();
    std::vector<UOpRef> nodes = topoSort(x);
    for (UOpRef n : nodes) {
      bool starts = llvm::is_contained(llvm::ArrayRef(r.roots).take_front(r.numRoots), n->op);
      UOpRef made = starts ? r.procedure({box.c}, n) : nullptr;
      if (!made || made == n) continue;
      ++fired;
      if (auto wrong = compare(box, n, made); !wrong.empty()) return wrong;
    }
  }
  return fired >= 50 ? "" : "the rule fired " + std::to_string(fired) + " times in its box, expected 50";
}

TEST(IndexBoxes, SimplifyKeepsEveryValue) {
  for (unsigned seed = 10000, end = std::getenv("ASTRA_NIGHTLY") ? 11000 : 10150; seed < end; ++seed) {
    Box box(seed);
    UOpRef x = box.expression(), s = simplifyIndex(box.c, x);
    ASSERT_EQ(compare(box, x, s), "") << "seed " << seed;
    ASSERT_EQ(simplifyIndex(box.c, s), s) << "seed " << seed << ": " << text(s);
  }
}

TEST(IndexBoxes, BoundsHold) {
  for (unsigned seed = 20000, end = std::getenv("ASTRA_NIGHTLY") ? 20500 : 20150; seed < end; ++seed) {
    Box box(seed);
    UOpRef x = box.sum(2);
    int64_t lo = lowerBound(box.c, x), hi = upperBound(box.c, x);
    box.points([&](Valuation at) {
      if (auto v = idxEvaluate(x, at)) {
        ASSERT_GE(*v, lo) << text(x);
        ASSERT_LE(*v, hi) << text(x);
      }
    });
  }
}

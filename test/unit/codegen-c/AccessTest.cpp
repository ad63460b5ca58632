//===- AccessTest.cpp: what is proved of a kernel's accesses holds -----------===//
// Random kernels: each access that the verifier accepts is inside at every point of every dim; kernels that leave their
// buffers are refused with a point where they do; those that the compiler makes around the edges of tiles are accepted.
#include "Run.h"
#include "astra/Codegen/Accesses.h"
#include "astra/Codegen/Compile.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "astra/Rewrite/Rewrite.h"
#include <random>

using namespace astra;
using namespace astra::test;

namespace {

struct Accesses : testing::Test {
  Context c;
  Builder b{c};
  UOpRef n = b.dim("n", 1, 7), m = b.dim("m", 0, 5);

  UOpRef range(int64_t axis, UOpRef extent, RangeKind kind = RangeKind::Parallel) {
    return c.make(Op::Range, {extent}, {axis, int64_t(kind)});
  }
  /// Copies element `from` of buffer 0 to `to` of buffer 1, where the gate holds.
  Kernel copy(UOpRef from, UOpRef to, UOpRef size, UOpRef gate = nullptr, UOpRef size1 = nullptr) {
    Kernel k;
    k.name = "copy";
    k.buffers = {{DType::F32, true, false, size}, {DType::F32, false, true, size1 ? size1 : size}};
    auto buffer = [&](int64_t i) { return c.make(Op::Buffer, {k.buffers[i].elements}, {i}, {}, DType::F32); };
    UOpRef x = gate ? c.make(Op::Load, {buffer(0), gate, from}, {1}) : c.make(Op::Load, {buffer(0), from}, {1});
    k.sink = c.make(Op::Sink, {gate ? c.make(Op::Store, {buffer(1), x, gate, to}, {1})
                                    : c.make(Op::Store, {buffer(1), x, to}, {1})});
    return k;
  }
  std::string refusal(const Kernel &k, const NotNegative &facts = {}) {
    AccessCount count;
    if (auto e = verifyAccesses(k, llvm::cantFail(linearize(c, k)), facts, count)) return llvm::toString(std::move(e));
    return "";
  }
};

TEST_F(Accesses, WitnessesAreNamed) {
  UOpRef r = range(0, n);
  EXPECT_EQ(refusal(copy(r, r, n)), "");
  std::string s = refusal(copy(idxAdd(c, r, c.index(1)), r, n));
  EXPECT_NE(s.find("internal error: kernel 'copy', plan 'map: merge 1; vector 1; unroll 1': a load of [r0 + 1], of "
                   "buffer 0 is outside where"),
            std::string::npos)
      << s;
  s = refusal(copy(r, idxSub(c, r, c.index(1)), n));
  EXPECT_NE(s.find("a store of [r0 - 1], of buffer 1 is outside where n = 1, r0 = 0: element -1 of 1"),
            std::string::npos)
      << s;
}

TEST_F(Accesses, GatesFactsAndLoopsCount) {
  UOpRef r = range(0, idxMul(c, n, c.index(2))), lt = c.make(Op::Lt, {r, n});
  EXPECT_NE(refusal(copy(r, r, n)), "");
  EXPECT_EQ(refusal(copy(r, r, n, lt)), "");
  UOpRef s = range(0, m), at = idxAdd(c, s, idxSub(c, n, m)); // inside where m <= n
  EXPECT_NE(refusal(copy(at, s, n, nullptr, m)), "");
  EXPECT_EQ(refusal(copy(at, s, n, nullptr, m), {idxSub(c, n, m)}), "");
  // A tile of four rows whose loop does not run where there are fewer.
  UOpRef tile = range(0, simplifyIndex(c, idxDiv(c, n, c.index(4))));
  EXPECT_EQ(refusal(copy(idxAdd(c, idxMul(c, tile, c.index(4)), c.index(3)), tile, n)), "");
  EXPECT_NE(refusal(copy(idxAdd(c, idxMul(c, tile, c.index(4)), c.index(4)), tile, n)), "");
}

// The tail of a tree of sums begins where the largest powers of 2 of its length end: too many points to try each.
TEST_F(Accesses, RemaindersOfQuotientsMeetOtherQuotients) {
  UOpRef large = b.dim("large", 1, 1 << 20), e = idxMin(c, large, c.index(1 << 19));
  auto floor = [&](int64_t k) { return idxDiv(c, e, c.index(k)); };
  UOpRef at = idxAdd(c, idxMul(c, floor(128), c.index(128)), idxMul(c, idxMod(c, floor(64), c.index(2)), c.index(64)));
  UOpRef gate = c.make(Op::Lt, {idxMul(c, floor(64), c.index(64)), e});
  EXPECT_EQ(refusal(copy(at, c.index(0), large, gate)), "");
  EXPECT_NE(refusal(copy(idxAdd(c, at, c.index(64)), c.index(0), large, gate)), "");
}

// r*r is below n*n - 2n + 2 for r < n, which the proof does not see.
TEST_F(Accesses, WhatIsNotProvedIsTested) {
  UOpRef large = b.dim("large", 1, 1 << 20), r = range(0, large),
         size = idxAdd(c, idxSub(c, idxMul(c, large, large), idxMul(c, large, c.index(2))), c.index(2));
  Kernel k = copy(c.index(0), idxMul(c, r, r), size);
  EXPECT_NE(refusal(k), "");
  AccessCount count;
  Linear l = llvm::cantFail(linearizeInside(c, k, {}, count));
  EXPECT_EQ(count.tested, 1u);
  EXPECT_EQ(k.sink->src[0]->ntensors, 3u) << "a gate";
  Kernel outside = copy(c.index(0), idxMul(c, r, r), large);
  EXPECT_NE(llvm::toString(linearizeInside(c, outside, {}, count).takeError()).find("is outside where"),
            std::string::npos);
}

TEST_F(Accesses, RangesAreReadInTheirLoops) {
  UOpRef r = range(0, n), inner = range(1, c.index(1), RangeKind::Loop);
  Kernel k = copy(r, r, n);
  Linear l = llvm::cantFail(linearize(c, k));
  for (Inst &i : l.insts)
    if (i.kind == InstKind::Write) i.uop = c.make(Op::Store, {i.uop->src[0], i.uop->src[1], inner}, {1});
  AccessCount count;
  EXPECT_EQ(llvm::toString(verifyAccesses(k, l, {}, count)),
            "internal error: kernel 'copy', plan 'map: merge 1; vector 1; unroll 1': a store reads range 1 outside of "
            "its loop");
}

/// An index made at random of dims and ranges.
struct RandomIndex {
  Context &c;
  std::vector<UOpRef> leaves;
  std::mt19937 &rng;
  int64_t below(int64_t k) { return int64_t(rng() % uint64_t(k)); }
  UOpRef make(int depth) {
    if (!depth || below(4) == 0) return below(5) ? leaves[below(leaves.size())] : c.index(below(9));
    UOpRef a = make(depth - 1), b = make(depth - 1), k = c.index(1 + below(6));
    switch (below(8)) {
    case 0: return idxAdd(c, a, b);
    case 1: return idxSub(c, a, b);
    case 2: return idxMul(c, a, below(2) ? k : b);
    case 3: return idxDiv(c, a, k);
    case 4: return idxMod(c, a, k);
    case 5: return idxMin(c, a, b);
    case 6: return idxMax(c, a, b);
    default: return idxAdd(c, idxMul(c, a, k), k);
    }
  }
};

// Of the kernels that are accepted none leaves its buffers, at any point.
TEST_F(Accesses, WhatIsAcceptedIsInside) {
  std::mt19937 rng(17);
  unsigned accepted = 0, outside = 0;
  const unsigned kernels = getenv("ASTRA_NIGHTLY") ? 4000 : 300;
  for (unsigned t = 0; t < kernels; ++t) {
    RandomIndex top{c, {n, m}, rng};
    UOpRef e0 = idxMax(c, top.make(2), c.index(0)), r0 = range(0, e0);
    RandomIndex within{c, {n, m, r0, r0}, rng};
    UOpRef e1 = within.make(2), r1 = range(1, e1, RangeKind::Loop);
    RandomIndex all{c, {n, m, r0, r1, r0, r1}, rng};
    UOpRef at = all.make(3), gate = rng() % 2 ? c.make(Op::Lt, {all.make(2), all.make(2)}) : nullptr;
    if (gate && rng() % 2) gate = c.make(Op::And, {gate, c.make(Op::Lt, {all.make(1), all.make(2)})});
    UOpRef size = idxMax(c, top.make(3), c.index(0));
    if (at->hi > 1 << 20 || at->lo < -(1 << 20) || size->hi > 1 << 20 || e0->hi > 4000 || e1->hi > 4000) continue;
    Kernel k = copy(c.index(0), at, size, gate);
    k.sink =
        c.make(Op::Sink, {c.make(Op::Store,
                                 [&] {
                                   llvm::SmallVector<UOpRef, 6> parts{k.sink->src[0]->src[0], c.literal(DType::F32, 0)};
                                   if (gate) parts.push_back(gate);
                                   parts.append({at, r0, r1});
                                   return parts;
                                 }(),
                                 {1})});
    bool taken = refusal(k).empty();
    accepted += taken;
    // Every point.
    bool inside = true;
    std::string where;
    for (int64_t vn = n->lo; vn <= n->hi; ++vn)
      for (int64_t vm = m->lo; vm <= m->hi; ++vm) {
        int64_t v0 = 0, v1 = 0;
        auto value = [&](UOpRef x) -> std::optional<int64_t> {
          if (x == n) return vn;
          if (x == m) return vm;
          if (x == r0) return v0;
          if (x == r1) return v1;
          return std::nullopt;
        };
        int64_t s = *idxEvaluate(size, value), end0 = *idxEvaluate(e0, value);
        for (v0 = 0; v0 < end0; ++v0) {
          int64_t end1 = *idxEvaluate(e1, value);
          for (v1 = 0; v1 < end1; ++v1) {
            bool open = true;
            for (UOpRef g : gate ? topoSort(gate) : std::vector<UOpRef>())
              if (g->op == Op::Lt) open &= *idxEvaluate(g->src[0], value) < *idxEvaluate(g->src[1], value);
            int64_t p = *idxEvaluate(at, value);
            if (!open || (p >= 0 && p < s)) continue;
            inside = false;
            where = "n = " + std::to_string(vn) + ", m = " + std::to_string(vm) + ", r0 = " + std::to_string(v0) +
                    ", r1 = " + std::to_string(v1) + ": " + std::to_string(p) + " of " + std::to_string(s);
          }
        }
      }
    outside += !inside;
    if (taken) {
      ASSERT_TRUE(inside) << indexText(at) << " of " << indexText(size) << " where " << where;
    }
  }
  EXPECT_GT(accepted, kernels / 15);
  EXPECT_GT(outside, kernels / 5);
}

} // namespace

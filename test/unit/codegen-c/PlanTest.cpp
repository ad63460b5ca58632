//===- PlanTest.cpp: plans that come from outside --------------------------===//
// Checks:   what --emit=plan prints is read again and accepted; every other plan that a kernel cannot be lowered under
//           is refused with a sentence that says what was found and what was expected.
#include "astra/Codegen/Compile.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/Numerics.h"
#include "gtest/gtest.h"

using namespace astra;

namespace {

constexpr const char *source = R"(module @m {
  dim n in 0..64
  param @w : f32[40, 96] = splat 0.5
  entry @main(%x : f32[2, n, 40], %z : f32[256, 40], %v : f32[40, 96]) -> (%p : f32[2, n, 96], %q : f32[2, n], %r : f32[2, n], %s : f32[256, 96], %t : f32[2, n, 40]) {
    %p = contract %x[h, i, k], @w[k, j] -> [h, i, j] sum [k]
    %q = reduce %x kind=sum order=lane64 axes=[2]
    %r = reduce %x kind=max order=exact axes=[2]
    %s = contract %z[i, k], %v[k, j] -> [i, j] sum [k]
    %t = cumulate %x kind=sum axis=2
  }
})";

struct Plans : testing::Test {
  Module m;
  Schedule s;
  Plans() {
    auto parsed = parse(source, "m.uop");
    EXPECT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    m = std::move(*parsed);
    llvm::cantFail(runNumerics(m));
    auto scheduled = schedule(m);
    EXPECT_TRUE(bool(scheduled)) << llvm::toString(scheduled.takeError());
    s = std::move(*scheduled);
  }
  /// The kernel whose result has this op in it, with so many inputs from the user.
  const KernelSpec &kernel(Op op, bool packed = false) {
    for (const KernelSpec &k : s.kernels) {
      bool isPacked = llvm::any_of(k.inputs, [](const Placed &p) { return !p.layout.isPermuted(); });
      for (UOpRef x : topoSort(k.outputs[0].value))
        if (x->op == op && isPacked == packed) return k;
    }
    ADD_FAILURE() << "no such kernel";
    return s.kernels[0];
  }
  std::string refusal(const KernelSpec &k, const char *plan) {
    auto p = parsePlan(plan);
    if (!p) return llvm::toString(p.takeError());
    std::string sentence = llvm::toString(checkPlan(k, *p));
    size_t colon = sentence.find("': ");
    return colon == sentence.npos ? sentence : sentence.substr(colon + 3);
  }
};

TEST_F(Plans, ChosenOnesAreReadAgain) {
  for (const Target &t : allTargets())
    for (const KernelSpec &k : s.kernels) {
      Plan p = choosePlan(m.ctx(), k, t);
      auto again = parsePlan(text(p));
      ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
      EXPECT_EQ(text(*again), text(p));
      EXPECT_EQ(llvm::toString(checkPlan(k, *again)), "") << k.name;
    }
}

TEST_F(Plans, WordsAreRefused) {
  const KernelSpec &k = s.kernels[0];
  EXPECT_EQ(refusal(k, "heap: merge 1"),
            "plan 'heap: merge 1': found 'heap', expected map, rows, columns, contract or programs, and a colon");
  EXPECT_EQ(refusal(k, "map: merge 1; lanes 4"),
            "plan 'map: merge 1; lanes 4': found 'lanes 4', expected points, merge, "
            "vector, unroll, tile, tail, threads, transpose, prefetch or non-temporal");
  EXPECT_EQ(
      refusal(k, "map: rows 4"),
      "plan 'map: rows 4': found 'rows 4', expected points, merge, vector, unroll, tile, tail, threads, transpose, "
      "prefetch or non-temporal");
  EXPECT_EQ(refusal(k, "contract: merge 1"),
            "plan 'contract: merge 1': found 'merge 1', expected n, m, mr, pack-b, "
            "vector, nr, row-block, tail, threads, split-k, mc, kc, unroll-k, "
            "spill-sums, pipeline, stages, warp-groups, tiles, join, prefetch or prefetch-panel");
  EXPECT_EQ(refusal(k, "map: merge -1"), "plan 'map: merge -1': found '-1', expected a number in 0..4096");
  EXPECT_EQ(refusal(k, "map: unroll 5000"), "plan 'map: unroll 5000': found '5000', expected a number in 0..4096");
  EXPECT_EQ(refusal(k, "map: merge"), "plan 'map: merge': found 'merge', expected one number after merge");
  EXPECT_EQ(refusal(k, "map: merge 1; merge 2"),
            "plan 'map: merge 1; merge 2': found 'merge 2', expected each step once");
}

TEST_F(Plans, PointsAreDimsOutsideOfTheMergedOnes) {
  Plan p = llvm::cantFail(parsePlan("map: points 1 0; merge 1; vector 8; unroll 4; tile 16"));
  EXPECT_EQ(text(p), "map: points 1 0; merge 1; vector 8; unroll 4; tile 16");
  const KernelSpec &k = kernel(Op::Cumulate);
  EXPECT_EQ(refusal(k, "map: points 0; merge 1; vector 8; unroll 4"),
            "points; only a map with a tile has them, on a CPU");
}

TEST_F(Plans, WordsOfEarlierReleasesAreRead) {
  const std::pair<const char *, const char *> rows[] = {
      {"contract: n 1; m 2 3; rows 8; stage 64; vector 16; unroll 3; block 2; line 2; ahead 8; next 1",
       "contract: n 1; m 2 3; mr 8; pack-b 64; vector 16; nr 3; row-block 2; tail overlapped; prefetch 8; "
       "prefetch-panel 1"},
      {"contract: n 1; m 0; rows 1; vector 1; unroll 1; threads 64; spread 2; tall 1; deep 16; pipeline 2",
       "contract: n 1; m 0; mr 1; vector 1; nr 1; threads 64; split-k 2; mc 1; kc 16; pipeline 2"},
      {"map: merge 2; vector 16; unroll 8; block 64; ahead 4; past 1",
       "map: merge 2; vector 16; unroll 8; tile 64; prefetch 4; non-temporal 1"},
      {"map: merge 1; vector 16; unroll 4; line 1", "map: merge 1; vector 16; unroll 4; tail masked"},
      {"map: merge 1; vector 16; unroll 4; line 0", "map: merge 1; vector 16; unroll 4"},
      {"map: merge 0; vector 1; unroll 1; threads 1024; turn 32",
       "map: merge 0; vector 1; unroll 1; threads 1024; transpose 32"},
      {"rows: merge 2; vector 32; unroll 1; threads 256; warp 32; spread 8; ahead 1; past 1",
       "rows: merge 2; vector 32; unroll 1; threads 256; warp 32; cooperative 8; prefetch 1; non-temporal 1"},
      {"columns: merge 1; vector 1; unroll 1; threads 256; spread 8",
       "columns: merge 1; vector 1; unroll 1; threads 256; cooperative 8"},
      {"columns: merge 1; vector 16; unroll 4; block 16; line 1; deep 64; ahead 3",
       "columns: merge 1; vector 16; unroll 4; block 16; tail masked; unroll-k 64; prefetch 3"},
  };
  for (const auto &[old, now] : rows) {
    auto plan = parsePlan(old);
    ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
    EXPECT_EQ(text(*plan), now);
    EXPECT_EQ(text(llvm::cantFail(parsePlan(now))), now);
  }
  const KernelSpec &k = s.kernels[0];
  EXPECT_EQ(refusal(k, "contract: mr 4; rows 4"),
            "plan 'contract: mr 4; rows 4': found 'rows 4', expected each step once");
  EXPECT_EQ(
      refusal(k, "columns: stage 4"),
      "plan 'columns: stage 4': found 'stage 4', expected merge, vector, unroll, block, tail, threads, cooperative, "
      "unroll-k or prefetch");
  EXPECT_EQ(refusal(k, "map: tail full"),
            "plan 'map: tail full': found 'full', expected a number in 0..4096, masked or overlapped");
}

TEST_F(Plans, LabelsAreRefused) {
  const KernelSpec &k = kernel(Op::Contract, true);
  EXPECT_EQ(refusal(k, "contract: n 2; m 1; mr 4; vector 16; nr 2"), "");
  EXPECT_EQ(refusal(k, "contract: m 1; mr 4; vector 16; nr 2"), "no n; the layouts let lanes run along label 2 alone");
  EXPECT_EQ(refusal(k, "contract: n 7; m 1; mr 4; vector 16; nr 2"),
            "n 7; the layouts let lanes run along label 2 alone");
  EXPECT_EQ(refusal(k, "contract: n 2; m 3; mr 4; vector 16; nr 2"),
            "m 3 is no kept label; they are 0..2, n among them");
  EXPECT_EQ(refusal(k, "contract: n 2; m 0 2; mr 4; vector 16; nr 2"), "label 2 is n and one of m; expected another");
  EXPECT_EQ(refusal(k, "contract: n 2; m 1 1; mr 4; vector 16; nr 2"), "m has label 1 twice");
}

TEST_F(Plans, SizesAreRefused) {
  const KernelSpec &k = kernel(Op::Contract, true), &sum = kernel(Op::Reduce), &chain = kernel(Op::Cumulate),
                   &plain = kernel(Op::Contract);
  EXPECT_EQ(refusal(k, "contract: n 2; m 1; mr 0; vector 16; nr 2"), "mr 0; expected 1..64");
  EXPECT_EQ(refusal(k, "contract: n 2; m 1; mr 4; vector 0; nr 2"), "vector 0; expected a power of two in 1..64");
  EXPECT_EQ(refusal(k, "contract: n 2; m 1; mr 4; vector 12; nr 2"), "vector 12; expected a power of two in 1..64");
  EXPECT_EQ(refusal(k, "contract: n 2; m 1; mr 4; vector 128; nr 2"), "vector 128; expected a power of two in 1..64");
  EXPECT_EQ(refusal(k, "contract: n 2; m 1; mr 4; vector 16; nr 0"), "nr 0; expected 1..64");
  EXPECT_EQ(refusal(k, "contract: n 2; m 1; mr 64; vector 16; nr 64"),
            "the sums of a register tile are 262144 bytes; at most 8192 are held at once");
  EXPECT_NE(refusal(k, "contract: n 2; m 1; mr 1; vector 64; nr 1").find("packed in panels of"), std::string::npos);
  EXPECT_EQ(refusal(k, "contract: n 2; m 1; mr 4; pack-b 64; vector 16; nr 2"),
            "pack-b 64 is not possible: the operand of the lanes is packed already");
  EXPECT_EQ(refusal(plain, "contract: n 1; m 0; mr 4; pack-b 64; vector 16; nr 2"), "");
  EXPECT_EQ(refusal(plain, "contract: n 1; m 0; mr 4; pack-b 64; vector 1; nr 2"),
            "pack-b 64 with vector 1; columns are copied in vectors, expected 2..64");
  EXPECT_EQ(refusal(plain, "contract: n 1; m 0; mr 4; vector 16; nr 2; mc 8; kc 256"), "");
  EXPECT_EQ(refusal(plain, "contract: n 1; m 0; mr 4; vector 16; nr 2; mc 8"),
            "mc 8 and kc 0; expected both or neither");
  EXPECT_EQ(refusal(plain, "contract: n 1; m 0; mr 4; vector 16; nr 2; mc 8; kc 2"), "");
  EXPECT_EQ(refusal(plain, "contract: n 1; m 0; mr 4; vector 16; nr 2; mc 8; kc 1"),
            "kc 1; sums are spilled after two steps or more");
  EXPECT_EQ(refusal(plain, "contract: n 1; m 0; mr 4; pack-b 64; vector 16; nr 2; mc 8; kc 256"),
            "pack-b 64 and mc 8; expected one of them");
  EXPECT_EQ(refusal(plain, "contract: n 1; m 0; mr 32; vector 16; nr 4; mc 4096; kc 256"),
            "mc 4096; the sums of an item take more than 16 MiB");
  EXPECT_EQ(refusal(sum, "rows: merge 2; vector 16; unroll 1"), "");
  EXPECT_EQ(refusal(sum, "rows: merge 3; vector 16; unroll 1"),
            "merge 3; the output has 2 dims in memory, expected 1..2");
  EXPECT_EQ(refusal(sum, "columns: merge 0; vector 4; unroll 1"),
            "merge 0; the output has 2 dims in memory, expected 1..2");
  EXPECT_EQ(refusal(chain, "map: merge 1; vector 4; unroll 2"), ""); // lanes run along the other axes
  EXPECT_EQ(refusal(sum, "columns: merge 1; vector 4; unroll 1; tail masked"), "");
  EXPECT_EQ(refusal(sum, "columns: merge 1; vector 4; unroll 1; tail overlapped"), "");
  EXPECT_EQ(refusal(sum, "columns: merge 1; vector 4; unroll 1; tail 3"), "tail 3; expected masked or overlapped");
  EXPECT_EQ(refusal(plain, "contract: n 1; m 0; mr 4; vector 16; nr 2; tail overlapped"), "");
  KernelSpec changed = plain, rows = sum;
  changed.inPlace = rows.inPlace = true;
  EXPECT_EQ(refusal(rows, "columns: merge 1; vector 4; unroll 1; tail masked"), "");
  EXPECT_EQ(refusal(rows, "columns: merge 1; vector 4; unroll 1; tail overlapped"),
            "tail overlapped in place; what is written twice would be read changed");
  EXPECT_EQ(refusal(changed, "contract: n 1; m 0; mr 4; vector 16; nr 2; tail overlapped"),
            "tail overlapped; of a contract, expected overlapped, of columns that are neither packed nor copied, sums "
            "that are "
            "not spilled, and not in place");
  EXPECT_EQ(refusal(plain, "contract: n 1; m 0; mr 4; vector 16; nr 2; tail masked"),
            "tail masked; of a contract, expected overlapped, of columns that are neither packed nor copied, sums that "
            "are not "
            "spilled, and not in place");
  EXPECT_EQ(refusal(plain, "contract: n 1; m 0; mr 4; vector 16; nr 2; tail overlapped; mc 8; kc 2"),
            "tail overlapped; of a contract, expected overlapped, of columns that are neither packed nor copied, sums "
            "that are "
            "not spilled, and not in place");
  EXPECT_EQ(refusal(chain, "map: merge 1; vector 4; unroll 1; tail masked"),
            "tail masked; only a kernel that writes its whole output row by row has one");
  EXPECT_EQ(refusal(chain, "map: merge 1; vector 4; unroll 1; tile 16"),
            "tile 16; only a map that writes its whole output and a contract are taken in blocks");
  EXPECT_EQ(refusal(sum, "rows: merge 2; vector 16; unroll 1; block 16"),
            "plan 'rows: merge 2; vector 16; unroll 1; block 16': found 'block 16', expected merge, vector, unroll, "
            "threads, warp, width, cooperative, prefetch or non-temporal");
}

TEST_F(Plans, RowsThatAreWrittenMayHaveOneLane) {
  auto m = parse(R"(module @m {
    entry @main(%x : f32[8, 300]) -> (%y : f32[8, 300]) {
      %s = reduce %x kind=max order=exact axes=[1]
      %1 = reshape %s [8, 1]
      %2 = expand %1 [8, 300]
      %y = sub %x, %2
    }
  })",
                 "rows.uop");
  ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
  llvm::cantFail(runNumerics(*m));
  Schedule rows = llvm::cantFail(schedule(*m));
  ASSERT_EQ(rows.kernels.size(), 1u);
  EXPECT_EQ(refusal(rows.kernels[0], "rows: merge 2; vector 2; unroll 1"), "");
  EXPECT_EQ(refusal(rows.kernels[0], "rows: merge 2; vector 1; unroll 1"), "");
  EXPECT_EQ(refusal(rows.kernels[0], "rows: merge 2; vector 3; unroll 1"),
            "vector 3; expected a power of two in 1..64");
  EXPECT_EQ(refusal(kernel(Op::Reduce), "rows: merge 2; vector 1; unroll 1"), "");
}

TEST_F(Plans, RowsThatGoThroughSeveralKernelsHaveBlocks) {
  auto m = parse(R"(module @m {
    entry @main(%x : f32[80, 40], %w : f32[40, 96], %v : f32[96, 32]) -> (%y : f32[80, 32]) {
      %a = contract %x[i, k], %w[k, j] -> [i, j] sum [k]
      %s = reduce %a kind=max order=exact axes=[1]
      %1 = reshape %s [80, 1]
      %2 = expand %1 [80, 96]
      %p = sub %a, %2
      %y = contract %p[i, k], %v[k, j] -> [i, j] sum [k]
    }
  })",
                 "joined.uop");
  ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
  llvm::cantFail(runNumerics(*m));
  Schedule joined = llvm::cantFail(schedule(*m));
  auto first = llvm::find_if(joined.kernels, [](const KernelSpec &k) { return !k.followers.empty(); });
  ASSERT_NE(first, joined.kernels.end());
  ASSERT_EQ(first->followers.size(), 2u);
  EXPECT_EQ(refusal(*first, "contract: n 1; m 0; mr 4; vector 16; nr 2; row-block 7"), "");
  EXPECT_EQ(refusal(*first, "contract: n 1; m 0; mr 4; vector 16; nr 2"),
            "a kernel of a fused chain; expected a contract with a row-block");
  EXPECT_EQ(refusal(*first, "columns: merge 1; vector 16; unroll 1"),
            "a kernel of a fused chain; expected a contract with a row-block");
  const KernelSpec &rows = first->followers[0].spec, &sum = first->followers[1].spec;
  EXPECT_EQ(refusal(rows, "rows: merge 2; vector 8; unroll 1"), "");
  EXPECT_EQ(refusal(rows, "columns: merge 1; vector 8; unroll 1"),
            "the kernel follows another one of a fused chain, rows at a time; expected rows");
  EXPECT_EQ(refusal(sum, "contract: n 1; m 0; mr 4; vector 16; nr 2; mc 8; kc 16"), "");
  EXPECT_EQ(refusal(sum, "columns: merge 1; vector 8; unroll 1"),
            "the kernel follows another one of a fused chain, rows at a time; expected contract");
}

// By rows where these are more bytes than the panels of columns, one tile of each panel after another where the second
// cache has room for all.
TEST_F(Plans, TheOperandWithMoreBytesIsSharedOut) {
  auto parsed = parse(R"(module @m {
    dim n in 1..65536
    param @w : f32[64, 256] = splat 0.5
    param @v : f32[640, 512] = splat 0.5
    entry @main(%x : f32[2000, 64], %y : f32[200, 64], %z : f32[n, 64], %u : f32[2000, 640]) -> (%a : f32[2000, 256], %b : f32[200, 256], %c : f32[n, 256], %d : f32[2000, 512]) {
      %a = contract %x[i, k], @w[k, j] -> [i, j] sum [k]
      %b = contract %y[i, k], @w[k, j] -> [i, j] sum [k]
      %c = contract %z[i, k], @w[k, j] -> [i, j] sum [k]
      %d = contract %u[i, k], @v[k, j] -> [i, j] sum [k]
    }
  })",
                      "order.uop");
  ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
  llvm::cantFail(runNumerics(*parsed));
  Schedule products = llvm::cantFail(schedule(*parsed));
  const Target *target = targetNamed("cpu:x86-64-v4");
  ASSERT_TRUE(target);
  unsigned fixed = 0;
  for (const KernelSpec &k : products.kernels) {
    if (!k.rootOp || k.rootOp->op != Op::Contract || k.vectorIndex < 0) continue;
    Plan p = choosePlan(parsed->ctx(), k, *target);
    auto rows = k.rootOp->shape[0]->constIndex(), columns = k.rootOp->shape[1]->constIndex();
    if (!rows) {
      EXPECT_EQ(p.rowBlock, 0u) << text(p); // may be few
      continue;
    }
    ++fixed;
    // All columns of as many tiles of 6 rows of 256 bytes as half of the L1 (16 KiB) holds.
    EXPECT_EQ(p.rowBlock, *rows == 200 ? 0u : *columns == 512 ? 16u : 10u) << text(p);
  }
  EXPECT_EQ(fixed, 3u);
}

// Tiles of rows that a dim counts: an item's array is for so many as the plan says, whatever the dim's bounds.
TEST_F(Plans, SumsRestOverAnExtentKnownAtRunTime) {
  const KernelSpec &k = kernel(Op::Contract, true);
  CompileOptions o;
  o.image = false;
  o.plans[k.name] = llvm::cantFail(parsePlan("contract: n 2; m 1; mr 5; vector 16; nr 1; mc 16; kc 16"));
  auto code = compileKernels(m.ctx(), s, allTargets()[0], o);
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  EXPECT_LE(code->kernels[&k - s.kernels.data()].scratch, 16u * 5 * 16 * 4 * 2);
}

TEST_F(Plans, KindsAreRefused) {
  EXPECT_EQ(refusal(kernel(Op::Reduce), "contract: n 1; m 0; mr 4; vector 16; nr 1"),
            "the kernel has no contract along whose labels lanes can run; expected map, rows or columns");
  EXPECT_EQ(refusal(kernel(Op::Contract), "rows: merge 1; vector 16; unroll 1"),
            "rows is for a kernel with a reduce; this one has none");
  EXPECT_EQ(refusal(kernel(Op::Cumulate), "columns: merge 1; vector 1; unroll 1"),
            "columns is for a kernel with a reduce or a contract; this one has none");
}

TEST_F(Plans, NumbersOfGpusAreRefused) {
  EXPECT_EQ(refusal(kernel(Op::Cumulate), "map: merge 1; vector 4; unroll 1; threads 256"),
            "threads 256 is of GPUs; this is a CPU's");
  EXPECT_EQ(refusal(kernel(Op::Contract), "contract: n 1; m 0; mr 4; vector 4; nr 1; mc 8; kc 8; pipeline 2"),
            "pipeline 2 is of GPUs; this is a CPU's");
}

TEST_F(Plans, CompilingChecksThem) {
  CompileOptions o;
  o.image = false;
  o.plans["none"] = Plan();
  auto code = compileKernels(m.ctx(), s, allTargets()[0], o);
  ASSERT_FALSE(bool(code));
  EXPECT_EQ(llvm::toString(code.takeError()), "a plan is given for kernel 'none'; there is none (see --emit=plan)");
  const KernelSpec &k = kernel(Op::Contract, true);
  o.plans.clear();
  o.plans[k.name] = llvm::cantFail(parsePlan("contract: n 7; m 1; mr 4; vector 16; nr 2"));
  code = compileKernels(m.ctx(), s, allTargets()[0], o);
  ASSERT_FALSE(bool(code));
  EXPECT_EQ(llvm::toString(code.takeError()),
            "plan of kernel '" + k.name +
                "', 'contract: n 7; m 1; mr 4; vector 16; nr 2': n 7; the layouts let "
                "lanes run along label 2 alone");
}

} // namespace

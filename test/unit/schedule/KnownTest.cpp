//===- KnownTest.cpp: what is known of dims where a kernel runs --------------===//
// Equations of an entry, the condition of a variant and those before it, a dim that was set, the counter of a loop.
#include "RunSchedule.h"
#include "astra/IR/Index.h"
#include "astra/IR/Text.h"
#include "astra/Numerics/Numerics.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace astra;

namespace {

struct Planned {
  Module m;
  Schedule s;
  explicit Planned(const char *text) : m(llvm::cantFail(parse(text, "test.uop"))) {
    llvm::cantFail(runNumerics(m));
    s = llvm::cantFail(schedule(m));
  }
  /// Whether one of the kernels named so knows this of dims.
  bool knows(llvm::StringRef kernel, UOpRef fact) const {
    return llvm::any_of(s.kernels, [&](const KernelSpec &k) {
      return llvm::StringRef(k.name).contains(kernel) && llvm::is_contained(k.known, fact);
    });
  }
  UOpRef dim(llvm::StringRef name) const {
    return *llvm::find_if(s.dims, [&](UOpRef d) { return d->str == name; });
  }
  /// a*x + b*y + k
  UOpRef sum(int64_t a, UOpRef x, int64_t b, UOpRef y, int64_t k) {
    Context &c = m.ctx();
    return idxAdd(c, idxAdd(c, idxMul(c, x, c.index(a)), idxMul(c, y, c.index(b))), c.index(k));
  }
};

TEST(Known, EquationsOfTheEntry) {
  Planned p(R"(module @m {
    dim n in 1..100
    dim m in 1..50
    require n == 2*m
    entry @main(%x : f32[n], %y : f32[m]) -> (%z : f32[n], %w : f32[m]) {
      %z = neg %x
      %w = neg %y
    }
  })");
  UOpRef n = p.dim("n"), m = p.dim("m");
  EXPECT_TRUE(p.knows("k", p.sum(1, n, -2, m, 0)));
  EXPECT_TRUE(p.knows("k", p.sum(-1, n, 2, m, 0)));
}

TEST(Known, ConditionsOfVariants) {
  Planned p(R"(module @m {
    dim n in 1..100
    param @w : f32[64, 32] = splat 0.5
    entry @main(%x : f32[n, 64]) -> (%y : f32[n, 32]) {
      %y = contract %x[i, k], @w[k, j] -> [i, j] sum [k]
    }
  })");
  UOpRef n = p.dim("n");
  EXPECT_TRUE(p.knows("contract_thin", p.sum(-1, n, 0, n, 4)));
  EXPECT_TRUE(p.knows("k1_contract", p.sum(1, n, 0, n, -5))) << "the thin one has not run";
}

TEST(Known, DimsThatAreSet) {
  Planned p(R"(module @m {
    dim n in 0..8
    func @go[len in 0..48](%x : f32[len], %limit : i64) {
      %have = from_index [len] : i64
      %more = lt %have, %limit
      return %more
    }
    func @step[len in 0..48](%x : f32[len], %limit : i64) {
      %grown = pad %x [0] [1] value=0.5
      return %grown, %limit
    }
    entry @main(%x : f32[n], %limit : i64) -> (%y : f32[%count]) {
      %loop = while(@go, @step) %x, %limit [n] names=len
      %many = proj %loop [] index=2 : i64
      %count = extent %many in 0..48
      %y = proj %loop [%count] index=0 : f32[%count]
    }
  })");
  UOpRef len = p.dim("len");
  EXPECT_TRUE(p.knows("", p.sum(-1, len, 0, len, 47))) << "len + 1 was found to be at most 48";
}

} // namespace

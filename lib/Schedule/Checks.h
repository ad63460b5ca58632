//===- Checks.h: what kernels of users assume, tested when they run -----------===//
// A kernel's function tests an i64 scalar by `extent x in lo..hi`; `after value, from_index(extent)` makes a value
// depend on a test that gives no size. A name of x (`tap`) is the sentence of a refusal.
#pragma once
#include "astra/IR/Builder.h"
#include <string>

namespace astra {

/// The tests of one kernel's programs as a value. `failed`: an i64 scalar, 0 where all hold, else 2 + p * n + s of the
/// first program p, of those in row-major order of the grid, whose test s of n fails.
struct KernelChecks {
  UOpRef failed;
  std::vector<std::string> says;
  llvm::SmallVector<UOpRef, 4> grid;
};

/// The roots with kernels that test nothing. tested: their tests become results of theirs, appended to `checks`.
/// Refuses, by `error`, tests that it cannot lift. `inherit` is told which node stands for which.
std::vector<UOpRef> liftChecks(Context &c, llvm::ArrayRef<UOpRef> roots, bool tested, std::vector<KernelChecks> &checks,
                               std::string &error, llvm::function_ref<void(UOpRef, UOpRef)> inherit);

} // namespace astra

//===- RandomGraph.h: modules from a seed, with inputs ---------------------===//
// Takes:    a seed and bounds on what may appear.
// Gives:    a module with one entry `main`, and values for it that reach its edges: zeros of both signs, subnormals,
//           infinities, NaNs, extremes of integers, indices outside. The same seed gives the same module on every
//           machine.
// Does not: evaluate or compile; the tests of every stage do, and compare bytes.
#pragma once
#include "astra/IR/Eval.h"
#include <memory>

namespace astra::test {

struct RandomOptions {
  unsigned steps = 24;   // ops tried; most are added
  bool functions = true; // exp ...
  bool control = true;   // cond, while, scan
  bool symbolic = true;  // named dims in shapes, data dims
  bool narrow = true;    // f16, bf16
  bool complex = true;   // complex64, complex128
  bool subByte = true;   // i2, u2, i4, u4, f4e2m1
  bool states = true;
  bool kernels = true; // of users
  bool units = true;   // matrix units that add some of the products
};

struct RandomCase {
  Module module;
  EvalInputs inputs;
  const Entry &entry() const { return module.entries[0]; }
};

/// Adds an entry to m and gives values for it. Other than in an entry `main`, dims and states are called after the
/// entry.
EvalInputs addRandomEntry(Module &m, llvm::StringRef name, uint64_t seed, const RandomOptions &options = {});

RandomCase randomCase(uint64_t seed, const RandomOptions &options = {});

/// The case as text: the module, then each input as "input NAME : TYPE[EXTENTS] = BITS ...". What a bug report needs.
std::string text(const RandomCase &c);

/// A smaller case for which `fails` still holds: one output if one suffices, the first node that fails, inputs in place
/// of what only feeds it. `fails` must hold for `c`.
RandomCase shrink(const RandomCase &c, llvm::function_ref<bool(const RandomCase &)> fails);

} // namespace astra::test

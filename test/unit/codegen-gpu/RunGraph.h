//===- RunGraph.h: a module's kernels in the emulator ------------------------===//
// Takes:    the text of a module's dims and entry, a target.
// Gives:    its schedule, kernels and their host form; runs with random inputs against the evaluator.
#pragma once
#include "RunGpu.h"
#include "astra/IR/Eval.h"
#include "astra/Schedule/Program.h"
#include <memory>

namespace astra::test {

struct GraphOnGpu {
  /// change: applied to the plan of each kernel.
  GraphOnGpu(llvm::StringRef text, const GpuTarget &target, bool build = true,
             std::function<void(Plan &)> change = nullptr);
  /// The host form of a module in place of the one that was lowered.
  void use(GpuModule m);
  /// What differs from the evaluator, or nothing. dims: values of the module's dims, in order.
  std::string difference(llvm::ArrayRef<int64_t> dims, uint64_t seed);
  std::string plans() const;

  std::string wrong; // why there are no kernels
  const GpuTarget &target;
  std::optional<Module> original, lowered;
  std::optional<Schedule> schedule;
  std::vector<Kernel> storage;
  std::vector<GpuKernel> kernels;
  std::optional<GpuModule> module;
  std::optional<Emulator> emulator;
  uint64_t threads = 0; // executed

private:
  bool executed = false; // and so counted
  llvm::Error make(llvm::StringRef text, bool build, const std::function<void(Plan &)> &change);
};

/// The most elements that one thread takes in one fold, one after another, of what is not a product (its order is a
/// chain's).
int64_t longestFold(const GpuKernel &k);

/// Values around 0 of any type, the same for one seed.
Tensor randomTensor(DType t, std::vector<int64_t> shape, uint64_t seed);

} // namespace astra::test

//===- RunSchedule.h: a schedule run kernel by kernel in the evaluator -----===//
// Takes:    a module (past the numerics stage), an entry, inputs.
// Gives:    what the scheduled, planned, lowered and expanded kernels compute, every one run by evalKernel on bytes in
//           planned memory.
// Does not: use a compiler or the runtime: it holds the scheduler, the plans and the lowering to the evaluator.
#pragma once
#include "astra/Codegen/Lower.h"
#include "astra/Codegen/Target.h"
#include "astra/IR/Eval.h"
#include "astra/Schedule/Program.h"
#include <functional>

namespace astra {

class ScheduleRun {
public:
  ScheduleRun(Module &m, const Schedule &s, const Target &t, bool expand) : m(m), s(s), target(t), expand(expand) {}

  /// Outputs of entry `e`, canonical NaNs not applied. Fails with a sentence.
  llvm::Expected<EvalResult> run(unsigned e, const EvalInputs &in);
  std::map<std::string, ExternalFunction> externals = {}; // what modules call, by name
  uint64_t bytesStored = 0;                               // by kernels that write state in place

  /// Runs a launch in place of the evaluator: kernel number, buffers, the dim vector, work items.
  std::function<llvm::Error(uint32_t, llvm::ArrayRef<llvm::MutableArrayRef<uint8_t>>, llvm::ArrayRef<int64_t>, int64_t)>
      execute;
  /// Kernels in place of those that the target's plans give.
  void useKernels(const std::vector<Kernel> &all) {
    for (size_t i = 0; i < all.size(); ++i) kernels[i] = all[i];
  }

private:
  using Bytes = std::vector<uint8_t>;
  std::optional<int64_t> value(UOpRef x) {
    return idxEvaluate(x, [&](UOpRef d) -> std::optional<int64_t> {
      if (d->op != Op::Dim) return std::nullopt;
      auto it = dims.find(d->str.str());
      return it == dims.end() ? std::nullopt : std::optional<int64_t>(it->second);
    });
  }
  llvm::Error program(const Routine &r, uint32_t p);
  llvm::Error launch(const LaunchInstr &l);
  llvm::Error call(const ExternalInstr &x);
  /// The oldest of the calls beside, but for so many.
  llvm::Error land(size_t left);
  const Kernel &lowered(uint32_t k);

  Module &m;
  const Schedule &s;
  const Target &target;
  bool expand;
  std::map<std::string, int64_t> dims;
  std::map<uint32_t, Kernel> kernels;
  std::vector<Bytes> storage;    // one per distinct piece of memory
  std::vector<uint32_t> binding; // buffer -> storage
  std::vector<const ExternalInstr *> beside;
};

} // namespace astra

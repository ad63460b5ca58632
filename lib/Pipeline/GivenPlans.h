//===- GivenPlans.h: plans from outside --------------------------------------===//
// Takes:    the texts of --plans and --tuning.
// Gives:    for a target the plans of a schedule's kernels: those of --tuning, which the kernel's content finds, and
//           before them those of --plans, by the kernel's name.
// Keeps:    a plan for the machines it is for.
// Does not: choose plans.
#pragma once
#include "astra/Codegen/GPU.h"
#include "astra/Codegen/Tuning.h"
#include <functional>

namespace astra {

struct PipelineOptions;

class GivenPlans {
public:
  /// `note` takes a sentence on how many kernels have their plan from --tuning.
  GivenPlans(const PipelineOptions &options, std::function<void(const llvm::Twine &)> note)
      : o(options), note(std::move(note)) {}
  /// Of the options' texts.
  llvm::Error read();
  llvm::Expected<Plans> forTarget(llvm::ArrayRef<KernelSpec> kernels, const Target &target) const;
  llvm::Expected<Plans> forTarget(llvm::ArrayRef<KernelSpec> kernels, const GpuTarget &target) const;

  Tuning tuning;

private:
  struct Named {
    std::string target, kernel; // target "": any of its kind
    Plan plan;
    size_t line; // of the text of --plans
  };
  const PipelineOptions &o;
  std::function<void(const llvm::Twine &)> note;
  std::vector<Named> named;

  llvm::Error readPlans();
  llvm::Expected<Plans> find(llvm::ArrayRef<KernelSpec> kernels, llvm::StringRef target, bool gpu,
                             llvm::function_ref<llvm::Error(const KernelSpec &, const Plan &)> check) const;
};

} // namespace astra
